"""Definitions of Gateway API beside the objects: which releases a GatewayClass calls supported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.api.decode import documents
from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS, world

NAME = "gateways.gateway.networking.k8s.io"


def definition(version: str, group: str = "gateway.networking.k8s.io") -> str:
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {NAME}, annotations: {{gateway.networking.k8s.io/bundle-version: {version}}}}}
spec: {{group: {group}, names: {{kind: Gateway, plural: gateways}}, scope: Namespaced, versions: [{{name: v1}}]}}
"""


def said(made: World) -> str:
    (_, found) = made.conditions("GatewayClass", "gatewright", namespace="")
    return found


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("v1.7.0", "True SupportedVersion"),
        ("v1.7.9-rc.1", "True SupportedVersion"),
        ("v1.0.0", "True SupportedVersion"),
        ("v1.8.0", "False UnsupportedVersion"),
        ("v1.70.0", "False UnsupportedVersion"),
        ("v2.0.0", "False UnsupportedVersion"),
        ("v0.8.1", "False UnsupportedVersion"),
        ("v1.7", "False UnsupportedVersion"),
        ("'1.7.0'", "False UnsupportedVersion"),
        ("main", "False UnsupportedVersion"),
        ("''", "False UnsupportedVersion"),
    ],
)
def test_releases(version: str, status: str) -> None:
    made = world(CLASS, definition(version))
    assert said(made).startswith(f"SupportedVersion={status} ")
    assert made.conditions("GatewayClass", "gatewright", namespace="")[0].startswith("Accepted=True Accepted ")


def test_definitions_that_come_change_and_go() -> None:
    made = world(CLASS)
    assert said(made) == (
        "SupportedVersion=True SupportedVersion (1): no definitions of Gateway API are here; v1.0 to v1.7 are known"
    )
    made.put(definition("v1.9.0"))
    assert said(made) == (
        f"SupportedVersion=False UnsupportedVersion (1): {NAME} is of release v1.9.0; v1.0 to v1.7 are known"
    )
    made.put(definition("v1.7.0"))
    assert said(made) == "SupportedVersion=True SupportedVersion (1)"
    made.apply([("CustomResourceDefinition", ("", NAME), None)])
    assert "no definitions" in said(made)


def test_those_of_other_groups_say_nothing() -> None:
    assert "no definitions" in said(world(CLASS, definition("v9.0.0", "example.com")))


def test_our_own_definitions_are_read_without_a_word(root: Path) -> None:
    for file in sorted((root / "manifests/crds").glob("*.yaml")):
        for decoded in documents.decode(file.read_text(), file.name):
            assert (decoded.verdict, decoded.problems) == ("valid", ())
