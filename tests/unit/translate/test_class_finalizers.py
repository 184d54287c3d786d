"""The finalizer of GatewayClasses: wanted on those of ours that a Gateway names, and on no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.facts import Fact, Previous, gone
from controlplane.translate.gateway.class_finalizers import FINALIZER, FinalizerWrite
from controlplane.translate.keys import ObjectKey
from gatewright.api.schema import metadata as api
from tests.unit.translate.golden import World, facts, objects

NAME = "gatewright"
GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: %s
  listeners: [{name: http, port: 80, protocol: HTTP}]
"""


def gateway_class(*finalizers: str, version: str = "1", controller: str = "gatewright.dev/controller") -> Fact:
    (found,) = facts(
        objects(f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: {NAME}, finalizers: [{", ".join(finalizers)}]}}
spec: {{controllerName: {controller}}}
""")
    )
    return replace(found, previous=Previous({}, version) if version else None)


def deleted(fact: Fact) -> Fact:
    assert isinstance(fact.model, api.KubeObject)
    metadata = fact.model.metadata.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})
    return replace(fact, model=fact.model.model_copy(update={"metadata": metadata}))


@pytest.fixture
def used() -> World:
    made = World()
    made.put(GATEWAY % NAME)
    return made


def wanted(made: World, *found: Fact) -> FinalizerWrite | None:
    made.program.apply(found)
    return made.program.class_finalizers.present().get(ObjectKey("", NAME))


def test_a_class_in_use_gets_it_beside_others(used: World) -> None:
    assert wanted(used, gateway_class()) == FinalizerWrite((FINALIZER,), "1")
    assert wanted(used, gateway_class("a/b", version="2")) == FinalizerWrite(("a/b", FINALIZER), "2")
    assert wanted(used, gateway_class("a/b", FINALIZER, version="3")) is None


def test_a_class_that_no_gateway_names_has_it_taken_off() -> None:
    made = World()
    assert wanted(made, gateway_class()) is None
    assert wanted(made, gateway_class("a/b", FINALIZER)) == FinalizerWrite(("a/b",), "1")


def test_it_goes_with_the_last_gateway(used: World) -> None:
    used.put((GATEWAY % NAME).replace("name: gw", "name: more"))
    assert wanted(used, gateway_class(FINALIZER)) is None
    assert wanted(used, gone(api.ObjectKey("Gateway", "default", "gw"))) is None
    used.put((GATEWAY % "another").replace("name: gw", "name: more"))
    assert wanted(used) == FinalizerWrite((), "1")
    used.put(GATEWAY % NAME)
    assert wanted(used) is None


def test_a_class_that_is_being_deleted_gets_none_that_is_new_and_loses_it_when_unused(used: World) -> None:
    assert wanted(used, deleted(gateway_class("a/b"))) is None, "the API server refuses it"
    assert wanted(used, deleted(gateway_class(FINALIZER, version="2"))) is None
    removed = gone(api.ObjectKey("Gateway", "default", "gw"))
    assert wanted(used, removed) == FinalizerWrite((), "2")


def test_classes_of_other_controllers_are_left_alone(used: World) -> None:
    assert wanted(used, gateway_class(controller="example.com/other")) is None
    used.program.apply([gone(api.ObjectKey("Gateway", "default", "gw"))])
    assert wanted(used, gateway_class(FINALIZER, controller="example.com/other")) is None


def test_a_class_that_is_gone_gets_none(used: World) -> None:
    assert wanted(used, gateway_class()) is not None
    assert wanted(used, gone(api.ObjectKey("GatewayClass", "", NAME))) is None


def test_a_source_without_versions_keeps_no_finalizers(used: World) -> None:
    assert wanted(used, gateway_class(version="")) is None
