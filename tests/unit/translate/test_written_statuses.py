"""Statuses that were written before: a restart writes nothing, others' entries stay, a new status runs no transform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controlplane.derive import Change
from controlplane.facts import Fact, Invalid, Previous
from controlplane.translate.fleet import FleetView
from controlplane.translate.status.statuses import StatusKey, StatusWrite
from gatewright.api.schema.metadata import ObjectKey
from tests.unit.translate.golden import World, facts, objects
from tests.unit.translate.test_program import CLASS, FOREIGN_CLASS, GATEWAY, ROUTE, SERVICE, SLICE, many_routes

GATEWAY_KEY = ObjectKey("Gateway", "default", "gw")
ROUTE_KEY = ObjectKey("HTTPRoute", "default", "shop")
OTHER = "example.com/other"


class Server:
    """A toy API server with its status writer: objects, their statuses, and each write that was made."""

    def __init__(self, found: Iterable[Fact]) -> None:
        self.facts = {fact.key: replace(fact, previous=Previous({}, "1")) for fact in found}
        self.writes: list[StatusKey] = []

    def write(self, changes: Sequence[Change[StatusKey, StatusWrite]]) -> None:
        for place, _, new in changes:
            if new is not None:
                fact = self.facts[ObjectKey(*place)]
                assert fact.previous is not None and fact.previous.resource_version == new.resource_version
                self.writes.append(place)
                self.set(fact.key, new.body)

    def set(self, key: ObjectKey, status: Any) -> Fact:
        """Somebody writes a status."""
        version = self.facts[key].previous
        assert version is not None
        self.facts[key] = replace(self.facts[key], previous=Previous(status, f"{int(version.resource_version) + 1}"))
        return self.facts[key]


def run(server: Server, now: float, *, programmed: bool = True) -> World:
    """A controller that reads what is there, and writes statuses until nothing is left to write."""
    made = World()
    made.now = now
    made.program.apply(server.facts.values())
    if programmed:
        made.program.fleet("default/gw", FleetView(1, 1))
    made.program.unwritten.subscribe(server.write)
    made.program.apply(server.facts.values())
    assert not made.program.unwritten.present(), "what is written is left to write"
    return made


def edit(made: World, server: Server, text: str) -> None:
    """Somebody writes an object that is there."""
    for fact in facts(objects(text)):
        server.facts[fact.key] = replace(fact, previous=server.facts[fact.key].previous)
        made.program.apply([server.facts[fact.key]])


@pytest.mark.slow
def test_a_controller_that_starts_again_with_ten_thousand_objects_writes_nothing() -> None:
    routes = many_routes(10_000)
    server = Server(facts([*objects(CLASS + GATEWAY + SERVICE + SLICE), *routes]))
    first = run(server, 1_000.0)
    assert len(server.writes) == 10_002
    server.writes.clear()
    again = run(server, 900_000.0)
    assert server.writes == []
    assert again.program.statuses() == first.program.statuses()


def test_what_changed_while_nobody_looked_is_written_and_dated_and_nothing_else() -> None:
    server = Server(facts(objects(CLASS + GATEWAY + SERVICE + SLICE + ROUTE)))
    first = run(server, 0.0)
    server.writes.clear()
    del server.facts[ObjectKey("Service", "default", "shop")]
    again = run(server, 86_400.0)
    assert server.writes == [ROUTE_KEY]
    times = {each["type"]: each["lastTransitionTime"] for each in _parent(again)["conditions"]}
    assert times == {"Accepted": "1970-01-01T00:00:00Z", "ResolvedRefs": "1970-01-02T00:00:00Z"}
    assert _parent(first)["conditions"][0]["lastTransitionTime"] == times["Accepted"]


def test_a_new_status_alone_runs_no_transform() -> None:
    server = Server(facts(objects(CLASS + GATEWAY + SERVICE + SLICE + ROUTE)))
    made = run(server, 0.0)
    before = made.program.runs()
    batches = len(made.batches)
    made.program.apply([server.set(GATEWAY_KEY, {"addresses": [{"value": "10.0.0.1"}]})])
    assert made.program.runs() == before and len(made.batches) == batches


def test_what_others_say_stays_and_what_they_overwrote_is_written_again() -> None:
    server = Server(facts(objects(CLASS + GATEWAY + SERVICE + SLICE + ROUTE)))
    made = run(server, 0.0)
    theirs = {"parentRef": {"name": "theirs"}, "controllerName": OTHER, "conditions": []}
    mine = _parent(made)
    server.writes.clear()
    made.program.apply([server.set(ROUTE_KEY, {"parents": [theirs, mine]})])
    assert server.writes == [], "all that is ours is there"
    made.program.apply([server.set(ROUTE_KEY, {"parents": [theirs]})])
    assert server.writes == [ROUTE_KEY]
    assert _written(server, ROUTE_KEY)["parents"] == [theirs, mine]
    edit(made, server, ROUTE.replace("{name: gw}", "{name: gw, sectionName: absent}"))
    body = made.program.status(*ROUTE_KEY)
    assert body is not None
    assert body["parents"][0] == theirs and body["parents"][1]["conditions"][0]["reason"] == "NoMatchingParent"


def test_conditions_of_others_on_a_gateway_and_its_listeners_stay() -> None:
    server = Server(facts(objects(CLASS + GATEWAY)))
    made = run(server, 0.0)
    status = _written(server, GATEWAY_KEY)
    checked = {"type": "example.com/Checked", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "t"}
    listener = {**status["listeners"][0], "conditions": [checked, *status["listeners"][0]["conditions"]]}
    made.program.apply(
        [server.set(GATEWAY_KEY, {"conditions": [*status["conditions"], checked], "listeners": [listener]})]
    )
    edit(made, server, GATEWAY.replace("generation: 1", "generation: 2"))
    body = made.program.status(*GATEWAY_KEY)
    assert body is not None and checked in body["conditions"] and body["listeners"][0]["conditions"][0] == checked
    assert {each.get("observedGeneration") for each in body["conditions"]} == {2, None}


def test_of_a_route_that_leads_to_nobody_of_ours_our_entries_are_taken_back() -> None:
    server = Server(facts(objects(CLASS + GATEWAY + SERVICE + SLICE + ROUTE)))
    made = run(server, 0.0)
    theirs = {"parentRef": {"name": "gw"}, "controllerName": OTHER, "conditions": []}
    made.program.apply([server.set(ROUTE_KEY, {"parents": [*_written(server, ROUTE_KEY)["parents"], theirs]})])
    made.put(FOREIGN_CLASS)
    assert _written(server, ROUTE_KEY)["parents"] == [theirs]


def test_a_status_of_an_object_that_is_gone_is_not_written() -> None:
    server = Server(facts(objects(CLASS + GATEWAY)))
    made = World()
    made.program.apply(server.facts.values())
    assert set(made.program.unwritten.present()) == {("GatewayClass", "", "gatewright"), GATEWAY_KEY}
    made.program.apply([Fact(key, None) for key in server.facts])
    assert not made.program.unwritten.present() and not made.program.statuses()


def test_a_source_without_statuses_has_nothing_to_write() -> None:
    made = World()
    made.put(CLASS + GATEWAY)
    assert made.program.statuses() and not made.program.unwritten.present()


def test_an_invalid_object_that_comes_back_as_it_was_is_told_so_in_between() -> None:
    server = Server(facts(objects(CLASS + GATEWAY + SERVICE + SLICE + ROUTE)))
    made = run(server, 0.0)
    good = server.facts[ROUTE_KEY]
    batches = len(made.batches)
    wrong = replace(good, model=Invalid(("spec.rules: is bad",), 2, good.acts))
    made.program.apply([wrong])
    accepted = _parent(made)["conditions"][0]
    assert (accepted["status"], accepted["reason"], accepted["observedGeneration"]) == ("False", "UnsupportedValue", 2)
    assert accepted["message"] == "not valid: spec.rules: is bad; the last valid version acts on"
    made.program.apply([good])
    assert _parent(made)["conditions"][0]["status"] == "True"
    assert len(made.batches) == batches, "it was served all the time"


def _written(server: Server, key: ObjectKey) -> Any:
    previous = server.facts[key].previous
    assert previous is not None
    return previous.status


def _parent(made: World) -> Any:
    body = made.program.status(*ROUTE_KEY)
    assert body is not None
    return body["parents"][-1]
