"""`hostRewrite` for MCP servers and agents: unset it is Auto, also for those that are named by an address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.upstream.endpoint import Endpoint
from tests.carriers import Carrier, Request, Run
from tests.fakes.mcp_toys import BOTH
from tests.fakes.policy_run import text_of

CLIENT = "client.example:8080"


class AnyName:
    """A resolver that knows every name."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return (Endpoint("10.0.0.1", port),)


KINDS = {
    "mcp": "mcp: {targets: [{name: one, static: {host: %s, port: %s}}]}",
    "a2a": "a2a: {host: %s, port: %s}",
}
HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'


def proxy(carrier: Carrier, kind: str, host: str, port: int, policies: str) -> Run:
    backend = KINDS[kind] % (f"'{host}'", port)
    run = carrier.proxy(text_of(f"policies: {{{policies}}}\nbackends: [{{{backend}}}]"))
    run.resolve(AnyName())
    return run


AUTO, NONE = "hostRewrite: {mode: Auto}", "hostRewrite: {mode: None}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("policies", "host", "port", "seen"),
    [
        ("", "tools.example", 9000, "tools.example:9000"),
        ("", "tools.example", 80, "tools.example"),
        ("", "127.0.0.1", 9000, "127.0.0.1:9000"),
        ("", "::1", 9000, "[::1]:9000"),
        (AUTO, "127.0.0.1", 9000, "127.0.0.1:9000"),
        (NONE, "tools.example", 9000, CLIENT),
        (NONE, "127.0.0.1", 9000, CLIENT),
        ("urlRewrite: {hostname: chosen.example}", "tools.example", 9000, "chosen.example"),
    ],
)
def test_what_a_server_sees(kind: str, policies: str, host: str, port: int, seen: str, carrier: Carrier) -> None:
    run = proxy(carrier, kind, host, port, policies)
    lines = [("content-type", "application/json"), ("accept", BOTH)]
    asked = run.send(Request("POST", "/mcp", lines, HELLO, authority=CLIENT))
    assert run.arrival.received.authority == seen
    asked.cancel()
