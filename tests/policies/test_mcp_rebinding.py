"""Requests on the loopback interface that a page of somebody else may have made: `Host` and `Origin` (MCP, Transports:
DNS rebinding), and origins that `cors` allows."""

from __future__ import annotations

import pytest

from tests.fakes.memory_proxy import MemoryProxy

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    %s
    routes:
    - name: mcp
      %s
      %s
      backends: [{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9001}}]}}]
"""
LOOPBACK, OUTSIDE = ("127.0.0.1", 8080), ("192.0.2.1", 8080)
REFUSED, PASSED = b"403", b"400"
"""A request without a session that got as far as being looked at."""


def status(
    host: str,
    origin: str = "",
    local: tuple[str, int] = LOOPBACK,
    listener: str = "",
    names: str = "",
    policies: str = "",
) -> bytes:
    proxy = MemoryProxy(TEXT % (listener, names, policies))
    client = proxy.connect(local=local)
    lines = f"origin: {origin}\r\n" if origin else ""
    client.send(f"GET /mcp HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n{lines}\r\n".encode())
    return client.take().split(b" ", 2)[1]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_names_of_this_machine_pass(host: str) -> None:
    assert status(host) == PASSED
    assert status(host, "http://localhost:3000") == PASSED


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil"])
def test_other_names_may_be_a_trick(host: str) -> None:
    assert status(host) == REFUSED
    assert status(host, local=OUTSIDE) == PASSED, "elsewhere a name is what listeners and routes match"


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "http://[", "file://", "localhost"]
)
def test_pages_of_others_may_not_ask(origin: str) -> None:
    assert status("localhost:8080", origin) == REFUSED
    assert status("localhost:8080", origin, OUTSIDE) == PASSED


def test_the_names_of_a_listener_or_a_route_take_the_place_of_these() -> None:
    assert status("mcp.example", listener="hostname: mcp.example") == PASSED
    assert status("mcp.example", names="hostnames: [mcp.example]") == PASSED


NAMED = "policies: {cors: {allowOrigins: ['https://app.example', 'https://*.tools.example']}}"


@pytest.mark.parametrize("origin", ["https://app.example", "https://a.tools.example"])
def test_an_origin_that_cors_names_may_ask(origin: str) -> None:
    assert status("localhost:8080", origin, policies=NAMED) == PASSED
    assert status("evil.example:8080", origin, policies=NAMED) == REFUSED, "the name may be a trick all the same"
    assert status("localhost:8080", "https://evil.example", policies=NAMED) == REFUSED


@pytest.mark.parametrize("origins", ["'*'", "'https://*'", "'https://*', 'http://*:8080'"])
@pytest.mark.parametrize("more", ["", ", allowCredentials: true"])
def test_that_cors_allows_any_origin_names_none(origins: str, more: str) -> None:
    policies = f"policies: {{cors: {{allowOrigins: [{origins}]{more}}}}}"
    assert status("localhost:8080", "https://app.example", policies=policies) == REFUSED
    if origins == "'*'":
        return  # nothing may stand beside it
    policies = f"policies: {{cors: {{allowOrigins: [{origins}, 'https://app.example']{more}}}}}"
    assert status("localhost:8080", "https://app.example", policies=policies) == PASSED
