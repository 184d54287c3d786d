"""Connections whose bytes pass as they are, in memory: both directions, their ends, what goes wrong, and the log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.server.raw.connection import IDLE_TIMEOUT, LINGER
from dataplane.telemetry import connections
from dataplane.telemetry.connections import ConnectionRecord
from gatewright.api.standalone import standalone
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy


def config(*backends: str, more: str = "") -> str:
    items = ", ".join(backends or ('{host: "127.0.0.1:9001"}',))
    return f"""
binds:
- port: 9000
  listeners:
  - name: db
    protocol: TCP
    tcpRoutes:
    - name: main
      backends: [{items}]
{more}"""


@pytest.fixture
def proxy() -> MemoryProxy:
    return MemoryProxy(config())


def end_of(proxy: MemoryProxy) -> str:
    """The one line of the access log, from its endpoint on, without the time it took."""
    (line,) = proxy.log_lines()
    assert "\tinfo\tconnection\tgateway=default/standalone listener=db" in line
    return line.partition(" src.addr=192.0.2.7 ")[2].partition(" duration=")[0]


def test_bytes_pass_both_ways_and_a_server_may_speak_first(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.upstream.send(b"220 hello\r\n")
    assert client.take() == b"220 hello\r\n"
    client.send(b"\x00\xff")
    assert proxy.upstream.take() == b"\x00\xff"


def test_each_direction_ends_by_itself(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    client.send(b"question")
    client.half_close()
    assert proxy.upstream.eof and client.open
    proxy.upstream.send(b"answer")
    proxy.upstream.half_close()
    assert (client.take(), client.open, client.aborted) == (b"answer", False, False)
    assert (proxy.upstream.open, proxy.upstream.aborted) == (False, False)
    assert end_of(proxy) == "protocol=tcp received.bytes=8 sent.bytes=6"


def test_the_endpoint_may_end_first(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.upstream.half_close()
    assert client.eof and client.open
    client.send(b"last")
    assert proxy.upstream.take() == b"last"
    client.half_close()
    assert not client.open and not proxy.upstream.open
    assert end_of(proxy) == "protocol=tcp received.bytes=4 sent.bytes=0"


def test_nothing_is_read_before_there_is_an_endpoint(proxy: MemoryProxy) -> None:
    proxy.connector.hold = True
    client = proxy.connect()
    assert not client.reading
    client.send(b"early")  # a transport gives on what it had read already
    client.half_close()
    assert client.open
    proxy.connector.release()
    assert (proxy.upstream.take(), proxy.upstream.eof, client.reading) == (b"early", True, True)


@pytest.mark.parametrize("side", ["client", "endpoint"])
def test_a_side_that_reads_slowly_stops_the_other(proxy: MemoryProxy, side: str) -> None:
    client = proxy.connect()
    ends: tuple[FakeTransport, FakeTransport] = (client, proxy.upstream)
    slow, fast = ends if side == "client" else ends[::-1]
    slow.protocol.pause_writing()
    assert not fast.reading and slow.reading
    slow.protocol.resume_writing()
    assert fast.reading


def test_a_client_that_resets_resets_the_endpoint(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    client.lose(ConnectionResetError("peer"))
    assert proxy.upstream.aborted
    assert end_of(proxy) == 'protocol=tcp received.bytes=0 sent.bytes=0 error="peer" reason=ClientReset'


def test_an_endpoint_that_resets_resets_the_client(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.upstream.lose(ConnectionResetError("peer"))
    assert client.aborted
    assert end_of(proxy) == 'protocol=tcp received.bytes=0 sent.bytes=0 error="peer" reason=UpstreamReset'


def test_silence_ends_a_connection_and_a_byte_prolongs_it(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.advance(IDLE_TIMEOUT - 1)
    client.send(b".")
    proxy.advance(IDLE_TIMEOUT - 1)
    assert client.open
    proxy.advance(2)
    assert client.aborted and proxy.upstream.aborted
    assert end_of(proxy) == "protocol=tcp received.bytes=1 sent.bytes=0 reason=IdleTimeout"


def test_the_idle_timeout_is_a_limit_of_the_gateway() -> None:
    proxy = MemoryProxy(config(more="frontendPolicies: {limits: {streamIdleTimeout: 5s}}\n"))
    client = proxy.connect()
    proxy.advance(6)
    assert client.aborted


def test_a_side_that_never_takes_the_rest_is_cut(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    upstream = proxy.upstream
    closed: list[FakeTransport] = []
    upstream.close = lambda: closed.append(upstream)  # type: ignore[method-assign]  # its buffer is not empty
    client.half_close()
    upstream.send(b"x")
    client.lose()
    assert closed and upstream.open
    del upstream.close
    proxy.advance(LINGER + 1)
    assert upstream.aborted


def test_other_endpoints_are_tried_before_any_byte() -> None:
    proxy = MemoryProxy(config())
    proxy.connector.refuse = "connection refused"
    client = proxy.connect()
    assert client.aborted
    assert end_of(proxy) == (
        'protocol=tcp received.bytes=0 sent.bytes=0 error="connection refused" reason=ConnectFailed'
    )
    assert len(proxy.connector.dialled) == 1  # there is one endpoint


def test_backends_are_chosen_by_weight() -> None:
    proxy = MemoryProxy(config('{host: "127.0.0.1:1", weight: 1}', '{host: "127.0.0.1:2", weight: 3}'))
    draws = iter([0.0, 0.24, 0.25, 0.99])
    proxy.context.random = lambda: next(draws)
    for _ in range(4):
        proxy.connect()
    assert [endpoint.port for endpoint in proxy.connector.dialled] == [1, 1, 2, 2]


def test_without_weight_there_is_no_backend() -> None:
    proxy = MemoryProxy(config('{host: "127.0.0.1:1", weight: 0}'))
    client = proxy.connect()
    assert client.aborted
    assert end_of(proxy) == "protocol=tcp received.bytes=0 sent.bytes=0 reason=NoValidBackend"


def test_a_listener_without_route_closes() -> None:
    proxy = MemoryProxy("binds: [{port: 9000, listeners: [{name: db, protocol: TCP}]}]")
    client = proxy.connect()
    assert client.aborted
    assert end_of(proxy) == "protocol=tcp received.bytes=0 sent.bytes=0 reason=RouteNotFound"


def test_connections_and_bytes_are_counted(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    client.send(b"12345")
    proxy.upstream.send(b"123")
    counter, slots = proxy.metrics.counter, proxy.metrics.slots
    assert slots[counter("raw_connections_active", "tcp")] == 1
    client.half_close()
    proxy.upstream.half_close()
    place = ("default/standalone", "db")
    assert slots[counter("raw_connections_active", "tcp")] == 0
    assert slots[counter("raw_connections_total", *place, "tcp", "Ended")] == 1
    assert slots[counter("raw_received_bytes_total", *place)] == 5
    assert slots[counter("raw_sent_bytes_total", *place)] == 3
    assert slots[counter("upstream_connections_active")] == 0
    assert slots[counter("downstream_connections_active", "bind/default/standalone/9000")] == 0


def test_a_swap_leaves_connections_alone_and_routes_new_ones(proxy: MemoryProxy) -> None:
    first = proxy.connect()
    old = proxy.upstream
    proxy.load(config('{host: "127.0.0.1:9002"}'))
    first.send(b"still")
    assert old.take() == b"still"
    proxy.connect()
    assert [endpoint.port for endpoint in proxy.connector.dialled] == [9001, 9002]


def test_a_port_may_speak_another_protocol_after_a_swap(proxy: MemoryProxy) -> None:
    proxy.load("binds: [{port: 9000, listeners: [{name: db, protocol: HTTP}]}]")
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_server_name_cannot_forge_a_field(as_json: bool) -> None:
    record = ConnectionRecord("tls", "192.0.2.7", 1.0, server_name='a" reason=Forged\n', reason="RouteNotFound")
    line = (connections.json_line if as_json else connections.text_line)(record, 0.5, 0.0)
    assert line.count("\n") == 1
    if as_json:
        fields: dict[str, Any] = json.loads(line)
        assert (fields["tls.sni"], fields["reason"]) == ('a" reason=Forged\n', "RouteNotFound")
        assert fields["time"] == "1970-01-01T00:00:00.000Z"
    else:
        assert 'tls.sni="a\\" reason=Forged\\n" protocol=tls' in line


def test_unusual_ends_have_lines_as_json_too() -> None:
    record = ConnectionRecord("udp", "192.0.2.7", 1.0, endpoint="10.0.0.1:53", received=3, sent=4, detail="why")
    fields = json.loads(connections.json_line(record, 0.25, 1.5))
    assert fields == {
        "level": "info",
        "time": "1970-01-01T00:00:01.500Z",
        "scope": "connection",
        "endpoint": "10.0.0.1:53",
        "src.addr": "192.0.2.7",
        "protocol": "udp",
        "received.bytes": 3,
        "sent.bytes": 4,
        "error": "why",
        "duration": "250.000ms",
    }


def test_policies_beside_a_backend_of_a_route_act_on_its_connections() -> None:
    own = "tls: {sni: db.test}, tcp: {connectTimeout: 2s}, limits: {maxConnections: 1}, health: {eviction: {}}"
    proxy = MemoryProxy(config(f'{{host: "127.0.0.1:9001", policies: {{{own}}}}}'))
    first, second = proxy.connect(), proxy.connect()
    (pool,) = proxy.connector.dialled
    transport = pool.transport
    assert transport is not None and transport.tls is not None and second.open
    assert (transport.tls.sni, transport.tcp.connect_timeout) == ("db.test", 2.0)
    first.lose()
    assert len(proxy.connector.dialled) == 2


@pytest.mark.parametrize("policies", ["http: {version: HTTP2}", "auth: {key: a}", "mcp: {}"])
def test_policies_of_http_beside_a_backend_of_connections_are_refused(policies: str) -> None:
    loaded = standalone.load(config(f'{{host: "127.0.0.1:9001", policies: {{{policies}}}}}'), "a.yaml")
    assert loaded.problems
