"""Which protocols a client may switch to, and TRACE: from YAML to HTTP."""

from __future__ import annotations

import pytest

from gatewright.api.standalone import standalone
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET as GET_FIELDS
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.policy_run import served

GET = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: %b\r\n\r\n"
TRACE = b"TRACE / HTTP/1.1\r\nhost: a\r\n\r\n"


def asks(policies: str, offered: bytes) -> bytes:
    """The `upgrade` that an endpoint is asked for; b"" for none."""
    proxy = MemoryProxy(served(f"policies: {{{policies}}}"))
    client = proxy.connect()
    client.send(GET % offered)
    (line,) = [line for line in proxy.upstream.take().split(b"\r\n") if line.lower().startswith(b"upgrade:")] or [b""]
    return line.partition(b": ")[2]


@pytest.mark.parametrize(
    ("policies", "offered", "asked"),
    [
        ("", b"websocket", b"websocket"),
        ("", b"WebSocket", b"websocket"),
        ("", b"spdy/3.1", b""),
        ("", b"spdy/3.1, websocket", b"websocket"),
        ("upgrades: {protocols: [spdy/3.1]}", b"SPDY/3.1", b"spdy/3.1"),
        ("upgrades: {protocols: [spdy/3.1]}", b"websocket", b""),
        ("upgrades: {protocols: [websocket, spdy/3.1]}", b"a,spdy/3.1 , websocket", b"spdy/3.1, websocket"),
        ("upgrades: {protocols: []}", b"websocket", b""),
    ],
)
def test_what_a_client_may_switch_to(policies: str, offered: bytes, asked: bytes) -> None:
    assert asks(policies, offered) == asked


def test_an_upgrade_that_is_left_out_leaves_an_ordinary_request() -> None:
    proxy = MemoryProxy(served(""))
    client = proxy.connect()
    client.send(GET % b"chat")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert (got := client.take()).startswith(b"HTTP/1.1 200 ") and got.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    ("matches", "status"),
    [("", b"405"), ("matches: [{method: GET}]", b"404"), ("matches: [{method: TRACE}]", b"200"),
     ("matches: [{path: {value: /}}, {method: TRACE}]", b"200")],
)  # fmt: skip
def test_trace_needs_a_match_that_names_it(matches: str, status: bytes) -> None:
    proxy = MemoryProxy(served(matches))
    client = proxy.connect()
    client.send(TRACE)
    if status == b"200":
        assert proxy.upstream.take().startswith(TRACE[:16])
        return
    got = client.take()
    assert got.startswith(b"HTTP/1.1 " + status)
    assert (b"\r\nallow: GET, HEAD, POST, " in got) == (status == b"405")


@pytest.mark.parametrize("name", ["h2c", "H2", "h3"])
def test_http_itself_cannot_be_named(name: str) -> None:
    (problem,) = standalone.load(served(f"policies: {{upgrades: {{protocols: [a, {name}]}}}}"), "gw.yaml").problems
    assert "policies.upgrades.protocols[1]: must not be one of h2c, h2, h3" in str(problem)


@pytest.mark.parametrize(("policies", "passes"), [("", False), ("upgrades: {protocols: [Chat]}", True)])
def test_extended_connect_is_refused_where_it_is_not_allowed(policies: str, passes: bool) -> None:
    proxy = Http1Endpoints(served(f"policies: {{{policies}}}"))
    client = FrameClient(proxy)
    client.send(headers(1, ((b":method", b"CONNECT"), (b":protocol", b"chat"), *GET_FIELDS[1:]), end=False))
    if passes:
        assert proxy.upstream.received.endswith(b"\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n")
    else:
        assert client.take()[0] == Said("head", 1, 501)
        assert " reason=UpgradeNotAllowed " in proxy.log_lines()[0]
        client.send(headers(3, GET_FIELDS))
        assert len(proxy.connector.upstreams) == 1, "other requests of this connection go on"
