"""What of a response still counts when another try is asked for: nothing of one that was let go, and an accepted one
is the last."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import retry as policy
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
