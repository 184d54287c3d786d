"""Request mirrors from the standalone file to what the mirror receives."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import request_mirror
from dataplane.proxy import mirrors
from dataplane.proxy.replay import BodyCopy
from dataplane.table.plans import Mirror
from gatewright.api import standalone
from gatewright.wire.v1 import policy_pb2, resource_pb2, traffic_pb2
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import TableRun, bind, change, exchange, listener, route

TO = "backend/gatewaybackend/default/127.0.0.1:9001"

GET = b"GET /a?b=1 HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


# --- the setting


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ("{host: '127.0.0.1:9001'}", 1.0),
        ("{host: '127.0.0.1:9001', percent: 20}", 0.2),
        ("{host: '127.0.0.1:9001', fraction: {numerator: 1, denominator: 3}}", 1 / 3),
    ],
)
def test_mirror(fields: str, share: float) -> None:
    run = PolicyRun(f"policies: {{requestMirror: {fields}}}")
    (mirror,) = run.route(exchange()).policies.mirrors
    assert run.backend(mirror.backend) is not None
    assert mirror.numerator / mirror.denominator == pytest.approx(share)


def test_a_rule_may_have_several() -> None:
    resource = resource_pb2.Resource.FromString(route("r").value or b"")
    for name in "ab":
        mirror = traffic_pb2.RequestMirror(backend=name)
        resource.route.policies.append(policy_pb2.Policy(request_mirror=mirror))
    run = TableRun()
    run.apply(bind(), listener(), change(resource))
    plan = run.plan(exchange())
    assert plan is not None and plan.policies.mirrors == (Mirror("a"), Mirror("b"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "a mirror needs a backend"),
        ({"backend": TO, "numerator": 3, "denominator": 2}, "3 of 2 is more than all requests"),
    ],
)
def test_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        request_mirror.build(
            traffic_pb2.RequestMirror(**fields),  # type: ignore[arg-type]
            Env(clock=lambda: 0.0, random=lambda: 0.0),
        )


# --- what it does


class Mirrored:
    """A proxy whose route has a backend at port 9000 and a mirror at 9001."""

    def __init__(self, fields: str = "", others: str = "") -> None:
        mirror = f"{{host: '127.0.0.1:9001'{fields}}}"
        text = text_of(f"policies: {{requestMirror: {mirror}{others}}}\nbackends: [{{host: '127.0.0.1:9000'}}]")
        self.proxy = MemoryProxy(text)
        self.resources = standalone.load(text, "config.yaml").resources
        self.client = self.proxy.connect()

    def upstreams(self, port: int) -> list[FakeUpstream]:
        found = []
        for upstream in self.proxy.connector.upstreams:
            connection: Any = upstream.protocol
            if connection.endpoint.port == port:
                found.append(upstream)
        return found

    @property
    def main(self) -> FakeUpstream:
        return self.upstreams(9000)[-1]

    @property
    def mirror(self) -> FakeUpstream:
        return self.upstreams(9001)[-1]

    @property
    def counted(self) -> dict[str, int]:
        metrics = self.proxy.metrics.series()
        return {each.labels[0]: values[0] for each, values in metrics if each.metric.name == "mirrors_total"}

    def is_at_rest(self) -> bool:
        """Nothing of a copy is held any more."""
        flight = self.proxy.context.mirrors
        ends: list[Any] = [upstream.protocol for upstream in self.upstreams(9001)]
        pending = sum(int(end.endpoint.pending) for end in ends)
        return flight.count == flight.bytes == pending == 0


def test_the_mirror_gets_what_the_backend_gets() -> None:
    run = Mirrored(others=", headerModifiers: {request: {set: [{name: x-a, value: b}]}}")
    run.client.send(GET)
    assert b"x-a: b\r\n" in run.mirror.received
    assert b"\r\nHost: a\r\n" in run.mirror.received
    assert run.mirror.received == run.main.received
    run.mirror.answer(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno")
    assert run.client.received == b""
    run.main.answer(OK)
    assert run.client.received == OK
    assert run.counted == {"sent": 1}
    assert run.is_at_rest()


def test_its_connection_is_used_again() -> None:
    run = Mirrored()
    for _ in range(2):
        run.client.send(GET)
        run.main.answer(OK)
        run.mirror.answer(OK)
    assert len(run.upstreams(9001)) == 1
    assert run.mirror.received.count(b"GET /a?b=1 ") == 2


@pytest.mark.parametrize(
    ("framing", "pieces"),
    [
        (b"Content-Length: 6", [b"one", b"two"]),
        (b"Transfer-Encoding: chunked", [b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"]),
    ],
)
def test_a_body_is_copied_when_it_is_whole(framing: bytes, pieces: list[bytes]) -> None:
    run = Mirrored()
    run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
    run.client.send(pieces[0])
    assert not run.upstreams(9001)
    run.client.send(pieces[1])
    head, _, body = run.mirror.received.partition(b"\r\n\r\n")
    assert framing.lower() in head.lower()
    assert body == (b"onetwo" if b"Length" in framing else b"6\r\nonetwo\r\n0\r\n\r\n")
    run.main.answer(OK)
    run.mirror.answer(OK)
    assert run.client.received == OK
    assert run.is_at_rest()


def test_a_body_in_one_piece_with_its_head() -> None:
    run = Mirrored()
    run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
    assert run.mirror.received == run.main.received


@pytest.mark.parametrize(
    ("draw", "fields", "is_mirrored"),
    [
        (0.19, ", percent: 20", True),
        (0.2, ", percent: 20", False),
        (0.0, ", percent: 0", False),
        (0.999, ", percent: 100", True),
        (0.3, ", fraction: {numerator: 1, denominator: 3}", True),
        (0.34, ", fraction: {numerator: 1, denominator: 3}", False),
    ],
)
def test_a_share_of_the_requests(draw: float, fields: str, is_mirrored: bool) -> None:
    run = Mirrored(fields)
    run.proxy.context.random = lambda: draw
    run.client.send(GET)
    assert bool(run.upstreams(9001)) == is_mirrored
    assert run.main.received


def test_an_upgrade_is_not_mirrored() -> None:
    run = Mirrored()
    run.client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert run.main.received and not run.upstreams(9001)


def test_each_retry_is_not_another_copy() -> None:
    run = Mirrored(others=", retry: {codes: [503]}")
    run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
    run.main.answer(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    run.proxy.advance(1)
    run.main.answer(OK)
    assert run.client.received == OK
    assert len(run.upstreams(9001)) == 1 and run.mirror.received.count(b"POST /") == 1
    assert b"x-retry-attempt" not in run.mirror.received


def own_step(run: Mirrored, fill: Callable[[policy_pb2.Policy], object]) -> None:
    """Give the reference to the backend a policy of its own."""
    (resource,) = [each for each in run.resources if each.key.startswith("route/")]
    fill(resource.route.backends[0].policies.add())
    list(run.proxy.applier.apply([change(resource)]))
    assert run.proxy.applier.outcome.refused == {}


def test_what_is_added_for_the_backend_is_not_for_the_mirror() -> None:
    """Credentials, it may be."""
    run = Mirrored()
    own_step(run, lambda made: made.header_modifiers.request.set.add(name="authorization", value="of-the-backend"))
    run.client.send(GET)
    assert b"\r\nauthorization: of-the-backend\r\n" in run.main.received
    assert run.mirror.received.startswith(b"GET /a?b=1 HTTP/1.1\r\n") and b"authorization" not in run.mirror.received
    run.mirror.answer(OK)
    run.main.answer(OK)
    assert run.client.received == OK and run.counted == {"sent": 1} and run.is_at_rest()


@pytest.mark.parametrize(
    "sent", [b"", b"Content-Length: 4\r\n\r\nbody", b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"]
)
def test_a_copy_is_framed_for_the_body_that_it_has(sent: bytes) -> None:
    """A body that a step of the backend reference made."""
    run = Mirrored()

    def fill(made: policy_pb2.Policy) -> None:
        made.transformation.request.body = "'something longer'"

    own_step(run, fill)
    run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\n" + (sent or b"\r\n"))
    head, _, body = run.mirror.received.partition(b"\r\n\r\n")
    if b"chunked" in sent:
        assert b"transfer-encoding: chunked" in head.lower() and b"content-length" not in head.lower()
        assert body == b"10\r\nsomething longer\r\n0\r\n\r\n"
    else:
        assert head.lower().count(b"\r\ncontent-length: 16") == head.lower().count(b"content-length") == 1
        assert body == b"something longer"


# --- what goes wrong with it is nobody's trouble


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        (lambda mirror: mirror.lose(ConnectionResetError()), "lost"),
        (lambda mirror: mirror.answer(b"garbage\r\n\r\n"), "lost"),
        (lambda mirror: mirror.answer(b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), "sent"),
        (lambda mirror: mirror.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(2**21)), "sent"),
    ],
)
def test_a_mirror_that_misbehaves(trouble: Any, outcome: str) -> None:
    run = Mirrored()
    run.client.send(GET)
    trouble(run.mirror)
    assert not run.mirror.open
    run.main.answer(OK)
    assert run.client.received == OK
    assert run.counted == {outcome: 1}
    assert run.is_at_rest()


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
def test_a_mirror_that_hangs_is_given_up(begun: bytes) -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.answer(OK)
    if begun:
        run.mirror.answer(begun)
    run.proxy.advance(mirrors.SECONDS - 0.1)
    assert run.mirror.open
    run.proxy.advance(0.2)
    assert run.mirror.aborted
    assert run.counted == {"timeout": 1}
    assert run.is_at_rest()


def test_a_mirror_that_cannot_be_reached() -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.answer(OK)
    run.mirror.lose()
    run.proxy.connector.refuse = "refused"
    run.client.send(GET)
    run.main.answer(OK)
    assert run.client.received == OK + OK
    assert run.counted == {"lost": 1, "connect": 1}
    assert run.is_at_rest()


def test_a_connection_that_comes_too_late_is_kept_for_another() -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.answer(OK)
    run.mirror.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    run.proxy.connector.hold = True
    run.client.send(GET)
    run.proxy.advance(mirrors.SECONDS + 0.1)
    run.proxy.connector.release()
    assert run.counted == {"sent": 1, "timeout": 1}
    assert run.mirror.open and run.mirror.received == b""
    assert run.is_at_rest()


def test_a_stale_connection_is_replaced_once() -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.answer(OK)
    run.mirror.answer(OK)
    run.client.send(GET)
    run.main.answer(OK)
    run.mirror.lose()
    assert len(run.upstreams(9001)) == 2
    assert run.mirror.received.startswith(b"GET /a?b=1 ")
    run.mirror.answer(OK)
    assert run.counted == {"sent": 2}
    assert run.is_at_rest()


def test_a_backend_that_fails_is_mirrored_all_the_same() -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.lose(ConnectionResetError())
    assert run.client.received.startswith(b"HTTP/1.1 502 ")
    run.mirror.answer(OK)
    assert run.counted == {"sent": 1}


@pytest.mark.parametrize("request_bytes", [GET, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"])
def test_a_backend_that_cannot_be_reached_is_mirrored_all_the_same(request_bytes: bytes) -> None:
    run = Mirrored()
    run.client.send(GET)
    run.main.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    run.mirror.answer(OK)
    run.client.take()
    run.mirror.take()
    run.proxy.connector.refuse = "refused"
    run.client.send(request_bytes)
    assert run.client.received.startswith(b"HTTP/1.1 503 ")
    assert run.mirror.received.endswith(request_bytes[-4:])
    run.mirror.answer(OK)
    assert run.counted == {"sent": 2}
    assert run.is_at_rest()


def ours_in_memory() -> list[Any]:
    """Everything of mirrors that is not freed, of earlier tests too."""
    return [each for each in gc.get_objects() if type(each).__name__ in ("_Copy", "Mirroring", "BodyCopy")]


def test_what_is_over_is_freed_at_once() -> None:
    """A cycle of references would keep the copies of bodies until the garbage collector runs, which it seldom does."""
    gc.collect()
    gc.disable()
    before = ours_in_memory()
    try:
        run = Mirrored()
        for reply in (OK, b"garbage\r\n\r\n"):
            run.client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
            run.main.answer(OK)
            run.mirror.answer(reply)
        left = [each for each in ours_in_memory() if not any(each is known for known in before)]
        assert {type(each) for each in left} == {BodyCopy}  # one with each exchange that waits for its log line, empty
        assert not any(each.pieces for each in left)
    finally:
        gc.enable()


# --- bounds


@pytest.mark.parametrize("framing", [b"Content-Length: 2097153", b"Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_is_not_mirrored(framing: bytes) -> None:
    run = Mirrored()
    run.client.send(b"PUT / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
    chunked = b"chunked" in framing
    run.client.send(b"200001\r\n" + bytes(0x200001) + b"\r\n0\r\n\r\n" if chunked else bytes(0x200001))
    run.main.answer(OK)
    assert run.client.received == OK
    assert not run.upstreams(9001)
    assert run.counted == {"too_large": 1}


def test_a_body_that_never_ends_is_not_mirrored() -> None:
    run = Mirrored()
    run.client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    run.client.lose()
    assert not run.upstreams(9001)
    assert run.counted == {"aborted": 1}


def test_only_so_many_are_in_flight() -> None:
    run = Mirrored()
    for _ in range(mirrors.MAX_IN_FLIGHT + 1):
        client: FakeTransport = run.proxy.connect()
        client.send(GET)
        run.main.answer(OK)
        assert client.received == OK
    assert len(run.upstreams(9001)) == mirrors.MAX_IN_FLIGHT
    assert run.counted == {"busy": 1}


def test_only_so_many_bytes_are_in_flight() -> None:
    run = Mirrored()
    body = bytes(2_000_000)
    for _ in range(20):
        client = run.proxy.connect()
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body))
        client.send(body)
        run.main.take()
        run.main.writes.clear()
        run.main.answer(OK)
        assert client.received == OK
    assert len(run.upstreams(9001)) == mirrors.MAX_BYTES // len(body)
    assert run.counted["busy"] == 20 - mirrors.MAX_BYTES // len(body)
