"""What finishes each attempt at the last mile (`upstream/outgoing`): toys that know their answer, wait for it, or fail,
for requests, retries, mirrors, calls of policies and MCP targets alike."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dataplane.upstream.outgoing import Finisher, Outgoing, Unfinished
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy, Pending

ROUTES = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      policies: POLICIES
      backends:
      - BACKEND
"""
ONE = "{host: '127.0.0.1:9000'}"
FAR = "127.0.0.1:9000"
OTHER = "127.0.0.1:9001"
RETRY = "{retry: {attempts: 2, codes: [503], backoff: 100ms}}"
MIRROR = f"{{requestMirror: {{host: '{OTHER}'}}}}"
AUTH = f"{{extAuthz: {{host: '{OTHER}', protocol: {{http: {{}}}}}}}}"
MCP = "{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9000}}]}}"

GET = b"GET /a?b=1 HTTP/1.1\r\nhost: shop.example\r\nauthorization: mine\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"


class Token:
    """Writes a credential, which it may have to wait for."""

    needs_body = False

    def __init__(self, known: bytes = b"") -> None:
        self.known = known
        self.problem: Exception | None = None
        self.waiting: list[Pending] = []
        self.seen: list[Outgoing] = []
        self.left = 0
        """How often nobody wanted it any more."""

    def finish(self, out: Outgoing) -> Awaitable[None] | None:
        self.seen.append(out)
        if not self.known:
            return self._later(out)
        self._written(out)
        return None

    async def _later(self, out: Outgoing) -> None:
        future = Pending()
        self.waiting.append(future)
        try:
            await future
        except BaseException:
            self.left += 1
            raise
        self._written(out)

    def _written(self, out: Outgoing) -> None:
        if self.problem is not None:
            raise self.problem
        out.head.set(b"authorization", self.known)

    def come(self, known: bytes = b"", problem: Exception | None = None) -> None:
        """The token is here, or will not come."""
        self.known, self.problem = known or b"-", problem
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.set_result(None)


class Signature:
    """Covers all that is sent."""

    needs_body = True

    def finish(self, out: Outgoing) -> None:
        assert out.body is not None
        digest, host = hashlib.sha256(out.body).hexdigest().encode(), out.head.get(b"host") or b""
        out.head.add(b"x-signed", b"%b|%b" % (digest, host))


class Elsewhere:
    """Has its credential in the query."""

    needs_body = False

    def finish(self, out: Outgoing) -> None:
        out.target += b"&key=secret"


NO_TOKEN = Unfinished("BackendAuthenticationFailed", "no token")


def run(
    *finishers: Finisher, policies: str = "{}", backend: str = ONE, of: str = FAR, limits: Any = None
) -> MemoryProxy:
    """A proxy whose backend at `of` has these."""
    proxy = MemoryProxy(ROUTES.replace("POLICIES", policies).replace("BACKEND", backend), limits=limits)
    found = [each for key, each in proxy.applier.current.table.backends.items() if _is_at(each, key, of)]
    assert len(found) == 1
    found[0].finishers = finishers
    return proxy


def _is_at(plan: Any, key: str, label: str) -> bool:
    return plan.of_kind is None and any(each.label == label for each in plan.endpoints)


def asked(proxy: MemoryProxy, request: bytes = GET) -> FakeTransport:
    client = proxy.connect()
    client.send(request)
    return client


def sent(proxy: MemoryProxy) -> list[bytes]:
    return [each.received for each in proxy.connector.upstreams]


def status(client: FakeTransport) -> bytes:
    return client.received[9:12]


def test_a_token_that_is_known_costs_no_turn() -> None:
    proxy = run(Token(b"ours"))
    client = asked(proxy)
    (request,) = sent(proxy)
    assert b"\r\nauthorization: ours\r\n" in request and b"mine" not in request
    proxy.upstream.answer(OK)
    assert status(client) == b"200"


def test_nothing_is_sent_before_it_is_here() -> None:
    token = Token()
    proxy = run(token)
    client = asked(proxy)
    assert sent(proxy) == [], "no connection is held meanwhile either"
    token.come(b"ours")
    assert b"\r\nauthorization: ours\r\n" in sent(proxy)[0]
    proxy.upstream.answer(OK)
    assert status(client) == b"200"


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("problem", "text"),
    [(NO_TOKEN, b"backend authentication failed"), (ValueError("a bug"), b"internal error")],
    ids=["unfinished", "bug"],
)
def test_without_it_nothing_is_sent(waits: bool, problem: Exception, text: bytes) -> None:
    token = Token(b"" if waits else b"ours")
    token.problem = problem
    proxy = run(token)
    client = asked(proxy)
    token.come(problem=problem)
    assert sent(proxy) == [] and status(client) == b"500" and client.received.endswith(text)


def test_a_failure_is_in_the_log_with_its_reason() -> None:
    token = Token(b"ours")
    token.problem = NO_TOKEN
    proxy = run(token)
    asked(proxy)
    (line,) = proxy.log_lines()
    assert "reason=BackendAuthenticationFailed" in line and "no token" in line


def test_they_run_in_their_order_and_the_last_sees_all() -> None:
    token = Token()
    names: list[bytes | None] = []

    class Last:
        needs_body = False

        def finish(self, out: Outgoing) -> None:
            names.append(out.head.get(b"authorization"))

    proxy = run(token, Last())
    asked(proxy)
    assert names == []
    token.come(b"ours")
    assert names == [b"ours"] and len(sent(proxy)) == 1


def test_each_try_is_finished_anew() -> None:
    token = Token()
    proxy = run(token, policies=RETRY)
    client = asked(proxy)
    token.come(b"first")
    token.known = b""
    proxy.upstream.answer(BUSY)
    proxy.advance(0.2)
    assert len(token.waiting) == 1 and proxy.upstream.take().count(b"authorization") == 1
    token.come(b"second")
    again = proxy.upstream.take()
    assert b"\r\nauthorization: second\r\n" in again and b"x-retry-attempt: 1\r\n" in again and b"first" not in again
    assert [each.attempt for each in token.seen] == [0, 1]
    token.known = b""
    proxy.upstream.answer(BUSY)
    proxy.advance(0.4)
    token.come(problem=NO_TOKEN)
    assert proxy.upstream.take() == b"" and status(client) == b"500"


def test_a_stale_connection_gets_the_same_once_more() -> None:
    token = Token(b"ours")
    proxy = run(token)
    asked(proxy)
    proxy.upstream.answer(OK)
    asked(proxy)
    proxy.upstream.lose()
    assert len(token.seen) == 2 and b"authorization: ours" in proxy.upstream.received and len(sent(proxy)) == 2


def test_the_target_of_the_endpoint_is_not_the_log_s() -> None:
    proxy = run(Elsewhere(), policies=RETRY)
    asked(proxy)
    assert proxy.upstream.take().startswith(b"GET /a?b=1&key=secret HTTP/1.1\r\n")
    proxy.upstream.answer(BUSY)
    proxy.advance(0.2)
    assert proxy.upstream.take().startswith(b"GET /a?b=1&key=secret HTTP/1.1\r\n")
    proxy.upstream.answer(OK)
    assert "secret" not in "".join(proxy.log_lines())


BODY = b"hello, world"
CHUNKED = b"POST / HTTP/1.1\r\nhost: shop.example\r\ntransfer-encoding: chunked\r\n\r\n"
HASH = hashlib.sha256(BODY).hexdigest().encode()


@pytest.mark.parametrize("policies", ["{}", RETRY], ids=["once", "may be tried again"])
def test_a_signature_waits_for_the_whole_body(policies: str) -> None:
    proxy = run(Signature(), policies=policies)
    client = asked(proxy, CHUNKED + b"7\r\nhello, \r\n")
    assert sent(proxy) == []
    client.send(b"5\r\nworld\r\n0\r\n\r\n")
    first = proxy.upstream.take()
    assert b"\r\nx-signed: %b|shop.example\r\n" % HASH in first and b"hello, world" in first
    if policies == RETRY:
        proxy.upstream.answer(BUSY)
        proxy.advance(0.2)
        again = proxy.upstream.take()
        assert b"\r\nx-signed: %b|shop.example\r\n" % HASH in again and b"hello, world" in again
    proxy.upstream.answer(OK)
    assert status(client) == b"200"


def test_a_body_that_is_too_large_to_be_signed_is_refused() -> None:
    proxy = run(Signature())
    client = asked(proxy, b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\n\r\n")
    assert status(client) == b"413" and sent(proxy) == []


def test_content_that_comes_meanwhile_is_bounded_and_kept() -> None:
    token = Token()
    proxy = run(token)
    size = 1 << 20
    client = asked(proxy, b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size)
    left = size
    while client.reading and left:
        client.send(b"x" * 16_384)
        left -= 16_384
    assert 0 < left < size, "the client is stopped"
    token.come(b"ours")
    assert client.reading
    while left:
        client.send(b"x" * 16_384)
        left -= 16_384
    assert proxy.upstream.received.count(b"x" * size) == 1


def test_a_client_that_leaves_is_not_waited_for() -> None:
    token = Token()
    proxy = run(token)
    client = asked(proxy)
    client.lose()
    assert token.left == 1 and sent(proxy) == []
    token.come(b"ours")
    assert sent(proxy) == []


def test_the_request_s_deadline_holds_meanwhile() -> None:
    token = Token()
    proxy = run(token, policies="{timeouts: {request: 1s}}")
    client = asked(proxy)
    proxy.advance(1.1)
    assert status(client) == b"504" and token.left == 1
    token.come(b"ours")
    assert sent(proxy) == []


# --- copies for mirrors


def test_a_copy_waits_beside_its_request() -> None:
    token = Token()
    proxy = run(token, policies=MIRROR, of=OTHER)
    client = asked(proxy)
    (request,) = sent(proxy)
    assert b"authorization: mine" in request
    proxy.upstream.answer(OK)
    assert status(client) == b"200"
    token.come(b"ours")
    assert len(sent(proxy)) == 2 and b"authorization: ours" in sent(proxy)[1]
    proxy.upstream.answer(OK)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("problem", [NO_TOKEN, ValueError("a bug")], ids=["unfinished", "bug"])
def test_a_copy_without_it_is_not_sent_and_spoils_nothing(waits: bool, problem: Exception) -> None:
    token = Token(b"" if waits else b"ours")
    token.problem = problem
    proxy = run(token, policies=MIRROR, of=OTHER)
    client = asked(proxy)
    token.come(problem=problem)
    assert len(sent(proxy)) == 1 and proxy.context.mirrors.count == 0
    counts = {each.labels: values[0] for each, values in proxy.metrics.series() if each.metric.name == "mirrors_total"}
    assert counts == {("unfinished",): 1}
    proxy.upstream.answer(OK)
    assert status(client) == b"200"


def test_a_copy_is_signed_with_its_body() -> None:
    proxy = run(Signature(), policies=MIRROR, of=OTHER)
    asked(proxy, b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\n" + BODY)
    (copy,) = [each for each in sent(proxy) if b"x-signed" in each]
    assert b"\r\nx-signed: %b|a\r\n" % HASH in copy and copy.endswith(BODY)


def test_a_copy_that_waits_too_long_ends() -> None:
    token = Token()
    proxy = run(token, policies=MIRROR, of=OTHER)
    asked(proxy)
    proxy.upstream.answer(OK)
    proxy.advance(10.1)
    assert (token.left, proxy.context.mirrors.count) == (1, 0)
    token.come(b"ours")
    assert len(sent(proxy)) == 1


# --- calls


def test_a_call_of_a_policy_waits() -> None:
    token = Token()
    proxy = run(token, policies=AUTH, of=OTHER)
    client = asked(proxy)
    assert sent(proxy) == []
    token.come(b"ours")
    assert b"authorization: ours" in sent(proxy)[0]
    proxy.upstream.answer(OK)
    assert len(sent(proxy)) == 2 and b"authorization: mine" in sent(proxy)[1], "the request has its own"
    proxy.upstream.answer(OK)
    assert status(client) == b"200"


def test_a_credential_of_the_request_s_backend_does_not_reach_what_its_policies_call() -> None:
    proxy = run(Token(b"ours"), policies=AUTH)
    asked(proxy)
    assert b"ours" not in sent(proxy)[0]
    proxy.upstream.answer(OK)
    assert b"authorization: ours" in sent(proxy)[1]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("problem", [NO_TOKEN, ValueError("a bug")], ids=["unfinished", "bug"])
def test_a_call_without_it_is_not_sent(waits: bool, problem: Exception) -> None:
    token = Token(b"" if waits else b"ours")
    token.problem = problem
    proxy = run(token, policies=AUTH, of=OTHER)
    client = asked(proxy)
    token.come(problem=problem)
    assert sent(proxy) == [] and status(client) == b"403", "the policy fails closed"
    (line,) = proxy.log_lines()
    assert ("no token" if problem is NO_TOKEN else "a bug") in line


def ends_late(proxy: MemoryProxy, client: FakeTransport) -> None:
    proxy.advance(2.1)
    assert status(client) == b"403"


def is_left(proxy: MemoryProxy, client: FakeTransport) -> None:
    client.lose()


@pytest.mark.parametrize("end", [ends_late, is_left])
def test_a_call_that_ends_while_it_waits_leaves_nothing(end: Callable[[MemoryProxy, FakeTransport], None]) -> None:
    token = Token()
    proxy = run(token, policies=AUTH, of=OTHER)
    end(proxy, asked(proxy))
    assert token.left == 1
    token.come(b"ours")
    assert sent(proxy) == []


def test_a_call_to_an_mcp_target_waits() -> None:
    token = Token()
    proxy = run(token, backend=MCP)
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
    asked(
        proxy,
        b"POST / HTTP/1.1\r\nhost: a\r\naccept: application/json, text/event-stream\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(hello) + hello,
    )
    assert sent(proxy) == []
    token.come(b"ours")
    assert b"authorization: ours" in sent(proxy)[0]


def test_what_waited_is_freed() -> None:
    token = Token()
    proxy = run(token, policies=AUTH, of=OTHER)
    gc.collect()
    client = asked(proxy)
    token.come(problem=NO_TOKEN)
    client.lose()
    token.seen.clear()
    token.problem = None
    del client
    assert proxy.left() == []
