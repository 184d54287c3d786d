"""Lint of Secrets that stay in their namespace."""

from __future__ import annotations

from pathlib import Path

from controlplane.lint.lint import lint_paths
from tests.unit.translate.tenants import CLASS, SECRET, SERVICE, SERVICE_REF, gateway, grant, policy, route


def test_a_secret_that_stays_from_a_foreign_gateway_is_told_where_it_lacks(tmp_path: Path) -> None:
    texts = [CLASS, gateway("b"), SECRET, SERVICE, policy(), grant("HTTPRoute", "Service"), route("b", SERVICE_REF)]
    why = (
        "Secret a/client is kept from Gateway b/gw: no ReferenceGrant in namespace a permits HTTPRoutes or Gateways of "
        "namespace b to use it"
    )
    for granted, expected in (
        ([], {("GatewayPolicy a/tls", "spec.backend.tls"), ("HTTPRoute b/r", "spec.rules")}),
        ([grant("HTTPRoute", "Secret", "client")], set()),
    ):
        (tmp_path / "a.yaml").write_text("---".join([*texts, *granted]))
        told = [each for each in lint_paths([tmp_path]).problems if each.code == "not-granted"]
        assert (
            {(each.object, each.path) for each in told if each.message == why}
            == expected
            == {(each.object, each.path) for each in told}
        )
