"""Two controllers of the same Gateways share what their proxies answered: `Programmed` is right on both."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.answers.nacks import Refusal, Refusals
from controlplane.answers.proxies import Proxy
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change
from controlplane.pipeline import Pipeline
from controlplane.sources import decode, tree
from tests.unit.app.test_pipeline import EXAMPLE, GATEWAY, ROUTE, World

PENDING = ("False", "Pending", 1)
PROGRAMMED = ("True", "Programmed", 1)


class Replica(World):
    """A controller with a name. What it gives out is heard by the other as long as they are joined."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.pipeline = Pipeline(origin=name)
        self.tree = tree.Tree(decode.decode, decode.with_generation)
        self.pipeline.snapshots.listen(self.published.append)
        self.texts = {file.name: file.read_text() for file in EXAMPLE.glob("*.yaml")}
        self.name = name

    def proxy(self, instance: str) -> Proxy:
        return self.pipeline.fleet.connect(f"{GATEWAY}/{instance}", GATEWAY, "")

    def acknowledge(self, proxy: Proxy) -> None:
        newest = self.pipeline.snapshots.newest(GATEWAY)
        self.pipeline.fleet.acknowledge(proxy, newest.sequence, newest.version)

    def hear(self, other: Replica) -> None:
        """From now on."""
        fleet = self.pipeline.fleet
        fleet.expect(other.name)
        heard: list[Any] = []
        other.pipeline.fleet.answers.subscribe(lambda batch: (heard.append(batch), fleet.hear(other.name, batch)))
        if not heard:
            fleet.hear(other.name, [])  # a whole that is empty


@pytest.fixture
async def replicas() -> list[Replica]:
    made = [Replica("one"), Replica("two")]
    for each in made:
        await each.load()
    made[0].hear(made[1])
    made[1].hear(made[0])
    return made


async def settle(*replicas: Replica) -> None:
    """Until all news of proxies are handled, which are gathered for a moment."""
    for each in replicas:
        await each.settle()
        while each.pipeline.news.is_pending:
            await each.settle()


async def programmed(*replicas: Replica) -> list[tuple[str, str, int]]:
    await settle(*replicas)
    return [each.programmed() for each in replicas]


async def test_a_gateway_is_programmed_when_the_proxies_of_both_have_answered(replicas: list[Replica]) -> None:
    one, two = replicas
    a, b = one.proxy("a"), two.proxy("b")
    one.acknowledge(a)
    assert await programmed(one, two) == [PENDING, PENDING]
    two.acknowledge(b)
    assert await programmed(one, two) == [PROGRAMMED, PROGRAMMED]
    one.pipeline.fleet.disconnect(a)
    two.pipeline.fleet.disconnect(b)
    assert await programmed(one, two) == [PENDING, PENDING]


async def test_states_are_compared_by_version_though_they_were_counted_otherwise(replicas: list[Replica]) -> None:
    one, two = replicas
    await one.edit("gateway.yaml", "port: 8080", "port: 8079")  # states that the second controller never had
    await one.edit("gateway.yaml", "port: 8079", "port: 8080")
    newest = [each.pipeline.snapshots.newest(GATEWAY) for each in replicas]
    assert newest[0].version == newest[1].version and newest[0].sequence != newest[1].sequence
    b = two.proxy("b")
    two.acknowledge(b)
    await settle(one, two)
    assert [each.programmed()[:2] for each in replicas] == [("True", "Programmed")] * 2


async def test_a_refusal_at_one_is_a_condition_at_both(replicas: list[Replica]) -> None:
    one, two = replicas
    b = two.proxy("b")
    newest = two.pipeline.snapshots.newest(GATEWAY)
    refused = Refusals([Refusal(ROUTE, "too long")])
    two.pipeline.fleet.refuse(b, newest.sequence, newest.version, refused, complete=True)
    await settle(one, two)
    assert [each.conditions("HTTPRoute", "shop")["Programmed"][:2] for each in replicas] == [("False", "Rejected")] * 2
    two.acknowledge(b)
    await settle(one, two)
    assert all("Programmed" not in each.conditions("HTTPRoute", "shop") for each in replicas)


async def test_while_facts_are_missing_programmed_keeps_its_last_value(replicas: list[Replica]) -> None:
    one, two = replicas
    a, b = one.proxy("a"), two.proxy("b")
    one.acknowledge(a)
    two.acknowledge(b)
    assert await programmed(one) == [PROGRAMMED]
    one.pipeline.fleet.expect("two")
    await one.edit("gateway.yaml", "port: 8080", "port: 8081")
    assert await programmed(one) == [PROGRAMMED], "of the generation that it was said of"
    one.pipeline.fleet.forget("two")
    assert await programmed(one) == [("False", "Pending", 2)]
    one.acknowledge(a)
    assert await programmed(one) == [("True", "Programmed", 2)]


async def test_a_controller_that_knows_of_another_but_nothing_of_its_proxies_says_no_yes() -> None:
    one = Replica("one")
    one.pipeline.fleet.expect("two")
    await one.load()
    one.acknowledge(one.proxy("a"))
    assert await programmed(one) == [PENDING]
    one.pipeline.fleet.hear("two", [])
    assert await programmed(one) == [PROGRAMMED]


async def test_a_proxy_that_moves_counts_once(replicas: list[Replica]) -> None:
    one, two = replicas
    before, after = one.proxy("a"), two.proxy("a")
    two.acknowledge(after)
    await settle(one, two)
    assert two.programmed() == PROGRAMMED
    one.pipeline.fleet.disconnect(before)
    assert await programmed(one, two) == [PROGRAMMED, PROGRAMMED]


async def test_nobody_speaks_for_somebody_else(replicas: list[Replica]) -> None:
    one, _ = replicas
    key = AnswerKey("third", GATEWAY, f"{GATEWAY}/x")
    one.pipeline.fleet.hear("two", [Change(key, None, Answer("v"))])
    assert one.pipeline.fleet.view(GATEWAY).connected == 0


async def test_a_proxy_with_two_streams_has_the_fact_of_the_newer_until_both_have_ended() -> None:
    one = Replica("one")
    await one.load()
    fleet = one.pipeline.fleet
    old, new = one.proxy("a"), one.proxy("a")
    one.acknowledge(new)
    key = AnswerKey("one", GATEWAY, f"{GATEWAY}/a")
    version = one.pipeline.snapshots.newest(GATEWAY).version
    fleet.disconnect(old)
    assert fleet.answers.present() == {key: Answer(version)}
    fleet.disconnect(new)
    assert not fleet.answers.present()
    assert version not in repr(Answer(version))
