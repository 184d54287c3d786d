"""One gRPC call of a policy, over a stream that the test plays: what is sent, and which answers count."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.chain.filter import Env
from dataplane.chain.grpc_unary import StatusError, unary
from dataplane.http.heads import Head

OK = b"grpc-status: 0\r\n"
X: Any = object()
"""For whose sake."""


def frame(message: bytes, flag: int = 0, length: int | None = None) -> bytes:
    return bytes((flag,)) + (len(message) if length is None else length).to_bytes(4, "big") + message


class Stream:
    """As `CallStream`; `parts` come one by one."""

    def __init__(self, parts: list[bytes], trailers: bytes, status: int, head: bytes) -> None:
        self.parts, self.trailers, self.status, self.lines = parts, trailers, status, head
        self.done: list[str] = []

    async def end(self, trailers: bytes = b"") -> None:
        assert not trailers
        self.done.append("end")

    async def head(self) -> CallAnswer:
        return CallAnswer(self.status, Head(self.lines), b"")

    async def receive(self) -> bytes:
        return self.parts.pop(0) if self.parts else b""

    def cancel(self) -> None:
        self.done.append("cancel")


class Asked:
    """A server that answers so, and what it was asked."""

    def __init__(self, *parts: bytes, trailers: bytes = OK, status: int = 200, head: bytes = b"\r\n") -> None:
        self.stream = Stream(list(parts), trailers, status, head)
        self.calls: list[tuple[str, CallRequest, float]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.over: list[bool] = []
        self.request_timeout: float | None = None
        calls: Any = SimpleNamespace(stream=self.begin, seconds=self.seconds)
        self.env = Env(lambda: 100.0, lambda: 0.0, calls=calls, call_at=self.call_at)

    def seconds(self, backend: str, seconds: float, x: Any) -> float:
        assert (backend, x) == ("backend/a", X)
        return seconds if self.request_timeout is None else self.request_timeout

    def begin(self, backend: str, request: CallRequest, seconds: float, x: Any) -> Stream:
        assert x is X, "policies of its route say how the server is connected to"
        self.calls.append((backend, request, seconds))
        return self.stream

    def call_at(self, moment: float, call: Callable[[], None]) -> Any:
        self.timers.append((moment, call))
        return SimpleNamespace(cancel=lambda: self.over.append(True))

    def answer(self, most: int = 100) -> bytes:
        with pytest.raises(StopIteration) as end:
            unary(self.env, X, "backend/a", "/a.B/C", b"hello", 1.5, most).send(None)
        return bytes(end.value.value)


def test_a_message_there_and_a_message_back() -> None:
    asked = Asked(frame(b"answer")[:3], frame(b"answer")[3:])
    assert asked.answer() == b"answer"
    ((backend, request, seconds),) = asked.calls
    assert (backend, request.method, request.target, request.authority, seconds) == (
        "backend/a", b"POST", b"/a.B/C", b"", 1.5
    )  # fmt: skip
    assert request.body == b"\0\0\0\0\x05hello"
    assert request.headers == b"content-type: application/grpc+proto\r\nte: trailers\r\ngrpc-timeout: 1500m\r\n"
    assert asked.stream.done == ["end", "cancel"] and asked.over == [True]
    assert [(moment, call) for moment, call in asked.timers] == [(101.5, asked.stream.cancel)]


@pytest.mark.parametrize(
    ("seconds", "said"), [(30.0, b"30000m"), (0.0004, b"1m"), (10**6, b"99999999m")], ids=["more", "least", "most"]
)
def test_the_time_that_the_server_has_is_the_one_of_its_policies(seconds: float, said: bytes) -> None:
    asked = Asked(frame(b""))
    asked.request_timeout = seconds
    asked.answer()
    ((_, request, within),) = asked.calls
    assert within == seconds and request.headers.endswith(b"grpc-timeout: %b\r\n" % said)
    assert [moment for moment, _ in asked.timers] == [100.0 + seconds]


@pytest.mark.parametrize(("size", "is_taken"), [(0, True), (10, True), (11, False)])
def test_an_answer_has_at_most_so_many_bytes(size: int, is_taken: bool) -> None:
    asked = Asked(frame(b"a" * size))
    if is_taken:
        assert asked.answer(10) == b"a" * size
    else:
        with pytest.raises(CallFailed, match="more than 10 bytes") as failed:
            drive(asked, 10)
        assert failed.value.cause == "too_large"
    assert asked.stream.done[-1] == "cancel" and asked.over == [True]


def drive(asked: Asked, most: int = 100) -> None:
    unary(asked.env, X, "backend/a", "/a.B/C", b"", 1.0, most).send(None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0",
        frame(b"a", flag=1),
        frame(b"a", length=0),
        frame(b"a", length=2),
        frame(b"a") + frame(b"b"),
    ],
    ids=repr,
)
def test_what_is_not_one_message_is_no_answer(data: bytes) -> None:
    with pytest.raises(CallFailed, match="not one message") as failed:
        drive(Asked(data))
    assert failed.value.cause == "invalid"


def test_a_message_that_announces_too_much_is_not_waited_for() -> None:
    with pytest.raises(CallFailed, match="more than 100 bytes") as failed:
        drive(Asked(frame(b"a", length=1 << 24)))
    assert failed.value.cause == "too_large"


@pytest.mark.parametrize(
    ("head", "trailers", "status"),
    [
        (b"\r\n", b"grpc-status: 7\r\n", 7),
        (b"\r\n", b"Grpc-Status: 16\r\n", 16),
        (b"\r\ngrpc-status: 5\r\n", b"", 5),
        (b"\r\ngrpc-status: 5\r\n", b"grpc-status: 3\r\n", 3),
    ],
)
def test_the_server_s_own_refusal(head: bytes, trailers: bytes, status: int) -> None:
    with pytest.raises(StatusError, match=f"gRPC status {status}") as refused:
        drive(Asked(frame(b"a"), head=head, trailers=trailers))
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda: Asked(frame(b"a"), trailers=b""), "without a status"),
        (lambda: Asked(frame(b"a"), trailers=b"x-a: 1\r\n", head=b"\r\ngrpc-status: 0\r\n"), "without a status"),
        (lambda: Asked(frame(b"a"), status=503), "HTTP status 503"),
    ],
)
def test_what_does_not_speak_grpc_is_no_answer(asked: Callable[[], Asked], why: str) -> None:
    it = asked()
    with pytest.raises(CallFailed, match=why) as failed:
        drive(it)
    assert failed.value.cause == "invalid" and it.stream.done == ["end", "cancel"] and it.over == [True]


def test_a_status_in_the_head_is_enough_for_an_answer() -> None:
    assert Asked(frame(b"a"), head=b"\r\ngrpc-status: 0\r\n", trailers=b"").answer() == b"a"
