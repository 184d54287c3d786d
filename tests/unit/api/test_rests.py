"""An object with a mistake: what is still known of it, so that its status says so where somebody looks for it."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.decode import documents


def rest(kind: str, spec: str, metadata: str = "{name: o, namespace: ns}") -> Any:
    """What is left of an invalid object."""
    (decoded,) = documents.decode(
        f"apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n", "f.yaml"
    )
    assert (decoded.verdict, decoded.item) == ("invalid", None)
    return decoded.remains


def test_a_gateway_is_still_of_its_class_and_has_no_listeners() -> None:
    left = rest("Gateway", "{gatewayClassName: gatewright, listeners: [{name: a, port: 0, protocol: HTTP}]}")
    assert (left.kind, str(left.key)) == ("Gateway", "Gateway ns/o")
    assert (left.spec.gateway_class_name, left.spec.listeners) == ("gatewright", ())


def test_a_class_still_has_its_controller() -> None:
    left = rest("GatewayClass", "{controllerName: gatewright.dev/controller, parametersRef: 7}", "{name: o}")
    assert left.spec.controller_name == "gatewright.dev/controller"


def test_a_set_of_listeners_is_still_at_its_gateway_and_has_none() -> None:
    left = rest("ListenerSet", "{parentRef: {name: web}, listeners: [{name: a, port: 0, protocol: HTTP}]}")
    assert (left.spec.parent_ref.name, left.spec.listeners) == ("web", ())


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute"])
def test_a_route_still_has_the_parents_that_can_be_read_and_no_rules(kind: str) -> None:
    left = rest(kind, "{parentRefs: [{name: web}, {name: 7}, {name: api}], rules: 7}")
    assert ([each.name for each in left.spec.parent_refs], left.spec.rules) == (["web", "api"], ())


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Gateway", "{listeners: []}"),
        ("Gateway", "{gatewayClassName: 7}"),
        ("Gateway", "7"),
        ("GatewayClass", "{controllerName: 7}"),
        ("ListenerSet", "{parentRef: 7}"),
        ("HTTPRoute", "{parentRefs: 7}"),
        ("HTTPRoute", "{parentRefs: [7], rules: 7}"),
    ],
)
def test_of_an_object_that_names_nobody_nothing_is_left(kind: str, spec: str) -> None:
    assert rest(kind, spec) is None


def test_of_an_object_without_a_name_nothing_is_left() -> None:
    assert rest("Gateway", "{gatewayClassName: gatewright}", "{name: 7}") is None
