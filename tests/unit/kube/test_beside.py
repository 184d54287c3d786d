"""Heavy objects are decoded beside the event loop: in turns, the newest version alone, and what fails is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controlplane.facts import Fact, Invalid
from controlplane.helper import Helper, Unanswered
from controlplane.kube.reading import beside as module
from controlplane.kube.reading.beside import COMMAND, Beside
from controlplane.kube.reading.decoding import LIGHT, SHORT, Piece, Question, answer, content_mark, fact_of, weight
from controlplane.kube.reading.known import Known
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

Json = dict[str, Any]


def policy(namespace: str, name: str, size: int = 100_000, version: int = 1, **metadata: Any) -> Json:
    """With so many characters of expressions, and more of another version."""
    text = f"request.path == '{'a' * 90}' || "
    count = max(1, size // 1000)
    expressions = [f"{text * 8}{number} == {version}" for number in range(count)]
    return {
        "apiVersion": "gatewright.dev/v1alpha1",
        "kind": "GatewayPolicy",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version), **metadata},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}],
            "traffic": {"authorization": {"action": "Allow", "policy": {"matchExpressions": expressions}}},
        },
    }


def key(namespace: str, name: str) -> ObjectKey:
    return ObjectKey("GatewayPolicy", namespace, name)


def piece(value: Json) -> Piece:
    metadata = value["metadata"]
    return Piece(key(metadata["namespace"], metadata["name"]), json.dumps(value).encode(), "")


def event(value: Json, kind: str = "MODIFIED") -> bytes:
    return json.dumps({"type": kind, "object": value}).encode()


class Worker:
    """A process that answers when it may, as long as nothing is wrong with what it is asked."""

    def __init__(self) -> None:
        self.may = threading.Semaphore(0)
        self.asked: list[str] = []
        self.is_running = False
        self.fails: Callable[[Piece], Exception | None] = lambda _: None

    def ask(self, question: Any, deadline: float) -> Any:
        self.is_running = True
        if question is None:
            return None
        asked, seconds = question
        version = json.loads(asked.raw)["metadata"].get("resourceVersion", "")
        self.asked.append(f"{asked.key.namespace}/{asked.key.name} {version} {seconds:g}")
        assert self.may.acquire(timeout=PATIENCE)
        if not asked.unread and (error := self.fails(asked)) is not None:
            raise error
        return fact_of(asked)

    def rest(self) -> None:
        self.is_running = False
        self.may.release()


class Side:
    """What `beside` told, and the processes that it has, the one for lighter objects first."""

    def __init__(self) -> None:
        self.told: list[Fact] = []
        self.workers: list[Worker] = []
        self.now = 0.0
        self.work = 0.0
        self.beside = Beside(self._tell, self._worker, lambda: self.now, lambda: self.work)
        self.beside.is_starting = False
        self.known = Known(KINDS["GatewayPolicy"], beside=self.beside)

    async def _tell(self, facts: list[Fact]) -> None:
        self.told += facts

    def _worker(self) -> Worker:
        self.workers.append(Worker())
        return self.workers[-1]

    def names(self) -> list[str]:
        return [fact.key.name for fact in self.told]

    def see(self, *values: Json) -> list[Fact]:
        return self.known.events([event(each) for each in values])


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Side]:
    tests = Side()
    task = asyncio.create_task(tests.beside.run())
    try:
        yield tests
    finally:
        task.cancel()
        await asyncio.wait((task,))


def test_expressions_weigh_more_than_anything_else() -> None:
    light = piece(policy("a", "a", 1, annotations={"x": "y" * 100_000}))
    assert len(light.raw) > LIGHT and weight(light) < 2 * SHORT
    assert weight(piece(policy("a", "a", 20_000))) > 2 * LIGHT


def test_what_is_large_is_heavy_unseen() -> None:
    value = policy("a", "a", 1, annotations={"x": "y" * 300_000})
    assert weight(piece(value)) > LIGHT


def test_a_mark_is_of_all_but_status_and_version() -> None:
    value = policy("a", "a", 1)
    same = {**value, "status": {"a": 1}, "metadata": {**value["metadata"], "resourceVersion": "2", "managedFields": []}}
    others = [
        {**value, "spec": {}},
        {**value, "metadata": {**value["metadata"], "labels": {"a": "b"}}},
        {**value, "metadata": {**value["metadata"], "generation": 2}},
    ]
    marks = [content_mark(json.dumps(each).encode()) for each in (value, same, *others)]
    assert marks[0] == marks[1] and len(set(marks)) == 4


async def test_nobody_waits_for_a_heavy_object_but_itself() -> None:
    async with running() as tests:
        facts = tests.see(policy("many", "heavy"), policy("other", "light", 1))
        assert [fact.key.name for fact in facts] == ["light"] and len(tests.beside) == 1
        tests.workers[1].may.release()
        await until(lambda: tests.told)
        (fact,) = tests.told
        assert fact == fact_of(piece(policy("many", "heavy"))) and isinstance(fact.model, GatewayPolicy)


async def test_tenants_take_turns() -> None:
    async with running() as tests:
        tests.see(*(policy("many", f"m{number}") for number in range(3)), policy("other", "o"))
        for _ in range(4):
            tests.workers[1].may.release()
        await until(lambda: len(tests.told) == 4)
        assert tests.names() == ["m0", "o", "m1", "m2"]


async def test_who_writes_less_does_not_wait_for_who_writes_more() -> None:
    async with running() as tests:
        tests.see(policy("many", "heavy"), policy("other", "less", 20_000))
        tests.workers[0].may.release()
        await until(lambda: tests.told)
        assert tests.names() == ["less"]


async def test_versions_that_were_replaced_are_not_decoded() -> None:
    async with running() as tests:
        tests.see(policy("many", "a", version=1))
        await until(lambda: tests.workers[1].asked)
        tests.see(*(policy("many", "a", version=number) for number in range(2, 9)))
        tests.workers[1].may.release()
        tests.workers[1].may.release()
        await until(lambda: len(tests.told) == 2)
        assert tests.workers[1].asked == ["many/a 1 20", "many/a 8 20"]
        assert tests.told[-1] == fact_of(piece(policy("many", "a", version=8))) and not len(tests.beside)


async def test_what_is_gone_or_light_now_is_not_told_as_it_was() -> None:
    async with running() as tests:
        tests.see(policy("many", "gone"), policy("many", "light"), policy("many", "last"))
        await until(lambda: tests.workers[1].asked)
        (gone,) = tests.known.events([event(policy("many", "gone"), "DELETED")])
        (light,) = tests.see(policy("many", "light", 1, version=2))
        assert gone.model is None and light.key.name == "light"
        for _ in range(3):
            tests.workers[1].may.release()
        await until(lambda: tests.told)
        assert tests.names() == ["last"] and not len(tests.beside)


async def test_a_status_that_is_written_decodes_nothing_anew() -> None:
    async with running() as tests:
        value = policy("many", "a")
        tests.see(value)
        tests.workers[1].may.release()
        await until(lambda: tests.told)
        written = {**value, "metadata": {**value["metadata"], "resourceVersion": "2"}, "status": {"conditions": []}}
        (fact,) = tests.see(written)
        assert fact == tests.told[0] and fact.previous is not None
        assert (fact.previous.status, fact.previous.resource_version) == ({"conditions": []}, "2")
        assert len(tests.workers[1].asked) == 1
        assert tests.see({**written, "spec": policy("many", "a", version=2)["spec"]}) == []


async def test_light_objects_beyond_the_budget_of_their_namespace_take_turns_too() -> None:
    async with running() as tests:
        assert len(tests.see(policy("many", "a", 1))) == 1
        with tests.beside.decoding("many"):
            tests.work += module.AT_ONCE
        assert tests.see(policy("many", "b", 1)) == []
        assert len(tests.see(policy("other", "c", 1))) == 1
        tests.workers[0].may.release()
        await until(lambda: tests.names() == ["b"])
        tests.now += 1.0
        assert len(tests.see(policy("many", "d", 1))) == 1


async def test_what_takes_longer_than_it_weighs_moves_on_to_the_slow_process() -> None:
    async with running() as tests:
        tests.workers[0].fails = lambda _: Unanswered("", is_late=True)
        tests.see(policy("many", "a", 20_000))
        tests.workers[0].may.release()
        tests.workers[1].may.release()
        await until(lambda: tests.told)
        assert (tests.workers[0].asked, tests.workers[1].asked) == (["many/a 1 1"], ["many/a 1 20"])


async def test_what_cannot_be_decoded_in_time_is_refused_and_its_guards_refuse() -> None:
    async with running() as tests:
        tests.workers[1].fails = lambda _: Unanswered("", is_late=True)
        tests.see(policy("many", "a"))
        tests.workers[1].may.release()
        tests.workers[1].may.release()
        await until(lambda: tests.told)
        (fact,) = tests.told
        assert isinstance(fact.model, Invalid)
        assert fact.model.reasons == ("takes more than 20 s to read; make it smaller, or split it",)
        assert isinstance(fact.acts, GatewayPolicy) and fact.acts.unread is not None
        assert "authorization" in fact.acts.unread.security


async def test_a_process_that_answers_nothing_is_not_asked_for_ever() -> None:
    async with running() as tests:
        worker = tests.workers[1]
        worker.fails = lambda _: Unanswered("cannot be read")
        worker.ask = lambda *_: (_ for _ in ()).throw(Unanswered("cannot be read"))  # type: ignore[method-assign]
        tests.see(policy("many", "a"))
        await until(lambda: not len(tests.beside))
        assert tests.told == []


async def test_the_start_waits_for_what_is_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as tests:
        tests.beside.is_starting = True
        tests.see(policy("many", "a"))
        starting = asyncio.create_task(tests.beside.started())
        await until(lambda: tests.workers[1].asked)
        assert not starting.done()
        tests.workers[1].may.release()
        await starting
        assert tests.names() == ["a"] and not tests.beside.is_starting


async def test_the_start_does_not_wait_for_ever_and_guards_refuse_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_START", 0.0)
    async with running() as tests:
        tests.see(policy("many", "a"))
        await tests.beside.started()
        (fact,) = tests.told
        assert isinstance(fact.model, Invalid) and isinstance(fact.acts, GatewayPolicy)
        assert fact.acts.unread is not None and "authorization" in fact.acts.unread.security
        tests.workers[1].may.release()
        await until(lambda: len(tests.told) == 2)
        assert tests.told[1].acts == fact_of(piece(policy("many", "a"))).acts  # type: ignore[union-attr]


async def test_what_is_just_being_told_is_not_refused_by_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_START", 0.0)
    async with running() as tests:
        may, telling = asyncio.Event(), asyncio.Event()
        sink = tests.beside._sink

        async def held(facts: list[Fact]) -> None:
            telling.set()
            await may.wait()
            await sink(facts)

        monkeypatch.setattr(tests.beside, "_sink", held)
        tests.see(policy("many", "a"))
        job = tests.beside._jobs[key("many", "a")]
        tests.workers[1].may.release()
        await telling.wait()
        monkeypatch.setitem(tests.beside._jobs, key("many", "b"), job)  # the start has seen it before it was told
        starting = asyncio.create_task(tests.beside.started())
        await asyncio.sleep(0)
        may.set()
        await starting
        assert [isinstance(fact.model, Invalid) for fact in tests.told] == [False]


async def test_whoever_is_cancelled_leaves_no_process() -> None:
    async with running() as tests:
        tests.see(policy("many", "a"))
        await until(lambda: tests.workers[1].asked)
    assert not tests.workers[1].is_running


@pytest.mark.process
def test_a_process_ends_when_it_has_computed_for_as_long_as_it_may() -> None:
    helper = Helper(COMMAND)
    try:
        assert helper.ask(None, PATIENCE) is None
        heavy = piece(policy("many", "a", 2_000_000))
        with pytest.raises(Unanswered) as failed:
            helper.ask(Question(heavy, 0.0), PATIENCE)
        assert failed.value.is_late and not helper.is_running
        light = piece(policy("many", "a", 1))
        assert helper.ask(Question(light, 20.0), PATIENCE) == fact_of(light)
    finally:
        helper.rest()


def test_a_process_that_has_loaded_says_so() -> None:
    assert answer(None) is None


@pytest.mark.process
async def test_the_process_decodes_as_the_controller_does() -> None:
    told: list[Fact] = []

    async def tell(facts: list[Fact]) -> None:
        told.extend(facts)

    beside = Beside(tell)
    beside.is_starting = False
    known = Known(KINDS["GatewayPolicy"], beside=beside)
    task = asyncio.create_task(beside.run())
    try:
        bad = policy("many", "bad", 20_000)
        bad["spec"]["traffic"]["authorization"]["policy"]["matchExpressions"][0] = "nobody.knows"
        known.events([event(policy("many", "a", 20_000)), event(bad)])
        await until(lambda: len(told) == 2)
        assert told == [fact_of(piece(policy("many", "a", 20_000))), fact_of(piece(bad))]
    finally:
        task.cancel()
        await asyncio.wait((task,))
