"""What an exchange does otherwise for gRPC: its deadline, its status, and answers of ours that its client reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.reply import Reply
from dataplane.http import grpc
from dataplane.http.grpc import Call
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.proxy import grpc_calls
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.grpc_calls import LONGEST, MOST_TEXT


def asked(lines: bytes = b"", method: bytes = b"POST", call: Call | None = None, **more: Any) -> Any:
    return SimpleNamespace(method=method, request=Head(b"\r\n" + lines), grpc=call, **more)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (b"content-type: application/grpc\r\n", grpc.GRPC),
        (b"content-type: application/grpc-web-text\r\n", grpc.WEB_TEXT),
        (b"content-type: text/plain\r\nx-a: application/grpc\r\n", None),
        (b"x-a: application/grpc\r\n", None),
    ],
)
def test_which_call_it_is(lines: bytes, kind: int | None) -> None:
    x = asked(lines)
    grpc_calls.recognise(x)
    assert (None if x.grpc is None else x.grpc.kind) == kind


@pytest.mark.parametrize(
    ("value", "limit", "seconds"),
    [
        (b"", None, None),
        (b"", 5.0, 5.0),
        (b"2S", None, 2.0),
        (b"2S", 5.0, 2.0),
        (b"9S", 5.0, 5.0),
        (b"x", 5.0, 5.0),
        (b"x", None, None),
        (b"24H", None, LONGEST),
        (b"86401S", None, None),
        (b"86401S", 5.0, 5.0),
    ],
)
def test_the_smaller_time_counts(value: bytes, limit: float | None, seconds: float | None) -> None:
    x = asked(b"grpc-timeout: %b\r\n" % value if value else b"")
    assert grpc_calls.seconds(x, limit) == seconds


@pytest.mark.parametrize(("length", "is_sized"), [(UNKNOWN, False), (0, False), (1, True), (5, True)])
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("has_low", [True, False])
def test_what_is_known_when_a_response_begins(length: int, is_sized: bool, end: bool, has_low: bool) -> None:
    call, lines = Call(grpc.GRPC), b"\r\nGrpc-Status: 5\r\n"
    head = ResponseHead(200, b"", lines, lines.lower() if has_low else None, length, True)
    grpc_calls.begins(call, head, end)
    assert (call.is_sized, call.status) == (is_sized, 5 if end else None)


def test_trailers_say_the_status_of_a_call() -> None:
    x = asked(call=Call(grpc.GRPC))
    grpc_calls.ended(x, b"Grpc-Status: 7\r\n")
    assert x.grpc.status == 7
    other = asked()
    grpc_calls.ended(other, b"grpc-status: 7\r\n")
    assert other.grpc is None


# --- answers of ours

DENIED = Reply(403, "RouteDenied", body=b"no entry")
PROTO = b"content-type: application/grpc+proto\r\n"


def text_of(reply: Reply) -> bytes | None:
    return Head(b"\r\n" + reply.headers).get(b"grpc-message")


def test_a_failure_is_a_status_in_the_head() -> None:
    x = asked(PROTO)
    given = grpc_calls.answer(x, DENIED)
    assert (given.status, given.body, given.reason) == (200, b"", "RouteDenied")
    assert given.headers == PROTO + b"grpc-status: 7\r\ngrpc-message: no entry\r\n"
    assert (x.grpc.kind, x.grpc.status) == (grpc.GRPC, grpc.PERMISSION_DENIED)


@pytest.mark.parametrize(
    ("lines", "method"), [(b"", b"POST"), (PROTO, b"HEAD"), (PROTO, b"OPTIONS"), (b"x: application/grpc\r\n", b"POST")]
)
def test_others_get_the_answer_as_it_is(lines: bytes, method: bytes) -> None:
    assert grpc_calls.answer(asked(lines, method), DENIED) is DENIED


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"a" * MOST_TEXT, b"text/plain", b"a" * MOST_TEXT),
        (b"a" * (MOST_TEXT + 1), b"text/plain", None),
        (b"{}", b"application/json", None),
        (b"", b"text/plain", None),
        ("\u00e9%".encode(), b"text/plain", b"%C3%A9%25"),
    ],
)
def test_a_short_text_is_the_message(body: bytes, content_type: bytes, text: bytes | None) -> None:
    given = grpc_calls.answer(asked(PROTO), Reply(403, "RouteDenied", body=body, content_type=content_type))
    assert text_of(given) == text


def test_of_its_headers_those_stay_that_say_nothing_of_the_content() -> None:
    content = b"content-encoding: br\r\ngrpc-status: 0\r\ngrpc-message: x\r\nContent-Length: 9\r\n"
    lines = b"retry-after: 1\r\n" + content + b"x-a: 1\r\n"
    given = grpc_calls.answer(asked(PROTO), Reply(503, "Overloaded", headers=lines))
    assert given.headers == PROTO + b"grpc-status: 14\r\nretry-after: 1\r\nx-a: 1\r\n"


def test_a_call_that_says_no_type_is_answered_as_grpc() -> None:
    given = grpc_calls.answer(asked(call=Call(grpc.GRPC)), DENIED)
    assert given.headers.startswith(b"content-type: application/grpc\r\n")


# --- a deadline in the middle of a response


class Down:
    def __init__(self) -> None:
        self.told: list[bytes] = []

    def trailers(self, lines: bytes) -> None:
        self.told.append(lines)


def cut(kind: int | None = grpc.GRPC, is_sized: bool = False, **more: Any) -> tuple[Any, bool]:
    known: dict[str, Any] = {
        "version": b"HTTP/2",
        "delayed_response": None,
        "waiting": None,
        "down": Down(),
        "deadline": 5.0,
        "up": None,
        "leased": False,
        "lease": 0,
        "reason": "",
        "completed": 0,
    }
    call = None if kind is None else Call(kind)
    if call is not None:
        call.is_sized = is_sized
    x = asked(call=call, **{**known, **more})
    x.complete = lambda: setattr(x, "completed", x.completed + 1)
    return x, grpc_calls.cut(x)


def test_a_call_is_ended_with_a_status() -> None:
    x, is_cut = cut()
    assert is_cut and x.down.told == [b"grpc-status: 4\r\ngrpc-message: request timeout\r\n"]
    assert (x.reason, x.grpc.status, x.deadline, x.lease, x.completed) == ("RequestDeadline", 4, NEVER, 1, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"kind": None},
        {"kind": grpc.WEB},
        {"kind": grpc.WEB_TEXT},
        {"is_sized": True},
        {"version": b"HTTP/1.1"},
        {"delayed_response": object()},
        {"waiting": object()},
    ],
)
def test_others_have_to_be_broken_off(other: dict[str, Any]) -> None:
    x, is_cut = cut(**other)
    assert not is_cut and x.down.told == [] and (x.reason, x.completed, x.lease) == ("", 0, 0)
