"""gRPC as a client speaks it, over a call that the test plays: what is sent, and which answers count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed, CallRequest
from dataplane.chain.grpc import StatusError, Stream, opened, unary
from dataplane.http.heads import Head

OK = b"grpc-status: 0\r\n"
X: Any = SimpleNamespace(trace=None)
"""For whose sake."""


def frame(message: bytes, flag: int = 0, length: int | None = None) -> bytes:
    return bytes((flag,)) + (len(message) if length is None else length).to_bytes(4, "big") + message


class Call:
    """As `calls.Call`; `parts` come one by one."""

    def __init__(self, parts: list[bytes], trailers: bytes, status: int, head: bytes) -> None:
        self.parts, self.trailers, self.status, self.lines = parts, trailers, status, head
        self.done: list[str] = []
        self.sent: list[bytes] = []

    async def end(self, trailers: bytes = b"") -> None:
        assert not trailers
        self.done.append("end")

    async def send(self, data: bytes, end: bool = False) -> None:
        self.sent.append(data)

    async def head(self) -> CallAnswer:
        return CallAnswer(self.status, Head(self.lines), b"")

    async def receive(self) -> bytes:
        return self.parts.pop(0) if self.parts else b""

    def cancel(self) -> None:
        self.done.append("cancel")


class Asked:
    """A server that answers so, and what it was asked."""

    def __init__(self, *parts: bytes, trailers: bytes = OK, status: int = 200, head: bytes = b"\r\n") -> None:
        self.call = Call(list(parts), trailers, status, head)
        self.begun: list[tuple[str, CallRequest, float, float, bool]] = []
        self.request_timeout: float | None = None
        self.calls: Any = SimpleNamespace(plan=self.plan, open=self.open)

    def plan(self, backend: str, x: Any) -> Any:
        assert x is X, "policies of its route say how the server is connected to"
        return SimpleNamespace(key=backend, request_timeout=self.request_timeout)

    def open(
        self,
        plan: Any,
        request: CallRequest,
        *,
        x: Any,
        head_within: float,
        whole_within: float = FOR_EVER,
        sends_more: bool = False,
    ) -> Call:
        assert x is X
        self.begun.append((plan.key, request, head_within, whole_within, sends_more))
        return self.call

    def answer(self, most: int = 100) -> bytes:
        return bytes(done(unary(self.calls, X, "backend/a", "/a.B/C", b"hello", 1.5, most)))

    def stream(self, most: int = 100) -> Stream:
        call: Any = opened(self.calls, "backend/a", "/a.B/C", X, 1.5)
        return Stream(call, most)


def done(work: Any) -> Any:
    """What a coroutine answers that waits for nothing."""
    with pytest.raises(StopIteration) as end:
        work.send(None)
    return end.value.value


def test_a_message_there_and_a_message_back() -> None:
    asked = Asked(frame(b"answer")[:3], frame(b"answer")[3:])
    assert asked.answer() == b"answer"
    ((backend, request, head_within, whole_within, sends_more),) = asked.begun
    assert (backend, request.method, request.target, request.authority) == ("backend/a", b"POST", b"/a.B/C", b"")
    assert (head_within, whole_within, sends_more) == (1.5, 1.5, False), "one deadline for all of it"
    assert request.body == b"\0\0\0\0\x05hello"
    assert request.headers == b"content-type: application/grpc+proto\r\nte: trailers\r\ngrpc-timeout: 1500m\r\n"
    assert asked.call.done == ["cancel"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(30.0, b"30000m"), (0.0004, b"1m"), (10**6, b"99999999m")], ids=["more", "least", "most"]
)
def test_the_time_that_the_server_has_is_the_one_of_its_policies(seconds: float, said: bytes) -> None:
    asked = Asked(frame(b""))
    asked.request_timeout = seconds
    asked.answer()
    ((_, request, *_),) = asked.begun
    assert request.headers.endswith(b"grpc-timeout: %b\r\n" % said)


@pytest.mark.parametrize(("size", "is_taken"), [(0, True), (10, True), (11, False)])
def test_an_answer_has_at_most_so_many_bytes(size: int, is_taken: bool) -> None:
    asked = Asked(frame(b"a" * size))
    if is_taken:
        assert asked.answer(10) == b"a" * size
    else:
        with pytest.raises(CallFailed, match="more than 10 bytes") as failed:
            drive(asked, 10)
        assert failed.value.cause == "too_large"
    assert asked.call.done[-1] == "cancel"


def drive(asked: Asked, most: int = 100) -> None:
    unary(asked.calls, X, "backend/a", "/a.B/C", b"", 1.0, most).send(None)


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
    with pytest.raises(CallFailed, match=r"not one message|compressed") as failed:
        drive(Asked(data))
    assert failed.value.cause == "invalid"


def test_a_message_that_announces_too_much_is_not_waited_for() -> None:
    with pytest.raises(CallFailed, match="more than 100 bytes") as failed:
        drive(Asked(frame(b"a", length=1 << 24)))
    assert failed.value.cause == "too_large"


def test_a_status_in_the_head_is_enough_for_an_answer() -> None:
    assert Asked(frame(b"a"), head=b"\r\ngrpc-status: 0\r\n", trailers=b"").answer() == b"a"


# --- streams


def test_a_stream_of_both_directions() -> None:
    whole = frame(b"one") + frame(b"") + frame(b"three")
    asked = Asked(whole[:6], whole[6:14], whole[14:])
    stream = asked.stream()
    done(stream.send(b"a"))
    done(stream.send(b""))
    assert asked.call.sent == [frame(b"a"), frame(b"")]
    assert [done(stream.receive()) for _ in range(5)] == [b"one", b"", b"three", None, None]
    assert stream.trailers == OK
    done(stream.end())
    stream.cancel()
    assert asked.call.done == ["end", "cancel"]
    ((_, request, head_within, whole_within, sends_more),) = asked.begun
    assert (request.body, head_within, whole_within, sends_more) == (b"", 1.5, FOR_EVER, True)
    assert b"grpc-timeout" not in request.headers, "a stream lasts as long as its exchange"


STREAMS_THAT_BREAK: dict[str, tuple[Asked, str]] = {
    "a message of too many bytes": (Asked(frame(b"x" * 101)), "too_large"),
    "one that only announces them": (Asked(frame(b"", length=1 << 31)), "too_large"),
    "a compressed message": (Asked(frame(b"x", 1)), "invalid"),
    "half a message": (Asked(frame(b"xyz")[:-1]), "invalid"),
    "half a head": (Asked(b"\0\0"), "invalid"),
    "no status": (Asked(trailers=b""), "invalid"),
    "no gRPC": (Asked(status=404), "invalid"),
}


@pytest.mark.parametrize("which", STREAMS_THAT_BREAK)
def test_a_stream_that_breaks(which: str) -> None:
    asked, cause = STREAMS_THAT_BREAK[which]
    with pytest.raises(CallFailed) as raised:
        asked.stream().receive().send(None)
    assert raised.value.cause == cause


def test_a_stream_that_its_server_refuses_in_the_middle() -> None:
    stream = Asked(frame(b"one"), trailers=b"grpc-status: 8\r\n").stream()
    assert done(stream.receive()) == b"one"
    with pytest.raises(StatusError) as raised:
        stream.receive().send(None)
    assert raised.value.status == 8
    assert done(stream.receive()) is None
