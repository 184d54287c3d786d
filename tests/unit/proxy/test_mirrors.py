"""Copies of requests, by hand: what each leads to in the counts, and that nothing of one is left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.heads import Head
from dataplane.http.messages import NO_NAMES, UNKNOWN, ResponseHead
from dataplane.proxy.attempt import mirrors
from dataplane.proxy.attempt.mirrors import MAX_ANSWER
from dataplane.proxy.in_flight import MAX_BYTES, MAX_IN_FLIGHT, InFlight
from dataplane.table.plans import Mirror
from dataplane.upstream.endpoint import Endpoint

HOST = b"\r\nhost: a\r\n"
LINES = HOST + b"content-length: 4\r\n"
SWITCH = ResponseHead(101, b"HTTP/1.1 101 Go", b"\r\n", b"\r\n", 0, True)
OK = ResponseHead(200, b"HTTP/1.1 200 OK", b"\r\n", b"\r\n", UNKNOWN, True)


class Backend:
    """A plan, as far as it is read."""

    key = "b"
    renames = False
    authority = b""
    finishers = None
    steps = None

    def __init__(self, request_timeout: float | None = None, rule_state: Any = None) -> None:
        self.request_timeout = request_timeout
        self.rule_state = rule_state

    def beneath(self, *_given: object) -> Backend:
        return self


class World:
    """The worker: it writes down what becomes of copies. `again`: whether a lost one is sent again."""

    def __init__(self, draw: float = 0.0) -> None:
        self.outcomes: list[str] = []
        self.begun: list[Any] = []
        self.failures: list[Any] = []
        self.lost_as: list[tuple[Any, ...]] = []
        self.sleepers: list[tuple[float, Any]] = []
        self.again = False
        self.draws = 0
        self.draw = draw
        self.mirrors = InFlight()
        self.recorder = SimpleNamespace(mirrored=self.outcomes.append)
        self.calls = self
        self.leases = SimpleNamespace(
            begin=lambda holder, plan: self.begun.append(holder),
            failed=lambda plan, endpoint: self.failures.append(endpoint),
            lost=self.lost,
        )

    def wake_at(self, moment: float, who: Any) -> None:
        self.sleepers.append((moment, who))

    def clock(self) -> float:
        return 50.0

    def random(self) -> float:
        self.draws += 1
        return self.draw

    def lost(self, holder: Any, plan: Any, *rest: Any, is_idempotent: bool) -> bool:
        self.lost_as.append(rest)
        return self.again

    def exchange(self, *shares: Mirror, length: int = 4, backends: Any = None) -> Any:
        return SimpleNamespace(
            method=b"PUT",
            target=b"/a",
            length=length,
            version=b"HTTP/1.1",
            scheme=b"http",
            client=None,
            peer="192.0.2.1",
            is_grpc=True,
            never_indexed=NO_NAMES,
            attributes=None,
            upgrade=b"",
            host_set=False,
            trace=None,
            policies=SimpleNamespace(mirrors=shares or (Mirror("b"),), rules=None, backend=None, host_rewrite=False),
            plan=SimpleNamespace(http_version=0),
            table=SimpleNamespace(backends={"b": Backend()} if backends is None else backends),
            request=Head(LINES if length == 4 else HOST + (b"content-length: %d\r\n" % length) * (length > 0)),
        )

    def drawn(self, *shares: Mirror, **more: Any) -> Any:
        context: Any = self
        return mirrors.drawn(self.exchange(*shares, **more), context)

    def copy(self, body: bytes = b"body", **more: Any) -> Any:
        """One that is under way."""
        self.drawn(**more).send(body)
        (copy,) = self.begun
        return copy


class Carrier:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, consumer: Any, block: bytes, first: bytes, end: bool) -> None:
        self.told.append((block, first, end))

    def reset(self) -> None:
        self.told.append("reset")


@pytest.mark.parametrize(
    ("numerator", "denominator", "draw", "is_drawn", "draws"),
    [
        (1, 1, 0.999, True, 0),
        (1, 4, 0.2499, True, 1),
        (1, 4, 0.25, False, 1),
        (0, 4, 0.0, False, 1),
    ],
)
def test_a_share_is_drawn(numerator: int, denominator: int, draw: float, is_drawn: bool, draws: int) -> None:
    world = World(draw)
    assert (world.drawn(Mirror("b", numerator, denominator)) is not None) == is_drawn and world.draws == draws


@pytest.mark.parametrize(
    ("count", "size", "is_sent"),
    [
        (MAX_IN_FLIGHT - 1, 0, True),
        (MAX_IN_FLIGHT, 0, False),
        (1, MAX_BYTES - 6, True),  # of what is left a newcomer may have all but a quarter
        (1, MAX_BYTES - 5, False),
    ],
)
def test_no_more_are_under_way_than_may_be(count: int, size: int, is_sent: bool) -> None:
    world = World()
    for number in range(count):
        world.mirrors.hold(f"198.51.100.{number}", size if number == 0 else 0)
    world.drawn().send(b"body")
    assert len(world.begun) == is_sent and world.outcomes == ([] if is_sent else ["busy"])
    for copy in world.begun:
        copy.wake(60.0)


def reached(copy: Any) -> Carrier:
    copy.up, copy.endpoint = Carrier(), Endpoint("192.0.2.1", 80)
    carrier: Carrier = copy.up
    return carrier


def answered(copy: Any) -> Carrier:
    """Its head is here; the endpoint says nothing of its health by it."""
    copy.up, copy.endpoint = Carrier(), Endpoint("192.0.2.1", 80)
    carrier: Carrier = copy.up
    copy.upstream_head(OK, b"", False)
    return carrier


ENDS: dict[str, tuple[Any, str, bool]] = {
    # what happens, how it counts, whether the endpoint failed
    "no answer in time": (lambda copy: (reached(copy), copy.wake(60.0)), "timeout", True),
    "no connection in time": (lambda copy: copy.wake(60.0), "timeout", False),
    "no whole answer in time": (lambda copy: (answered(copy), copy.wake(60.0)), "timeout", False),
    "no connection": (lambda copy: (reached(copy), copy.lease_failed("connect", "")), "connect", True),
    "no name": (lambda copy: copy.lease_failed("dns", ""), "unresolved", False),
    "no endpoints": (lambda copy: copy.lease_failed("endpoints", ""), "unresolved", False),
    "no more at this time": (lambda copy: copy.lease_failed("limit", ""), "busy", False),
    "an answer": (lambda copy: (answered(copy), copy.upstream_content(b"a", True)), "sent", False),
    "an answer with trailers": (lambda copy: (answered(copy), copy.upstream_trailers(b"")), "sent", False),
    "an answer in one piece": (lambda copy: (reached(copy), copy.upstream_head(OK, b"a", True)), "sent", False),
    "another protocol": (lambda copy: (reached(copy), copy.upstream_head(SWITCH, b"", False)), "lost", False),
    "a connection that broke": (lambda copy: (reached(copy), copy.upstream_lost("reset", False)), "lost", True),
    "an answer that broke": (lambda copy: (answered(copy), copy.upstream_lost("reset", False)), "lost", False),
}


@pytest.mark.parametrize("end", ENDS)
def test_each_end_counts_once_and_leaves_nothing(end: str) -> None:
    world = World()
    copy = world.copy()
    what, outcome, has_failed = ENDS[end]
    what(copy)
    assert world.outcomes == [outcome] and bool(world.failures) == has_failed
    assert (world.mirrors.count, world.mirrors.bytes, copy.body, copy.is_over) == (0, 0, b"", True)
    copy.wake(70.0)
    copy.upstream_content(b"", True)
    assert world.outcomes == [outcome] and world.mirrors.count == 0


@pytest.mark.parametrize(("size", "is_over"), [(MAX_ANSWER, False), (MAX_ANSWER + 1, True)])
def test_so_much_of_an_answer_is_read(size: int, is_over: bool) -> None:
    world = World()
    copy = world.copy()
    answered(copy)
    carrier = copy.up
    copy.upstream_content(b"a" * size, False)
    assert copy.is_over == is_over and carrier.told == (["reset"] if is_over else [])
    copy.wake(60.0)
