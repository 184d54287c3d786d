"""`controlplane.pipeline`: objects in, states and conditions out, with proxies that answer by hand."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane import pipeline
from controlplane.answers import verdicts
from controlplane.answers.nacks import Refusal, Refusals
from controlplane.answers.news import AFTER_LAST_ANSWER, ANSWERS
from controlplane.derive import TransformError
from controlplane.facts import Fact
from controlplane.snapshot import Coalescer, Snapshot, shown
from controlplane.sources import decode, tree
from controlplane.translate.fleet import FleetView
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from tests.fakes.moved_loop import moved

EXAMPLE = Path(__file__).parents[3] / "examples" / "quickstart"
GATEWAY = "default/quickstart"
ROUTE = "route/httproute/default/shop/0"


class Told(pipeline.Listener):
    """Does what a test says when there is news."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.on_other_owners: Callable[[], None] = lambda: None

    def changed(self) -> None:
        self.on_change()

    def owners_changed(self) -> None:
        self.on_other_owners()


class World:
    """A pipeline fed from texts of files."""

    def __init__(self, origin: str = "") -> None:
        self.told = Told()
        self.pipeline = pipeline.Pipeline(origin, listener=self.told)
        self.tree = tree.Tree(decode.decode, decode.with_generation)
        self.published: list[Snapshot] = []
        self.pipeline.snapshots.listen(self.published.append)
        self.texts = {file.name: file.read_text() for file in EXAMPLE.glob("*.yaml")}

    def changes(self, file: str, text: str) -> list[Fact]:
        self.texts[file] = text
        *_, staged = self.tree.stage(file, text)
        assert staged is not None
        return self.tree.commit(staged)

    async def load(self) -> None:
        for file, text in sorted(self.texts.items()):
            await self.pipeline.take(self.changes(file, text))
        await self.pipeline.idle()
        await self.settle()

    async def edit(self, file: str, old: str, new: str) -> None:
        assert old in self.texts[file]
        await self.pipeline.take(self.changes(file, self.texts[file].replace(old, new, 1)))
        await self.pipeline.idle()
        await self.settle()

    async def settle(self) -> None:
        """Lets due publications and news through."""
        for _ in range(5):
            await asyncio.sleep(0.005)

    def conditions(self, kind: str, name: str) -> dict[str, tuple[str, str, int]]:
        """Type to status, reason and observed generation; of a route: those of its first parent."""
        body = self.pipeline.program.status(kind, "default", name)
        assert body is not None
        holder: dict[str, Any] = body if "conditions" in body else body["parents"][0]
        return {
            each["type"]: (each["status"], each["reason"], each["observedGeneration"]) for each in holder["conditions"]
        }

    def programmed(self) -> tuple[str, str, int]:
        return self.conditions("Gateway", "quickstart")["Programmed"]


@pytest.fixture
async def world() -> World:
    made = World()
    await made.load()
    return made


async def test_the_first_state_is_whole_and_published_at_once(world: World) -> None:
    assert world.pipeline.ready.is_set()
    first = world.pipeline.snapshots.newest(GATEWAY)
    assert world.published[-1] is first
    names = {record.name for resources in first.types.values() for record in resources}
    assert {f"gateway/{GATEWAY}", f"bind/{GATEWAY}/8080", ROUTE, "route/httproute/default/catalog/0"} <= names


async def test_nothing_is_published_while_the_source_goes_on() -> None:
    world = World()
    for file, text in sorted(world.texts.items()):
        await world.pipeline.take(world.changes(file, text))
    assert world.published == []
    assert not world.pipeline.ready.is_set()


async def test_a_start_that_takes_long_lets_no_proxy_in_with_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LONGEST_HOLD", -1.0)
    world = World()
    for file, text in sorted(world.texts.items()):
        await world.pipeline.take(world.changes(file, text))
    assert world.published == []
    assert not world.pipeline.ready.is_set()


async def test_later_a_source_that_goes_on_reading_keeps_changes_for_a_moment_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch while the source reads; but what it has read by then is served when that takes too long."""
    text, seen = world.texts["routes.yaml"], world.pipeline.program.runs()["HTTPRoute translations"]
    await world.pipeline.take(world.changes("routes.yaml", text.replace("x-served-by", "x-served-with")))
    await world.settle()
    assert world.pipeline.program.runs()["HTTPRoute translations"] == seen and len(world.published) == 1
    monkeypatch.setattr(pipeline, "LONGEST_HOLD", -1.0)
    await world.pipeline.take(world.changes("routes.yaml", text.replace("x-served-by", "x-served-from")))
    await world.settle()
    assert world.pipeline.program.runs()["HTTPRoute translations"] == seen + 1 and len(world.published) == 2


async def test_what_became_of_the_objects_of_a_gateway_is_news_for_whoever_writes_statuses(world: World) -> None:
    told: list[int] = []
    world.told.on_change = lambda: told.append(1)
    await world.pipeline.provisioned({GATEWAY: None})
    assert told == [1]


async def test_a_cold_start_translates_each_route_once_whatever_the_order() -> None:
    world = World()
    for file, text in sorted(world.texts.items(), key=lambda item: item[0] != "routes.yaml"):
        await world.pipeline.take(world.changes(file, text))
    await world.pipeline.idle()
    assert world.pipeline.program.runs()["HTTPRoute translations"] == 3


async def test_one_edited_route_is_one_run_and_one_resource(world: World) -> None:
    runs = world.pipeline.program.runs()["HTTPRoute translations"]
    told: list[tuple[str, str]] = []
    world.pipeline.program.resources.subscribe(
        lambda batch: told.extend((str(each.key.gateway), each.key.name) for each in batch)
    )
    told.clear()  # what is present comes first
    await world.edit("routes.yaml", "x-served-by", "x-served-with")
    assert world.pipeline.program.runs()["HTTPRoute translations"] == runs + 1
    assert told == [(GATEWAY, "route/httproute/default/filters/0")]
    assert len(world.published) == 2


async def test_the_same_content_publishes_nothing(world: World) -> None:
    await world.edit("routes.yaml", "# 1.", "# one.")
    assert len(world.published) == 1


async def test_programmed_means_that_every_proxy_has_the_newest_content_of_the_gateway(world: World) -> None:
    fleet, newest = world.pipeline.fleet, world.pipeline.snapshots.newest
    assert world.programmed() == ("False", "Pending", 1)
    one, two = fleet.connect("default/quickstart/a", GATEWAY, ""), fleet.connect("default/quickstart/b", GATEWAY, "")
    fleet.acknowledge(one, newest(GATEWAY).sequence, "v")
    await world.settle()
    assert world.programmed() == ("False", "Pending", 1)
    fleet.acknowledge(two, newest(GATEWAY).sequence, "v")
    await world.settle()
    assert world.programmed() == ("True", "Programmed", 1)

    await world.edit("gateway.yaml", "port: 8080", "port: 8081")
    assert world.programmed() == ("False", "Pending", 2)
    for proxy in (one, two):
        fleet.acknowledge(proxy, newest(GATEWAY).sequence, "w")
    await world.settle()
    assert world.programmed() == ("True", "Programmed", 2)
    fleet.disconnect(one)
    fleet.disconnect(two)
    await world.settle()
    assert world.programmed() == ("False", "Pending", 2)


async def test_what_follows_soon_is_published_when_all_proxies_have_answered(world: World) -> None:
    """By a clock that stands still but where it is moved: no pause of a burst ends."""
    now = [0.0]
    world.pipeline._coalescer = Coalescer(lambda: now[0])
    fleet, newest = world.pipeline.fleet, world.pipeline.snapshots.newest
    await world.edit("routes.yaml", "x-served-by", "x-1")
    await world.edit("routes.yaml", "x-1", "x-2")
    assert len(world.published) == 2  # there is no proxy whose answer could end the wait
    now[0] = 1.0
    one, two = fleet.connect("default/quickstart/a", GATEWAY, ""), fleet.connect("default/quickstart/b", GATEWAY, "")
    await world.edit("routes.yaml", "x-2", "x-3")
    await world.edit("routes.yaml", "x-3", "x-4")
    fleet.acknowledge(one, newest(GATEWAY).sequence, "v")
    await world.settle()
    assert len(world.published) == 3
    fleet.acknowledge(two, newest(GATEWAY).sequence, "v")
    await world.settle()
    assert len(world.published) == 4


@moved
async def test_the_answer_of_the_last_proxy_brings_forward_what_waits() -> None:
    """At that moment: no timer of before is waited for."""
    world = World()
    await world.load()
    world.pipeline._coalescer = Coalescer(lambda: 0.0)
    proxy = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    await world.edit("routes.yaml", "x-served-by", "x-1")
    await world.edit("routes.yaml", "x-1", "x-2")
    assert len(world.published) == 2
    loop = asyncio.get_running_loop()
    began = loop.time()
    world.pipeline.fleet.acknowledge(proxy, world.pipeline.snapshots.newest(GATEWAY).sequence, "v")
    for _ in range(100):
        await asyncio.sleep(0)
    assert (len(world.published), loop.time()) == (3, began)
    world.pipeline.close()


async def test_an_edited_route_leaves_its_gateway_programmed(world: World) -> None:
    proxy = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    world.pipeline.fleet.acknowledge(proxy, world.pipeline.snapshots.newest(GATEWAY).sequence, "v")
    await world.settle()
    await world.edit("routes.yaml", "x-served-by", "x-served-with")
    assert world.programmed() == ("True", "Programmed", 1)


async def test_a_gateway_whose_status_was_written_is_as_far_as_before(world: World) -> None:
    """A cluster reports an object again when anything writes its status, most often this controller: no proxy is behind
    because of that, also while states wait to be published."""
    proxy = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    world.pipeline.fleet.acknowledge(proxy, world.pipeline.snapshots.newest(GATEWAY).sequence, "v")
    await world.settle()
    seen: list[tuple[str, str, int]] = []
    world.pipeline.program.status_changes.subscribe(lambda _: seen.append(world.programmed()))
    known = world.pipeline.facts[ObjectKey("Gateway", "default", "quickstart")]
    assert isinstance(known.model, KubeObject)
    metadata = known.model.metadata.model_copy(update={"resource_version": "99", "annotations": {"a": "b"}})
    await world.pipeline.take([Fact(known.key, known.model.model_copy(update={"metadata": metadata}))])
    await world.pipeline.take(world.changes("routes.yaml", world.texts["routes.yaml"].replace("x-served-by", "x-by")))
    await world.pipeline.idle()
    await world.settle()
    assert set(seen) == {("True", "Programmed", 1)}


async def test_new_content_that_needs_no_new_state_is_programmed_with_the_old_one(world: World) -> None:
    """At once: a newer generation alone asks nothing of proxies."""
    proxy = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    world.pipeline.fleet.acknowledge(proxy, world.pipeline.snapshots.newest(GATEWAY).sequence, "v")
    await world.settle()
    seen: list[tuple[str, str, int]] = []
    world.pipeline.program.status_changes.subscribe(lambda _: seen.append(world.programmed()))
    seen.clear()  # of what was there already
    await world.edit("gateway.yaml", "  name: quickstart", "  labels: {a: b}\n  name: quickstart")
    assert len(world.published) == 1
    assert set(seen) == {("True", "Programmed", 2)}


async def test_a_gateway_that_was_made_anew_is_not_programmed_before_proxies_have_answered(world: World) -> None:
    """Under its old name, with the same content: who watches both must see the new one begin."""
    proxy = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    world.pipeline.fleet.acknowledge(proxy, world.pipeline.snapshots.newest(GATEWAY).sequence, "v")
    await world.settle()
    seen: list[tuple[str, str, int]] = []
    world.pipeline.program.status_changes.subscribe(lambda _: seen.append(world.programmed()))
    seen.clear()  # of what was there already
    known = world.pipeline.facts[ObjectKey("Gateway", "default", "quickstart")]
    assert isinstance(known.model, KubeObject)
    metadata = known.model.metadata.model_copy(update={"uid": "another"})
    await world.pipeline.take([Fact(known.key, known.model.model_copy(update={"metadata": metadata}))])
    await world.pipeline.idle()
    await world.settle()
    assert seen[0] == ("False", "Pending", 1) and seen[-1] == ("True", "Programmed", 1)


async def test_a_refusal_is_a_condition_of_what_caused_it_until_it_is_taken_back(world: World) -> None:
    fleet, sequence = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY).sequence
    proxy = fleet.connect("default/quickstart/a", GATEWAY, "")
    fleet.refuse(proxy, sequence, "v", Refusals([Refusal(ROUTE, "unknown field 99")]), complete=True)
    await world.settle()
    assert world.conditions("HTTPRoute", "shop")["Programmed"] == ("False", "Rejected", 1)
    assert "Programmed" not in world.conditions("HTTPRoute", "catalog")
    assert world.programmed() == ("True", "Programmed", 1)
    fleet.acknowledge(proxy, sequence, "v")
    await world.settle()
    assert "Programmed" not in world.conditions("HTTPRoute", "shop")


async def test_a_refusal_without_a_name_concerns_the_gateway(world: World) -> None:
    fleet, sequence = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY).sequence
    proxy = fleet.connect("default/quickstart/a", GATEWAY, "")
    fleet.refuse(proxy, sequence, "v", Refusals([Refusal("", "no workers")]), complete=True)
    await world.settle()
    assert world.programmed() == ("False", "Pending", 1)
    body = world.pipeline.program.status("Gateway", "default", "quickstart")
    assert "a: no workers" in str(body)


async def test_a_deleted_gateway_takes_its_resources_along(world: World) -> None:
    *_, staged = world.tree.stage("gateway.yaml", "")
    assert staged is not None
    await world.pipeline.take(world.tree.commit(staged))
    await world.pipeline.idle()
    await world.settle()
    newest = world.published[-1]
    assert sum(len(list(resources)) for resources in newest.types.values()) == 0
    assert world.pipeline.program.status("Gateway", "default", "quickstart") is None
    key = ObjectKey("Gateway", "default", "quickstart")
    assert all(key not in known for known in (world.pipeline.facts, world.pipeline.read_at, world.pipeline.objects))


async def test_whoever_sees_a_status_can_ask_how_old_what_it_comes_from_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first fact of the batch on; what comes from no fact has no age."""
    now, begun = [time.monotonic()], time.monotonic()
    monkeypatch.setattr(pipeline, "time", SimpleNamespace(time=time.time, monotonic=lambda: now[0]))
    ages: list[float] = []
    world.pipeline.program.status_changes.subscribe(lambda _: ages.append(world.pipeline.age()))
    ages.clear()  # of what was there already
    now[0] = begun + 1.0
    await world.pipeline.take(world.changes("gateway.yaml", world.texts["gateway.yaml"].replace("8080", "8081")))
    now[0] = begun + 1.5
    await world.pipeline.take(
        world.changes("routes.yaml", world.texts["routes.yaml"].replace("value: /catalog", "value: /goods"))
    )
    now[0] = begun + 1.75
    await world.pipeline.idle()
    assert ages == [pytest.approx(0.75)] * len(ages) and ages
    assert world.pipeline.age() == 0.0


async def test_a_batch_that_fails_leaves_no_age_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(BaseException):
        """What no rule of a translation expects."""

    def broken(_changes: Iterable[Any]) -> Iterator[None]:
        assert world.pipeline.age() > 0.0
        raise Broken
        yield None

    monkeypatch.setattr(world.pipeline.program, "steps", broken)
    job = world.pipeline._translate(world.pipeline.facts, time.monotonic() - 1.0)
    with pytest.raises(Broken):
        list(job)
    assert world.pipeline.age() == 0.0


async def test_a_bug_in_a_transform_is_logged_and_the_rest_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps = world.pipeline.program.steps

    def buggy(changes: Iterable[Any]) -> Iterator[None]:
        yield from steps(changes)
        raise TransformError([("routes", "default/shop", ValueError("a bug"))])

    monkeypatch.setattr(world.pipeline.program, "steps", buggy)
    with caplog.at_level(logging.ERROR):
        await world.edit("routes.yaml", "x-served-by", "x-served-with")
    assert "a bug in the controller" in caplog.text
    assert world.pipeline.numbers.failures == 1
    assert len(world.published) == 2


async def test_changes_are_told_once_for_many_answers(world: World) -> None:
    told: list[int] = []
    world.told.on_change = lambda: told.append(1)
    for name in "abc":
        proxy = world.pipeline.fleet.connect(f"default/quickstart/{name}", GATEWAY, "")
        world.pipeline.fleet.acknowledge(proxy, 1, "v")
    await world.settle()
    assert told == [1]


async def test_many_answers_of_one_moment_are_looked_at_once(world: World) -> None:
    fleet = world.pipeline.fleet
    proxies = [fleet.connect(f"default/quickstart/p{number}", GATEWAY, "") for number in range(100)]
    await world.settle()
    slices = world.pipeline.turns.slices
    state = world.pipeline.snapshots.newest(GATEWAY)
    for proxy in proxies:
        fleet.acknowledge(proxy, state.sequence, state.version)
        await asyncio.sleep(0)
    await world.settle()
    assert world.programmed()[:2] == ("True", "Programmed")
    assert world.pipeline.turns.slices - slices < 10


async def test_many_different_refusals_make_a_short_condition(world: World) -> None:
    fleet = world.pipeline.fleet
    state = world.pipeline.snapshots.newest(GATEWAY)
    for number in range(100):
        proxy = fleet.connect(f"default/quickstart/p{number}", GATEWAY, "")
        named = Refusals([Refusal("", f"no {number}" + "x" * 2000), Refusal(ROUTE, f"none {number}" + "x" * 2000)])
        fleet.refuse(proxy, state.sequence, state.version, named, complete=True)
    view = fleet.view(GATEWAY)
    detail, reason = verdicts.fleet_view(view, state.sequence).detail, verdicts.refusals(view)[ROUTE]
    assert (len(detail) < 20_000, detail.endswith("; and 92 more")) == (True, True)
    assert (len(reason) < 20_000, "; and 8 more" in reason) == (True, True)
    assert verdicts.fleet_view(view, state.sequence).acknowledged == 0


@pytest.mark.parametrize(("count", "ending"), [(1, "no 0"), (8, "no 7"), (9, "; and 1 more"), (10, "; and 2 more")])
async def test_up_to_eight_reasons_are_given(world: World, count: int, ending: str) -> None:
    fleet, sequence = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY).sequence
    for number in range(count):
        proxy = fleet.connect(f"default/quickstart/p{number}", GATEWAY, "")
        refused = Refusals([Refusal("", f"no {number}"), Refusal(ROUTE, f"no {number}")])
        fleet.refuse(proxy, sequence, "v", refused, complete=True)
    fleet.connect("default/quickstart/well", GATEWAY, "")
    view = fleet.view(GATEWAY)
    detail, reason = verdicts.fleet_view(view, sequence).detail, verdicts.refusals(view)[ROUTE]
    assert detail.startswith("p0: no 0") and detail.endswith(ending)
    assert reason.startswith("no 0") and reason.endswith(f"{ending} ({count} of {count + 1} proxies)")
    assert detail.count(";") == reason.count(";") == min(count, 9) - 1


async def test_what_all_proxies_refuse_is_said_without_numbers(world: World) -> None:
    fleet, sequence = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY).sequence
    for number in range(2):
        proxy = fleet.connect(f"default/quickstart/p{number}", GATEWAY, "")
        fleet.refuse(proxy, sequence, "v", Refusals([Refusal(ROUTE, "no")]), complete=True)
    assert verdicts.refusals(fleet.view(GATEWAY)) == {ROUTE: "no"}


async def test_resources_leave_before_the_statuses_of_their_batch(world: World) -> None:
    """What proxies wait for is published when no status of the change is computed yet; then others get turns."""
    seen: list[tuple[str, str, int]] = []
    world.pipeline.snapshots.listen(lambda _: seen.append(world.conditions("HTTPRoute", "catalog")["Accepted"]))
    turns = world.pipeline.turns.slices
    await asyncio.sleep(0.011)
    await world.pipeline.take(
        world.changes("routes.yaml", world.texts["routes.yaml"].replace("value: /catalog", "value: /goods"))
    )
    await world.pipeline.idle()
    assert seen == [("True", "Accepted", 1)]
    assert world.conditions("HTTPRoute", "catalog")["Accepted"] == ("True", "Accepted", 2)
    assert world.pipeline.turns.slices - turns >= 2, "the loop had turns between the two"


@moved
async def test_news_come_forward_when_all_have_answered_and_nobody_puts_them_off() -> None:
    """`ANSWERS` seconds after the first answer at the latest, at once after the last."""
    world = World()
    await world.load()
    told: list[float] = []
    loop = asyncio.get_running_loop()
    world.told.on_change = lambda: told.append(loop.time())
    fleet, newest = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY)
    one, two, three = [fleet.connect(f"default/quickstart/{name}", GATEWAY, "") for name in "abc"]
    await asyncio.sleep(2 * ANSWERS)
    told.clear()
    began = loop.time()
    fleet.acknowledge(one, newest.sequence, newest.version)
    await asyncio.sleep(0.6 * ANSWERS)
    fleet.acknowledge(two, newest.sequence, newest.version)
    await asyncio.sleep(0.6 * ANSWERS)
    assert told == [pytest.approx(began + ANSWERS)]
    began = loop.time()
    fleet.acknowledge(three, newest.sequence, newest.version)
    await asyncio.sleep(2 * ANSWERS)
    assert told[1:] == [pytest.approx(began + AFTER_LAST_ANSWER)]


@moved
async def test_the_last_answer_brings_forward_what_others_wait_for() -> None:
    world = World()
    await world.load()
    told: list[float] = []
    loop = asyncio.get_running_loop()
    fleet, newest = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY)
    one, two = [fleet.connect(f"default/quickstart/{name}", GATEWAY, "") for name in "ab"]
    await asyncio.sleep(2 * ANSWERS)
    world.told.on_change = lambda: told.append(loop.time())
    began = loop.time()
    fleet.acknowledge(one, newest.sequence, newest.version)
    fleet.acknowledge(two, newest.sequence, newest.version)
    await asyncio.sleep(2 * ANSWERS)
    assert told == [pytest.approx(began + AFTER_LAST_ANSWER)]


@moved
async def test_a_pipeline_that_was_closed_has_no_news() -> None:
    world = World()
    await world.load()
    fleet, newest = world.pipeline.fleet, world.pipeline.snapshots.newest(GATEWAY)
    told: list[int] = []
    world.told.on_change = lambda: told.append(1)
    fleet.acknowledge(fleet.connect("default/quickstart/a", GATEWAY, ""), newest.sequence, newest.version)
    world.pipeline.close()
    await asyncio.sleep(2 * ANSWERS)
    assert told == []


async def test_it_says_when_a_gateway_or_a_class_is_another_one_and_is_in_its_objects_then() -> None:
    world = World()
    await world.load()
    said: list[tuple[str, str]] = []

    def note() -> None:
        objects = world.pipeline.objects
        gateway: Any = objects[ObjectKey("Gateway", "default", "quickstart")]
        owner: Any = objects[ObjectKey("GatewayClass", "", "gatewright")]
        said.append((gateway.spec.gateway_class_name, owner.spec.controller_name))

    world.told.on_other_owners = note
    await world.edit("routes.yaml", "value: /", "value: /shop")
    assert said == []
    await world.edit("gateway.yaml", "controllerName: gatewright.dev/controller", "controllerName: example.com/other")
    await world.edit("gateway.yaml", "gatewayClassName: gatewright", "gatewayClassName: other")
    assert said == [("gatewright", "example.com/other"), ("other", "example.com/other")]
    both = world.changes("gateway.yaml", world.texts["gateway.yaml"].replace("ClassName: other", "ClassName: third", 1))
    both += world.changes("routes.yaml", world.texts["routes.yaml"].replace("value: /shop", "value: /", 1))
    await world.pipeline.take(both)
    await world.pipeline.idle()
    assert said[2:] == [("third", "example.com/other")], "beside others, too"


@moved
async def test_time_is_looked_at_every_hour() -> None:
    """Statuses speak of certificates that expire soon, also where no object changes."""
    world = World()
    await world.load()
    looked: list[float] = []
    loop = asyncio.get_running_loop()
    steps, began = world.pipeline.program.steps, loop.time()

    def noted(changes: Iterable[Any]) -> Iterator[None]:
        assert not [*changes]
        looked.append(loop.time() - began)
        yield from steps([])

    world.pipeline.program.steps = noted  # type: ignore[method-assign]
    await asyncio.sleep(3 * 3600 + 60)
    assert looked == [pytest.approx(number * 3600, abs=1.0) for number in (1, 2, 3)]
    world.pipeline.close()
    await asyncio.sleep(2 * 3600)
    assert len(looked) == 3


def news(world: World) -> list[FleetView]:
    """What the program is told of proxies from now on."""
    told: list[FleetView] = []
    tell = world.pipeline.program.news

    def noted(gateway: str, view: FleetView, refused: Any) -> Iterator[None]:
        told.append(view)
        return tell(gateway, view, refused)

    world.pipeline.program.news = noted  # type: ignore[method-assign,assignment]
    return told


@moved
async def test_after_a_start_in_a_cluster_proxies_have_twenty_seconds_to_come_back() -> None:
    """Those of before: a Gateway that was `Programmed` stays so meanwhile."""
    world = World("one")
    told = news(world)
    await world.load()
    await asyncio.sleep(19)
    assert [(view.connected, view.returning) for view in told[-1:]] == [(0, True)]
    told.clear()
    await asyncio.sleep(2)
    assert [(view.connected, view.returning) for view in told] == [(0, False)]
    world.pipeline.close()


@moved
async def test_a_proxy_that_leaves_just_after_the_start_is_not_waited_for() -> None:
    world = World("one")
    told = news(world)
    await world.load()
    one = world.pipeline.fleet.connect("default/quickstart/a", GATEWAY, "")
    await asyncio.sleep(1)
    assert (told[-1].connected, told[-1].returning) == (1, True)  # others may follow
    world.pipeline.fleet.disconnect(one)
    await asyncio.sleep(1)
    assert (told[-1].connected, told[-1].returning) == (0, False)
    world.pipeline.close()


@moved
async def test_of_a_folder_no_proxies_are_known_that_could_come_back() -> None:
    world = World()
    told = news(world)
    await world.load()
    await asyncio.sleep(1)
    assert told and not any(view.returning for view in told)
    world.pipeline.close()


async def test_a_line_of_the_log_says_what_is_published(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await world.edit("routes.yaml", "x-served-by", "x-served-with")
    version = world.published[-1].version
    assert f"{GATEWAY}: version {shown(version)[:12]}, 1 resource changed" in caplog.messages
    assert world.pipeline.numbers.snapshots == len(world.published) == 2


async def test_how_long_the_newest_state_took_is_measured_of_proxies_that_were_there(world: World) -> None:
    fleet, measured = world.pipeline.fleet, world.pipeline.numbers.acknowledge_seconds
    late = fleet.connect("default/quickstart/late", GATEWAY, "")
    old = world.pipeline.snapshots.newest(GATEWAY).sequence
    fleet.acknowledge(late, old, "v")
    assert measured.cumulative()[-1] == 0  # it was not there when that was published
    await world.edit("routes.yaml", "x-served-by", "x-served-with")
    fleet.acknowledge(late, old, "v")
    assert measured.cumulative()[-1] == 0  # that is not the newest
    fleet.acknowledge(late, world.pipeline.snapshots.newest(GATEWAY).sequence, "w")
    assert measured.cumulative()[-1] == 1 and measured.sum >= 0.0
