"""What people may see of a controller: its notes, objects, proxies and contents, and what its log says of problems."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane import app, known_facts
from controlplane.admin import facts
from controlplane.answers.nacks import Refusal, Refusals
from controlplane.cli.asking import tables
from controlplane.settings import Settings
from controlplane.xds.node import Identity, Peer
from gatewright.api.text.problem import Problem

CLASS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatewright.dev/controller}
"""
GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP}]}
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: shop, port: 80}]}]}
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hush}\n"


class World:
    """A controller whose files are texts."""

    def __init__(self, folder: Path) -> None:
        self.app = app.App(Settings(folder, folder / "socket"))
        self.facts = known_facts.KnownFacts(self.app)
        self.read: list[Problem] = []
        self.app.source.problems = lambda: self.read  # type: ignore[method-assign]

    async def put(self, *texts: str) -> None:
        for number, text in enumerate(texts):
            assert self.app.tree is not None
            *_, staged = self.app.tree.stage(f"{number}.yaml", text)
            assert staged is not None
            await self.app.pipeline.take(self.app.tree.commit(staged))
        await self.app.idle()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    made.app.pipeline.close()
    gc.unfreeze()


async def test_notes_say_why_nothing_is_served(world: World) -> None:
    assert world.facts.notes() == ["the configuration is still being read"]
    await world.put(SECRET)
    assert world.facts.notes() == [f"{world.app.settings.source} holds no Gateway; nothing is served until it does"]
    world.read = [Problem("a.yaml", 3, "Gateway default/web", "spec", "is wrong")]
    assert world.facts.notes() == ["no Gateway could be read, see the errors; nothing is served until one can"]
    world.read = [Problem("a.yaml", 3, "GatewayClass ours", "spec", "is wrong")]
    assert "holds no Gateway" in world.facts.notes()[0]
    await world.put(GATEWAY)
    (note,) = world.facts.notes()
    assert note.startswith("no Gateway is managed by Gatewright: their classes are not GatewayClasses")
    await world.put(GATEWAY, CLASS)
    assert world.facts.notes() == []


async def test_gateways_are_those_of_our_classes_by_name(world: World) -> None:
    other = CLASS.replace("ours", "theirs").replace("gatewright.dev/controller", "example.com/controller")
    gateways = [GATEWAY.replace("web", name) for name in ("b", "a")]
    foreign = GATEWAY.replace("web", "c").replace("ours", "theirs")
    await world.put(CLASS, other, *gateways, foreign)
    assert [gateway.metadata.name for gateway in world.app.gateways()] == ["a", "b"]


async def test_objects_with_their_files_and_conditions(world: World) -> None:
    await world.put(CLASS, GATEWAY, SECRET)
    world.read = [Problem("9.yaml", 1, "HTTPRoute default/bad", "spec", "is wrong")]
    rows = {(row.kind, row.namespace, row.name): row for row in world.facts.objects()}
    assert {key: row.file for key, row in rows.items()} == {
        ("GatewayClass", "", "ours"): "0.yaml",
        ("Gateway", "default", "web"): "1.yaml",
        ("Secret", "default", "s"): "2.yaml",
        ("HTTPRoute", "default", "bad"): "9.yaml",
    }
    assert rows["Gateway", "default", "web"].generation == 1
    assert {each["type"] for each in rows["Gateway", "default", "web"].status["conditions"]} >= {"Accepted"}
    assert rows["Secret", "default", "s"].status == {}


async def test_conditions_are_about_the_newest_content_of_an_object_with_a_mistake(world: World) -> None:
    await world.put(CLASS, GATEWAY, ROUTE)
    await world.put(CLASS, GATEWAY, ROUTE.replace("rules", "rulez"))
    (row,) = [row for row in world.facts.objects() if row.kind == "HTTPRoute"]
    (accepted,) = [each for each in row.status["parents"][0]["conditions"] if each["type"] == "Accepted"]
    assert accepted["status"] == "False" and accepted["observedGeneration"] == row.generation == 2
    shown = tables.objects([asdict(row)])
    assert "HTTPRoute  default/shop  Problem" in shown
    assert "parent web: Accepted=False" in shown and 'did you mean "rules"?' in shown
    assert "not yet known" not in shown, "of ResolvedRefs nothing more becomes known"


async def test_contents_by_kind_in_any_case_without_secrets(world: World) -> None:
    await world.put(CLASS, GATEWAY, SECRET)
    shown = world.facts.content("gateway", "default", "web")
    assert shown is not None
    assert shown["kind"] == "Gateway" and shown["status"]["conditions"]
    secret = world.facts.content("SECRET", "default", "s")
    assert secret is not None and "hush" not in str(secret) and secret["status"] == {}
    assert world.facts.content("gateway", "default", "other") is None
    assert world.facts.content("HTTPRoute", "default", "web") is None


async def test_a_proxy_is_as_far_behind_as_the_newest_state_is_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put(CLASS, GATEWAY)
    fleet, snapshots = world.app.pipeline.fleet, world.app.pipeline.snapshots
    newest = snapshots.newest("default/web")
    proxy = fleet.connect("default/web/one", "default/web", "unix:")
    published = world.app.pipeline.published_at["default/web"]
    since = max(published, world.app.pipeline.fleet.proxies(lambda _: 0)[0].connected_since)
    monkeypatch.setattr(known_facts.readings, "time", SimpleNamespace(monotonic=lambda: since + 2.5))
    (row,) = world.facts.proxies()
    assert (row.gateway, row.instance, row.wanted, row.acknowledged) == ("default/web", "one", newest.version, "")
    assert row.lag_seconds == 2.5
    fleet.refuse(proxy, newest.sequence, newest.version, Refusals([Refusal("bind/x", "in use")]), complete=True)
    (row,) = world.facts.proxies()
    assert row.refusals == (facts.Refusal("bind/x", "in use"),)
    fleet.acknowledge(proxy, newest.sequence, newest.version)
    (row,) = world.facts.proxies()
    assert (row.acknowledged, row.lag_seconds, row.refusals) == (newest.version, 0.0, ())


async def test_about(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    about = world.facts.about()
    assert (about["pid"], about["source"], about["synced"]) == (os.getpid(), str(world.app.settings.source), False)
    started = world.facts._started
    monkeypatch.setattr(known_facts, "time", SimpleNamespace(monotonic=lambda: started + 1.23456))
    assert world.facts.about()["uptimeSeconds"] == 1.235
    assert datetime.fromisoformat(about["startedAt"]).tzname() == "UTC" and about["startedAt"].endswith("Z")
    await world.put(CLASS)
    assert world.facts.about()["synced"] is True


async def test_each_problem_is_logged_once_and_their_end(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "controlplane")
    error = Problem("a.yaml", 3, "", "spec", "is wrong")
    warning = Problem("a.yaml", 4, "", "spec", "is odd", "warning")
    note = Problem("a.yaml", 5, "", "spec", "is foreign", "info")

    def said() -> list[tuple[str, str]]:
        found = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "controlplane"]
        caplog.clear()
        return found

    world.app._report([])
    world.app._report([error, warning, note])
    assert said() == [("ERROR", str(error)), ("WARNING", str(warning))]
    world.app._report([error, note])
    assert said() == []
    world.app._report([])
    assert said() == [("INFO", "the files have no problems any more")]
    world.app._report([])
    assert said() == []


async def test_notes_are_logged_when_the_first_state_is_there_and_never_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.put(SECRET)
    assert caplog.text.count("holds no Gateway") == 1
    await world.put(SECRET)
    assert caplog.text.count("holds no Gateway") == 1
    assert gc.isenabled()


async def test_a_proxy_waits_for_the_first_state(world: World) -> None:
    waiting = world.app._when_ready(Identity("default/web/one", "default/web"), Peer("unix:", True))
    await world.put(CLASS)
    assert await waiting is None


async def test_an_admin_address_that_is_taken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def taken(_server: object) -> int:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(app.AdminServer, "start", taken)
    made = app.App(Settings(tmp_path, tmp_path / "socket", admin=("127.0.0.1", 18001)))
    with pytest.raises(app.AddressTaken, match=r"^127\.0\.0\.1:18001 \(admin page\): Address already in use$"):
        await made.open()
    made.pipeline.close()
