"""A controller reports to the leader, over calls in memory: what it says, to whom, when it calls again."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import itertools
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from controlplane.answers.fleet import Fleet
from controlplane.answers.proxies import Proxy
from controlplane.xds import answer_messages, reporter
from controlplane.xds.answer_messages import METHOD, ORIGIN
from controlplane.xds.trust import authority
from controlplane.xds.trust.issuer import Issuer
from tests.fakes.moved_loop import moved

WEB = "shop/web"
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
Rows = list[tuple[str, str | None]]


def unreachable() -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())


class Call:
    """One to a leader. `refusal`: what it ends with before it begins."""

    def __init__(self, address: str, at: float, refusal: Exception | None) -> None:
        self.address, self.at = address, at
        self.said: list[Rows] = []
        self.metadata: Sequence[tuple[str, str]] = ()
        self.is_cancelled = self.is_closed = False
        self._refusal = refusal
        self._end: Exception | None = None
        self._is_done = False
        self._callbacks: list[Callable[[object], None]] = []

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._callbacks.append(callback)

    async def wait_for_connection(self) -> None:
        if self._refusal is not None:
            self.ends(self._refusal)
            raise self._refusal

    async def write(self, message: bytes) -> None:
        if self._is_done:
            raise asyncio.InvalidStateError
        changes, _ = answer_messages.read(message, "x")
        self.said.append([(change.key.instance, change.new.version if change.new else None) for change in changes])

    def done(self) -> bool:
        return self._is_done

    def cancel(self) -> None:
        self.is_cancelled = True

    def ends(self, why: Exception | None = None) -> None:
        self._is_done, self._end = True, why
        for callback in self._callbacks:
            callback(self)

    def __await__(self) -> Generator[Any, None, bytes]:
        yield from asyncio.sleep(0).__await__()
        if self._end is not None:
            raise self._end
        return b""


class Channels:
    """What stands for `grpc.aio.secure_channel`. `refusals`: of the next calls, in their order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.options: dict[str, object] = {}
        self.refusals: list[Exception | None] = []

    @asynccontextmanager
    async def __call__(self, address: str, credentials: object, options: Sequence[tuple[str, object]]) -> Any:
        assert credentials == "of the issuer"
        self.options = dict(options)
        refusal = self.refusals.pop(0) if self.refusals else None
        call = Call(address, asyncio.get_running_loop().time(), refusal)
        self.calls.append(call)
        try:
            yield self
        finally:
            call.is_closed = True

    def stream_unary(self, method: str) -> Callable[..., Call]:
        assert method == METHOD

        def begin(*, metadata: Sequence[tuple[str, str]]) -> Call:
            self.calls[-1].metadata = metadata
            return self.calls[-1]

        return begin


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.channels = Channels()
        self.fleet = Fleet(lambda: 0.0, origin="two")
        self.leader = "one:1"
        issuer = Issuer(lambda: NOW)
        issuer.use(first_authority())
        monkeypatch.setattr(Issuer, "channel_credentials", lambda _self: "of the issuer")
        monkeypatch.setattr(grpc.aio, "secure_channel", self.channels)
        self.reporter = reporter.Reporter(self.fleet, "two", issuer, lambda: self.leader)

    def proxy(self, name: str, version: str = "") -> Proxy:
        proxy = self.fleet.connect(name, WEB, "")
        if version:
            self.fleet.acknowledge(proxy, 1, version)
        return proxy

    def leads(self, address: str) -> None:
        self.leader = address
        self.reporter.look()

    @property
    def calls(self) -> list[Call]:
        return self.channels.calls

    def pauses(self) -> list[float]:
        times = [call.at for call in self.calls]
        return [round(after - before, 6) for before, after in itertools.pairwise(times)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reporter.run())
        await settled()
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@functools.cache
def first_authority() -> authority.Authority:
    return authority.created(NOW)


async def settled() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


@moved
async def test_all_that_is_known_is_said_first_and_then_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.proxy("a", "v1")
    old = world.proxy("b")
    async with world.running():
        (call,) = world.calls
        assert (call.address, dict(call.metadata), call.said) == ("one:1", {ORIGIN: "two"}, [[("a", "v1"), ("b", "")]])
        world.fleet.acknowledge(old, 2, "v2")
        world.proxy("c")
        world.fleet.disconnect(old)
        await settled()
        assert call.said[1:] == [[("b", None), ("c", "")]], "of each the newest alone"
        world.reporter.look()
        await asyncio.sleep(60)
        assert (world.reporter.messages, world.reporter.failures, world.reporter.trouble) == (len(call.said), 0, "")
        assert call.said[2:] == [[]] and len(world.calls) == 1


@moved
async def test_a_controller_without_proxies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader waits for it."""
    world = World(monkeypatch)
    async with world.running():
        assert (world.calls[0].said, world.reporter.messages) == ([[]], 1)


@moved
async def test_half_open_connections_are_noticed_within_eight_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    async with world.running():
        assert world.channels.options == {
            "grpc.ssl_target_name_override": "controllers.gatewright.internal",
            "grpc.keepalive_time_ms": 5000,
            "grpc.keepalive_timeout_ms": 3000,
            "grpc.http2.max_pings_without_data": 0,
            "grpc.use_local_subchannel_pool": 1,  # else a new call would share the broken connection
        }


@moved
async def test_nobody_is_called_while_there_is_no_other_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.leader = ""
    async with world.running():
        world.proxy("a")
        await asyncio.sleep(60)
        assert world.calls == []
        world.leads("one:1")
        await settled()
        assert [call.said for call in world.calls] == [[[("a", "")]]]
        world.leads("")
        await asyncio.sleep(60)
        assert len(world.calls) == 1 and world.calls[0].is_cancelled and world.calls[0].is_closed


@moved
async def test_another_leader_is_told_everything_and_the_one_before_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    world.proxy("a", "v1")
    async with world.running():
        world.leads("three:1")
        await asyncio.sleep(1)
        world.proxy("b")
        await settled()
        first, second = world.calls
        assert (first.said, first.is_cancelled, first.is_closed) == ([[("a", "v1")]], True, True)
        assert (second.address, second.said) == ("three:1", [[("a", "v1")], [("b", "")]])
        assert (world.reporter.failures, world.pauses()) == (0, [0.0])
    assert world.calls[1].is_cancelled
    world.proxy("c")  # nobody listens any more
    assert len(world.calls[1].said) == 2


@moved
async def test_a_leader_that_cannot_be_reached_is_tried_with_pauses_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(monkeypatch)
    world.channels.refusals = [unreachable() for _ in range(8)]
    text = "the leader, at one:1, cannot be reached: UNAVAILABLE"
    async with world.running():
        await asyncio.sleep(10)
        assert world.pauses() == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
        assert (world.reporter.failures, world.reporter.trouble) == (8, text)
        assert [record.getMessage() for record in caplog.records] == [f"{text}; it is tried again"]
        await asyncio.sleep(3)
        assert (len(world.calls), world.reporter.trouble, world.calls[-1].said) == (9, "", [[]])


@moved
async def test_a_new_trouble_is_logged_again_and_another_leader_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(monkeypatch)
    world.channels.refusals = [unreachable() for _ in range(7)]
    async with world.running():
        await asyncio.sleep(5)
        assert len(world.calls) == 6
        world.leads("three:1")
        await settled()
        assert [call.address for call in world.calls[6:]] == ["three:1"]
        assert [record.getMessage().split()[3] for record in caplog.records] == ["one:1,", "three:1,"]


@moved
async def test_the_end_of_a_call_is_followed_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its end is: the leader stops, leads no more, or is gone while it is written to."""
    world = World(monkeypatch)
    async with world.running():
        for end, failures in ((None, 0), (unreachable(), 1), (None, 1), (unreachable(), 2)):
            before = len(world.calls)
            world.calls[-1].ends(end)
            await asyncio.sleep(0.25)
            assert (len(world.calls), world.reporter.failures) == (before + 1, failures)
            await asyncio.sleep(60)
        assert len(world.calls) == 5


@moved
async def test_a_call_that_ends_while_it_is_written_to_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.channels.refusals = [asyncio.InvalidStateError()]
    async with world.running():
        await asyncio.sleep(0.15)
        assert (world.pauses(), world.reporter.failures, world.reporter.trouble) == ([0.1], 0, "")
        assert world.calls[1].said == [[]]


@moved
async def test_who_was_reached_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause grows with the failures in a row."""
    world = World(monkeypatch)
    world.channels.refusals = [unreachable(), unreachable(), unreachable(), None, None, unreachable()]
    async with world.running():
        await asyncio.sleep(1)
        world.calls[3].ends()
        await asyncio.sleep(1)
        world.calls[4].ends()
        await asyncio.sleep(1)
        assert world.pauses()[:3] == [0.1, 0.2, 0.4]
        assert world.pauses()[5:] == [0.2], "a success, and one failure since"


@moved
async def test_who_leads_itself_has_no_trouble_with_the_leader_before(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.channels.refusals = [unreachable() for _ in range(8)]
    async with world.running():
        await asyncio.sleep(5)
        assert "one:1" in world.reporter.trouble
        world.leads("")
        await settled()
        assert world.reporter.trouble == ""
