"""A GatewayClass whose object goes takes none of its Gateways along: they are served, and say so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.both_planes import BothPlanes

CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: %s}
"""
OURS = CLASS % "gatewright.dev/controller"
OBJECTS = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 8080, protocol: HTTP}]
"""
REST = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: one, namespace: default}
spec: {static: {host: 10.0.0.1, port: 80}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules: [{matches: [{path: {value: %s}}], backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: one}]}]
"""
WEB = OBJECTS % "web"


def status(made: BothPlanes, kind: str = "Gateway", name: str = "web", namespace: str = "default") -> Any:
    return made.world.program.status(kind, namespace, name)


def accepted(made: BothPlanes) -> tuple[str, str]:
    (found,) = (each for each in status(made)["conditions"] if each["type"] == "Accepted")
    return found["status"], found["message"]


@pytest.fixture
def vanished() -> BothPlanes:
    made = BothPlanes(OURS + WEB + REST % "/")
    assert (made.ask("/a"), accepted(made)) == ((200, "ok"), ("True", ""))
    made.remove("GatewayClass", "gatewright", "")
    return made


def test_its_gateways_are_served_and_say_so(vanished: BothPlanes) -> None:
    assert vanished.ask("/a") == (200, "ok")
    verdict, message = accepted(vanished)
    assert verdict == "True" and message.startswith("GatewayClass gatewright is gone; ")
    assert status(vanished, "GatewayClass", "gatewright", "") is None


def test_edits_of_what_is_below_act_as_ever(vanished: BothPlanes) -> None:
    vanished.load(REST % "/b")
    assert (vanished.ask("/a")[0], vanished.ask("/b")[0]) == (404, 200)


def test_a_gateway_that_comes_afterwards_has_no_class(vanished: BothPlanes) -> None:
    vanished.load(OBJECTS % "later")
    assert status(vanished, name="later") is None


def test_a_class_that_comes_back_has_its_gateways_again(vanished: BothPlanes) -> None:
    vanished.load(OURS + OBJECTS % "later")
    assert accepted(vanished) == ("True", "") and vanished.ask("/a")[0] == 200
    assert status(vanished, name="later") is not None
    assert status(vanished, "GatewayClass", "gatewright", "") is not None


def test_a_class_that_comes_back_as_somebody_elses_ends_it(vanished: BothPlanes) -> None:
    vanished.load(CLASS % "a.example/controller")
    assert status(vanished) is None and not vanished.applier.current.table.binds


def test_a_class_that_is_given_to_somebody_else_and_then_goes_is_gone() -> None:
    made = BothPlanes(OURS + WEB + REST % "/")
    made.load(CLASS % "a.example/controller")
    assert status(made) is None and not made.applier.current.table.binds
    made.remove("GatewayClass", "gatewright", "")
    assert status(made) is None


def test_a_gateway_that_goes_is_gone(vanished: BothPlanes) -> None:
    vanished.remove("Gateway", "web")
    assert not vanished.applier.current.table.binds and status(vanished) is None


def test_a_class_without_gateways_is_forgotten() -> None:
    made = BothPlanes(OURS)
    made.remove("GatewayClass", "gatewright", "")
    made.load(WEB)
    assert status(made) is None
