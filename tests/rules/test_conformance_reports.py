"""The committed reports of Gateway API's suite are about the features that GatewayClasses claim."""

from __future__ import annotations

from typing import Final

import pytest
import yaml

from controlplane.translate.status.features import FEATURES
from tests.cluster.rig.features import VERSIONS, of_suite
from tests.conftest import ROOT

REPORTS: Final = dict(zip(VERSIONS, ("report.yaml", "report-v1.7.0.yaml"), strict=True))
NOT_LISTED: Final = {
    *("GRPCRoute", "Gateway", "HTTPRoute", "ReferenceGrant", "TLSRoute"),
    *("GRPCRouteNamedRouteRule", "GRPCRouteRequestHeaderModifier"),
}
"""Of core, and of the profile GATEWAY-GRPC: a report names the extended features of the other profiles alone."""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_report_has_what_is_claimed(version: str) -> None:
    report = yaml.safe_load((ROOT / "docs" / "conformance" / REPORTS[version]).read_text())
    listed = {name for each in report["profiles"] for name in each.get("extended", {}).get("supportedFeatures", ())}
    assert listed == {*of_suite(FEATURES, version)} - NOT_LISTED
