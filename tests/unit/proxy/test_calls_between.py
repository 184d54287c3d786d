"""What stands between an exchange and its carrier, for A2A and gRPC-Web: neither notices what it does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.a2a import Call as AgentRead
from dataplane.carriers import REFUSED
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


KINDS = pytest.mark.parametrize("kind", ["agent", "web"])


@KINDS
@pytest.mark.parametrize("name", ["pause", "resume", "reset"])
def test_what_the_exchange_asks_reaches_the_carrier(kind: str, name: str) -> None:
    between = Between(kind)
    between.begin()
    getattr(between.call, name)()
    assert between.up.calls == [(name,)] and between.consumer.calls == []


@KINDS
def test_who_waits_for_the_rest_of_a_response_is_the_carrier_s(kind: str) -> None:
    between = Between(kind)
    between.begin()
    assert between.call.discard() == "its sleeper" and between.up.calls == [("discard",)]


@KINDS
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("upstream_blocked", ()),
        ("upstream_drained", ()),
        ("upstream_interim", (OK,)),
        ("upstream_never_indexed", (frozenset((b"x-a",)),)),
        ("upstream_lost", (REFUSED, True)),
        ("upstream_head", (OK, b"a", True)),
        ("upstream_content", (b"a", False)),
        ("upstream_trailers", (b"x-a: 1\r\n",)),
    ],
)
def test_what_the_carrier_says_reaches_the_exchange(kind: str, name: str, given: tuple[Any, ...]) -> None:
    between = Between(kind)
    between.begin()
    getattr(between.call, name)(*given)
    assert between.consumer.calls == [(name, *given)] and between.up.calls == []


@KINDS
def test_what_is_not_to_be_indexed_is_the_exchange_s_to_say(kind: str) -> None:
    assert Between(kind).call.never_indexed == {b"x-secret"}


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


def test_a_carrier_that_has_more_to_say_can_be_let_go() -> None:
    between = Between("agent")
    between.begin()
    between.call.upstream_head(OK, b"", False)
    between.call.upstream_content(b"a", False)
    between.call.reset()
    assert between.up.calls == [("reset",)]


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


@pytest.mark.parametrize("ends", ["content", "trailers"])
def test_a_call_is_known_when_its_content_is_here(ends: str) -> None:
    assert sent(Between("agent"), SEND[:20], SEND[20:], ends=ends) == SENT
    assert sent(Between("agent"), SEND[:20], SEND[20:], ends="") is None


@pytest.mark.parametrize(("size", "is_known"), [(MAX_LOOK - 1, False), (MAX_LOOK, True)])
def test_of_a_long_content_the_beginning_is_looked_at(size: int, is_known: bool) -> None:
    start = b'{"jsonrpc": "2.0", "method": "SendMessage", "id": "'
    assert sent(Between("agent"), start.ljust(size, b"a"), ends="") == (SENT if is_known else None)


def test_an_answer_before_the_whole_request_says_what_is_known_by_then() -> None:
    between = Between("agent")
    between.begin(SEND)
    assert between.x.agent_call is None
    between.call.upstream_head(OK, b"", False)
    known: Any = between.x.agent_call
    assert known.method == SENT


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


def test_whoever_began_it_has_its_answer() -> None:
    """Between it and the exchange gRPC-Web may be translated."""
    between, other = Between("agent"), Noted()
    between.call.begin(other, JSON, b"", True)
    between.call.upstream_head(OK, b"", True)
    assert other.calls == [("upstream_head", OK, b"", True)] and between.consumer.calls == []


@pytest.mark.parametrize(
    ("is_of_this_body", "known", "method"),
    [(True, "tasks/get", "tasks/get"), (False, "tasks/get", SENT), (True, None, SENT), (False, None, SENT)],
)
def test_what_a_policy_has_read_is_not_read_again(is_of_this_body: bool, known: str | None, method: str) -> None:
    """Unless a step has made another body since, or it was no call that is known."""
    between = Between("agent")
    x = between.x
    x.body, x.agent_call = b"judged", AgentRead(method=known, state="TASK_STATE_FAILED", error=1)
    x.known_agent_call = x.path, x.body if is_of_this_body else b"other", x.agent_call
    between.begin(SEND, True)
    assert (x.agent_call.method, x.agent_call.state, x.agent_call.error) == (method, None, None)


# --- gRPC-Web


def test_toward_the_endpoint_it_is_a_call_with_trailers() -> None:
    call = Between("web").call
    assert (call.is_shared, call.upgrade, call.takes_trailers) == (True, b"", True)


def test_trailers_of_the_request_are_its_end_only() -> None:
    between = Between("web")
    between.begin()
    between.call.trailers(b"x-a: 1\r\n")
    assert between.up.calls == [("content", b"", True)]


def web(kind: int, length: int = 5) -> Between:
    between = Between("web", b"\r\ncontent-type: application/grpc-web-text+proto;a=b\r\ncontent-length: 5\r\n")
    between.x.grpc, between.x.length = Call(kind), length
    up: Any = between.up
    between.call = WebCall(between.x, up)
    return between


@pytest.mark.parametrize(
    ("kind", "length", "left"), [(grpc.WEB, 5, b"content-length: 5\r\n"), (grpc.WEB_TEXT, UNKNOWN, b"")]
)
def test_the_length_is_kept_where_the_content_is(kind: int, length: int, left: bytes) -> None:
    between = web(kind)
    between.call.begin(between.consumer, between.x.request.block, b"", False)
    ((_, consumer, block, data, end),) = between.up.calls
    assert (consumer, data, end) == (between.call, b"", False) and between.call.length == length
    assert sorted(block.split(b"\r\n")) == sorted(
        b"\r\ncontent-type: application/grpc+proto\r\n".split(b"\r\n") + left.split(b"\r\n")[:1] * bool(left)
    )


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


def test_an_answer_that_is_no_call_s_passes_as_it_is() -> None:
    between = web(grpc.WEB_TEXT)
    between.begin()
    head = ResponseHead(404, b"HTTP/1.1 404 No", b"\r\ncontent-type: text/plain\r\n", None, 2, True)
    between.call.upstream_head(head, b"n", False)
    between.call.upstream_content(b"o", False)
    between.call.upstream_trailers(b"grpc-status: 5\r\n")
    passed = [("upstream_head", head, b"n", False), ("upstream_content", b"o", False)]
    assert between.consumer.calls == [*passed, ("upstream_trailers", b"grpc-status: 5\r\n")]
    assert between.x.grpc.status is None
