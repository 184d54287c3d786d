"""What fails keeps nothing: exceptions are in no reference cycle with the frames that they passed.

Python's garbage collector is off here, as it mostly is in a worker with a big table: a cycle would hold all that those
frames held, the bodies of requests most of all, until it runs again.
"""

from __future__ import annotations

import gc
import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CoroutineType, TracebackType
from typing import Any

import pytest

from tests.carriers import Carrier, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, HELLO, MODERN, Client, Toy
from tests.fakes.memory_proxy import FakeTransport
from tests.policies.test_mcp import of_one, of_two

LARGE = "x" * 50_000


@contextmanager
def collected() -> Iterator[list[str]]:
    """What of the block only the collector finds, of exceptions with the functions that they passed."""
    found: list[str] = []
    gc.disable()
    gc.freeze()  # what is there already is not looked at: a process of many tests has much
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [_described(each) for each in gc.garbage if _is_kept(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def _is_kept(each: object) -> bool:
    """What holds much: an exception with its frames, work that waits, and every object of the data plane."""
    if isinstance(each, BaseException):
        return each.__traceback__ is not None
    return isinstance(each, CoroutineType) or type(each).__module__.startswith("dataplane.")


def _described(each: object) -> str:
    if not isinstance(each, BaseException):
        return f"{type(each).__module__}.{type(each).__qualname__}"
    error = each
    passed, trace = [], error.__traceback__
    while isinstance(trace, TracebackType):
        passed.append(f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} through {', '.join(passed)}"


def test_the_measure_sees_an_exception_that_its_own_frame_holds() -> None:
    def fails() -> None:
        held = ValueError()
        raise held

    def kept() -> None:
        try:
            fails()
        except ValueError:
            pass

    with collected() as found:
        kept()
    assert len(found) == 1 and "fails" in found[0]


# --- MCP: methods x what servers do

MESSAGES: list[dict[str, Any]] = [
    {"method": "initialize", "params": HELLO},
    {"method": "ping"},
    {"method": "tools/list"},
    {"method": "resources/list"},
    {"method": "tools/call", "params": {"name": "add", "arguments": {"text": LARGE}}},
    {"method": "tools/call", "params": {"name": "one_add", "arguments": {"text": LARGE}}},
    {"method": "resources/read", "params": {"uri": "file:///a"}},
    {"method": "logging/setLevel", "params": {"level": "info"}},
    {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}}},
    {"method": "of/nobody", "params": {"text": LARGE}},
    {"method": "notifications/progress", "params": {"progressToken": 1}},
]
META = {"io.modelcontextprotocol/protocolVersion": MODERN}
MODERN_MESSAGES: list[dict[str, Any]] = [
    {"method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}, "text": LARGE}},
    {"method": "server/discover", "params": {}},
    {"method": "tools/list", "params": {}},
    {"method": "tools/call", "params": {"name": "add", "arguments": {"text": LARGE}}},
]


def _error(arrival: Arrival, code: int) -> None:
    body = arrival.received.body
    number = json.loads(body).get("id") if body.startswith(b"{") else None
    error = json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": "no"}})
    arrival.answer(Response(200, [("content-type", "application/json")], error.encode()))


def _text(kind: str, body: bytes) -> Callable[[Arrival], None]:
    return lambda arrival: arrival.answer(Response(200, [("content-type", kind)], body))


FAULTS: dict[str, Callable[[Arrival], None]] = {
    "breaks off": lambda arrival: arrival.reset(),
    "is down": lambda arrival: arrival.answer(Response(503, (), b"down")),
    "has forgotten the session": lambda arrival: arrival.answer(Response(404, (), b"who?")),
    "lacks the method": lambda arrival: _error(arrival, -32601),
    "refuses": lambda arrival: _error(arrival, -32602),
    "answers no JSON": _text("application/json", b"{"),
    "answers another kind": _text("text/html", b"<html>"),
    "gives a stream of nothing": _text("text/event-stream", b""),
    "gives a stream of garbage": _text("text/event-stream", b"data: {\n\n"),
}
PLANS: dict[str, tuple[bool, str]] = {
    "one": (False, ""),
    "two": (True, ""),
    "two, fail open": (True, "failureMode: FailOpen"),
}


def _posted(client: Client, message: dict[str, Any], is_modern: bool) -> Conversation:
    lines = [("accept", BOTH), ("content-type", "application/json")]
    if is_modern:
        params = {**message["params"], "_meta": META}
        message = {**message, "params": params}
        lines += [("mcp-protocol-version", MODERN), ("mcp-method", message["method"])]
        lines += [("mcp-name", params["name"])] if "name" in params else []
    elif message["method"] != "initialize":
        lines.append(("mcp-session-id", client.session))
    known = {} if message["method"].startswith("notifications/") else {"id": 5}
    body = json.dumps({"jsonrpc": "2.0", **known, **message}).encode()
    return client.run.send(Request("POST", "/mcp", lines, body))


def _waiting(run: Run) -> list[Arrival]:
    return [each for each in run.arrivals if not (each.is_answered or each.is_cancelled)]


def _fail(run: Run, fault: Callable[[Arrival], None]) -> None:
    """All that is asked of servers now, and for as long as each answer makes for another question."""
    failed: list[Arrival] = []
    for _ in range(20):
        waiting = [each for each in _waiting(run) if each not in failed]
        for each in waiting:
            failed.append(each)
            if not (each.is_answered or each.is_cancelled):
                fault(each)
        if not waiting:
            return


def _left(asked: Conversation) -> None:
    """The client leaves, where it still waits."""
    if not (asked.answer.ended or asked.answer.reset):
        asked.cancel()


def _opened(carrier: Carrier, plan: str) -> Client:
    several, more = PLANS[plan]
    client = of_two(carrier, more=more) if several else of_one(carrier, Toy(), f", {more}" if more else "")[0]
    client.initialize()
    return client


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("plan", PLANS)
def test_no_request_to_mcp_servers_that_fail_is_kept(plan: str, fault: str, carrier: Carrier) -> None:
    for messages, is_modern in ((MESSAGES, False), (MODERN_MESSAGES, True)):
        for message in messages:
            client = _opened(carrier, plan)
            with collected() as found:
                asked = _posted(client, message, is_modern)
                _fail(client.run, FAULTS[fault])
                _left(asked)
            assert not found, message["method"]


@pytest.mark.parametrize("plan", PLANS)
def test_nor_is_one_whose_servers_are_silent_until_it_is_late_or_its_client_leaves(plan: str, carrier: Carrier) -> None:
    for messages, is_modern in ((MESSAGES, False), (MODERN_MESSAGES, True)):
        for message in messages:
            for seconds in (0, 1000):
                client = _opened(carrier, plan)
                with collected() as found:
                    asked = _posted(client, message, is_modern)
                    client.run.advance(seconds)
                    _left(asked)
                assert not found, (message["method"], seconds)
                _fail(client.run, FAULTS["is down"])  # where servers are told that the session has ended


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("plan", PLANS)
def test_nor_is_a_stream_of_a_client(plan: str, fault: str, carrier: Carrier) -> None:
    client = _opened(carrier, plan)
    lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
    with collected() as found:
        asked = client.run.send(Request("GET", "/mcp", lines))
        _fail(client.run, FAULTS[fault])
        _left(asked)
    assert not found


@pytest.mark.parametrize("plan", PLANS)
def test_nor_is_what_is_no_message(plan: str, carrier: Carrier) -> None:
    lines = [("accept", BOTH), ("content-type", "application/json")]
    for body in (b"{", b"[]", b'{"jsonrpc": "1.0"}', b"\xff", b'{"jsonrpc":"2.0","id":5,"method":7}', b"[" * 10_000):
        client = _opened(carrier, plan)
        with collected() as found:
            client.run.ask(Request("POST", "/mcp", [*lines, ("mcp-session-id", client.session)], body))
        assert not found, body


@pytest.mark.parametrize("plan", PLANS)
def test_nor_is_one_whose_servers_are_dead(plan: str, carrier: Carrier) -> None:
    for messages, is_modern in ((MESSAGES, False), (MODERN_MESSAGES, True)):
        for message in messages:
            client = _opened(carrier, plan)
            _fail_connections(client.run)
            with collected() as found:
                _left(_posted(client, message, is_modern))
            assert not found, message["method"]


def _fail_connections(run: Run) -> None:
    for each in run.memory.connector.upstreams:
        if each.open and isinstance(each, FakeTransport):  # the toy carrier's connections stay, and nobody answers
            each.lose()
    run.refuse_connections()


# --- policies, bodies, endpoints

ROUTE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies: {POLICIES}
      backends:
      - BACKEND
"""
SERVER = "host: '127.0.0.1:9001'"
POLICIES: dict[str, str] = {
    "none": "",
    "a request that must end in time": "timeouts: {request: 5s}",
    "tries": "retry: {codes: [503], attempts: 2}",
    "a server that permits": f"extAuthz: {{{SERVER}, protocol: {{http: {{}}}}, forwardBody: {{maxSize: 100000}}}}",
    "one for small bodies": f"extAuthz: {{{SERVER}, protocol: {{http: {{}}}}, forwardBody: {{maxSize: 1000}}}}",
    "a rule without a value": 'authorization: {policy: {matchExpressions: [\'jwt.sub == "a" || jwt.sub == "b"\']}}',
    "a rule that has one all the same": (
        'authorization: {policy: {matchExpressions: [\'jwt.sub == "a" || request.method == "POST"\']}}'
    ),
    "a rule for JSON": "authorization: {policy: {matchExpressions: ['json(request.body).a == 1']}}",
    "a header without a value": "transformation: {request: {set: [{name: x-a, value: 'json(request.body).a'}]}}",
    "an answer without a value": "transformation: {response: {set: [{name: x-a, value: 'json(response.body).a.b'}]}}",
    "a bounded body": "buffer: {request: {maxBytes: 10}}",
    "a bounded answer": "buffer: {response: {maxBytes: 2}}",
}


def _answered_late(run: Run) -> None:
    run.advance(1000)


ENDS: dict[str, Callable[[Run], None]] = {
    **{name: lambda run, fault=fault: _fail(run, fault) for name, fault in FAULTS.items()},  # type: ignore[misc]
    "is dead": _fail_connections,
    "is silent": _answered_late,
    "is left": lambda run: None,
}


PLAIN = "host: 127.0.0.1:9000"
LONG = ("x", "a," * 2000)
CALL = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"parts": [{"text": LARGE}]}}}
CALLS: dict[str, tuple[str, Request]] = {
    "content": (PLAIN, Request("POST", "/", [LONG, ("content-type", "application/json")], LARGE.encode())),
    "gRPC": (
        PLAIN,
        Request(
            "POST",
            "/a.Service/Method",
            [LONG, ("content-type", "application/grpc"), ("te", "trailers")],
            b"\0" + len(LARGE).to_bytes(4, "big") + LARGE.encode(),
        ),
    ),
    "A2A": (
        "a2a: {host: 127.0.0.1, port: 9000}",
        Request("POST", "/", [LONG, ("content-type", "application/json")], json.dumps(CALL).encode()),
    ),
    "a card of A2A": ("a2a: {host: 127.0.0.1, port: 9000}", Request("GET", "/.well-known/agent-card.json", [LONG])),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_no_request_that_policies_or_endpoints_fail_is_kept(policy: str, call: str, carrier: Carrier) -> None:
    backend, request = CALLS[call]
    for end, fail in ENDS.items():
        run = carrier.proxy(ROUTE.replace("POLICIES", POLICIES[policy]).replace("BACKEND", backend))
        if fail is _fail_connections:
            fail(run)
        with collected() as found:
            asked = run.send(request)
            fail(run)
            _left(asked)
        assert not found, end


def _resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_stays_while_requests_fail_and_nothing_is_collected(carrier: Carrier) -> None:
    """Each of them brings 200 KB; what kept them grew by 316 KB a request."""
    client = _opened(carrier, "two")
    message = {
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "text": LARGE * 4},
    }

    def fail_some(count: int) -> None:
        for _ in range(count):
            asked = _posted(client, message, True)
            _fail(client.run, FAULTS["lacks the method"])
            _left(asked)
            client.run.arrivals.clear()  # which endpoints of the test keep, with the contents
            for far in getattr(client.run.ends, "far", ()):
                for taken in far.requests:
                    taken.content = b""

    with collected() as found:
        fail_some(20)
        objects, before = len(gc.get_objects()), _resident()
        fail_some(80)
        assert _resident() - before < 80 * 100_000
        assert len(gc.get_objects()) - objects < 80 * 100
    assert not found
