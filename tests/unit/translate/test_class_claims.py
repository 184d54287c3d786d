"""A controller that starts while a GatewayClass is gone goes on with the Gateways whose statuses say that they were
ours, and with no other; one that ran all the time has the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from controlplane.facts import Fact, Previous, gone
from controlplane.translate.keys import ObjectKey as Place
from controlplane.translate.status import claims
from gatewright.api.schema.metadata import ObjectKey
from tests.harness.seeds import rolls, times
from tests.unit.translate.golden import World, facts, objects
from tests.unit.translate.test_wanted import PROVISIONER

CLASS_KEY = ObjectKey("GatewayClass", "", "gatewright")
GATEWAY = ObjectKey("Gateway", "default", "gw")
OURS, THEIRS = "gatewright.dev/controller", "example.com/other"
FOREIGN = {"type": "example.com/Checked", "status": "True", "reason": "Checked", "message": ""}


def class_of(controller: str, name: str = "gatewright") -> Fact:
    (found,) = facts(
        objects(f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: {name}}}
spec: {{controllerName: {controller}}}
""")
    )
    return found


def gateway(class_name: str = "gatewright", name: str = "gw", port: int = 80) -> Fact:
    (found,) = facts(
        objects(f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default}}
spec:
  gatewayClassName: {class_name}
  listeners: [{{name: http, port: {port}, protocol: HTTP}}]
""")
    )
    return found


class Cluster:
    """Objects with their statuses, which outlive controllers."""

    def __init__(self, *found: Fact) -> None:
        self.facts: dict[ObjectKey, Fact] = {}
        self.controller = World()
        self.version = 0
        self.change(*found)

    def change(self, *found: Fact) -> None:
        """Somebody writes objects; then the controller writes statuses until there is nothing left to write."""
        for each in found:
            self.version += 1
            before = self.facts.get(each.key)
            status = {} if before is None or before.previous is None else before.previous.status
            self.facts[each.key] = replace(each, previous=Previous(status, f"{self.version}"))
        self.controller.program.apply(self.facts[each.key] for each in found)
        self._write()

    def remove(self, key: ObjectKey) -> None:
        del self.facts[key]
        self.controller.program.apply([gone(key)])
        self._write()

    def restart(self) -> World:
        """Another controller, that knows what is there and nothing else."""
        self.controller = World()
        self.controller.program.apply(self.facts.values())
        self._write()
        return self.controller

    def _write(self) -> None:
        for _ in range(4):
            unwritten = [*self.controller.program.unwritten.present().items()]
            for place, write in unwritten:
                key = ObjectKey(*place)
                self.version += 1
                self.facts[key] = replace(self.facts[key], previous=Previous(write.body, f"{self.version}"))
                self.controller.program.apply([self.facts[key]])
        assert not unwritten, "what is written is left to write"

    def told(self, key: ObjectKey = GATEWAY) -> dict[str, dict[str, Any]]:
        previous = self.facts[key].previous
        assert previous is not None
        return {each["type"]: each for each in previous.status.get("conditions", ())}


@pytest.fixture
def lost() -> Cluster:
    """A Gateway that was ours, its class gone while no controller ran."""
    made = Cluster(class_of(OURS), gateway())
    assert made.told()[claims.TYPE]["message"] == f"by {OURS}, for GatewayClass gatewright"
    assert made.told()["Accepted"]["message"] == ""
    del made.facts[CLASS_KEY]
    return made


def test_a_gateway_that_was_ours_is_served_and_says_what_is_the_matter(lost: Cluster) -> None:
    before = lost.controller.resources
    assert before and lost.restart().resources == before
    accepted = lost.told()["Accepted"]
    assert accepted["status"] == "True" and accepted["message"].startswith("GatewayClass gatewright is gone; ")
    assert "the parameters of the class are unknown" in accepted["message"]
    assert lost.restart().resources == before, "it stays so"


def test_what_was_made_for_it_stays_as_it_is(lost: Cluster) -> None:
    program = lost.restart().program
    for _ in program.provision(PROVISIONER):
        pass
    assert program.wanted.present()[Place("default", "gw")].as_it_is


def test_edits_act_also_of_what_was_edited_while_nobody_looked(lost: Cluster) -> None:
    lost.facts[GATEWAY] = replace(gateway(port=81), previous=lost.facts[GATEWAY].previous)
    assert "bind/default/gw/81" in lost.restart().messages()
    lost.change(gateway(port=82))
    assert "bind/default/gw/82" in lost.controller.messages()


def test_a_class_that_comes_back_has_it_again(lost: Cluster) -> None:
    before = lost.restart().resources
    lost.change(class_of(OURS))
    assert lost.controller.resources == before and lost.told()["Accepted"]["message"] == ""
    assert lost.told(CLASS_KEY)["Accepted"]["status"] == "True"


def test_a_class_that_comes_back_as_somebody_elses_ends_it_and_its_status_is_left_to_them(lost: Cluster) -> None:
    previous = lost.facts[GATEWAY].previous
    assert previous is not None
    said = {**previous.status, "conditions": [FOREIGN, *previous.status["conditions"]]}
    lost.facts[GATEWAY] = replace(lost.facts[GATEWAY], previous=Previous(said, "9"))
    lost.restart()
    lost.change(class_of(THEIRS))
    assert not lost.controller.resources
    assert claims.TYPE not in lost.told() and {"example.com/Checked", "Accepted"} <= lost.told().keys()
    lost.remove(CLASS_KEY)
    assert not lost.restart().resources, "it was not ours in the end"


def test_another_class_name_ends_it(lost: Cluster) -> None:
    lost.restart()
    lost.change(gateway("another"))
    assert not lost.controller.resources and claims.TYPE not in lost.told()
    lost.change(gateway())
    assert not lost.controller.resources and not lost.restart().resources


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        {"conditions": None},
        {"conditions": "x"},
        {"conditions": ["x", {"type": claims.TYPE}]},
        {"conditions": [{"type": claims.TYPE, "status": "True", "message": None}]},
        {"conditions": [{"type": claims.TYPE, "status": "False", "message": claims.condition("gatewright").message}]},
        {"conditions": [{"type": claims.TYPE, "status": "True", "message": claims.condition("another").message}]},
        {"conditions": [{"type": "Accepted", "status": "True", "message": claims.condition("gatewright").message}]},
    ],
)
def test_a_gateway_whose_status_does_not_say_so_has_no_class(said: Any) -> None:
    made = Cluster()
    made.facts[GATEWAY] = replace(gateway(), previous=None if said is None else Previous(said, "1"))
    assert not made.restart().resources


def test_a_source_without_statuses_says_nothing_of_it() -> None:
    made = World()
    made.program.apply([class_of(OURS), gateway()])
    assert not [each for each in made.conditions("Gateway", "gw") if each.startswith(claims.TYPE)]


def test_whoever_starts_has_the_gateways_of_who_ran_all_the_time() -> None:
    """Whatever happened: classes that come as ours or somebody else's and go, Gateways that move, come and go."""
    draw = rolls("claims")
    for _ in range(times(60)):
        made = Cluster()
        for _ in range(30):
            happens(made, draw)
            running = dict(made.controller.resources)
            if draw.random() < 0.3:
                assert made.restart().resources == running


def happens(made: Cluster, draw: Random) -> None:
    name = draw.choice("ab")
    match draw.randrange(6):
        case 0:
            made.change(class_of(draw.choice([OURS, OURS, THEIRS]), name))
        case 1 | 2:
            key = ObjectKey("Gateway", "default", name) if draw.random() < 0.3 else ObjectKey("GatewayClass", "", name)
            if key in made.facts:
                made.remove(key)
        case _:
            made.change(gateway(draw.choice("ab"), name, draw.randrange(80, 83)))
