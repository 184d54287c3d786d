"""What stands between an exchange and its carrier, for A2A and gRPC-Web: neither notices what it does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.exchange import Exchange
from dataplane.http import grpc
from dataplane.http.grpc import Call
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.proxy.layers.a2a import MAX_LOOK, AgentCall
from dataplane.proxy.layers.grpc_web import WebCall

SEND = b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}'
SENT = "message/send"
"""Its name, whatever version of the protocol it is written in."""
JSON = b"\r\ncontent-type: application/json\r\n"
OK = ResponseHead(200, b"HTTP/1.1 200 OK", b"\r\n", b"\r\n", UNKNOWN, True)


class Noted:
    """Either end: it writes down the name and the arguments of what is called."""

    is_shared = False
    never_indexed: frozenset[bytes] = frozenset((b"x-secret",))
    length = 7

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*given: Any) -> str:
            self.calls.append((name, *given))
            return "its sleeper"

        return call


class Between:
    """One call between two ends that write down."""

    def __init__(self, kind: str, lines: bytes = JSON, target: bytes = b"/", method: bytes = b"POST") -> None:
        self.up, self.consumer = Noted(), Noted()
        x: Any = Exchange(None, method, target, Head(lines), 0.0)
        x.body, x.length = None, 5
        known: Any = Known(x, self.consumer)
        up: Any = self.up
        if kind == "web":
            x.grpc = Call(grpc.WEB)
        self.x: Any = known
        self.call: Any = AgentCall(known, up) if kind == "agent" else WebCall(known, up)

    def begin(self, first: bytes = b"", end: bool = False) -> None:
        self.call.begin(self.consumer, self.x.request.block, first, end)
        self.up.calls.clear()


class Known:
    """The exchange, as far as it is read; what a consumer is asked goes to the one of the test."""

    def __init__(self, x: Any, consumer: Noted) -> None:
        object.__setattr__(self, "_of", (x, consumer))

    def __getattr__(self, name: str) -> Any:
        x, consumer = object.__getattribute__(self, "_of")
        return getattr(consumer if name.startswith(("upstream", "never", "reply", "give_up")) else x, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_of")[0], name, value)


# --- A2A


@pytest.mark.parametrize("deed", ["reset", "discard"])
@pytest.mark.parametrize(
    "end",
    [
        lambda call: call.upstream_head(OK, b"", True),
        lambda call: call.upstream_content(b"", True),
        lambda call: call.upstream_trailers(b""),
        lambda call: call.upstream_lost("reset", False),
        AgentCall.reset,
        AgentCall.discard,
    ],
)
def test_a_carrier_that_is_given_back_is_left_alone(deed: str, end: Callable[[Any], None]) -> None:
    """By then it carries the next request of anybody."""
    between = Between("agent")
    between.begin()
    end(between.call)
    between.up.calls.clear()
    assert getattr(between.call, deed)() is None and between.up.calls == []


def sent(between: Between, *pieces: bytes, ends: str = "content") -> str | None:
    """What is known of the call when these pieces have been sent."""
    between.begin()
    for piece in pieces:
        between.call.content(piece, False)
    assert between.up.calls == [("content", piece, False) for piece in pieces]
    if ends == "content":
        between.call.content(b"", True)
    elif ends == "trailers":
        between.call.trailers(b"x-a: 1\r\n")
        assert between.up.calls[-1] == ("trailers", b"x-a: 1\r\n")
    known = between.x.agent_call
    return None if known is None else known.method


@pytest.mark.parametrize(("size", "is_known"), [(MAX_LOOK - 1, False), (MAX_LOOK, True)])
def test_of_a_long_content_the_beginning_is_looked_at(size: int, is_known: bool) -> None:
    start = b'{"jsonrpc": "2.0", "method": "SendMessage", "id": "'
    assert sent(Between("agent"), start.ljust(size, b"a"), ends="") == (SENT if is_known else None)


def test_a_try_forgets_what_came_of_the_one_before() -> None:
    between = Between("agent")
    between.begin(SEND, True)
    known = between.x.agent_call
    known.state, known.error = "TASK_STATE_FAILED", -32603
    again: Any = AgentCall(between.x, between.up)
    again.begin(between.consumer, JSON, SEND, True)
    assert between.x.agent_call is known and (known.method, known.state, known.error) == (SENT, None, None)


def test_its_head_asks_for_nothing_that_cannot_be_read() -> None:
    lines = b"\r\naccept-encoding: gzip\r\nrange: bytes=0-1\r\nif-range: x\r\nx-a: 1\r\n"
    others = lines.replace(b"accept-encoding: gzip\r\n", b"")
    for target, left in ((b"/.well-known/agent-card.json", b"\r\nx-a: 1\r\n"), (b"/a", others)):
        between = Between("agent", lines, target, b"GET")
        between.call.begin(between.consumer, lines, b"", True)
        assert between.up.calls == [("begin", between.call, left, b"", True)]
        assert between.call.length == between.consumer.length


# --- gRPC-Web


def web(kind: int, length: int = 5) -> Between:
    between = Between("web", b"\r\ncontent-type: application/grpc-web-text+proto;a=b\r\ncontent-length: 5\r\n")
    between.x.grpc, between.x.length = Call(kind), length
    up: Any = between.up
    between.call = WebCall(between.x, up)
    return between


def test_text_passes_decoded_and_only_where_it_makes_bytes() -> None:
    between = web(grpc.WEB_TEXT)
    between.begin(b"aGVsb")
    for piece, end in ((b"G", False), (b"8=", False), (b"", False), (b"", True)):
        between.call.content(piece, end)
    passed = [call[1:] for call in between.up.calls]
    assert b"".join(data for data, _ in passed) == b"lo" and [end for _, end in passed] == [False, True]


@pytest.mark.parametrize("at_once", [True, False])
def test_text_that_is_malformed_never_reaches_the_endpoint(at_once: bool) -> None:
    between = web(grpc.WEB_TEXT)
    if at_once:
        between.call.begin(between.consumer, b"\r\n", b"****", True)
    else:
        between.begin()
        between.call.content(b"****", True)
    assert between.up.calls == []
    ((name, reason, detail),) = between.consumer.calls
    assert (name, reason) == ("give_up", "BadRequest") and detail


GRPC_HEAD = ResponseHead(
    200, b"HTTP/1.1 200 OK", b"\r\ncontent-type: application/grpc+proto\r\ncontent-length: 9\r\n", None, 9, True
)


@pytest.mark.parametrize(("kind", "media"), [(grpc.WEB, b"grpc-web+proto"), (grpc.WEB_TEXT, b"grpc-web-text+proto")])
@pytest.mark.parametrize(("first", "end"), [(b"", True), (b"", False), (b"a", True), (b"a", False)])
def test_the_head_of_an_answer_is_the_client_s_own(kind: int, media: bytes, first: bytes, end: bool) -> None:
    between = web(kind)
    between.begin()
    between.call.upstream_head(GRPC_HEAD, first, end)
    ((_, head, data, ended),) = between.consumer.calls
    is_whole = end and not first
    assert (head.status, head.line, head.length, ended) == (200, GRPC_HEAD.line, 0 if is_whole else UNKNOWN, end)
    assert data == (b"YQ==" if first and kind == grpc.WEB_TEXT else first)
    wanted = b"\r\ncontent-type: application/%b\r\n" % media + (b"content-length: 0\r\n" if is_whole else b"")
    assert sorted(head.block.split(b"\r\n")) == sorted(wanted.split(b"\r\n"))


def test_the_trailers_of_an_answer_are_its_last_message() -> None:
    between = web(grpc.WEB)
    between.begin()
    between.call.upstream_head(GRPC_HEAD, b"", False)
    between.call.upstream_trailers(b"grpc-status: 5\r\n")
    assert between.x.grpc.status == 5
    assert between.consumer.calls[1:] == [("upstream_content", b"\x80\0\0\0\x0fgrpc-status:5\r\n", True)]
