"""`frontend.tracing`: what backends and callouts get of a trace context, and which spans come of a request."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.tracing.spans import Span, Traced
from tests.carriers import Carrier, Request
from tests.carriers.values import Received
from tests.fakes.mcp_toys import Client, Toy
from tests.fakes.memory_proxy import MemoryProxy

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
RECORDED = ("traceparent", f"00-{TRACE}-{SPAN}-01")
UNRECORDED = ("traceparent", f"00-{TRACE}-{SPAN}-00")

FILE = """
frontendPolicies:
  tracing:
    host: 127.0.0.1:4317
{fields}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      matches: [{{path: {{type: PathPrefix, value: /}}}}]
      backends: [{{host: "127.0.0.1:9000"}}]
      policies:
{policies}
"""
NOTHING = "        {}"
ALWAYS = "randomSampling: 'true'"
NEVER = ""


def file(*fields: str, policies: str = NOTHING) -> str:
    return FILE.format(fields="\n".join(f"    {each}" for each in fields if each), policies=policies)


def received(carrier: Carrier, text: str, *headers: tuple[str, str]) -> Received:
    run = carrier.proxy(text)
    run.ask(Request("GET", "/a", headers, authority="a.test"))
    (arrival,) = run.arrivals
    return arrival.received


def parent(of: Received) -> tuple[str, str, str]:
    """Trace, span and flags that the backend gets."""
    version, trace, span, flags = of.headers["traceparent"].split("-")
    assert version == "00" and len(trace) == 32 and len(span) == 16
    return trace, span, flags


class TestTheBackendGets:
    """What the backend gets."""

    def test_nothing_of_a_request_without_a_trace_that_begins_none(self, carrier: Carrier) -> None:
        assert "traceparent" not in received(carrier, file(NEVER)).headers

    def test_a_new_trace(self, carrier: Carrier) -> None:
        trace, _, flags = parent(received(carrier, file(ALWAYS)))
        assert trace != TRACE and flags == "01"

    def test_a_span_below_the_caller_s_trace_with_its_state(self, carrier: Carrier) -> None:
        got = received(carrier, file(NEVER), RECORDED, ("tracestate", "a=1"), ("tracestate", "b=2"))
        trace, span, flags = parent(got)
        assert trace == TRACE and span != SPAN and flags == "01"
        assert got.headers["tracestate"] == "a=1,b=2"

    def test_a_trace_that_the_caller_does_not_record_as_it_is(self, carrier: Carrier) -> None:
        assert parent(received(carrier, file(ALWAYS), UNRECORDED)) == (TRACE, SPAN, "00")

    def test_a_trace_outside_of_the_share_marked_as_not_recorded(self, carrier: Carrier) -> None:
        got = received(carrier, file("clientSampling: '0.0'"), RECORDED, ("tracestate", "a=1"))
        assert parent(got) == (TRACE, SPAN, "00") and got.headers["tracestate"] == "a=1"

    @pytest.mark.parametrize("value", ["", "00-0-0-01", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01"])
    def test_a_new_trace_in_place_of_one_that_is_not_allowed(self, value: str, carrier: Carrier) -> None:
        got = received(carrier, file(ALWAYS), ("traceparent", value), ("tracestate", "a=1"))
        assert parent(got)[0] != TRACE and "tracestate" not in got.headers

    def test_one_context_where_a_client_sends_two(self, carrier: Carrier) -> None:
        got = received(carrier, file(ALWAYS), RECORDED, ("traceparent", f"00-{'1' * 32}-{SPAN}-01"))
        assert parent(got)[0] not in (TRACE, "1" * 32)

    def test_what_an_expression_decides(self, carrier: Carrier) -> None:
        text = file('randomSampling: \'request.headers["x-debug"] == "yes"\'')
        assert "traceparent" in received(carrier, text, ("x-debug", "yes")).headers
        assert "traceparent" not in received(carrier, text, ("x-debug", "no")).headers
        assert "traceparent" not in received(carrier, text).headers  # it fails


def spans(proxy: MemoryProxy) -> list[Span]:
    return [span for record in proxy.exported for span in record.spans]


def asked(text: str, *answers: bytes, request: bytes = b"GET /a?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n") -> MemoryProxy:
    proxy = MemoryProxy(text)
    client = proxy.connect()
    client.send(request)
    for answer in answers:
        proxy.upstream.answer(answer)
        proxy.advance(1.0)
    return proxy


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"


def value(span: Span, name: str) -> Any:
    return dict(span.attributes).get(name)


def test_spans_of_a_request_and_its_try() -> None:
    request, attempt = spans(asked(file(ALWAYS), OK))
    assert request.parent == "" and attempt.parent == request.context.span_id
    assert request.context.trace_id == attempt.context.trace_id
    assert (request.name, request.failure) == ("GET /", "")
    assert value(request, "url.path") == "/a" and value(request, "server.address") == "a.test"
    assert value(request, "http.request.method") == "GET" and value(request, "network.protocol.version") == "1.1"
    assert value(attempt, "server.address") == "127.0.0.1" and value(attempt, "server.port") == 9000
    assert value(attempt, "http.response.status_code") == 200


def test_each_try_is_a_span_with_its_outcome() -> None:
    retry = "        retry: {attempts: 2, codes: [503]}"
    request, first, second = spans(asked(file(ALWAYS, policies=retry), BUSY, OK))
    assert value(first, "http.response.status_code") == 503 and first.failure == "503"
    assert value(second, "http.response.status_code") == 200 and value(second, "http.request.resend_count") == 1
    assert first.context.span_id != second.context.span_id and request.failure == ""
    assert first.ended <= second.began


def test_an_answer_of_the_gateway_is_a_failure_by_its_code() -> None:
    request, *_ = spans(asked(file(ALWAYS), b"SSH-2.0-x\r\n"))
    assert request.failure == "UpstreamInvalid" and value(request, "http.response.status_code") == 502


def test_attributes_are_added_and_removed() -> None:
    text = file(
        ALWAYS,
        "attributes:",
        "  remove: [http.method, url.path]",
        "  add:",
        "  - {name: shop, expression: \"request.path + '!'\"}",
        "  - {name: none, expression: 'request.headers[\"x-none\"]'}",
        "resources:",
        "- {name: deployment, expression: '\"blue\"'}",
    )
    proxy = asked(text, OK)
    (record,) = proxy.exported
    assert isinstance(record, Traced)
    request = record.spans[0]
    assert value(request, "shop") == "/a!" and value(request, "none") is None
    assert value(request, "http.request.method") is None and value(request, "url.path") is None
    assert dict(record.resource) == {"service.name": "gatewright", "service.version": "0.1.0", "deployment": "blue"}


def test_a_policy_s_call_is_a_span_and_its_server_gets_the_context() -> None:
    policy = "        extAuthz: {host: '127.0.0.1:9000', protocol: {http: {}}}"
    proxy = MemoryProxy(file(ALWAYS, policies=policy))
    proxy.connect().send(b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n")
    question = proxy.upstream.received
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    proxy.upstream.answer(OK)
    request, call, attempt = spans(proxy)
    assert f"traceparent: 00-{request.context.trace_id}-{call.context.span_id}-01\r\n".encode() in question
    assert call.parent == attempt.parent == request.context.span_id
    assert value(call, "gatewright.backend") and value(call, "http.response.status_code") == 200


def test_a_request_that_is_not_traced_gives_none() -> None:
    assert spans(asked(file(NEVER), OK)) == []
    unrecorded = b"GET / HTTP/1.1\r\nHost: a.test\r\ntraceparent: %b\r\n\r\n" % UNRECORDED[1].encode()
    assert spans(asked(file(ALWAYS), OK, request=unrecorded)) == []


def test_a_path_that_cannot_be_asked_for_is_refused() -> None:
    run = MemoryProxy(file(ALWAYS))
    with pytest.raises(AssertionError, match="is not a path"):
        run.load(file(ALWAYS, "protocol: HTTP", 'path: "/v1 HTTP/1.1\\r\\nx: y"'))


MCP = """
frontendPolicies:
  tracing:
    host: 127.0.0.1:4317
    randomSampling: "true"
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      backends:
      - mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001}}]}
"""


def test_a_server_of_mcp_gets_the_context_in_the_message_too(carrier: Carrier) -> None:
    toy = Toy(["add"])
    client = Client(carrier.proxy(MCP), {"127.0.0.1:9001": toy})
    client.initialize()
    forged = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01", "tracestate": "a=b", "mine": 7}
    client.result("tools/call", {"name": "add", "_meta": forged})
    (message,) = [each for each in toy.got if each.get("method") == "tools/call"]
    meta = message["params"]["_meta"]
    assert meta["mine"] == 7 and "tracestate" not in meta
    version, trace, span, flags = meta["traceparent"].split("-")
    assert (version, flags) == ("00", "01") and trace != "1" * 32 and len(span) == 16


def test_a_call_of_a_tool_is_a_span_by_the_conventions_of_mcp() -> None:
    proxy = MemoryProxy(MCP)
    client = proxy.connect()
    takes = b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}'
    hello += b',"clientInfo":{"name":"t","version":"1"}}}'
    client.send(b"POST /mcp HTTP/1.1\r\nHost: a\r\n%bcontent-length: %d\r\n\r\n%b" % (takes, len(hello), hello))
    result = b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}'
    result += b',"serverInfo":{"name":"s","version":"1"}}}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    proxy.upstream.answer(head % len(result) + result)
    request, *_, call = spans(proxy)
    assert call.name == "initialize" and value(call, "mcp.method.name") == "initialize"
    assert call.parent == request.context.span_id and value(request, "mcp.method.name") == "initialize"


@pytest.mark.parametrize(
    ("sampling", "headers", "are_noted"),
    [(NEVER, b"", 0), (ALWAYS, b"", 1), (NEVER, b"traceparent: 00-%b-%b-00\r\n" % (TRACE.encode(), SPAN.encode()), 0)],
)
def test_a_request_that_is_not_traced_ends_as_any_other(sampling: str, headers: bytes, are_noted: int) -> None:
    """It is none of those that observers of few requests see."""
    run = MemoryProxy(file(sampling))
    seen: list[float] = []
    run.context.more_observers = (*run.context.more_observers, lambda x, seconds: seen.append(seconds))
    client = run.connect()
    client.send(b"GET /a HTTP/1.1\r\nHost: a.test\r\n%b\r\n" % headers)
    run.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 200 ") and len(seen) == are_noted
