"""Connections whose bytes pass as they are, in memory: both directions, their ends, what goes wrong, and the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.server.protocols import plan_of
from dataplane.server.raw.raw_connection import IDLE_TIMEOUT, LINGER
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.telemetry import connections
from dataplane.telemetry.connections import ConnectionRecord
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
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


def test_the_log_says_how_long_it_took(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    client.send(b"question")
    proxy.advance(2.5)
    client.lose()
    (line,) = proxy.log_lines()
    assert " duration=2500.000ms" in line


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


def test_who_comes_when_there_is_no_room_reaches_nobody() -> None:
    proxy = MemoryProxy(config(more="frontendPolicies: {limits: {maxConnections: 1}}\n"))
    first, second = proxy.connect(), proxy.connect()
    assert (first.open, second.aborted, len(proxy.connector.dialled)) == (True, True, 1)
    first.send(b"still")
    assert proxy.upstream.take() == b"still"
    assert not proxy.log_lines()  # it never began


def test_a_drain_cuts_no_connection(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    for connection in list(proxy.context.connections):
        connection.drain()
        assert "192.0.2.7 -> -, over=False" in repr(connection)
    client.send(b"a")
    proxy.upstream.send(b"b")
    assert (proxy.upstream.take(), client.take()) == (b"a", b"b")


def test_rules_about_heads_that_change_are_nothing_to_connections_without_heads(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.load(config(more="frontendPolicies: {http: {http1MaxHeaders: 10}}\n"))
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    assert proxy.upstream.take() == b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("side", ["client", "endpoint"])
def test_where_a_side_cannot_be_told_of_an_end_both_are_closed(proxy: MemoryProxy, side: str) -> None:
    client = proxy.connect()
    ends: tuple[FakeTransport, FakeTransport] = (client, proxy.upstream)
    ending, other = ends if side == "client" else ends[::-1]
    other.can_write_eof = lambda: False  # type: ignore[method-assign]
    ending.half_close()
    assert not client.open and not proxy.upstream.open and not other.eof
    assert end_of(proxy) == "protocol=tcp received.bytes=0 sent.bytes=0"


def test_an_endpoint_that_closes_both_ways_at_once_is_named(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    proxy.upstream.send(b"bye")
    proxy.upstream.lose()
    assert (client.take(), client.open, client.aborted) == (b"bye", False, False)
    assert end_of(proxy) == "protocol=tcp received.bytes=0 sent.bytes=3 reason=UpstreamClosed"


def test_a_client_that_leaves_while_its_connection_is_opened_leaves_nothing(proxy: MemoryProxy) -> None:
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(b"early")
    client.lose()
    assert end_of(proxy) == "protocol=tcp received.bytes=5 sent.bytes=0"
    proxy.connector.release()
    assert proxy.upstream.aborted and not proxy.upstream.received
    assert proxy.metrics.slots[proxy.metrics.counter("upstream_connections_active")] == 0


def test_a_bind_that_is_gone_when_its_client_is_there_has_no_listener(proxy: MemoryProxy) -> None:
    (bind,) = proxy.applier.current.table.binds
    accepted = plan_of(proxy.context, bind).open()
    proxy.load("binds: []")
    client = FakeTransport(accepted)
    assert client.aborted
    (line,) = proxy.log_lines()
    assert "gateway=- listener=- src.addr=192.0.2.7 protocol=tcp" in line and "reason=ListenerNotFound" in line


def _invalid(resource: resource_pb2.Resource) -> None:
    for each in resource.tcp_route.backends:
        each.invalid.reason = "RefNotPermitted other/db"


def _gone(resource: resource_pb2.Resource) -> None:
    for each in resource.tcp_route.backends:
        each.backend = "backend/service/other/db/5432"


def _refused(resource: resource_pb2.Resource) -> None:
    if resource.HasField("backend"):
        resource.backend.refused = "its TLS cannot be applied"


@pytest.mark.parametrize(
    ("edit", "reason", "detail"),
    [
        (_invalid, "InvalidBackend", "RefNotPermitted other/db"),
        (_gone, "InvalidBackend", "backend/service/other/db/5432"),
        (_refused, "BackendRefused", "its TLS cannot be applied"),
    ],
)
def test_a_backend_that_may_not_be_sent_to_is_named(
    proxy: MemoryProxy, edit: Callable[[resource_pb2.Resource], None], reason: str, detail: str
) -> None:
    resources = standalone.load(config(), "config.yaml").resources
    for resource in resources:
        edit(resource)
    for _ in proxy.applier.apply([Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in resources]):
        pass
    client = proxy.connect()
    assert client.aborted and not proxy.connector.dialled
    line = end_of(proxy)
    assert line.endswith(f"reason={reason}") and detail in line


@pytest.mark.parametrize("policies", ["http: {version: HTTP2}", "auth: {key: a}", "mcp: {}"])
def test_policies_of_http_beside_a_backend_of_connections_are_refused(policies: str) -> None:
    loaded = standalone.load(config(f'{{host: "127.0.0.1:9001", policies: {{{policies}}}}}'), "a.yaml")
    assert loaded.problems


def test_both_sides_have_the_same_bound_of_unsent_bytes(proxy: MemoryProxy) -> None:
    client = proxy.connect()
    assert client.high_water == proxy.upstream.high_water == proxy.context.limits.write_buffer


def test_time_without_an_endpoint_is_no_silence(proxy: MemoryProxy) -> None:
    proxy.connector.hold = True
    client = proxy.connect()
    proxy.advance(IDLE_TIMEOUT - 1)
    proxy.connector.release()
    proxy.advance(IDLE_TIMEOUT - 1)
    assert client.open
    proxy.advance(2)
    assert client.aborted


def test_what_a_client_sends_after_the_end_goes_nowhere(proxy: MemoryProxy) -> None:
    """Its transport closes when all is sent, and gives on until then what still comes."""
    client, upstream = proxy.connect(), proxy.upstream
    client.close = lambda: None  # type: ignore[method-assign]
    client.half_close()
    upstream.half_close()
    assert not upstream.open and client.open
    client.send(b"late")
    client.protocol.pause_writing()
    client.protocol.resume_writing()
    assert upstream.received == b"" and end_of(proxy) == "protocol=tcp received.bytes=0 sent.bytes=0"
    del client.close
    proxy.advance(LINGER - 1)
    assert client.open
    proxy.advance(2)
    assert client.aborted
