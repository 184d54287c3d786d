"""The serving process without an agent: this test is at the other end of its link."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import pytest
import uvloop

from dataplane import serving, worker
from dataplane.link import buckets, codec, last_served, locks, messages
from dataplane.link.channel import Channel
from dataplane.link.commits import Commits
from dataplane.link.messages import RESOURCE, Message, Record
from dataplane.link.shared import Region
from dataplane.proxy.steps.waiting import StepFuture
from dataplane.settings import Drain, SessionKey, WorkerSettings
from dataplane.telemetry import metrics
from dataplane.telemetry.access_log import INTERVAL
from dataplane.telemetry.metrics import SECTIONS
from gatewright.api.standalone import standalone
from tests.fakes.certificates import Authority
from tests.fakes.memory_agent import ask, config, descriptors
from tests.fakes.memory_workers import MemoryWorker
from tests.fakes.moved_loop import moved
from tests.fakes.proxy_process import origin
from tests.fakes.secure_proxy import secure, secured

BIND = "bind/default/standalone/8080"
SETTINGS = WorkerSettings("", "test", 1, "text", "info", {}, Drain(2.0, 5.0), SessionKey(bytes(32)))


async def test_work_that_holds_the_processor_has_one_thread() -> None:
    """However much of it clients ask for: the loop has to share its core with one."""
    loop = asyncio.get_running_loop()
    beside = serving.beside(loop, partial(StepFuture, loop=loop))
    threads = {await work for work in [beside(threading.get_ident) for _ in range(8)]}
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


def test_the_access_log_goes_to_the_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    serving.Host().stdout()(b"a line\n")
    assert capfd.readouterr() == ("a line\n", "")


def test_its_loop_is_uvloop_where_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker.loop_factory() is uvloop.new_event_loop
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert worker.loop_factory() is asyncio.new_event_loop


@pytest.mark.parametrize("arguments", [[], ["--link-fd"], ["--link-fd", "x"], ["--fd", "3"], ["--link-fd", "3", "4"]])
def test_it_is_started_by_an_agent_only(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["worker", *arguments])
    with pytest.raises(SystemExit, match="started by the agent only"):
        worker.main()


async def test_old_tables_are_freed_in_one_slice_of_each_turn() -> None:
    slices = [False, True, True]
    made = object.__new__(serving.Serving)
    made._is_tidying, made._applier = False, SimpleNamespace(tidy=slices.pop)  # type: ignore[assignment]  # of it all that is asked
    made._tidy_soon()
    made._tidy_soon()  # a second exchange has ended: the work is under way already
    left = []
    for _ in range(4):
        await asyncio.sleep(0)
        left.append(len(slices))
    assert left == [2, 1, 0, 0]


class Agent:
    """The other end: says what the test says, notes what it hears."""

    def __init__(self, ours: socket.socket) -> None:
        self.heard: list[Message] = []
        self.ends: list[str] = []
        self.region = Region.create("gatewright-test", {**SECTIONS, **last_served.SECTIONS})
        self.commits, self.common = Commits.create(2, **buckets.SECTIONS)
        locks.initialise(self.common.section(buckets.LOCKS))
        self.channel = Channel(ours, lambda message, _fd: self.heard.append(message), self.ends.append)
        self.port = 0

    def greet(self) -> None:
        self.channel.send(messages.Hello(0, SETTINGS.to_link()), self.region.fd)
        self.channel.send(messages.Common(), self.common.fd)

    def state(self, number: int, text: str = "", removed: tuple[str, ...] = ()) -> None:
        resources = standalone.load(text, "config.yaml").resources if text else ()
        records = [Record(RESOURCE, each.key, each.SerializeToString()) for each in resources]
        records += [Record(RESOURCE, key, None) for key in removed]
        self.channel.send_all((*codec.chunked(records), messages.StateEnd(number)))

    async def hears(self, message: type[Message]) -> Message:
        while not any(isinstance(each, message) for each in self.heard):
            await asyncio.sleep(0.01)
        return next(each for each in self.heard if isinstance(each, message))

    async def serve(self, text: str) -> None:
        """A first state, committed, and a socket."""
        self.greet()
        self.state(1, text)
        await self.hears(messages.Prepared)
        self.commit(1)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
            self.channel.send(messages.OpenBind(BIND), listening.fileno())
        await self.hears(messages.BindOpened)

    def other_prepares(self, number: int) -> None:
        """The other worker of this proxy, which is not there."""
        self.commits.prepare(1, number)

    def commit(self, number: int) -> None:
        self.commits.commit(number)
        self.channel.send(messages.Commit(number))

    def counted(self, name: str) -> int:
        """What the worker counted by this name, 0 when there is none."""
        rows = {series.metric.name: numbers[0] for series, numbers in metrics.read_region(self.region)}
        return rows.get(name, 0)

    def close(self) -> None:
        self.channel.close()
        self.region.close()
        self.common.close()


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Agent, MemoryWorker]]:
    """A worker at one end of a link, the test at the other. Nothing is left when both have ended."""
    before = descriptors()
    ours, theirs = socket.socketpair()
    agent, life = Agent(ours), MemoryWorker(theirs)
    try:
        yield agent, life
    finally:
        agent.close()
        await life.wait()
    await asyncio.sleep(1)
    assert descriptors() == before


@moved
async def test_it_serves_a_state_from_its_commit_on() -> None:
    async with origin() as upstream, linked() as (agent, life):
        await agent.serve(config(8080, upstream))
        assert (await ask(agent.port)).body == "hello"
        prepared = await agent.hears(messages.Prepared)
        assert isinstance(prepared, messages.Prepared)
        assert prepared.refused == {} and [(bind.key, bind.port) for bind in prepared.binds] == [(BIND, 8080)]
        agent.heard.clear()
        agent.state(2, removed=("route/httproute/default/all/0",))
        await agent.hears(messages.Prepared)
        assert (await ask(agent.port)).body == "hello"  # not committed
        agent.other_prepares(2)
        assert (await ask(agent.port)).status == 404  # by the shared memory alone: the message is still to come
        agent.commit(2)
        assert life.first_states == 1


@moved
async def test_the_longest_hold_of_the_loop_by_any_swap_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the next table is prepared meanwhile or the last one is dropped."""
    holds = 0.0
    monkeypatch.setattr(serving.Stall, "seconds", lambda _hold: holds)
    async with linked() as (agent, _):
        agent.greet()
        for number, preparing, dropping, longest in (
            (1, 0.002, 0.001, 2000),
            (2, 0.001, 0.005, 5000),
            (3, 0.003, 0.004, 5000),
            (4, 0.25, 0.004, 250_000),
        ):
            holds = preparing
            agent.heard.clear()
            agent.state(number, config(8080, 1, prefix=f"/{number}"))
            await agent.hears(messages.Prepared)
            assert agent.counted("swaps_total") == number - 1
            holds = dropping
            agent.commit(number)
            await asyncio.sleep(1)
            assert agent.counted("swaps_total") == number
            assert agent.counted("swap_stall_max_seconds") == longest


@moved
async def test_a_resource_that_it_cannot_use_is_refused_and_the_rest_serves() -> None:
    async with origin() as upstream, linked() as (agent, _):
        await agent.serve(config(8080, upstream))
        agent.heard.clear()
        agent.channel.send(messages.Changes((Record(RESOURCE, "route/httproute/default/all/0", b"\xff"),)))
        agent.channel.send(messages.StateEnd(2))
        prepared = await agent.hears(messages.Prepared)
        assert isinstance(prepared, messages.Prepared) and list(prepared.refused) == ["route/httproute/default/all/0"]
        agent.commit(2)
        assert (await ask(agent.port)).body == "hello"


@moved
async def test_what_a_kind_of_backends_needs_is_loaded_before_its_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: list[str] = []

    def load(kind: str) -> Iterator[None]:
        kinds.append(kind)
        yield

    monkeypatch.setattr(serving.registry, "load", load)
    async with origin() as upstream, linked() as (agent, _):
        text = config(8080, upstream)
        await agent.serve(text)
        assert kinds == []
        agent.heard.clear()
        tools = "mcp: {targets: [{name: a, static: {host: 127.0.0.1, port: 1}}]}"
        agent.state(2, text.replace(f'host: "127.0.0.1:{upstream}"', tools))
        await agent.hears(messages.Prepared)
        assert kinds == ["mcp"]


@moved
async def test_it_answers_at_once_whatever_else_it_does() -> None:
    async with linked() as (agent, life):
        agent.channel.send(messages.Ping(1))
        agent.channel.send(messages.DumpRequest(2))
        agent.channel.send(messages.Commit(1))  # of nothing: it has not been greeted
        assert await agent.hears(messages.DumpAnswer) == messages.DumpAnswer(2, {})
        assert agent.heard[0] == messages.Pong(1)
        agent.greet()
        agent.channel.send(messages.LogLevel("debug", {"dataplane.http": "info"}))
        agent.channel.send(messages.DumpRequest(3))
        await asyncio.sleep(0.1)
        dump = agent.heard[-1]
        assert isinstance(dump, messages.DumpAnswer) and dump.dump["state"] == 0 and dump.dump["binds"] == {}
        assert life.levels[-2:] == [("info", {}), ("debug", {"dataplane.http": "info"})] or len(life.levels) == 2


@moved
async def test_a_closed_bind_takes_what_waits_and_its_requests_end() -> None:
    async with origin() as upstream, linked() as (agent, _):
        await agent.serve(config(8080, upstream))
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        agent.channel.send(messages.CloseBind(BIND))
        agent.channel.send(messages.CloseBind("bind/never/opened"))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.read()).endswith(b"hello")  # and closed
        await agent.hears(messages.BindClosed)
        with pytest.raises(ConnectionRefusedError):
            await ask(agent.port)
        writer.close()
        await asyncio.sleep(0.1)
        assert messages.BindClosed("bind/never/opened") in agent.heard


@asynccontextmanager
async def reading_origin() -> AsyncIterator[int]:
    """An upstream that answers one request when it has four bytes of its body."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(4)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@moved
async def test_the_end_of_the_agent_is_a_drain_without_a_minimum(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    async with reading_origin() as upstream, linked() as (agent, life):
        await agent.serve(config(8080, upstream))
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo")
        await asyncio.sleep(0.1)
        began = loop.time()
        agent.channel.close()
        await asyncio.sleep(1)
        assert not life.task.done()
        writer.write(b"dy")
        assert b"hello" in await reader.read()
        assert await life.wait() == 0 and loop.time() - began < 2.0
        assert "the agent is gone; ending" in caplog.text
        writer.close()


@moved
async def test_without_requests_the_end_of_the_agent_is_the_worker_s_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with reading_origin() as upstream, linked() as (agent, life):
        await agent.serve(config(8080, upstream))
        began = loop.time()
        agent.channel.close()
        assert await life.wait() == 0 and loop.time() - began < 0.5


@moved
async def test_its_end_leaves_no_line_of_the_access_log_unwritten() -> None:
    """Lines wait half a second for others; the loop ends sooner."""
    loop = asyncio.get_running_loop()
    async with origin() as upstream, linked() as (agent, life):
        await agent.serve(config(8080, upstream))
        assert (await ask(agent.port, "/last")).body == "hello"
        ended = loop.time()
        assert life.lines == []
        agent.channel.close()
        assert await life.wait() == 0 and loop.time() - ended < INTERVAL
        assert b"".join(life.lines).count(b"/last") == 1


@moved
async def test_the_end_of_an_agent_that_never_spoke() -> None:
    async with linked() as (agent, life):
        agent.channel.close()
        assert await life.wait() == 0


@moved
async def test_sigterm_drains_as_the_settings_say() -> None:
    loop = asyncio.get_running_loop()
    async with origin() as upstream, linked() as (agent, life):
        await agent.serve(config(8080, upstream))
        began = loop.time()
        life.worker.terminate()
        life.worker.terminate()  # again: nothing more
        await asyncio.sleep(1)
        answer = await ask(agent.port)
        assert answer.body == "hello" and "connection: close" in answer.head.lower()
        assert await life.wait() == 0 and 2.0 <= loop.time() - began < 3.0


@moved
async def test_sigterm_before_the_first_word_ends_at_once() -> None:
    async with linked() as (_, life):
        life.worker.terminate()
        assert await life.wait() == 0


@moved
async def test_what_cannot_be_done_ends_it_with_everything_that_it_has() -> None:
    async with linked() as (agent, life):
        agent.greet()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            agent.channel.send(messages.OpenBind(BIND), listening.fileno())
        await agent.hears(messages.BindOpened)
        agent.channel.send(messages.Pong(1))  # the worker's to send
        with socket.create_server(("127.0.0.1", 0)) as listening:
            agent.channel.send(messages.OpenBind(BIND), listening.fileno())  # heard, and never done
        assert await life.wait() == 1
        assert isinstance(life.task.exception(), KeyError) and agent.ends == [""]


@moved
async def test_a_failed_task_of_an_exchange_is_logged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ZeroDivisionError("a bug")

    async def lasts() -> None:
        await asyncio.sleep(3600)

    tasks = serving.Tasks(asyncio.get_running_loop())
    tasks.spawn(fails())
    lasting = tasks.spawn(lasts())
    await asyncio.sleep(1)
    assert "a task failed" in caplog.text and "a bug" in caplog.text
    await tasks.end()
    assert lasting.cancelled() and len(caplog.records) == 1


@moved
async def test_when_the_certificate_of_a_listener_expires_is_a_metric() -> None:
    issued = Authority().issue("shop.example")
    async with linked() as (agent, _):
        agent.greet()
        loaded = standalone.load(config(8080, 1), "config.yaml").resources
        resources = secured(loaded, {"http": secure(issued)})
        records = tuple(Record(RESOURCE, each.key, each.SerializeToString()) for each in resources)
        agent.channel.send(messages.Changes(records))
        agent.channel.send(messages.StateEnd(1))
        await agent.hears(messages.Prepared)
        agent.commit(1)
        await asyncio.sleep(1)
        expires = int(issued.certificate.not_valid_after_utc.timestamp())
        assert agent.counted("tls_certificate_expiry_timestamp_seconds") == expires
