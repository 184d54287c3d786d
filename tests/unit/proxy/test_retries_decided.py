"""Whether there is another try, by hand: what is asked, how long it is waited for, and how it counts in the end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.proxy.attempt import retries
from dataplane.proxy.attempt.retries import Retries
from dataplane.proxy.deadlines import NEVER
from dataplane.table.plans import Retry

FAILED = made("UpstreamFailed", "the endpoint")


def response(status: int) -> ResponseHead:
    return ResponseHead(status, b"", b"\r\nx-a: 1\r\n", b"\r\nx-a: 1\r\n", UNKNOWN, True)


class Up:
    """A carrier whose response goes on."""

    def __init__(self, sleeper: object = None) -> None:
        self.told: list[str] = []
        self.sleeper = sleeper

    def discard(self) -> object:
        self.told.append("discard")
        return self.sleeper

    def reset(self) -> None:
        self.told.append("reset")


class Tried:
    """An exchange with a policy; time stands at 100."""

    def __init__(self, policy: Retry, method: bytes = b"GET", **more: Any) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []
        self.woken: list[tuple[float, Any]] = []
        self.counted: list[tuple[str, str]] = []
        self.limited: list[tuple[str, str]] = []
        self.attempts = 0
        self.fails: Exception | None = None
        recorder = SimpleNamespace(
            retry=lambda cause: self.counted.append(("retry", cause)),
            retried=lambda x, outcome: self.counted.append(("ended", outcome)),
            backend_limited=lambda key, limit: self.limited.append((key, limit)),
        )
        deadlines = SimpleNamespace(
            call_at=lambda moment, call: self.calls.append((moment, call)),
            wake_at=lambda moment, who: self.woken.append((moment, who)),
        )
        self.context: Any = SimpleNamespace(
            clock=lambda: 100.0, random=lambda: 0.0, recorder=recorder, deadlines=deadlines
        )
        self.answers: list[str] = []
        self.x: Any = SimpleNamespace(
            retries=Retries(policy),
            trace=None,
            method=method,
            context=self.context,
            deadline=NEVER,
            body_copy=None,
            counted=None,
            backend_plan=SimpleNamespace(key="backend/b"),
            up=Up(),
            resendable=b"kept",
            status=503,
            response=Head(b"\r\n"),
            response_body=b"old",
            response_body_too_large=True,
            attempt=0,
            paused=0,
            buffer=None,
            request_done=True,
            ended=False,
            replied=False,
            reason="",
            reply=lambda reply: self.answers.append(reply.reason),
            failed=lambda error: self.answers.append(type(error).__name__),
        )
        for name, value in more.items():
            setattr(self.x, name, value)

    def attempt(self, x: Any, context: Any) -> None:
        self.attempts += 1
        if self.fails is not None:
            raise self.fails

    def failure(self, cause: str, sent: bool = True, reply: Any = FAILED) -> bool:
        """Whether one more try is to come."""
        retries.after_failure(self.x, self.context, cause, reply, sent, self.attempt)
        return bool(self.calls)

    def refuses(self, head: ResponseHead) -> bool:
        return retries.refuses(self.x, self.context, head, self.attempt)


@pytest.mark.parametrize(
    ("cause", "method", "sent", "codes", "is_tried"),
    [
        ("connect", b"POST", False, (), True),
        ("dns", b"POST", False, (), True),
        ("reset", b"POST", False, (), True),
        ("reset", b"POST", True, (), False),
        ("reset", b"GET", True, (), True),
        ("timeout", b"PUT", True, (), True),
        ("timeout", b"POST", True, (), False),
        ("timeout", b"POST", True, (502,), True),  # that of the answer that there would be
        ("invalid", b"GET", True, (), False),
        ("invalid", b"GET", True, (502,), True),
        ("invalid", b"GET", False, (), False),
    ],
)
def test_which_failures_are_tried_again(
    cause: str, method: bytes, sent: bool, codes: tuple[int, ...], is_tried: bool
) -> None:
    """What nobody saw, what does no harm, and what is asked for."""
    tried = Tried(Retry(frozenset(codes)), method)
    assert tried.failure(cause, sent) == is_tried
    assert tried.answers == ([] if is_tried else ["UpstreamFailed"])
    assert tried.counted == ([("retry", cause)] if is_tried else [])


# --- what is in the way


class Counts:
    def __init__(self, grants: bool) -> None:
        self.grants, self.asked = grants, 0

    def retry(self) -> bool:
        self.asked += 1
        return self.grants


@pytest.mark.parametrize(
    ("more", "obstacle"),
    [
        ({}, ""),
        ({"body_copy": SimpleNamespace(too_large=False)}, ""),
        ({"body_copy": SimpleNamespace(too_large=True)}, "too_large"),
        ({"deadline": 100.025}, "deadline"),
        ({"deadline": 100.026}, ""),
        ({"counted": Counts(True)}, ""),
        ({"counted": Counts(False)}, "budget"),
    ],
)
def test_what_is_in_the_way_of_another_try(more: dict[str, Any], obstacle: str) -> None:
    tried = Tried(Retry(), **more)
    assert tried.failure("reset") == (not obstacle) and tried.x.retries.given_up == obstacle
    assert tried.limited == ([("backend/b", "retryBudget")] if obstacle == "budget" else [])


# --- how long it is waited


@pytest.mark.parametrize(
    ("backoff", "tries", "draw", "seconds"),
    [
        (0.1, 0, 0.0, 0.1),
        (0.1, 1, 0.0, 0.2),
        (0.1, 2, 0.0, 0.4),
        (0.1, 0, 1.0, 0.15),
        (0.1, 2, 0.5, 0.5),
        (0.1, 7, 0.0, 10.0),
        (0.1, 40, 0.0, 10.0),
        (0.1, 4000, 0.0, 10.0),
        (30.0, 0, 0.0, 30.0),
        (30.0, 1, 0.0, 30.0),
        (0.0, 5, 1.0, 0.0),
    ],
)
def test_the_backoff(backoff: float, tries: int, draw: float, seconds: float) -> None:
    """Doubled with each try, up to ten seconds; chance adds up to half."""
    kept = Retries(Retry(backoff=backoff))
    kept.tries = tries
    assert kept.wait(lambda: draw) == pytest.approx(seconds)


# --- responses


class Copy:
    too_large = False

    def __init__(self) -> None:
        self.settled = 0

    def no_more_tries(self) -> None:
        self.settled += 1


@pytest.mark.parametrize(
    ("policy", "status", "is_refused", "is_decided"),
    [
        (Retry(frozenset((503,))), 503, True, False),
        (Retry(frozenset((503,))), 502, False, True),
        (Retry(), 503, False, True),
        (Retry(condition=lambda x: x.status == 502), 502, True, False),
        (Retry(condition=lambda x: x.status == 502), 503, False, True),
        (Retry(condition=lambda x: True), 101, False, True),
        (Retry(frozenset((503,)), condition=lambda x: False), 503, True, False),
        (Retry(condition=lambda x: True, judges_body=True), 200, False, False),
        (Retry(condition=lambda x: True, judges_body=True), 101, False, True),
        (Retry(frozenset((503,)), condition=lambda x: True, judges_body=True), 503, True, False),
        (Retry(frozenset((503,)), attempts=0), 503, False, True),
    ],
)
def test_which_responses_are_let_go(policy: Retry, status: int, is_refused: bool, is_decided: bool) -> None:
    copy = Copy()
    tried = Tried(policy, b"POST", body_copy=copy, up=Up())
    up = tried.x.up
    assert tried.refuses(response(status)) == is_refused
    assert tried.x.retries.decided == is_decided and copy.settled == is_decided
    assert up.told == (["discard"] if is_refused else []) and len(tried.calls) == is_refused
    assert tried.counted == ([("retry", "status")] if is_refused else [])


@pytest.mark.parametrize(
    ("condition", "attempts", "is_over", "is_refused"),
    [
        (lambda x: x.response_body == b"old", 1, False, True),
        (lambda x: x.response_body == b"old", 1, True, True),
        (lambda x: x.response_body == b"old", 0, False, False),
        (lambda x: False, 1, False, False),
        (None, 1, False, False),
    ],
)
def test_a_response_is_let_go_for_its_body(condition: Any, attempts: int, is_over: bool, is_refused: bool) -> None:
    copy = Copy()
    tried = Tried(Retry(condition=condition, attempts=attempts, judges_body=True), body_copy=copy)
    up = tried.x.up
    if is_over:
        tried.x.up = None
    assert retries.refuses_body(tried.x, tried.context, tried.attempt) == is_refused
    assert up.told == (["reset"] if is_refused and not is_over else [])
    assert tried.x.retries.decided == (not is_refused) and copy.settled == (not is_refused)


# --- what it came to


@pytest.mark.parametrize(
    ("policy", "is_granted"),
    [
        (Retry(), True),
        (Retry(attempts=0), False),
        (Retry(precondition=lambda x: True), True),
        (Retry(precondition=lambda x: False), False),
        (Retry(attempts=0, precondition=lambda x: True), False),
    ],
)
def test_who_is_granted_tries_at_all(policy: Retry, is_granted: bool) -> None:
    granted = retries.granted(Tried(policy).x, policy)
    assert (granted is not None) == is_granted
    if granted is not None:
        assert (granted.tries, granted.tried, granted.decided, granted.given_up, granted.is_counted) == (
            0, [], False, "", False
        )  # fmt: skip
