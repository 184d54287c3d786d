"""The pipeline under a source that behaves as an API server: lists anew, repetitions, late idleness, statuses, and
objects of newer definitions than ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controlplane.facts import Invalid
from controlplane.pipeline import Pipeline
from controlplane.sources.directory import Directory
from controlplane.sources.objects import fact_from
from controlplane.sources.source import Source
from gatewright.api.schema.metadata import ObjectKey
from gatewright.wire.v1 import resource_pb2
from tests.fakes.object_server import ObjectServer
from tests.harness import yamls
from tests.harness.waiting import cancelled
from tests.unit.translate.test_program import CLASS, GATEWAY, ROUTE, SERVICE, SLICE

KEY = ObjectKey("HTTPRoute", "default", "shop")
GATEWAY_KEY = ObjectKey("Gateway", "default", "gw")
ALL = (CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
TWO_RULES = ROUTE.replace(
    "rules: [{backendRefs: [{name: shop, port: 80}]}]",
    "rules: [{matches: [{path: {value: /a}}], %s backendRefs: [{name: shop, port: 80}]}, "
    "{backendRefs: [{name: shop, port: 80}]}]",
)


class Cluster:
    def __init__(self, server: ObjectServer) -> None:
        self.server, self.pipeline = server, Pipeline()

    def body(self, key: ObjectKey = KEY) -> Any:
        return self.pipeline.program.status(*key)

    def conditions(self, key: ObjectKey = KEY) -> dict[str, str]:
        body = self.body(key)
        holder = body["parents"][0] if "parents" in body else body
        return {each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in holder["conditions"]}

    def routes(self) -> dict[int, Any]:
        present = self.pipeline.program.resources.present()
        found = [resource_pb2.Resource.FromString(each.content) for each in present.values() if each.content]
        return {each.route.rule_index: each.route for each in found if each.WhichOneof("kind") == "route"}


@contextlib.asynccontextmanager
async def cluster(*texts: str) -> AsyncIterator[Cluster]:
    made = Cluster(ObjectServer(*texts))
    running = asyncio.create_task(made.server.run(made.pipeline))
    await made.pipeline.ready.wait()
    try:
        yield made
    finally:
        made.pipeline.close()
        await cancelled(running)


def test_both_are_sources() -> None:
    sources: tuple[type[Source], ...] = (ObjectServer, Directory)
    assert all(hasattr(each, "run") and hasattr(each, "problems") for each in sources)


async def test_listing_anew_changes_nothing_and_tells_what_is_gone() -> None:
    async with cluster(*ALL) as made:
        before = made.pipeline.program.runs()
        await made.server.list_anew()
        assert made.pipeline.program.runs() == before
        made.server.lose(KEY)
        await made.server.list_anew()
        assert made.body() is None and not made.routes()


async def test_of_what_comes_several_times_the_last_counts() -> None:
    async with cluster(*ALL) as made:
        before = made.pipeline.program.runs()
        await made.server.repeat(KEY, 3)
        assert made.pipeline.program.runs() == before and 0 in made.routes()


async def test_nobody_is_served_before_the_first_idle_moment() -> None:
    made = Cluster(ObjectServer(*ALL))
    made.server._sink = made.pipeline
    await made.server.list_anew(idle=False)
    assert not made.pipeline.ready.is_set() and not made.pipeline.program.statuses()
    await made.pipeline.idle()
    assert made.pipeline.ready.is_set() and made.routes()
    made.pipeline.close()


async def test_a_status_that_is_written_runs_no_transform_and_is_then_written() -> None:
    async with cluster(*ALL) as made:
        program = made.pipeline.program
        assert set(program.unwritten.present()) == {KEY, GATEWAY_KEY, ("GatewayClass", "", "gatewright")}
        before = program.runs()
        for place, write in dict(program.unwritten.present()).items():
            await made.server.write_status(ObjectKey(*place), write.body)
        assert not program.unwritten.present()
        once = before["finalizers of classes"] + 1  # which are for the version of the class that was read
        assert program.runs() == {**before, "finalizers of classes": once}
        await made.server.write(ROUTE.replace("name: gw", "name: gw, sectionName: absent"))
        assert set(program.unwritten.present()) == {KEY, GATEWAY_KEY}  # which counts one route less


async def test_an_object_that_becomes_invalid_says_so_and_acts_on() -> None:
    async with cluster(*ALL) as made:
        await made.server.write(ROUTE.replace("port: 80}", "port: 0}, {port: 80}"))
        accepted = made.conditions()["Accepted"]
        assert accepted.startswith("False UnsupportedValue: not valid: spec.rules[0].backendRefs[0].port: ")
        assert "spec.rules[0].backendRefs[1].name: is required" in accepted, "every reason"
        assert accepted.endswith("; the last valid version acts on") and 0 in made.routes()
        await made.server.write(ROUTE)
        assert made.conditions()["Accepted"] == "True Accepted: "


@pytest.mark.parametrize(
    ("kind", "text", "start"),
    [
        ("HTTPRoute", ROUTE.replace("port: 80}", "port: 0}"), "False UnsupportedValue: not valid: spec.rules[0]."),
        ("Gateway", GATEWAY.replace("port: 80", "port: 0"), "False Invalid: not valid: spec.listeners[0].port: "),
        (
            "GatewayClass",
            CLASS.replace("controllerName:", "description: 3, controllerName:"),
            "False InvalidParameters: not valid: spec.description: ",
        ),
    ],
)
async def test_an_object_that_was_never_valid_has_a_status(kind: str, text: str, start: str) -> None:
    others = [each for each in ALL if f"kind: {kind}\n" not in each]
    async with cluster(*others, text) as made:
        key = next(key for key in made.pipeline.facts if key.kind == kind)
        assert made.conditions(key)["Accepted"].startswith(start)
        assert made.routes() == {}
        assert kind == "GatewayClass" or "attachedRoutes': 1" not in str(made.body(GATEWAY_KEY))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("GatewayBackend", "{static: {port: 0}}"), ("GatewayParameters", "{no: 1}"), ("GatewayPolicy", "{traffic: 3}")],
)
async def test_so_has_an_object_of_ours_of_which_nothing_can_be_read(kind: str, spec: str) -> None:
    text = f"{{apiVersion: gatewright.dev/v1alpha1, kind: {kind}, metadata: {{name: x, namespace: a}}, spec: {spec}}}"
    async with cluster(text) as made:
        assert made.conditions(ObjectKey(kind, "a", "x"))["Accepted"].startswith("False Invalid")


async def test_a_message_is_bounded_however_much_is_wrong() -> None:
    many = ", ".join("{name: shop, port: 0}" for _ in range(16))
    async with cluster(*ALL[:-1], ROUTE.replace("{name: shop, port: 80}", many)) as made:
        accepted = made.conditions()["Accepted"]
        assert accepted.endswith("; and 8 more") and len(accepted) < 5000


# Newer definitions.


async def test_an_unknown_match_drops_its_rule_and_never_widens_it() -> None:
    text = (TWO_RULES % "").replace("{path: {value: /a}}", "{path: {value: /a}, body: {contains: x}}")
    async with cluster(*ALL[:-1], text) as made:
        assert set(made.routes()) == {1}
        conditions = made.conditions()
        assert conditions["PartiallyInvalid"] == (
            "True UnsupportedValue: Dropped Rule 0: spec.rules[0].matches[0].body is unknown to this version"
        )
        assert conditions["Accepted"] == "True Accepted: "


async def test_an_unknown_kind_of_match_drops_its_rule_too() -> None:
    text = (TWO_RULES % "").replace("{value: /a}", "{type: Glob, value: /a}")
    async with cluster(*ALL[:-1], text) as made:
        assert set(made.routes()) == {1} and "PartiallyInvalid" in made.conditions()


async def test_a_route_of_which_every_rule_is_dropped_is_not_accepted() -> None:
    async with cluster(*ALL[:-1], ROUTE.replace("backendRefs", "matches: [{mood: good}], backendRefs")) as made:
        assert made.routes() == {}
        assert made.conditions()["Accepted"].startswith("False UnsupportedValue: rule 0: spec.rules[0].matches[0].mood")


@pytest.mark.parametrize(
    "written",
    [
        "filters: [{type: Verify, verify: {key: x}}],",
        "filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [], only: [a]}}],",
    ],
)
async def test_an_unknown_filter_fails_its_rule_and_never_opens_it(written: str) -> None:
    async with cluster(*ALL[:-1], TWO_RULES % written) as made:
        failing, other = made.routes()[0], made.routes()[1]
        assert [each.invalid.reason.partition(":")[0] for each in failing.backends] == ["UnsupportedValue"]
        assert "/a" in str(failing.matches[0].path) and not failing.policies
        assert other.backends[0].backend
        assert made.conditions()["Accepted"].startswith("True Accepted")
        partly = made.conditions()["PartiallyInvalid"]
        assert partly.startswith("True UnsupportedValue: Dropped Rule 0: spec.rules[0].filters[0].")
        assert partly.endswith("; what it matches is answered with 500")


async def test_an_unknown_field_elsewhere_is_named_and_has_no_effect() -> None:
    text = ROUTE.replace("rules:", "mood: good\n  rules:")
    async with cluster(*ALL[:-2], SLICE, text) as made:
        assert made.conditions()["Accepted"] == (
            "True Accepted: spec.mood is unknown to this version and has no effect"
        )
        assert 0 in made.routes()
        await made.server.write(GATEWAY.replace("listeners:", "mood: {a: 1}\n  listeners:"))
        assert "spec.mood is unknown" in made.conditions(GATEWAY_KEY)["Accepted"]


@pytest.mark.parametrize("old, new", [("from: All", "from: Friends"), ("{from: All}", "{from: All, except: [a]}")])
async def test_what_says_who_may_attach_is_never_overlooked(old: str, new: str) -> None:
    async with cluster(CLASS, GATEWAY.replace(old, new), SERVICE, SLICE, ROUTE) as made:
        assert made.conditions(GATEWAY_KEY)["Accepted"].startswith("False Invalid: not valid: spec.listeners[0].allow")
        assert made.routes() == {}


async def test_a_known_mistake_beside_an_unknown_field_is_a_mistake() -> None:
    text = ROUTE.replace("rules:", "mood: good\n  rules:").replace("port: 80}", "port: 0}")
    async with cluster(*ALL[:-1], text) as made:
        assert made.conditions()["Accepted"].startswith("False UnsupportedValue: not valid: ")


@pytest.mark.parametrize(("generation", "seen"), [(7, 7), (None, 0), ("7", 0)])
def test_which_generation_could_not_be_read(generation: object, seen: int) -> None:
    value: Any = next(iter(yamls.load_all(ROUTE.replace("port: 80}", "port: 0}"))))
    value["metadata"] |= {"generation": generation, "resourceVersion": 3}
    found = fact_from(value, "cluster")
    assert found is not None and isinstance(found.model, Invalid)
    assert found.model.generation == seen
    assert found.previous is not None and (found.previous.resource_version, found.previous.status) == ("", {})
    assert found.model.reasons[-1].startswith("spec.rules[0].backendRefs[0].port: ")
