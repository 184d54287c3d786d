"""Request mirrors from the standalone file to what the mirror receives."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import request_mirror
from dataplane.proxy.attempt import mirrors
from dataplane.proxy.attempt.replay import BodyCopy
from dataplane.table.plans import Mirror
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import policy_pb2, resource_pb2, traffic_pb2
from tests.carriers import OK, Answer, Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.policy_run import PolicyRun, served
from tests.fakes.table_state import TableRun, bind, change, exchange, listener, route

TO = "backend/gatewaybackend/default/127.0.0.1:9001"

GET = Request("GET", "/a?b=1")
PUT = Request("PUT", body=b"body")
BACKEND, MIRROR = 9000, 9001


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
    """A proxy whose route has a backend and a mirror."""

    def __init__(self, carrier: Carrier, fields: str = "", others: str = "") -> None:
        mirror = f"{{host: '127.0.0.1:{MIRROR}'{fields}}}"
        text = served(f"policies: {{requestMirror: {mirror}{others}}}")
        self.run = carrier.proxy(text)
        self.resources = standalone.load(text, "config.yaml").resources

    def arrivals(self, port: int) -> list[Arrival]:
        return [each for each in self.run.arrivals if each.endpoint.port == port]

    @property
    def main(self) -> Arrival:
        return self.arrivals(BACKEND)[-1]

    @property
    def mirror(self) -> Arrival:
        return self.arrivals(MIRROR)[-1]

    @property
    def mirrors(self) -> int:
        """How many connections to the mirror there are."""
        return self.run.connections_to(MIRROR)

    def ask(self, request: Request = GET, mirror: Response | None = OK) -> None:
        """One exchange, whose client gets what the backend answers."""
        asked = self.run.send(request)
        if mirror is not None:
            self.mirror.answer(mirror)
        self.main.answer(OK)
        assert is_ok(asked)

    @property
    def counted(self) -> dict[str, int]:
        return self.run.counted("mirrors_total")

    def is_at_rest(self) -> bool:
        """Nothing of a copy is held any more."""
        flight = self.run.memory.context.mirrors
        pending = sum(each.endpoint.pending for each in self.arrivals(MIRROR))
        return flight.count == flight.bytes == pending == 0


def is_ok(asked: Conversation) -> bool:
    """The client has the whole answer of the backend, and nothing else."""
    answer = asked.answer
    return (answer.status, answer.headers, answer.body, answer.ended) == (200, {"content-length": "2"}, b"ok", True)


def test_the_mirror_gets_what_the_backend_gets(carrier: Carrier) -> None:
    it = Mirrored(carrier, others=", headerModifiers: {request: {set: [{name: x-a, value: b}]}}")
    asked = it.run.send(GET)
    assert it.mirror.received.headers["x-a"] == "b"
    assert (it.mirror.received.authority, it.mirror.received.target) == ("a", "/a?b=1")
    assert it.mirror.received == it.main.received and it.mirror.received.ended
    it.mirror.answer(Response(500, body=b"no"))
    assert asked.answer == Answer()
    it.main.answer(OK)
    assert is_ok(asked)
    assert it.counted == {"sent": 1}
    assert it.is_at_rest()


def test_its_connection_is_used_again(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    for _ in range(2):
        asked = it.run.send(GET)
        it.main.answer(OK)
        it.mirror.answer(OK)
        assert is_ok(asked)
    assert it.mirrors == 1
    assert [each.received.target for each in it.arrivals(MIRROR)] == ["/a?b=1"] * 2


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_is_copied_when_it_is_whole(sized: bool, carrier: Carrier) -> None:
    it = Mirrored(carrier)
    asked = it.run.begin(Request("POST", headers=[("content-length", "6")] if sized else []))
    asked.content(b"one")
    assert not it.mirrors
    asked.content(b"two")
    asked.end()
    received = it.mirror.received
    assert (received.headers.all("content-length"), received.body) == (["6"] * sized, b"onetwo")
    assert received.ended and received == it.main.received
    it.main.answer(OK)
    it.mirror.answer(OK)
    assert is_ok(asked)
    assert it.is_at_rest()


def test_a_body_in_one_piece_with_its_head(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    it.run.send(PUT)
    assert it.mirror.received == it.main.received and it.mirror.received.body == b"body"


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
def test_a_share_of_the_requests(draw: float, fields: str, is_mirrored: bool, carrier: Carrier) -> None:
    it = Mirrored(carrier, fields)
    it.run.random(draw)
    it.run.send(GET)
    assert bool(it.mirrors) == bool(it.arrivals(MIRROR)) == is_mirrored
    assert it.main.received.ended


def test_each_retry_is_not_another_copy(carrier: Carrier) -> None:
    it = Mirrored(carrier, others=", retry: {codes: [503]}")
    asked = it.run.send(Request("POST", body=b"body"))
    it.main.answer(Response(503))
    it.run.advance(1)
    it.main.answer(OK)
    assert is_ok(asked)
    assert it.mirrors == 1
    assert [each.received.method for each in it.arrivals(MIRROR)] == ["POST"]
    assert "x-retry-attempt" not in it.mirror.received.headers


def own_step(it: Mirrored, fill: Callable[[policy_pb2.Policy], object]) -> None:
    """Give the reference to the backend a policy of its own."""
    (resource,) = [each for each in it.resources if each.key.startswith("route/")]
    fill(resource.route.backends[0].policies.add())
    applier = it.run.memory.applier
    list(applier.apply([change(resource)]))
    assert applier.outcome.refused == {}


def test_what_is_added_for_the_backend_is_not_for_the_mirror(carrier: Carrier) -> None:
    """Credentials, it may be."""
    it = Mirrored(carrier)
    own_step(it, lambda made: made.header_modifiers.request.set.add(name="authorization", value="of-the-backend"))
    asked = it.run.send(GET)
    assert it.main.received.headers["authorization"] == "of-the-backend"
    assert (it.mirror.received.method, it.mirror.received.target) == ("GET", "/a?b=1")
    assert "authorization" not in it.mirror.received.headers
    it.mirror.answer(OK)
    it.main.answer(OK)
    assert is_ok(asked) and it.counted == {"sent": 1} and it.is_at_rest()


@pytest.mark.parametrize(
    ("body", "sized", "lengths"), [(b"", True, ["16"]), (b"body", True, ["16"]), (b"body", False, [])]
)
def test_a_copy_announces_the_length_of_the_body_that_it_has(
    body: bytes, sized: bool, lengths: list[str], carrier: Carrier
) -> None:
    """A body that a step of the backend reference made."""
    it = Mirrored(carrier)

    def fill(made: policy_pb2.Policy) -> None:
        made.transformation.request.body = "'something longer'"

    own_step(it, fill)
    it.run.send(Request("POST", body=body, sized=sized))
    received = it.mirror.received
    assert (received.headers.all("content-length"), received.body) == (lengths, b"something longer")
    assert received.ended


# --- what goes wrong with it is nobody's trouble


def floods(mirror: Arrival) -> None:
    mirror.head(Response(200, [("content-length", "9999999")]))
    mirror.content(bytes(2**21))
    assert mirror.is_cancelled


@pytest.mark.parametrize(("trouble", "outcome"), [(lambda mirror: mirror.reset(), "lost"), (floods, "sent")])
def test_a_mirror_that_misbehaves(trouble: Callable[[Arrival], None], outcome: str, carrier: Carrier) -> None:
    it = Mirrored(carrier)
    asked = it.run.send(GET)
    trouble(it.mirror)
    it.main.answer(OK)
    assert is_ok(asked)
    assert it.counted == {outcome: 1}
    assert it.is_at_rest()


@pytest.mark.parametrize("begun", [False, True])
def test_a_mirror_that_hangs_is_given_up(begun: bool, carrier: Carrier) -> None:
    it = Mirrored(carrier)
    it.ask(mirror=None)
    if begun:
        it.mirror.head(Response(200, [("content-length", "10")]))
        it.mirror.content(b"half")
    it.run.advance(mirrors.SECONDS - 0.1)
    assert not it.mirror.is_cancelled
    it.run.advance(0.2)
    assert it.mirror.is_cancelled
    assert it.counted == {"timeout": 1}
    assert it.is_at_rest()


def test_a_mirror_that_cannot_be_reached(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    it.ask(mirror=None)
    it.mirror.reset()
    it.ask(mirror=Response(200, last=True))  # whatever became of its connection: there is none now
    it.run.refuse_connections()
    it.ask(mirror=None)
    assert it.counted == {"lost": 1, "sent": 1, "connect": 1}
    assert it.is_at_rest()


def test_a_connection_that_comes_too_late_is_kept_for_another(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    it.ask(mirror=Response(200, last=True))
    it.run.hold_connections()
    asked = it.run.send(GET)
    it.run.advance(mirrors.SECONDS + 0.1)
    it.run.release_connections()
    assert it.counted == {"sent": 1, "timeout": 1}
    assert (it.mirrors, len(it.arrivals(MIRROR))) == (2, 1)
    assert it.is_at_rest()
    it.main.answer(OK)
    assert is_ok(asked)
    it.ask()
    assert (it.mirrors, len(it.arrivals(MIRROR))) == (2, 2)


def test_a_stale_connection_is_replaced_once(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    it.ask()
    it.ask(mirror=None)
    it.mirror.refuse()
    assert [each.received.target for each in it.arrivals(MIRROR)] == ["/a?b=1"] * 3
    it.mirror.answer(OK)
    assert it.counted == {"sent": 2}
    assert it.is_at_rest()


def test_a_backend_that_fails_is_mirrored_all_the_same(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    asked = it.run.send(GET)
    it.main.reset()
    assert asked.answer.status == 502
    it.mirror.answer(OK)
    assert it.counted == {"sent": 1}


@pytest.mark.parametrize("request_", [GET, PUT], ids=["GET", "PUT"])
def test_a_backend_that_cannot_be_reached_is_mirrored_all_the_same(request_: Request, carrier: Carrier) -> None:
    it = Mirrored(carrier)
    first = it.run.send(GET)
    it.main.answer(Response(200, last=True))
    it.mirror.answer(OK)
    assert first.answer.ended
    it.run.refuse_connections()
    asked = it.run.send(request_)
    assert asked.answer.status == 503
    assert (len(it.arrivals(BACKEND)), len(it.arrivals(MIRROR))) == (1, 2)
    received = it.mirror.received
    assert (received.method, received.body, received.ended) == (request_.method, request_.body, True)
    it.mirror.answer(OK)
    assert it.counted == {"sent": 2}
    assert it.is_at_rest()


def ours_in_memory() -> list[Any]:
    """Everything of mirrors that is not freed, of earlier tests too."""
    return [each for each in gc.get_objects() if type(each).__name__ in ("_Copy", "Mirroring", "BodyCopy")]


def test_what_is_over_is_freed_at_once(carrier: Carrier) -> None:
    """A cycle of references would keep the copies of bodies until the garbage collector runs, which it seldom does."""
    gc.collect()
    gc.disable()
    before = ours_in_memory()
    try:
        it = Mirrored(carrier)
        for is_answered in (False, True):  # the first on a new connection: it is not sent again
            it.run.send(PUT)
            it.main.answer(OK)
            if is_answered:
                it.mirror.answer(OK)
            else:
                it.mirror.reset()
        left = [each for each in ours_in_memory() if not any(each is known for known in before)]
        assert {type(each) for each in left} == {BodyCopy}  # one with each exchange that waits for its log line, empty
        assert not any(each.pieces for each in left)
    finally:
        gc.enable()


# --- bounds


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_over_the_limit_is_not_mirrored(sized: bool, carrier: Carrier) -> None:
    it = Mirrored(carrier)
    asked = it.run.begin(Request("PUT", headers=[("content-length", "2097153")] if sized else []))
    asked.content(bytes(0x200001))
    asked.end()
    it.main.answer(OK)
    assert is_ok(asked)
    assert len(it.main.received.body) == 0x200001 and not it.mirrors
    assert it.counted == {"too_large": 1}


def test_a_body_that_never_ends_is_not_mirrored(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    asked = it.run.begin(Request("PUT", headers=[("content-length", "10")]))
    asked.content(b"half")
    asked.cancel()
    assert not it.mirrors
    assert it.counted == {"aborted": 1}


def test_only_so_many_are_in_flight_and_one_client_leaves_some_to_others(carrier: Carrier) -> None:
    it = Mirrored(carrier)
    for _ in range(193):  # of 256 three quarters are one client's
        it.ask(mirror=None)
    assert (len(it.arrivals(MIRROR)), it.counted) == (192, {"busy": 1})
    assert it.run.counted("limits_exceeded_total") == {"mirrors": 1}
    other = it.run.client(("198.51.100.7", 1)).send(GET)
    it.main.answer(OK)
    assert is_ok(other) and len(it.arrivals(MIRROR)) == 193


def test_only_so_many_bytes_are_in_flight_and_one_client_leaves_some_to_others(carrier: Carrier) -> None:
    it = Mirrored(carrier)

    def put(*peer: tuple[str, int]) -> None:
        asked = it.run.client(*peer).send(Request("PUT", body=[bytes(2_000_000)]))
        for each in it.run.arrivals:
            each.take_content()
        it.main.answer(OK)
        assert is_ok(asked)

    for _ in range(14):  # of 32 MiB three quarters are one client's
        put()
    assert (len(it.arrivals(MIRROR)), it.counted) == (12, {"busy": 2})
    assert it.run.counted("limits_exceeded_total") == {"mirroredBytes": 2}
    put(("198.51.100.7", 1))
    assert len(it.arrivals(MIRROR)) == 13
