"""What of a response still counts when another try is asked for: nothing of one that was let go, and an accepted one
is the last."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import retry as policy
from dataplane.table.plans import Retry
from dataplane.upstream.endpoint import Endpoint
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import text_of

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
AGAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain"


class Names:
    """A resolver that knows two addresses of any name."""

    def __init__(self) -> None:
        self.found = (Endpoint("10.0.0.1", 9000), Endpoint("10.0.0.2", 9000))

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return self.found


def proxy_with(policies: str) -> MemoryProxy:
    proxy = MemoryProxy(text_of(f"policies: {{{policies}}}\nbackends: [{{host: 'origin.test:9000'}}]"))
    proxy.context.resolver = Names()  # type: ignore[assignment]
    return proxy


def test_the_body_of_a_response_that_was_let_go_asks_for_no_further_try() -> None:
    proxy = proxy_with("retry: {attempts: 3, condition: 'string(response.body).contains(\"again\")'}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(AGAIN)
    proxy.advance(1)
    too_large = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\nagain"  # has no body for the condition
    proxy.upstream.answer(too_large)
    assert client.received == too_large
    assert len(proxy.connector.upstreams) == 2


def test_an_accepted_response_that_breaks_off_while_a_step_reads_it_is_not_asked_for_again() -> None:
    """The first try is over by then: whoever answered it has done what was asked."""
    proxy = proxy_with(
        "retry: {codes: [502, 503]}, transformation: {response: {set: [{name: x-size, value: 'size(response.body)'}]}}"
    )
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nag")
    assert client.received == b""
    proxy.upstream.lose(ConnectionResetError())
    proxy.advance(1)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert len(proxy.connector.upstreams) == 1


def test_a_retry_that_says_nothing_is_one_more_try_after_a_moment() -> None:
    retry = Retry()
    assert (retry.attempts, retry.backoff, retry.codes) == (1, 0.025, frozenset())
    assert (retry.reads_body, retry.judges_body) == (False, False)


@pytest.mark.parametrize(("code", "is_taken"), [(399, False), (400, True), (599, True), (600, False), (1000, False)])
def test_codes_are_those_of_errors(code: int, is_taken: bool) -> None:
    """Gateway API, HTTPRouteRetryStatusCode."""
    config, env = traffic_pb2.Retry(codes=[503, code]), Env(clock=lambda: 0.0, random=lambda: 0.0)
    if is_taken:
        assert policy.build(config, env).codes == {503, code}
    else:
        with pytest.raises(Refused, match=f"code {code} is not between 400 and 599"):
            policy.build(config, env)


POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nagain"
BUSY = b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    ("policy", "tries"),
    [
        ("codes: [503]", 2),
        ("codes: [503], attempts: 0", 1),
        ("codes: [503], precondition: 'string(request.body) == \"again\"'", 2),
        ("codes: [503], precondition: 'string(request.body) == \"other\"'", 1),
        ("codes: [503], attempts: 0, precondition: 'true'", 1),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_whether_there_is_another_try(policy: str, tries: int, at_once: bool) -> None:
    """A precondition on the body waits for all of it."""
    proxy = proxy_with(f"retry: {{{policy}}}")
    client = proxy.connect()
    client.send(POST if at_once else POST[:-2])
    if not at_once:
        client.send(POST[-2:])
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert len(proxy.connector.upstreams) == tries
    if tries == 2:
        assert proxy.upstream.received.endswith(b"again") and client.received == b""
        proxy.upstream.answer(OK)
        assert client.received == OK
    else:
        assert client.received.startswith(b"HTTP/1.1 503 ")


def test_each_response_is_judged_by_its_own_body() -> None:
    proxy = proxy_with("retry: {attempts: 3, condition: 'string(response.body).contains(\"again\")'}")
    client = proxy.connect()
    client.send(GET)
    for answer in (AGAIN, AGAIN, AGAIN, OK):
        assert client.received == b""
        (asked,) = [each for each in proxy.connector.upstreams if each.take()]
        asked.answer(answer)
        proxy.advance(1)
    assert client.received == OK


def test_a_response_of_which_no_more_can_be_buffered_passes_as_it_comes() -> None:
    """Where a retry alone would have read it."""
    proxy = proxy_with("retry: {attempts: 1, condition: 'string(response.body).contains(\"again\")'}")
    proxy.context.body_memory.most = 0
    client = proxy.connect()
    client.send(GET)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    proxy.upstream.answer(head + b"o")
    assert client.received == head + b"o"
    proxy.upstream.answer(b"k")
    assert client.received == head + b"ok" and proxy.context.body_memory.used == 0
