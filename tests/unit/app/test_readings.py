"""What the controller's page of metrics shows of objects, states and proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.admin import metrics
from controlplane.answers.nacks import Refusal, Refusals
from controlplane.numbers import Histogram
from gatewright.api.text.problem import Problem
from tests.unit.app.test_app_facts import CLASS, GATEWAY, ROUTE, SECRET, World, world

__all__ = ["world"]

ALL = ("default/web",)

OF_CLUSTERS = {
    *("leader", "cluster_relists_total", "cluster_unreadable", "status_writes_total", "status_writes_pending"),
    *("provisioning_writes_total", "provisioning_pending", "provisioning_altered", "cluster_namespaces"),
    *("peers", "peer_messages_total", "peer_failures_total"),
    *("token_reviews_total", "token_reviews_pending", "token_reviews_kept"),
}
"""tests/cluster asks for them."""


def numbers(world: World) -> metrics.Values:
    return world.facts.numbers()


def how_many(found: metrics.Values, name: str) -> int:
    value = found[name][()]
    assert isinstance(value, Histogram)
    return value.cumulative()[-1]


@pytest.fixture
async def configured(world: World) -> AsyncIterator[World]:
    await world.put(CLASS, GATEWAY, SECRET)
    yield world


async def test_every_metric_of_the_table_has_a_value(world: World) -> None:
    found = numbers(world)
    assert set(found) == {row.name for row in metrics.METRICS} - OF_CLUSTERS
    for row in (each for each in metrics.METRICS if each.name in found):
        assert all(len(labels) == len(row.labels) for labels in found[row.name])
    metrics.render(found)


async def test_objects_by_kind_and_what_came_of_them(configured: World) -> None:
    found = numbers(configured)
    assert found["objects"] == {("GatewayClass",): 1, ("Gateway",): 1, ("Secret",): 1}
    assert found["object_changes_total"][()] == 3
    assert found["resources"][ALL] == sum(
        map(len, configured.app.pipeline.snapshots.newest("default/web").types.values())
    )
    assert found["snapshots_total"][()] == how_many(found, "change_duration_seconds") == 1
    assert found["transform_failures_total"][()] == 0
    assert sum(float(str(runs)) for runs in found["transforms_total"].values()) > 0


async def test_what_changes_nothing_is_no_change_that_takes_time(configured: World) -> None:
    before = how_many(numbers(configured), "change_duration_seconds")
    await configured.app.pipeline.take([])
    await configured.app.idle()
    assert how_many(numbers(configured), "change_duration_seconds") == before


async def test_rules_that_are_dropped_are_counted_while_they_are(configured: World) -> None:
    bad = "{matches: [{path: {type: RegularExpression, value: '/(?=x)'}}]}"
    dropped = ROUTE.replace("rules: [", f"rules: [{bad}, ")
    assert dropped != ROUTE
    await configured.put(CLASS, GATEWAY, dropped)
    assert numbers(configured)["conditions_true"] == {("HTTPRoute", "PartiallyInvalid", "UnsupportedValue"): 1}
    await configured.put(CLASS, GATEWAY, ROUTE)
    assert numbers(configured)["conditions_true"] == {}


async def test_conditions_that_are_false_are_counted_while_they_are(configured: World) -> None:
    await configured.put(CLASS, GATEWAY, ROUTE)
    assert numbers(configured)["conditions_false"][("HTTPRoute", "ResolvedRefs", "BackendNotFound")] == 1
    await configured.put(CLASS, GATEWAY, ROUTE.replace("rules", "rulez"))
    assert ("HTTPRoute", "Accepted", "UnsupportedValue") in numbers(configured)["conditions_false"]
    await configured.put(CLASS, GATEWAY, "")
    assert "HTTPRoute" not in {labels[0] for labels in numbers(configured)["conditions_false"]}


async def test_invalid_objects_are_counted_once_by_kind(world: World) -> None:
    world.read = [
        Problem("a.yaml", 3, "Gateway default/web", "spec", "is wrong"),
        Problem("a.yaml", 4, "Gateway default/web", "spec", "is wrong again"),
        Problem("a.yaml", 5, "HTTPRoute default/shop", "spec", "could be better", "warning"),
        Problem("b.yaml", 1, "", "", "cannot be read"),
        Problem("c.yaml", 1, "Invented default/x", "", "is no kind"),
    ]
    assert numbers(world)["invalid_objects"] == {("Gateway",): 1, (metrics.OTHER,): 2}


async def test_ready_when_the_configuration_was_read_and_xds_listens(world: World) -> None:
    assert world.facts.pending() == ["the configuration is being read", "the xDS server does not listen yet"]
    assert numbers(world)["ready"][()] == 0
    await world.put(CLASS)
    world.app._is_serving = True
    assert world.facts.pending() == []
    assert (world.facts.about()["ready"], numbers(world)["ready"][()]) == (True, 1)
    world.app._is_ending = True
    assert world.facts.pending() == ["end of this process"]


async def test_proxies_by_gateway(configured: World) -> None:
    pipeline = configured.app.pipeline
    newest = pipeline.snapshots.newest("default/web")
    assert numbers(configured)["xds_proxies"] == {ALL: 0}
    good, bad = (pipeline.fleet.connect(f"default/web/{name}", "default/web", "") for name in ("good", "bad"))
    pipeline.fleet.connect("made/up/x", "made/up", "")
    good.connected_since = pipeline.published_at["default/web"]
    pipeline.fleet.acknowledge(good, newest.sequence, newest.version)
    pipeline.fleet.acknowledge(good, newest.sequence, newest.version)
    refusals = Refusals([Refusal("route/x", "no")])
    pipeline.fleet.refuse(bad, newest.sequence, newest.version, refusals, complete=True)
    found = numbers(configured)
    other = (metrics.OTHER,)
    assert found["xds_proxies"] == {ALL: 2, other: 1}
    assert found["xds_proxies_synced"][ALL] == 1
    assert found["xds_proxies_refusing"] == {ALL: 1, other: 0}
    assert (found["xds_acks_total"][()], found["xds_nacks_total"][()]) == (2, 1)
    assert how_many(found, "xds_acknowledge_duration_seconds") == 1
    lags = found["xds_lag_seconds"]
    assert isinstance(lags[ALL], float) and lags[ALL] > 0


async def test_a_proxy_that_came_after_the_state_says_nothing_of_its_time(configured: World) -> None:
    pipeline = configured.app.pipeline
    newest = pipeline.snapshots.newest("default/web")
    late = pipeline.fleet.connect("default/web/late", "default/web", "")
    pipeline.fleet.acknowledge(late, newest.sequence, newest.version)
    assert how_many(numbers(configured), "xds_acknowledge_duration_seconds") == 0


async def test_names_that_proxies_give_themselves_are_in_no_label(configured: World, tmp_path: Path) -> None:
    pipeline = configured.app.pipeline
    for number in range(50):
        pipeline.fleet.connect(f"evil/g{number}/i", f"evil/g{number}", "")
    text = metrics.render(numbers(configured)).decode()
    assert "evil" not in text
    assert f'{metrics.PREFIX}xds_proxies{{gateway="other"}} 50.0' in text
