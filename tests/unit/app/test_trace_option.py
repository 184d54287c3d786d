"""What a trace says of proxies that are behind, refuse, or hold what nobody remembers; and its text."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import app, known_facts
from controlplane.admin import facts
from controlplane.answers.nacks import Refusal, Refusals
from controlplane.answers.proxies import Proxy
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.cli.asking import trace_change
from controlplane.derive import Change
from controlplane.settings import Settings
from controlplane.sources.directory import Directory
from tests.fakes.certificates import Authority
from tests.fakes.web_objects import OBJECTS, route

ROUTE = "route/httproute/default/shop/0"
WEB = "default/web"


class World:
    """A controller whose files are texts, and the proxies that a test connects."""

    def __init__(self, folder: Path) -> None:
        self.app = app.App(Settings(folder, folder / "socket"))
        self.facts = known_facts.KnownFacts(self.app)
        self.fleet = self.app.pipeline.fleet
        assert isinstance(self.app.source, Directory)

    async def put(self, **files: str) -> None:
        for name, text in files.items():
            assert self.app.tree is not None
            *_, staged = self.app.tree.stage(f"{name}.yaml", text)
            assert staged is not None
            await self.app.take(self.app.tree.commit(staged))
        await self.app.idle()
        self.app.pipeline._publish_when_due()  # what waits is not waited for
        for _ in self.app.pipeline._publish(early=True):
            pass

    def proxy(self, name: str) -> Proxy:
        return self.fleet.connect(f"{WEB}/{name}", WEB, "unix:")

    def acknowledge(self, proxy: Proxy) -> None:
        newest = self.app.pipeline.snapshots.newest(WEB)
        self.fleet.acknowledge(proxy, newest.sequence, newest.version)

    def trace(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = facts.traces(self.facts, [facts.Selector(kind, "", name)])["traces"]
        return dict(found)

    def holders(self) -> dict[str, tuple[int, list[str], list[str]]]:
        """Proxy -> how much of the route it serves, what it lacks, what it refuses."""
        rows = self.trace("httproute", "shop")["proxies"]
        return {
            row["instance"]: (row["serves"], list(row["lacks"]), [each["resource"] for each in row["refuses"]])
            for row in rows
        }


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.put(web=OBJECTS.format(port=8080, upstream=9), shop=route("shop", "/a"))
    yield made
    made.app.pipeline.close()


async def test_who_has_the_newest_content(world: World) -> None:
    fresh, behind, refusing, whole = (world.proxy(name) for name in ("fresh", "behind", "refusing", "whole"))
    world.acknowledge(behind)
    assert world.holders()["behind"] == (1, [], [])
    assert world.holders()["fresh"] == (0, [ROUTE], [])
    await world.put(shop=route("shop", "/b"))
    assert world.holders()["behind"] == (0, [ROUTE], []), "it has an older version"
    newest = world.app.pipeline.snapshots.newest(WEB)
    world.acknowledge(fresh)
    no = Refusals([Refusal(ROUTE, "too long")])
    world.fleet.refuse(refusing, newest.sequence, newest.version, no, complete=True)
    world.fleet.refuse(whole, newest.sequence, newest.version, Refusals([Refusal("", "what?")]), complete=False)
    assert world.holders() == {
        "behind": (0, [ROUTE], []),
        "fresh": (1, [], []),
        "refusing": (0, [], [ROUTE]),
        "whole": (0, [ROUTE], [""]),
    }
    assert world.trace("gateway", "web")["states"][0]["resources"] == 3


async def test_proxies_of_other_controllers(world: World) -> None:
    """They report which state they have, not when they took it."""

    def reports(proxy: str, answer: Answer) -> Change[AnswerKey, Answer]:
        return Change(AnswerKey("there_1", WEB, f"{WEB}/{proxy}"), None, answer)

    world.acknowledge(world.proxy("here"))
    before = world.app.pipeline.snapshots.newest(WEB).version
    await world.put(shop=route("shop", "/b"))
    newest = world.app.pipeline.snapshots.newest(WEB).version
    no = {ROUTE: Refusal(ROUTE, "too long")}
    answers = {"fresh": Answer(newest), "behind": Answer(before), "new": Answer(""), "refusing": Answer(newest, no)}
    world.fleet.hear("there_1", [reports(name, answer) for name, answer in answers.items()])
    assert world.holders() == {
        "here": (0, [ROUTE], []),
        "fresh": (1, [], []),
        "behind": (0, [ROUTE], []),
        "new": (0, [ROUTE], []),
        "refusing": (0, [], [ROUTE]),
    }
    shown = trace_change.text(world.trace("httproute", "shop"))
    assert re.findall(r"^(\w+) .* (?:(there)|this one)$", shown, re.MULTILINE) == [
        ("here", ""),
        *((name, "there") for name in answers),
    ]
    assert world.trace("gatewayclass", "gatewright")["proxies"] == []


async def test_an_edit_of_something_else_leaves_a_proxy_with_what_it_has(world: World) -> None:
    world.acknowledge(proxy := world.proxy("p"))
    await world.put(other=route("other", "/o"))
    assert world.holders() == {"p": (1, [], [])}
    world.fleet.acknowledge(proxy, 0, "a version of long ago")
    assert world.holders() == {"p": (0, [ROUTE], [])}, "nobody knows what that held"


async def test_objects_of_other_kinds_and_their_endpoints(world: World) -> None:
    names = {row["name"] for row in world.trace("service", "origin")["resources"]}
    assert names == {"backend/service/default/origin/80", "default/origin/80/127.0.0.1:9"}
    slices = [row["name"] for row in world.trace("endpointslice", "origin-1")["resources"]]
    assert slices == ["default/origin/80/127.0.0.1:9"]
    assert world.trace("gatewayclass", "gatewright")["resources"] == []
    assert {row["name"] for row in world.trace("gateway", "web")["resources"]} == {
        "gateway/default/web",
        "bind/default/web/8080",
        "listener/gateway/default/web/http",
    }


async def test_names_that_begin_alike_are_told_apart(world: World) -> None:
    await world.put(more=route("shop-2", "/c"))
    assert [row["name"] for row in world.trace("httproute", "shop")["resources"]] == [ROUTE]


async def test_the_text(world: World) -> None:
    world.acknowledge(world.proxy("one"))
    world.proxy("two")
    found = world.trace("httproute", "shop")
    for rows, field in (
        (found["resources"], "published"),
        (found["states"], "published"),
        (found["proxies"], "answered"),
    ):
        for row in rows:
            row[field] = row[field] and "T"
    found["object"]["read"] = "T"
    (resource,), (state,) = found["resources"], found["states"]
    version = state["version"][:12]
    lines = trace_change.text(found).splitlines()
    assert lines[:10] == [
        "HTTPRoute default/shop, generation 1, read T from shop.yaml",
        "",
        "RESOURCE                        GATEWAY      VERSION           PUBLISHED",
        f"{ROUTE}  default/web  {resource['version']}  T",
        f"newest state of default/web: {version}, published T",
        "",
        "PROXY  GATEWAY      SERVES  STATE         ANSWERED",
        f"one    default/web  1 of 1  {version}  T",
        "two    default/web  0 of 1  -             -",
        f"    not yet: {ROUTE}",
    ]
    assert [line.split()[0] for line in lines[11:]] == ["CONDITION", "Accepted=True", "ResolvedRefs=True"]


async def test_the_text_of_what_became_of_nothing_and_of_very_much(world: World) -> None:
    await world.put(lost=route("lost", "/l").replace("name: web", "name: wab"))
    text = trace_change.text(world.trace("httproute", "lost"))
    assert "no resource of its own in the state of any Gateway\n" in text
    assert text.endswith("no conditions: its parent Gateway default/wab does not exist")
    found = world.trace("httproute", "shop")
    assert "\nno proxies connected\n" in trace_change.text(found)
    found["resources"] *= 25
    assert "\nand 5 more; -o json has all\n" in trace_change.text(found)


async def test_of_secrets_no_version_is_shown(world: World) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {one: hush}\n"
    policy = (
        "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {name: keys}\nspec:\n"
        "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]\n"
        "  traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}\n"
    )
    await world.put(secret=secret, policy=policy)
    world.acknowledge(world.proxy("one"))
    found = world.trace("secret", "keys")
    assert [(row["name"], row["version"]) for row in found["resources"]] == [("secret/default/keys", "")]
    (holder,), (state,) = found["proxies"], found["states"]
    assert (holder["serves"], holder["version"]) == (1, state["version"]) and len(state["version"]) == 32
    assert "hush" not in str(found) + trace_change.text(found)


async def test_a_policy_with_the_name_of_a_certificate_shows_its_own_resources_alone(world: World) -> None:
    pair = Authority().issue("a.example")
    secret = {"tls.crt": pair.chain.decode(), "tls.key": pair.key.decode()}
    refs = "tls: {certificateRefs: [{name: twin}]}"
    gateway = OBJECTS.format(port=8080, upstream=9).replace(
        "protocol: HTTP, port: 8080}", f"protocol: HTTP, port: 8080}}, {{name: s, protocol: HTTPS, port: 443, {refs}}}"
    )
    policy = (
        "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {name: twin}\nspec:\n"
        "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]\n"
        "  traffic: {basicAuthentication: {realm: r, users: ['bob:{SHA}ZXhhbXBsZQ==']}}\n"
    )
    kept = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: twin}}\nstringData: {json.dumps(secret)}\n"
    await world.put(web=gateway, secret=kept, policy=policy)
    assert [row["name"] for row in world.trace("secret", "twin")["resources"]] == ["secret/default/twin/tls"]
    names = {row["name"] for row in world.trace("gatewaypolicy", "twin")["resources"]}
    assert names == {"policy/default/twin/basic_authentication", "secret/default/twin/basic_authentication"}
