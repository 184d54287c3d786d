"""What is in the way of another try, and which responses are let go for one, by their heads and by their bodies."""

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
