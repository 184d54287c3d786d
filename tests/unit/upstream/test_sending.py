"""What is sent by ourselves, while it is under way: where it goes, what fails it, and what that says of whom."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.carriers import REFUSED, UNSENT
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.upstream import outgoing
from dataplane.upstream.calls.sending import MAX_CONNECTS, Sending
from dataplane.upstream.endpoint import Endpoint


class Call(Sending):
    """One that notes what becomes of it."""

    def __init__(self, world: World, request: CallRequest) -> None:
        calls: Any = world
        body = request.body
        super().__init__(calls, world.plan, request.method, request.target, b"\r\n", body, len(body))
        self.heard: list[Any] = []
        self.is_idempotent = False

    @property
    def is_grpc(self) -> bool:
        return False

    def lease_ready(self, up: Any) -> None:
        self.heard.append(up)

    def answered(self, head: Any, first: bytes, end: bool) -> None:
        self.heard.append((head.status, first, end))

    def upstream_content(self, data: bytes, end: bool) -> None:
        raise AssertionError

    def upstream_trailers(self, lines: bytes) -> None:
        raise AssertionError

    def fail(self, error: CallFailed) -> None:
        self.heard.append((error.cause, str(error)))


class World:
    """Stands for `HttpCalls` and what it has of a worker."""

    def __init__(self, **plan: Any) -> None:
        self.now = 100.0
        self.endpoint = Endpoint("192.0.2.1", 80)
        self.begun: list[Any] = []
        self.failed: list[Any] = []
        self.lost: list[tuple[Any, ...]] = []
        self.is_sent_again = False
        self.plan = SimpleNamespace(
            key="backend/a", request_timeout=None, rule_state=None, steps=None, finishers=None, **plan
        )
        self.woken: list[float] = []
        self.leases = SimpleNamespace(
            begin=lambda holder, plan: self.begun.append(plan),
            failed=lambda plan, endpoint: self.failed.append((plan, endpoint)),
            lost=self._lost,
        )

    def _lost(self, holder: Any, plan: Any, cause: str, stale: bool, repeatable: bool, is_idempotent: bool) -> bool:
        self.lost.append((plan, cause, stale, repeatable, is_idempotent))
        return self.is_sent_again

    def clock(self) -> float:
        return self.now

    def wake_at(self, moment: float, whom: Any) -> None:
        self.woken.append(moment - self.now)

    def call(self, request: CallRequest | None = None, whole: float = 2.0) -> Call:
        made = Call(self, request or CallRequest(b"GET", b"/", b"a"))
        made.begin(2.0, whole, None)
        made.endpoint = self.endpoint
        return made


def head(status: int) -> Any:
    return SimpleNamespace(status=status)


def test_the_head_has_no_more_time_than_the_whole() -> None:
    world = World()
    call = world.call(whole=0.5)
    assert world.woken == [0.5]
    call.wake(100.5)
    assert call.heard[0][0] == "timeout"


@pytest.mark.parametrize(("of_backend", "whole"), [(None, 5.0), (0.5, 3.5), (30.0, 33.0)])
def test_what_is_after_the_head_keeps_its_time(of_backend: float | None, whole: float) -> None:
    world = World()
    world.plan.request_timeout = of_backend
    call = world.call(whole=5.0)
    call.upstream_head(head(200), b"", False)
    call.heard.clear()
    assert world.woken[1:] == [pytest.approx(whole)]
    call.wake(100.0 + whole - 0.001)
    assert call.heard == []
    call.wake(100.0 + whole + 0.001)
    assert call.heard == [("timeout", f"192.0.2.1:80 gave no answer within {whole:g} s")] and not world.failed


@pytest.mark.parametrize(
    ("cause", "failure"),
    [
        ("refused", ("unresolved", "why")),
        ("limit", ("connect", "why")),
        ("dns", ("unresolved", "backend/a: why")),
        ("endpoints", ("unresolved", "backend/a: it has no endpoints")),
        ("connect", ("connect", "why")),
    ],
)
def test_without_a_connection_it_fails(cause: str, failure: tuple[str, str]) -> None:
    world = World()
    call = world.call()
    call.lease_failed(cause, "why", others=cause != "connect")
    assert call.heard == [failure] and len(world.begun) == 1
    assert world.failed == ([(world.plan, world.endpoint)] if cause == "connect" else []), (
        "the endpoint did nothing else"
    )


@pytest.mark.parametrize(("tried", "goes_on"), [(1, True), (MAX_CONNECTS - 1, True), (MAX_CONNECTS, False)])
def test_three_endpoints_are_tried(tried: int, goes_on: bool) -> None:
    world = World()
    call = world.call()
    call.tried = [world.endpoint] * tried
    call.lease_failed("connect", "refused", others=True)
    assert len(world.begun) == (2 if goes_on else 1) and bool(call.heard) is not goes_on
    assert MAX_CONNECTS == 3


@pytest.mark.parametrize("end", [True, False])
def test_an_answer_says_how_the_endpoint_is(end: bool) -> None:
    world = World()
    call = world.call()
    up = call.up = SimpleNamespace()
    before = world.endpoint.latency
    world.now += 1.0
    call.upstream_head(head(503), b"x", end)
    assert call.heard == [(503, b"x", end)] and call.up is (None if end else up)
    assert world.endpoint.latency > before and world.endpoint.health < 1.0


def test_one_that_switches_protocols_is_no_answer() -> None:
    call = World().call()
    call.upstream_head(head(101), b"", False)
    assert call.heard == [("invalid", "192.0.2.1:80 switched protocols")]


@pytest.mark.parametrize(
    ("cause", "failure"),
    [
        ("closed", ("lost", "192.0.2.1:80: connection closed")),
        ("reset", ("lost", "192.0.2.1:80: connection reset")),
        (UNSENT, ("lost", f"192.0.2.1:80: connection {UNSENT}")),
        (REFUSED, ("lost", f"192.0.2.1:80: connection {REFUSED}")),
        ("no HTTP", ("invalid", "192.0.2.1:80: no HTTP")),
    ],
)
@pytest.mark.parametrize("has_head", [False, True])
def test_a_loss_that_is_not_repaired_fails_it(cause: str, failure: tuple[str, str], has_head: bool) -> None:
    world = World()
    call = world.call()
    call.is_idempotent = True
    if has_head:
        call.upstream_head(head(200), b"", False)
        call.heard.clear()
        world.is_sent_again = True  # it would be, and is not asked
    call.upstream_lost(cause, True)
    assert call.heard == [failure]
    assert world.lost == ([] if has_head else [(world.plan, cause, True, True, True)])
    assert world.failed == ([] if has_head else [(world.plan, world.endpoint)]), "with a head it was judged by that"


def test_a_loss_that_is_repaired_is_none() -> None:
    world = World()
    world.is_sent_again = True
    call = world.call()
    call.upstream_lost("closed", True)
    assert call.heard == [] and world.failed == []


@pytest.mark.parametrize(
    ("has_up", "has_head", "is_judged"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_one_that_is_late_is_held_against_whom_it_was_sent_to(has_up: bool, has_head: bool, is_judged: bool) -> None:
    world = World()
    call = world.call()
    up: Any = SimpleNamespace() if has_up else None
    call.up = up
    if has_head:
        call.upstream_head(head(200), b"", False)
    call.heard.clear()
    call.wake(200.0)
    assert call.heard[0][0] == "timeout"
    assert world.failed == ([(world.plan, world.endpoint)] if is_judged else [])


def test_before_there_is_an_endpoint_messages_name_the_backend() -> None:
    call = World().call()
    call.endpoint = None
    assert call.where() == "backend/a"


@pytest.mark.parametrize(
    ("method", "length", "line"),
    [
        (b"GET", 0, b""),
        (b"HEAD", 0, b""),
        (b"DELETE", 0, b""),
        (b"OPTIONS", 0, b""),
        (b"TRACE", 0, b""),
        (b"GET", 1, b"content-length: 1\r\n"),
        (b"POST", 0, b"content-length: 0\r\n"),
        (b"PUT", 5, b"content-length: 5\r\n"),
        (b"POST", -1, b""),  # nobody knows
    ],
)
@pytest.mark.parametrize(
    ("asked", "of_backend", "host"),
    [(b"a", b"b", b"a"), (b"", b"b", b"b"), (b"", b"", b"localhost")],
)
def test_the_header_lines(
    method: bytes, length: int, line: bytes, asked: bytes, of_backend: bytes, host: bytes
) -> None:
    request = CallRequest(method, b"/", asked, b"x-a: 1\r\n")
    backend: Any = SimpleNamespace(authority=of_backend)
    assert outgoing.of_call(request, backend, length) == b"\r\nhost: " + host + b"\r\n" + line + b"x-a: 1\r\n"
