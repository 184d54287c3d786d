"""One call of a proxy without gRPC: what is written, what the fleet hears, how a call ends, and who is too slow."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import grpc
import pytest
from grpc_health.v1 import health_pb2

from controlplane.answers.fleet import Fleet
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots
from controlplane.xds import accounts, listeners, methods, permits, server, session
from controlplane.xds.node import Peer
from controlplane.xds.permits import Permits
from controlplane.xds.protocol.claim import OWN_AGENT, QUESTION, STATE_KEY
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Stream
from controlplane.xds.session import Session, Shared
from controlplane.xds.trust.service_accounts import EXPIRED, Verdict
from controlplane.xds.trust.tokens import Tokens
from controlplane.xds.xds_settings import XdsSettings
from gatewright.wire.external import discovery_pb2, node_pb2
from tests.fakes.moved_loop import moved
from tests.harness.waiting import until

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse
GATEWAY = "shop/web"
UNAVAILABLE, INVALID = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT


class Aborted(Exception):
    """What gRPC raises in a handler that aborts its call."""


class Call:
    """`session.DeltaCall` in memory; `gate` closed: the peer takes nothing."""

    def __init__(self, address: str = "unix:") -> None:
        self.requests: asyncio.Queue[bytes] = asyncio.Queue()
        self.written: list[Response] = []
        self.ended: tuple[grpc.StatusCode, str] | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.address = address

    async def read(self) -> bytes:
        return await self.requests.get()

    async def write(self, response: bytes) -> None:
        await self.gate.wait()
        self.written.append(Response.FromString(response))

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        self.ended = code, details
        raise Aborted

    def auth_context(self) -> dict[str, list[bytes]]:
        return {}

    def peer(self) -> str:
        return self.address

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None:
        return None

    def say(self, type_url: str = RESOURCE_TYPE, **fields: object) -> None:
        self.requests.put_nowait(Request(type_url=type_url, **fields).SerializeToString())  # type: ignore[arg-type]

    def answer(self, error: str = "") -> None:
        """ACK or NACK what came last."""
        last = self.written[-1]
        detail = {"error_detail": {"message": error}} if error else {}
        self.say(last.type_url, response_nonce=last.nonce, **detail)


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class World:
    """What sessions share, with one that was let in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int = 1 << 20) -> None:
        self.clock = Clock()
        monkeypatch.setattr(session, "time", self.clock)
        self.snapshots = Snapshots()
        self.fleet = Fleet(self.clock.monotonic)
        self.permits = Permits(most, most)
        self.house = Shared(self.snapshots, self.fleet, self.permits, 30.0)

    def publish(self, **contents: str) -> None:
        self.snapshots.apply((GATEWAY, RESOURCE_TYPE, name, text.encode()) for name, text in contents.items())

    def session(self, instance: str = "one", claim: str = "") -> Session:
        """`claim`: the version that the proxy says it has."""
        stream = Stream(Library(), self.clock.monotonic, self.snapshots.recall)
        node = node_pb2.Node(id=f"{GATEWAY}/{instance}", user_agent_name=OWN_AGENT)
        if claim:
            node.metadata[STATE_KEY] = claim
        for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
            stream.receive(Request(type_url=type_url, resource_names_subscribe=["*"] if claim else (), node=node))
        stream.admitted()
        return Session(stream, self.house, Peer("unix:", True), accounts.Accounts().open(GATEWAY))

    @asynccontextmanager
    async def running(
        self, instance: str = "one", claim: str = ""
    ) -> AsyncIterator[tuple[Session, Call, asyncio.Task[None]]]:
        made, call = self.session(instance, claim), Call()
        task = asyncio.create_task(made.run(call))
        try:
            yield made, call, task
        finally:
            task.cancel()
            await asyncio.wait([task])

    def connected(self) -> int:
        return self.fleet.view(GATEWAY).connected


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def state(call: Call, count: int = 1) -> None:
    await until(lambda: sum(bool(each.system_version_info) for each in call.written) >= count, "a whole state")


async def test_a_state_its_answer_and_the_next_one(world: World) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        assert world.fleet.view(GATEWAY).acknowledged == (-1,)
        call.answer()
        await until(lambda: world.fleet.view(GATEWAY).acknowledged == (1,), "the answer")
        world.publish(a="2")
        made.notify()
        await state(call, 2)
        assert [resource.name for response in call.written for resource in response.resources] == ["a", "a"]


async def test_an_answer_is_followed_by_what_is_newer_by_then(world: World) -> None:
    world.publish(a="1")
    async with world.running() as (_, call, _):
        await state(call)
        world.publish(a="2")  # nobody says so
        call.answer()
        await state(call, 2)


async def test_each_big_state_needs_a_permit_and_whoever_was_quick_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, most=100_000)
    for text in ("x", "y"):
        world.publish(a=text * 90_000)
        async with world.running() as (made, call, _):
            await state(call)
            assert (world.permits.under_way, made._slow) == (0, False)
            call.answer()
            call.gate.clear()
            world.publish(a=(text + "z") * 45_000)
            made.notify()
            await until(lambda: world.permits.under_way, "the second permit")
            assert world.permits.under_way >= 90_000


async def test_a_call_that_is_closed_ends_with_unavailable(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with world.running() as (made, call, task):
        await state(call)
        assert world.connected() == 1
        made.close("going")
        with pytest.raises(Aborted):
            await task
        assert (call.ended, world.connected()) == ((UNAVAILABLE, "going"), 0)
    assert [record.message for record in caplog.records if record.name == session.__name__] == [
        "proxy shop/web/one connected from unix:",
        "proxy shop/web/one disconnected",
    ]


async def test_who_breaks_the_protocol_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with world.running() as (_, call, task):
        await state(call)
        call.say(node={"id": "shop/web/two"})
        with pytest.raises(Aborted):
            await task
        text = "this stream belongs to shop/web/one: a stream cannot change its node"
        assert (call.ended, world.connected()) == ((INVALID, text), 0)
        assert f"proxy shop/web/one: {text}" in caplog.text


async def test_who_only_asks_gets_one_state_and_the_end(world: World) -> None:
    world.publish(a="1")
    async with world.running() as (_, call, task):
        call.requests.put_nowait(grpc.aio.EOF)
        await task
        assert (len(call.written), call.ended, world.connected()) == (1, None, 0)


async def test_the_end_of_a_call_gives_its_permit_back(world: World) -> None:
    world.publish(a="x" * 100_000)
    async with world.running() as (_, call, task):
        call.gate.clear()
        await until(lambda: world.permits.under_way, "the permit")
        task.cancel()
        await asyncio.wait([task])
        assert (world.permits.under_way, world.connected()) == (0, 0)


async def test_a_small_message_needs_no_permit(world: World) -> None:
    made = world.session()
    assert made._may_send(16 << 10)
    assert world.permits.under_way == 0
    assert made._may_send((16 << 10) + 1)
    assert world.permits.under_way == (16 << 10) + 1


async def test_a_state_in_several_messages_keeps_its_place_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, most=100_000)
    one, two, three = (world.session(name) for name in ("one", "two", "three"))
    assert [each._may_send(60_000) for each in (one, two, three)] == [True, False, False]
    one._end_permit()  # the first message is taken
    assert [each._may_send(60_000) for each in (one, two)] == [False, True]
    two._end_permit()
    assert [each._may_send(60_000) for each in (one, three)] == [True, False], "the rest of the first state"


async def test_the_next_state_has_a_place_of_its_own_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, most=100_000)
    one, two, three = (world.session(name) for name in ("one", "two", "three"))
    assert one._may_send(60_000)
    one._end_permit()
    one.notify()
    await one._pause()  # all was said
    assert [each._may_send(60_000) for each in (two, three, one)] == [True, False, False]
    one.notify()
    await one._pause()  # it still waits for its turn
    two._end_permit()
    assert [each._may_send(60_000) for each in (three, one)] == [True, False]
    three._end_permit()
    assert one._may_send(60_000)


@pytest.mark.parametrize(("seconds", "is_slow"), [(0.0, False), (1.0, False), (1.1, True)])
async def test_whoever_took_more_than_a_second_is_slow(seconds: float, is_slow: bool, world: World) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        call.answer()
        call.gate.clear()
        world.publish(a="2")
        made.notify()
        await until(lambda: made._waits_since == world.clock.now, "the second state")
        world.clock.now += seconds
        call.gate.set()
        await state(call, 2)
        for _ in range(5):
            await asyncio.sleep(0)
        assert made._slow is is_slow


async def test_two_big_states_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, most=100_000)
    world.publish(a="x" * 90_000)
    async with world.running("one") as (_, first, _), world.running("two") as (_, second, _):
        first.gate.clear()
        second.gate.clear()
        await until(lambda: world.permits.under_way, "the first permit")
        assert 90_000 <= world.permits.under_way <= 100_000
        first.gate.set()
        second.gate.set()
        await state(first)
        await state(second)
        assert world.permits.under_way == 0


async def test_a_slow_reader_makes_room_and_one_that_takes_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(monkeypatch, most=100_000)
    world.publish(a="x" * 90_000)
    async with world.running("one") as (slow, call, task), world.running("two") as (_, second, _):
        call.gate.clear()
        second.gate.clear()
        await until(lambda: world.permits.under_way, "the first permit")
        slow.check(world.clock.now + permits.PATIENCE)
        assert world.permits.under_way <= 100_000, "no longer than that is not slow"
        slow.check(world.clock.now + permits.PATIENCE + 0.1)
        assert world.permits.under_way >= 180_000, "the second goes on in its place"
        slow.check(world.clock.now + 30.0)
        assert (world.connected(), caplog.text) == (2, "")
        slow.check(world.clock.now + 30.5)
        slow.check(world.clock.now + 31.0)
        assert (world.connected(), caplog.text.count("took nothing for 30 s: it is left")) == (1, 1)
        call.gate.set()  # it reads at last
        with pytest.raises(Aborted):
            await task
        assert call.ended == (UNAVAILABLE, session.TOO_SLOW)
        call.answer()
        assert world.connected() == 1
        second.gate.set()
        await state(second)
        assert world.permits.under_way == 0


async def test_what_is_sent_is_counted(world: World) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        call.answer()
        world.publish(a="2")
        made.notify()
        await state(call, 2)
    numbers = world.house.numbers
    assert (numbers.responses, numbers.response_bytes) == (2, sum(each.ByteSize() for each in call.written))


async def test_who_is_slow_to_answer_a_question_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it wait for them: its state goes by the account of those that are slow."""
    world = World(monkeypatch, most=100_000)
    world.publish(**{f"r{number:02}": "x" * 900 for number in range(90)})
    async with world.running("one", claim="of another controller") as (slow, call, _):
        await until(lambda: len(call.written) == 2, "the questions")
        assert world.permits.under_way == 90 * 300, "what the answers may take"
        slow.check(world.clock.now + permits.PATIENCE + 0.1)
        async with world.running("two") as (_, second, _):
            second.gate.clear()
            await until(lambda: world.permits.under_way >= 90 * 1200, "the permit of the other one")
            for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
                call.say(type_url, response_nonce=QUESTION)
            for _ in range(100):
                await asyncio.sleep(0)
            assert call.written[-1].system_version_info and not second.written


@pytest.mark.parametrize("is_answered", [False, True])
async def test_who_does_not_answer_a_question_is_left(world: World, is_answered: bool) -> None:
    """A proxy that claims a state that nobody knows is asked what it holds."""
    world.publish(a="1")
    async with world.running(claim="of another controller") as (made, call, _):
        await until(lambda: len(call.written) == 2, "the questions")
        assert [(each.nonce, len(each.resources)) for each in call.written] == [(QUESTION, 0)] * 2
        made.check(world.clock.now + 30.0)
        assert world.connected() == 1
        if is_answered:
            for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
                call.say(type_url, response_nonce=QUESTION)
            await state(call)
        made.check(world.clock.now + 30.5)
        assert world.connected() == is_answered


async def test_what_a_proxy_answers_that_was_left_is_not_counted(world: World) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        made._leave()
        call.answer()
        await until(call.requests.empty, "the reading")
        await asyncio.sleep(0)
        assert (made.proxy.acknowledged, world.connected()) == (-1, 0)


async def test_a_session_that_waits_for_nothing_is_never_slow(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with world.running() as (made, call, _):
        await state(call)
        made.check(world.clock.now + 1000.0)
        assert (world.connected(), caplog.text) == (1, "")


def _refusing(count: int) -> str:
    return json.dumps([{"key": f"r{number}", "error": "bad"} for number in range(count)])


@pytest.mark.parametrize(("count", "lines"), [(1, 1), (5, 5), (6, 6), (9, 6)])
async def test_a_nack_is_a_few_lines_of_the_log(
    world: World, caplog: pytest.LogCaptureFixture, count: int, lines: int
) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        call.answer(_refusing(count))
        await until(lambda: len(made.proxy.refusals) == count, "the refusals")
    said = [record.message for record in caplog.records]
    assert said[0] == "proxy shop/web/one refuses r0: bad" and len(said) == lines
    more = [f"proxy shop/web/one refuses {count - 5} more"] if count > 5 else []
    assert said[5:] == more


async def test_a_refusal_without_a_key_is_of_a_state(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.publish(a="1")
    async with world.running() as (made, call, _):
        await state(call)
        call.answer("no")
        await until(lambda: made.proxy.refusals, "the refusal")
    assert [record.message for record in caplog.records] == ["proxy shop/web/one refuses a state: no"]


# --- the server's part of a call


NO_STREAMS = {"accepted": 0, "unauthenticated": 0, "forbidden": 0, "malformed": 0, "exhausted": 0}


@asynccontextmanager
async def serving(authorize: server.Authorize = server.trust_local) -> AsyncIterator[tuple[server.XdsServer, Fleet]]:
    fleet = Fleet(lambda: 0.0)
    made = server.XdsServer(Snapshots(), fleet, XdsSettings(None, None), authorize)
    await made.start()
    try:
        yield made, fleet
    finally:
        await made.stop()


async def test_a_call_that_ends_before_it_asks_for_anything() -> None:
    async with serving() as (made, fleet):
        call = Call()
        call.requests.put_nowait(grpc.aio.EOF)
        await made.delta(None, call)
        assert (call.ended, call.written, fleet.view(GATEWAY).connected) == (None, [], 0)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (b"\xff", "a request is not a DeltaDiscoveryRequest"),
        (Request(type_url=RESOURCE_TYPE).SerializeToString(), "the first request must carry a node"),
    ],
)
async def test_a_first_request_that_is_none(request_: bytes, text: str) -> None:
    async with serving() as (made, _):
        call = Call()
        call.requests.put_nowait(request_)
        with pytest.raises(Aborted):
            await made.delta(None, call)
        assert call.ended is not None and call.ended[0] == INVALID and text in call.ended[1]
        assert made.numbers.streams == {**NO_STREAMS, "malformed": 1}


async def test_who_never_asks_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_REQUEST", 0.01)
    async with serving() as (made, _):
        call = Call()
        with pytest.raises(Aborted):
            await made.delta(None, call)
        assert call.ended == (grpc.StatusCode.DEADLINE_EXCEEDED, "no request within 0.01 s")
        assert made.numbers.streams == {**NO_STREAMS, "malformed": 1}


class DeafCall(Call):
    """Its peer does not hear of its end."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        self.ended = code, details
        await asyncio.Event().wait()
        raise Aborted


@pytest.mark.parametrize("is_admitted", [False, True])
async def test_what_is_too_much_is_forgotten_before_its_peer_hears_of_it(
    is_admitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty streams of 4 MB, one after the other, had a small one of another Gateway turned away."""
    monkeypatch.setattr(accounts, "MOST_BYTES", 100_000)
    async with serving() as (made, fleet):
        heavy, other = DeafCall(), Call()
        if is_admitted:
            heavy.say(ENDPOINT_TYPE, node={"id": f"{GATEWAY}/one"})
        heavy.say(node={"id": f"{GATEWAY}/one"}, initial_resource_versions={f"r{n}": "1" for n in range(1000)})
        tasks = [asyncio.create_task(made.delta(None, heavy))]
        await until(lambda: heavy.ended, "the end of the heavy one")
        assert heavy.ended is not None and heavy.ended[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        other.say(node={"id": "shop/other/one"})
        tasks.append(asyncio.create_task(made.delta(None, other)))
        await until(lambda: other.ended or fleet.view("shop/other").connected, "the other one")
        assert other.ended is None
        assert made.numbers.kept() < 10_000
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert made.numbers.kept() == 0


async def test_whoever_may_not_have_resources_is_refused_and_never_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(identity: object, peer: Peer) -> str:
        return f"not from {peer.address}, local: {peer.local}"

    async with serving(refuse) as (made, fleet):
        heard: list[object] = []
        fleet.answers.subscribe(heard.extend)
        call = Call("ipv4:10.0.0.1:5")
        call.say(node={"id": f"{GATEWAY}/one"})
        with pytest.raises(Aborted):
            await made.delta(None, call)
        assert call.ended == (grpc.StatusCode.PERMISSION_DENIED, "not from ipv4:10.0.0.1:5, local: False")
        assert (heard, call.written) == ([], [])
        assert "ipv4:10.0.0.1:5 may not have shop/web: not from" in caplog.text
        assert made.numbers.streams == {**NO_STREAMS, "forbidden": 1}
        call.say(node={"id": f"{GATEWAY}/one"})
        with pytest.raises(Aborted):
            await made.delta_over_tcp(None, call)
        assert len(caplog.records) == 1, "the host was refused for this a moment ago"


async def test_a_server_that_stops_is_not_well_and_hears_of_no_more_states() -> None:
    request = health_pb2.HealthCheckRequest(service=methods.DISCOVERY)
    async with serving() as (made, _):
        servicer = made._health
        assert servicer is not None
        assert (await servicer.Check(request, None)).status == health_pb2.HealthCheckResponse.SERVING
        await made.stop()
        assert (await servicer.Check(request, None)).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert made._snapshots._listeners == []


class Listening:
    """What stands for gRPC's server: which services it offers, and how often it is started and stopped."""

    def __init__(self, options: object = None) -> None:
        self.offered: list[str] = []
        self.done: list[str] = []
        self.bound: tuple[str, object] | None = None

    def add_generic_rpc_handlers(self, handlers: Sequence[object]) -> None:
        self.offered += [handler.service_name() for handler in handlers]  # type: ignore[attr-defined]

    def add_registered_method_handlers(self, *_: object) -> None:
        """What the library of health adds once more."""

    def add_insecure_port(self, address: str) -> int:
        if address.startswith("unix:"):
            Path(address.removeprefix("unix:")).touch()
            Path(address.removeprefix("unix:")).chmod(0o666)  # whatever the library makes of it
        return self.add_secure_port(address, None)

    def add_secure_port(self, address: str, server_credentials: object) -> int:
        self.bound = address, server_credentials
        return 77

    async def start(self) -> None:
        self.done.append("start")

    async def stop(self, grace: float) -> None:
        self.done.append(f"stop in {grace:g} s")


class Shown:
    def credentials(self) -> str:
        return "of the files"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Listening]:
    servers: list[Listening] = []

    def server_(options: object) -> Listening:
        servers.append(Listening(options))
        return servers[-1]

    monkeypatch.setattr(grpc.aio, "server", server_)
    return servers


STATUS = (methods.CLIENT_STATUS, methods.REFLECTION, methods.REFLECTION_ALPHA)
PLAIN = ("INFO", "reflection, health and client status on [::1]:77")
INSECURE = ("WARNING", "resources, secrets among them, are served without TLS on [::1]:77")


@pytest.mark.parametrize(
    ("settings", "offered", "bound", "said"),
    [
        (XdsSettings(None, ("::1", 0)), STATUS, ("[::1]:0", None), [PLAIN]),
        (XdsSettings(None, ("::1", 0), resources_over_tcp=True), STATUS, ("[::1]:0", None), [PLAIN, INSECURE]),
        (
            XdsSettings(None, ("127.0.0.1", 18000), certificates=Shown()),
            (),  # what shows all Gateways' proxies is not for whoever connects
            ("127.0.0.1:18000", "of the files"),
            [("INFO", "resources over TLS and health on 127.0.0.1:77")],
        ),
    ],
    ids=["loopback", "without TLS", "TLS"],
)
async def test_what_is_offered_over_tcp(
    settings: XdsSettings,
    offered: tuple[str, ...],
    bound: tuple[str, object],
    said: list[tuple[str, str]],
    made: list[Listening],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    tried = server.XdsServer(Snapshots(), Fleet(lambda: 0.0), settings)
    await tried.start()
    (listening,) = made
    assert sorted({*listening.offered}) == sorted({methods.DISCOVERY, *offered, methods.HEALTH})
    assert (listening.bound, tried.tcp_port) == (bound, 77)
    await tried.stop()
    await tried.stop()
    assert listening.done == ["start", "stop in 1 s"]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == said


async def test_the_socket_is_the_owners_alone_and_goes_with_the_server(
    tmp_path: Path, made: list[Listening], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "xds.sock"
    tried = server.XdsServer(Snapshots(), Fleet(lambda: 0.0), XdsSettings(path, None))
    await tried.start()
    assert (path.stat().st_mode & 0o777, made[0].bound) == (0o600, (f"unix:{path}", None))
    assert [record.getMessage() for record in caplog.records] == [f"resources are served on {path}"]
    tried._shared.permits.ask(1, 50_000, lambda: None, slow=False)
    assert tried.under_way == 50_000
    await tried.stop()
    assert not path.exists()
    path.touch()  # of the next controller
    await tried.stop()
    assert path.exists()


def tokens(folder: Path, *lines: str) -> Tokens:
    (folder / "tokens").write_text("\n".join(lines))
    return Tokens(folder / "tokens")


class HeldCall(Call):
    """Of a proxy with a token."""

    def __init__(self, name: str, token: str) -> None:
        super().__init__("ipv4:10.0.0.1:5")
        self.token = token
        self.say(node={"id": f"{GATEWAY}/{name}"})

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None:
        return (("authorization", f"Bearer {self.token}"),)


ONE, TWO = "token-of-the-first-proxy", "token-of-the-second-proxy"


@moved
async def test_whose_token_is_withdrawn_is_left_within_half_a_second(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not so whoever has another one, or is on this machine."""
    fleet = Fleet(lambda: 0.0)
    settings = XdsSettings(None, None, tokens=tokens(tmp_path, ONE, TWO))
    made = server.XdsServer(Snapshots(), fleet, settings)
    await made.start()
    one, two, local = HeldCall("one", ONE), HeldCall("two", TWO), Call()
    local.say(node={"id": f"{GATEWAY}/local"})
    tasks = [asyncio.create_task(made.delta_over_tcp(None, call)) for call in (one, two)]
    tasks.append(asyncio.create_task(made.delta(None, local)))
    await asyncio.sleep(5)
    assert fleet.view(GATEWAY).connected == 3
    tokens(tmp_path, TWO)
    await asyncio.sleep(0.6)
    assert tasks[0].done() and isinstance(tasks[0].exception(), Aborted)
    assert one.ended == (UNAVAILABLE, "the credential of this proxy is not valid any more")
    assert [record.getMessage() for record in caplog.records] == [f"proxy shop/web/one: {one.ended[1]}"]
    assert (two.ended, local.ended, fleet.view(GATEWAY).connected) == (None, None, 2)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await made.stop()


async def test_whose_token_is_withdrawn_while_it_waits_is_not_served(tmp_path: Path) -> None:
    settings = XdsSettings(None, None, tokens=tokens(tmp_path, ONE, TWO))

    async def withdraw(identity: object, peer: Peer) -> str | None:
        tokens(tmp_path, TWO)
        return None

    snapshots = Snapshots()
    snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"1"), (GATEWAY, ENDPOINT_TYPE, "a", b"1")])
    made = server.XdsServer(snapshots, Fleet(lambda: 0.0), settings, withdraw)
    call = HeldCall("one", ONE)
    call.say(ENDPOINT_TYPE)
    with pytest.raises(Aborted):
        await made.delta_over_tcp(None, call)
    assert (call.ended, call.written) == ((UNAVAILABLE, server.WITHDRAWN), [])


@moved
async def test_waiting_for_leave_is_not_waiting_for_a_second_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """That request may be there and not be read yet: a state of one type would be taken for the whole."""
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=asyncio.get_running_loop().time))

    async def slowly(identity: object, peer: Peer) -> str | None:
        await asyncio.sleep(60)
        return None

    snapshots = Snapshots()
    snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"1"), (GATEWAY, ENDPOINT_TYPE, "a", b"1")])
    made = server.XdsServer(snapshots, Fleet(lambda: 0.0), XdsSettings(None, None), slowly)
    call = Call()
    call.say(RESOURCE_TYPE, node={"id": f"{GATEWAY}/one"})
    task = asyncio.create_task(made.delta(None, call))
    await asyncio.sleep(60)
    for _ in range(20):
        await asyncio.sleep(0)
    call.say(ENDPOINT_TYPE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert [(each.type_url, bool(each.system_version_info)) for each in call.written] == [
        (ENDPOINT_TYPE, False),
        (RESOURCE_TYPE, True),
    ]
    task.cancel()
    await asyncio.wait([task])


class Accounts:
    """Who knows tokens of service accounts: `verdicts` one after the other, the last one for ever."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = [*verdicts]
        self.asked: list[tuple[str, str]] = []

    async def check(self, gateway: str, token: str) -> Verdict:
        self.asked.append((gateway, token))
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]


class TokenCall(Call):
    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None:
        return (("authorization", "Bearer of-the-account"),)


@asynccontextmanager
async def watched(
    monkeypatch: pytest.MonkeyPatch, *verdicts: Verdict
) -> AsyncIterator[tuple[Accounts, TokenCall, asyncio.Task[None], Fleet]]:
    """A proxy that was let in over TCP by its token, on a moved loop."""
    clock = SimpleNamespace(monotonic=asyncio.get_running_loop().time)
    monkeypatch.setattr(session, "time", clock)
    monkeypatch.setattr(server, "time", clock)
    accounts, fleet = Accounts(*verdicts), Fleet(clock.monotonic)
    made = server.XdsServer(Snapshots(), fleet, XdsSettings(None, None), accounts=accounts)  # type: ignore[arg-type]
    await made.start()
    call = TokenCall("ipv4:10.0.0.1:5")
    call.say(node={"id": f"{GATEWAY}/one"})
    task = asyncio.create_task(made.delta_over_tcp(None, call))
    await asyncio.sleep(0.1)
    try:
        yield accounts, call, task, fleet
    finally:
        task.cancel()
        await asyncio.wait([task])
        await made.stop()


@moved
async def test_a_token_is_asked_about_again_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now = asyncio.get_running_loop().time()
    verdicts = [Verdict(until=now + 100), Verdict("nobody answers", now + 200, False), Verdict(until=now + 300)]
    async with watched(monkeypatch, *verdicts, Verdict("withdrawn")) as (accounts, call, task, fleet):
        for seconds, times in ((99, 1), (1, 2), (99, 2), (1, 3), (99, 3)):
            await asyncio.sleep(seconds)
            assert (len(accounts.asked), fleet.view(GATEWAY).connected, call.ended) == (times, 1, None)
        await asyncio.sleep(1)
        assert accounts.asked == [(GATEWAY, "of-the-account")] * 4
        with pytest.raises(Aborted):
            await task
        assert (call.ended, fleet.view(GATEWAY).connected) == ((UNAVAILABLE, "withdrawn"), 0)
        assert [record.getMessage() for record in caplog.records if record.name == server.__name__] == [
            "proxy shop/web/one: withdrawn"
        ]


@moved
async def test_a_token_may_have_half_a_second_and_nobody_asks_about_one_that_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = asyncio.get_running_loop().time()
    async with watched(monkeypatch, Verdict(until=now + 0.5), Verdict(until=now + 60)) as (accounts, call, task, _):
        await asyncio.sleep(0.5)
        assert len(accounts.asked) == 2
        call.requests.put_nowait(grpc.aio.EOF)
        await task
        await asyncio.sleep(120)
        assert len(accounts.asked) == 2


@moved
async def test_who_has_to_come_with_a_new_token_has_five_seconds_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    now = asyncio.get_running_loop().time()
    async with watched(monkeypatch, Verdict(until=now + 10), Verdict(EXPIRED)) as (_, call, task, fleet):
        await asyncio.sleep(10)
        with pytest.raises(Aborted):
            await task
        assert call.ended == (UNAVAILABLE, EXPIRED)
        await asyncio.sleep(4.8)
        assert fleet.view(GATEWAY).connected == 1
        await asyncio.sleep(0.3)
        assert fleet.view(GATEWAY).connected == 0


@pytest.mark.parametrize(("is_final", "code"), [(True, grpc.StatusCode.PERMISSION_DENIED), (False, UNAVAILABLE)])
@moved
async def test_whose_token_is_refused_is_not_let_in(
    is_final: bool, code: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched(monkeypatch, Verdict("no", 0.0, is_final)) as (_, call, task, fleet):
        with pytest.raises(Aborted):
            await task
        assert (call.ended, fleet.view(GATEWAY).connected, call.written) == ((code, "no"), 0, [])


async def test_a_server_that_stops_ends_its_calls_and_takes_no_more() -> None:
    async with serving() as (made, fleet):
        first, second = Call(), Call()
        first.say(node={"id": f"{GATEWAY}/one"})
        task = asyncio.create_task(made.delta(None, first))
        await until(lambda: fleet.view(GATEWAY).connected, "the session")
        await made.stop()
        with pytest.raises(Aborted):
            await task
        with pytest.raises(Aborted):
            await made.delta(None, second)
        assert first.ended == second.ended == (UNAVAILABLE, "the control plane is shutting down")
        assert (fleet.view(GATEWAY).connected, made._sessions) == (0, {})
        await made.stop()


@moved
async def test_a_server_looks_for_slow_proxies_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=asyncio.get_running_loop().time)
    monkeypatch.setattr(session, "time", clock)
    monkeypatch.setattr(server, "time", clock)
    async with serving() as (made, fleet):
        call = Call()
        call.gate.clear()
        for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
            call.say(type_url, node={"id": f"{GATEWAY}/one"})
        task = asyncio.create_task(made.delta(None, call))
        await asyncio.sleep(30.25)
        assert fleet.view(GATEWAY).connected == 1
        await asyncio.sleep(0.5)
        assert fleet.view(GATEWAY).connected == 0
        call.gate.set()
        with pytest.raises(Aborted):
            await task
        assert call.ended == (UNAVAILABLE, "this proxy took nothing that was sent to it for too long")
    assert made._checking is not None and made._checking.cancelled()


def test_what_a_server_promises_by_itself() -> None:
    """docs: resources on the Unix socket alone, loopback, a proxy that is gone is noticed within 15 seconds."""
    settings = XdsSettings(None)
    assert (settings.tcp, settings.resources_over_tcp) == (("127.0.0.1", 18000), False)
    options = dict(listeners.options(settings.keepalive, settings.keepalive_timeout))
    assert options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"] == 15_000
    assert options["grpc.http2.ping_timeout_ms"] == options["grpc.keepalive_timeout_ms"] == 5000
    assert options["grpc.max_receive_message_length"] == 4 << 20
    assert options["grpc.max_send_message_length"] == -1
    assert (options["grpc.so_reuseport"], options["grpc.keepalive_permit_without_calls"]) == (0, 1)
    assert (options["grpc.http2.max_pings_without_data"], options["grpc.http2.max_ping_strikes"]) == (0, 0)
    assert (settings.send_timeout, server.FIRST_REQUEST) == (30.0, 15.0)
