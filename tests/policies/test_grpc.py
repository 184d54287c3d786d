"""gRPC through routes and policies: statuses of answers of our own, deadlines, and gRPC-Web toward HTTP/2."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from dataplane.http.h2.settings import Settings
from tests.carriers import CARRIERS, Answer, Carrier, Request, Response, Run
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_upstream import Endpoint2, Taken
from tests.fakes.h2_wire import data, headers
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.policy_run import served, text_of

PLAIN = served("")
MESSAGE = b"\0\0\0\0\x05hello"


def call(*more: tuple[str, str], content_type: str = "application/grpc+proto", body: bytes = MESSAGE) -> Request:
    return Request("POST", "/test.Echo/Say", [("content-type", content_type), ("te", "trailers"), *more], body)


# --- answers of our own


def ask(run: Run, request: Request) -> Answer:
    """The answer to a request that reaches no endpoint that answers."""
    return run.send(request).answer


def late(run: Run) -> Answer:
    asked = run.send(call())
    run.advance(1.1)
    return asked.answer


def broken(run: Run) -> Answer:
    asked = run.send(call())
    run.arrival.reset()
    return asked.answer


def unreachable(run: Run) -> Answer:
    run.refuse_connections()
    return ask(run, call())


def limited(run: Run) -> Answer:
    assert run.ask(call()).headers.get("grpc-status") is None
    return ask(run, call())


def evil(run: Run) -> Answer:
    return ask(run, call(("origin", "https://evil.example")))


def plain(run: Run) -> Answer:
    return ask(run, call())


KEY = "policies: {apiKeyAuthentication: {secretRef: {ann: {value: k}}}}"
NO_BACKEND = text_of("policies: {}")
SMALL = served("policies: {buffer: {request: {maxBytes: 4}}}")
NOWHERE = served("matches: [{path: {type: Exact, value: /other}}]")
STATUSES = {
    # file, how it comes to that, HTTP's status that it would be, reason, gRPC's status, message
    "401": (served(KEY), plain, "ApiKeyMissing", 16, "authentication failed"),
    "403": (served("policies: {csrf: {}}"), evil, "CsrfFailed", 7, "CSRF validation failed"),
    "404": (NOWHERE, plain, "RouteNotFound", 12, "route not found"),
    "413": (SMALL, plain, "BodyTooLarge", 8, "request body is too large"),
    "429": (
        served("policies: {http: {version: HTTP1}, rateLimit: {local: [{requests: 1, unit: Minutes}]}}"),
        limited,
        "RateLimited",
        8,
        "rate limit exceeded",
    ),
    "500": (NO_BACKEND, plain, "NoValidBackend", 14, "no valid backends"),
    "502": (
        served("policies: {http: {version: HTTP1}}"),
        broken,
        "UpstreamFailed",
        14,
        "upstream closed the connection before it answered",
    ),
    "503": (PLAIN, unreachable, "ConnectFailed", 14, "upstream connection failed"),
    "504": (
        served("policies: {http: {version: HTTP1}, timeouts: {request: 1s}}"),
        late,
        "RequestDeadline",
        4,
        "request timeout",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "ask", "reason", "status", "message"), STATUSES.values(), ids=STATUSES)
def test_a_failure_of_ours_is_a_status_of_grpc(
    text: str, ask: object, reason: str, status: int, message: str, carrier: Carrier
) -> None:
    run = carrier.proxy(text)
    assert callable(ask)
    answer = ask(run)
    assert (answer.status, answer.body, answer.ended) == (200, b"", True)
    assert answer.headers["content-type"] == "application/grpc+proto"
    assert (answer.headers["grpc-status"], answer.headers["grpc-message"]) == (str(status), message)
    line = run.new_lines()[-1]
    assert " http.status=200 " in line and f" grpc.status={status} " in line and f" reason={reason} " in line
    series = [
        (each.labels[-1], values[0]) for each, values in run.memory.metrics.series() if "grpc" in each.metric.name
    ]
    assert (str(status), 1) in series
    outcomes = [each.labels[-2:] for each, _ in run.memory.metrics.series() if each.metric.name == "requests_total"]
    assert ("200", reason) in outcomes


def test_headers_of_the_answer_and_response_steps(carrier: Carrier) -> None:
    """Lines of the reply's own and of steps that see it are as of any answer."""
    users = "['ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=']"
    run = carrier.proxy(served(f"policies: {{basicAuthentication: {{users: {users}}}, cors: {{allowOrigins: ['*']}}}}"))
    origin = ("origin", "https://a.example")
    ours = ask(run, Request("POST", "/", [("content-type", "application/json"), origin], b"{}"))
    theirs = ask(run, call(origin))
    assert (ours.status, theirs.status) == (401, 200)
    expected = ours.headers.but("content-length", "content-type", "date")
    assert theirs.headers.but("content-length", "content-type", "date", "grpc-status", "grpc-message") == expected
    assert "www-authenticate" in expected and expected["access-control-allow-origin"] == "*"


OTHERS = [
    call(content_type="application/grpcx"),
    call(content_type="application/json; x=application/grpc"),
    Request("HEAD", "/", [("content-type", "application/grpc")]),
    Request("OPTIONS", "/", [("content-type", "application/grpc")]),
    Request("GET", "/", [("x-content-type", "application/grpc")]),
]


@pytest.mark.parametrize("request_", OTHERS, ids=str)
def test_others_get_http(request_: Request, carrier: Carrier) -> None:
    answer = ask(carrier.proxy(NOWHERE), request_)
    assert answer.status == 404 and "grpc-status" not in answer.headers


def test_what_is_no_failure_stays(carrier: Carrier) -> None:
    redirect = text_of("policies: {directResponse: {status: 302}}")
    seen = carrier.proxy(redirect).carry(call())
    assert seen.answer.status == 302 and "grpc-status" not in seen.answer.headers


def test_a_head_alone_is_answered_so_too(carrier: Carrier) -> None:
    answer = ask(carrier.proxy(NOWHERE), Request("POST", "/", [("content-type", "application/grpc-web")]))
    assert (answer.status, answer.headers["grpc-status"]) == (200, "12")
    assert answer.headers["content-type"] == "application/grpc-web"


def test_expressions_see_the_status() -> None:
    proxy = MemoryProxy(NOWHERE + "frontendPolicies: {accessLog: {add: {said: response.grpcStatus}}}\n")
    proxy.connect().send(wire(b"application/grpc", MESSAGE))
    assert proxy.log_lines()[-1].rstrip().endswith(" said=12")


# --- an endpoint that speaks HTTP/2

H2 = served("policies: {http: {version: HTTP2}}", log="{said: response.grpcStatus}")


def wire(content_type: bytes, body: bytes, more: bytes = b"") -> bytes:
    """A request of HTTP/1.1."""
    head = b"POST /test.Echo/Say HTTP/1.1\r\nHost: a\r\nContent-Type: %b\r\n" % content_type
    return head + b"Content-Length: %d\r\n%b\r\n%b" % (len(body), more, body)


class Web:
    """One call of a client of HTTP/1.1 to an endpoint of HTTP/2."""

    def __init__(self, content_type: bytes, body: bytes, more: bytes = b"", text: str = H2) -> None:
        self.proxy = MemoryProxy(text)
        self.client: FakeTransport = self.proxy.connect()
        self.client.send(wire(content_type, body, more))
        self.far = Endpoint2(self.proxy.upstream)

    @property
    def request(self) -> Taken:
        return self.far.requests[0]

    def answer(self, trailers: bytes, *messages: bytes) -> None:
        self.far.head(self.request, 200, b"\r\ncontent-type: application/grpc+proto\r\nx-a: b\r\n")
        for each in messages:
            self.far.content(self.request, each)
        self.far.trailers(self.request, trailers)

    def read(self) -> tuple[bytes, list[bytes]]:
        """Head and chunks."""
        head, _, rest = self.client.take().partition(b"\r\n\r\n")
        found = []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            found.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        assert found.pop() == b""
        return head, found

    def line(self) -> str:
        return self.proxy.log_lines()[-1]


TRAILERS = b"\r\ngrpc-status: 5\r\ngrpc-message: no\r\nx-b-bin: AAE\r\n"
LAST = b"grpc-status:5\r\ngrpc-message:no\r\nx-b-bin:AAE\r\n"


def test_grpc_web_becomes_grpc() -> None:
    web = Web(b"application/grpc-web+proto", MESSAGE, b"grpc-accept-encoding: gzip\r\nx-grpc-web: 1\r\n")
    low = web.request.head.low
    assert b"\r\ncontent-type: application/grpc+proto\r\n" in low and b"\r\ngrpc-accept-encoding: gzip\r\n" in low
    assert web.request.head.takes_trailers and (web.request.content, web.request.done) == (MESSAGE, True)
    web.answer(TRAILERS, MESSAGE)
    head, chunks = web.read()
    assert head.startswith(b"HTTP/1.1 200 ") and b"content-type: application/grpc-web+proto" in head
    assert b"".join(chunks) == MESSAGE + b"\x80" + len(LAST).to_bytes(4) + LAST
    assert " grpc.status=5 " in web.line() and web.line().rstrip().endswith(" said=5")


def test_a_client_of_grpc_web_goes_on_when_the_endpoint_takes_more() -> None:
    proxy = MemoryProxy(H2)
    client = proxy.connect()
    client.send(wire(b"application/grpc-web", b"").replace(b"Length: 0", b"Length: 2000000"))
    far = Endpoint2(proxy.upstream, settings=Settings(stream_window=65_535), reads=False)
    (request,) = far.requests
    sent = 0
    while client.reading:
        client.send(b"x" * 50_000)
        sent += 50_000
        assert sent < 2_000_000, "it is not read without end"
    far.turn()
    assert len(request.content) == 65_535
    far.reads = True
    far.codec.acknowledge(request.stream, 65_535)
    far.turn()
    assert len(request.content) == sent and client.reading
    client.send(b"x" * (2_000_000 - sent))
    far.turn()
    assert len(request.content) == 2_000_000 and request.done


def test_trailers_of_a_grpc_web_call_end_it() -> None:
    """A call has none, but a client of HTTP/1.1 may send some behind its chunks: they go no further."""
    proxy = MemoryProxy(H2)
    client = proxy.connect()
    head = wire(b"application/grpc-web", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    client.send(head + b"%x\r\n%b\r\n0\r\nx-end: 1\r\n\r\n" % (len(MESSAGE), MESSAGE))
    (request,) = Endpoint2(proxy.upstream).requests
    assert (request.content, request.done) == (MESSAGE, True)


def test_grpc_web_text_becomes_grpc() -> None:
    """Pieces with their own padding both ways: no message waits for another."""
    body = b64encode(MESSAGE[:4]) + b64encode(MESSAGE[4:])
    web = Web(b"application/grpc-web-text", body)
    assert b"\r\ncontent-type: application/grpc\r\n" in web.request.head.low
    assert web.request.head.length in (-1, len(MESSAGE))
    assert (web.request.content, web.request.done) == (MESSAGE, True)
    web.answer(TRAILERS, MESSAGE, MESSAGE)
    head, chunks = web.read()
    assert b"content-type: application/grpc-web-text+proto" in head
    expected = MESSAGE * 2 + b"\x80" + len(LAST).to_bytes(4) + LAST
    assert b"".join(map(b64decode, chunks)) == expected


def test_a_status_without_messages_stays_in_the_head() -> None:
    web = Web(b"application/grpc-web", MESSAGE)
    web.far.answer(web.request, 200, b"", b"\r\ncontent-type: application/grpc\r\ngrpc-status: 12\r\n")
    answer = web.client.take()
    assert b"\r\ngrpc-status: 12\r\n" in answer and b"\r\ncontent-length: 0\r\n" in answer
    assert b"\r\ncontent-type: application/grpc-web\r\n" in answer
    assert " grpc.status=12 " in web.line()


def test_an_answer_that_is_no_grpc_passes() -> None:
    web = Web(b"application/grpc-web-text", b64encode(MESSAGE))
    web.far.answer(web.request, 404, b"<p>", b"\r\ncontent-type: text/html\r\n")
    answer = web.client.take()
    assert answer.startswith(b"HTTP/1.1 404 ") and answer.endswith(b"3\r\n<p>\r\n0\r\n\r\n") and b"text/html" in answer
    assert "grpc.status" not in web.line()


@pytest.mark.parametrize("body", [b"AAAA!AAA", b"AAAAA"], ids=["no base64", "cut within a group"])
def test_malformed_text(body: bytes) -> None:
    web = Web(b"application/grpc-web-text", body)
    answer = web.client.take()
    assert answer.startswith(b"HTTP/1.1 200 ") and b"\r\ngrpc-status: 13\r\n" in answer
    assert not web.far.requests and " reason=BadRequest " in web.line()


def test_malformed_text_after_the_answer_has_begun() -> None:
    """Nothing of it may pass for the whole."""
    proxy = MemoryProxy(H2)
    client = proxy.connect()
    client.send(wire(b"application/grpc-web-text", b"A" * 100)[:-96])
    far = Endpoint2(proxy.upstream)
    far.head(far.requests[0], 200, b"\r\ncontent-type: application/grpc\r\n")
    client.send(b"!" * 96)
    far.turn()
    assert far.requests[0].reset is not None and not client.open
    assert not client.take().endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("clients", ["http1", "http2"])
def test_toward_http1_it_passes_untouched(clients: str) -> None:
    run = CARRIERS[clients].proxy(served("policies: {http: {version: HTTP1}}"))
    body = b64encode(MESSAGE)
    seen = run.carry(call(content_type="application/grpc-web-text", body=body))
    assert (seen.received.headers["content-type"], seen.received.body) == ("application/grpc-web-text", body)
    assert seen.answer.body == b"ok"


def test_a_stale_connection_sends_the_call_again() -> None:
    """Each try is translated anew."""
    web = Web(b"application/grpc-web-text", b64encode(MESSAGE))
    web.far.reset(web.request, 7)  # REFUSED_STREAM
    again = web.far.requests[1]
    assert (again.content, again.done) == (MESSAGE, True)
    web.far.answer(again, 200, b"", b"\r\ncontent-type: application/grpc\r\ngrpc-status: 0\r\n")
    assert b"\r\ngrpc-status: 0\r\n" in web.client.take()


def test_steps_that_read_the_body_see_what_the_client_sees() -> None:
    reading = "policies: {http: {version: HTTP2}, buffer: {request: {maxBytes: 100}, response: {maxBytes: 100}}}"
    web = Web(b"application/grpc-web", MESSAGE, text=served(reading))
    assert web.request.content == MESSAGE
    web.answer(TRAILERS, MESSAGE)
    assert web.client.take().endswith(b"\r\n0\r\n\r\n")
    assert " grpc.status=5 " in web.line()


STATUS_LINES = {
    "of trailers": (TRAILERS, "5"),
    "no number": (b"\r\ngrpc-status: abc\r\n", "2"),
    "escapes": (b"\r\ngrpc-status: 0%0d%0agrpc-status: 1\r\n", "2"),
    "many digits": (b"\r\ngrpc-status: 99999999999999999999\r\n", "2"),
    "unknown": (b"\r\ngrpc-status: 4000000000\r\n", "4000000000"),
    "none": (b"\r\nx-a: b\r\n", ""),
}


@pytest.mark.parametrize(("trailers", "status"), STATUS_LINES.values(), ids=STATUS_LINES)
def test_statuses_of_endpoints(trailers: bytes, status: str) -> None:
    web = Web(b"application/grpc", MESSAGE, b"TE: trailers\r\n")
    web.answer(trailers, MESSAGE)
    assert (f" grpc.status={status} " in web.line()) if status else ("grpc.status" not in web.line())
    assert web.line().rstrip().endswith(f" said={status}") or not status
    labels = [each.labels[-1] for each, _ in web.proxy.metrics.series() if each.metric.name == "grpc_requests_total"]
    assert labels == [{"": "none", "4000000000": "other"}.get(status, status)]


# --- deadlines

DEADLINES = {
    # grpc-timeout, timeouts.request, seconds until the end or None
    "its own": ("500m", "", 0.5),
    "the smaller: its own": ("1S", "2s", 1.0),
    "the smaller: the policy's": ("1M", "2s", 2.0),
    "very long": ("99999999H", "", None),
    "very long beside a policy": ("99999999H", "2s", 2.0),
    "malformed": ("1x", "", None),
    "malformed beside a policy": ("123456789S", "2s", 2.0),
}


@pytest.mark.parametrize(("timeout", "policy", "due"), DEADLINES.values(), ids=DEADLINES)
def test_deadlines(timeout: str, policy: str, due: float | None, carrier: Carrier) -> None:
    timeouts = f", timeouts: {{request: {policy}}}" if policy else ""
    run = carrier.proxy(served(f"policies: {{http: {{version: HTTP1}}{timeouts}}}"))
    asked = run.send(call(("grpc-timeout", timeout)))
    assert run.arrival.received.headers["grpc-timeout"] == timeout
    if due is None:
        run.advance(10_000)
        assert asked.answer.status is None
        run.serve()
        assert asked.answer.status == 200
        return
    run.advance(due * 0.9)
    assert asked.answer.status is None
    run.advance(due * 0.1 + 0.05)
    assert asked.answer.headers["grpc-status"] == "4" and run.arrival.is_cancelled


OF_A_LISTENER = """
binds:
- port: 8080
  listeners:
  - policies: {timeouts: {request: 1s}}
    routes:
    - matches: [{grpc: {}}]
      policies: {http: {version: HTTP1}}
      backends: [{host: "127.0.0.1:9000"}]
"""


@pytest.mark.parametrize(("timeout", "due"), [(None, None), ("2S", 2.0), ("1x", None)])
def test_a_timeout_of_http_routes_does_not_concern_grpc_routes(
    timeout: str | None, due: float | None, carrier: Carrier
) -> None:
    """One that a listener has for all its routes: `timeouts` is for HTTPRoutes only."""
    run = carrier.proxy(OF_A_LISTENER)
    asked = run.send(call(*([("grpc-timeout", timeout)] if timeout else [])))
    run.advance(1.9 if due else 10_000)
    assert asked.answer.status is None
    if due:
        run.advance(0.2)
        assert asked.answer.headers["grpc-status"] == "4"
    else:
        run.serve()
        assert asked.answer.status == 200


def test_a_request_that_is_no_call_has_no_such_deadline(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    asked = run.send(call(("grpc-timeout", "1S"), content_type="application/json"))
    run.advance(5)
    run.serve()
    assert asked.answer.status == 200


def test_a_deadline_in_the_middle_of_a_response_is_a_status() -> None:
    proxy = MemoryProxy(H2)
    client = FrameClient(proxy)
    lines = {b":method": b"POST", b":scheme": b"http", b":path": b"/a", b":authority": b"a"}
    fields: dict[bytes, bytes] = {**lines, b"content-type": b"application/grpc", b"grpc-timeout": b"1S"}
    client.send(headers(1, list(fields.items()), end=False), data(1, MESSAGE, end=False))
    far = Endpoint2(proxy.upstream)
    far.head(far.requests[0], 200, b"\r\ncontent-type: application/grpc\r\n")
    far.content(far.requests[0], MESSAGE)
    proxy.advance(1.1)
    said = client.take()
    assert [each.kind for each in said] == ["head", "data", "head", "reset"]
    assert said[2].end and said[2].headers[b"grpc-status"] == b"4"
    assert said[3].value == 0  # the rest of the request is not wanted
    far.turn()
    assert far.requests[0].reset is not None
    assert " grpc.status=4 " in proxy.log_lines()[-1] and " reason=RequestDeadline " in proxy.log_lines()[-1]


def test_a_deadline_does_not_end_a_response_of_a_known_length_early() -> None:
    """RFC 9113 8.1.1: it would be malformed."""
    proxy = MemoryProxy(H2)
    client = FrameClient(proxy)
    lines = {b":method": b"POST", b":scheme": b"http", b":path": b"/a", b":authority": b"a"}
    fields: dict[bytes, bytes] = {**lines, b"content-type": b"application/grpc", b"grpc-timeout": b"1S"}
    client.send(headers(1, list(fields.items()), end=False), data(1, MESSAGE, end=True))
    far = Endpoint2(proxy.upstream)
    far.head(far.requests[0], 200, b"\r\ncontent-type: application/grpc\r\ncontent-length: 100\r\n")
    far.content(far.requests[0], MESSAGE)
    proxy.advance(1.1)
    said = client.take()
    assert [each.kind for each in said] == ["head", "data", "reset"] and said[2].value == 8  # CANCEL
    assert " reason=RequestDeadline " in proxy.log_lines()[-1]


# --- browsers

PAGE = Path(__file__).parents[2] / "docs/grpc.md"
EXAMPLES = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if text.startswith("binds:")]


def test_the_page_s_example_of_a_route() -> None:
    proxy = MemoryProxy(EXAMPLES[0])
    call = wire(b"application/grpc", MESSAGE).replace(b"test.Echo/Say", b"shop.Orders/%b")
    for method, reads in ((b"Create", False), (b"List", True)):
        proxy.connect().send((call % method).replace(b"Host: a\r\n", b"Host: grpc.example.com\r\n"))
        request = Endpoint2(proxy.upstream).requests[0]
        assert (request.content, b"\r\ntier: read\r\n" in request.head.block) == (MESSAGE, reads)


def test_a_browser_calls_by_the_page_s_example() -> None:
    """The preflight, a call, and a refusal whose status the script may read."""
    origin = b"Origin: https://shop.example.com\r\n"
    web = Web(b"application/grpc-web+proto", MESSAGE, origin + b"x-grpc-web: 1\r\n", EXAMPLES[1])
    asking = b"Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type,x-grpc-web\r\n"
    other = web.proxy.connect()
    other.send(b"OPTIONS /test.Echo/Say HTTP/1.1\r\nHost: a\r\n" + origin + asking + b"\r\n")
    preflight = other.take().lower()
    assert preflight.startswith(b"http/1.1 204 ") and b"x-grpc-web" in preflight and b"post" in preflight
    web.answer(b"\r\ngrpc-status: 0\r\n", MESSAGE)
    head, chunks = web.read()
    assert b"access-control-allow-origin: https://shop.example.com" in head
    assert b"access-control-expose-headers: grpc-status, grpc-message" in head
    assert b"".join(chunks).startswith(MESSAGE + b"\x80")
    web.client.send(wire(b"application/grpc-web+proto", MESSAGE, origin))
    web.far.turn()
    web.far.reset(web.far.requests[1], 2)
    refused = web.client.take()
    assert b"\r\ngrpc-status: 14\r\n" in refused
    assert b"access-control-expose-headers: grpc-status, grpc-message" in refused


# --- attacks


@pytest.mark.parametrize("is_text", [False, True], ids=["binary", "text"])
def test_a_million_bytes_of_trailers_in_a_request(is_text: bool) -> None:
    """The endpoint's to judge: they pass as the content that they are, and nothing is held of them."""
    body = MESSAGE + b"\x80" + (1 << 20).to_bytes(4) + b"a" * (1 << 20)
    proxy = MemoryProxy(H2)
    client = proxy.connect()
    sent = wire(
        b"application/grpc-web-text" if is_text else b"application/grpc-web", b64encode(body) if is_text else body
    )
    client.send(sent[:1000])
    far = Endpoint2(proxy.upstream)
    for at in range(1000, len(sent), 10_000):
        client.send(sent[at : at + 10_000])
        far.turn()
    assert (far.requests[0].content, far.requests[0].done) == (body, True)


def test_trailers_of_an_endpoint_without_end() -> None:
    web = Web(b"application/grpc-web", MESSAGE)
    web.far.head(web.request, 200, b"\r\ncontent-type: application/grpc\r\n")
    web.far.trailers(web.request, b"\r\n" + b"x-a: %b\r\n" % (b"a" * 4000) * 260)
    assert not web.client.open and not web.client.take().endswith(b"0\r\n\r\n")
    assert " reason=UpstreamFailed " in web.line()


def test_grpc_over_http1_from_end_to_end(carrier: Carrier) -> None:
    """Nobody asked for HTTP/2: what an endpoint of HTTP/1.1 answers passes, with its trailers."""
    run = carrier.proxy(served("policies: {http: {version: HTTP1}}"))
    seen = run.carry(
        call(), Response(200, [("content-type", "application/grpc")], MESSAGE, [("grpc-status", "9")], False)
    )
    assert seen.answer.body == MESSAGE and " grpc.status=9 " in seen.line


def test_grpc_over_http1_goes_out_over_http2() -> None:
    web = Web(b"application/grpc", MESSAGE, text=PLAIN)
    assert web.request.head.takes_trailers and web.request.content == MESSAGE
    web.answer(b"\r\ngrpc-status: 0\r\n", MESSAGE)
    assert b"\r\n0\r\n" in web.client.take() and " grpc.status=0 " in web.line()


def test_a_client_that_leaves_cancels_the_call() -> None:
    web = Web(b"application/grpc-web-text", b64encode(MESSAGE))
    web.client.lose()
    web.far.turn()
    assert web.request.reset is not None
    assert " http.status=499 " in web.line() and "grpc.status" not in web.line()
    labels = [each.labels[-1] for each, _ in web.proxy.metrics.series() if each.metric.name == "grpc_requests_total"]
    assert labels == ["none"]


def test_a_slow_browser_stops_the_endpoint() -> None:
    web = Web(b"application/grpc-web-text", b64encode(MESSAGE))
    web.far.head(web.request, 200, b"\r\ncontent-type: application/grpc\r\n")
    web.client.protocol.pause_writing()
    for _ in range(100):
        web.far.content(web.request, b"a" * 10_000)
    held = len(web.client.take())
    assert held < 200_000
    web.client.protocol.resume_writing()
    web.far.turn()
    web.far.trailers(web.request, b"\r\ngrpc-status: 0\r\n")
    web.far.turn()
    assert " grpc.status=0 " in web.line()
