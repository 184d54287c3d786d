"""Sessions of UDP in memory: where datagrams go, how sessions end, and which datagrams go nowhere, with the reason.

What needs the system (the address that a reply leaves from, ports where nobody listens): `loopback/test_udp_routes`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable

import pytest

from dataplane.server.raw.datagrams import AT_ONCE, DRAIN_SILENCE, IDLE_TIMEOUT, PAUSE, WAITING
from dataplane.server.raw.session_table import KEPT
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.upstream.endpoint import Endpoint
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
from tests.fakes.memory_datagrams import ANCILLARY, CLIENT, DatagramProxy, FakeSocket

OTHER = ("192.0.2.8", 40_000)
GONE = OSError(errno.ECONNREFUSED, "Connection refused")


def config(*backends: str, routes: str = "", more: str = "") -> str:
    items = ", ".join(backends or ('{host: "10.0.0.1:53"}',))
    return f"""
binds:
- port: 5300
  listeners:
  - name: dns
    protocol: UDP
    udpRoutes: {routes or f"[{{name: all, backends: [{items}]}}]"}
{more}"""


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], DatagramProxy]:
    return lambda text: DatagramProxy(text, monkeypatch)


@pytest.fixture
def proxy(proxied: Callable[[str], DatagramProxy]) -> DatagramProxy:
    return proxied(config())


def change(proxy: DatagramProxy, text: str, edit: Callable[[resource_pb2.Resource], None]) -> None:
    """Make what `text` comes to the configuration, each resource as `edit` has it: no file could say it."""
    resources = standalone.load(text, "config.yaml").resources
    for resource in resources:
        edit(resource)
    for _ in proxy.applier.apply([Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in resources]):
        pass
    assert not proxy.applier.outcome.refused, proxy.applier.outcome.refused


def ends(proxy: DatagramProxy) -> list[str]:
    """How sessions ended, by the access log: bytes, error and reason."""
    lines = proxy.log_lines()
    assert all(" src.addr=192.0.2." in line and " protocol=udp " in line for line in lines)
    return [line.partition(" protocol=udp ")[2].partition(" duration=")[0] for line in lines]


# Both ways.


def test_a_session_goes_to_one_endpoint_and_its_answers_to_the_client(proxy: DatagramProxy) -> None:
    proxy.send(b"one", b"two", b"")
    assert (proxy.connected, proxy.far.sent) == ([("10.0.0.1", 53)], [b"one", b"two", b""])
    proxy.answer(b"1", b"22")
    assert proxy.sock.replies == [(b"1", CLIENT, ANCILLARY), (b"22", CLIENT, ANCILLARY)]
    assert "192.0.2.7 -> 10.0.0.1:53" in repr(next(iter(proxy.datagrams.sessions)))
    proxy.passes(IDLE_TIMEOUT)
    assert ends(proxy) == ["received.bytes=6 sent.bytes=3"]
    assert (proxy.count("raw_connections_active", "udp"), proxy.count("upstream_connections_active")) == (0, 0)
    assert proxy.count("raw_connections_total", "default/standalone", "dns", "udp", "IdleTimeout") == 0
    assert proxy.count("raw_connections_total", "default/standalone", "dns", "udp", "Ended") == 1


def test_clients_have_sessions_of_their_own(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    proxy.send(b"b", source=OTHER)
    proxy.send(b"c", source=(CLIENT[0], 40_001))
    assert [far.sent for far in proxy.fars] == [[b"a"], [b"b"], [b"c"]]
    proxy.answer(b"for b", far=proxy.fars[1])
    assert proxy.sock.replies == [(b"for b", OTHER, ANCILLARY)]


def test_backends_are_chosen_by_weight(proxied: Callable[[str], DatagramProxy]) -> None:
    proxy = proxied(config('{host: "10.0.0.1:1", weight: 1}', '{host: "10.0.0.2:2", weight: 3}'))
    draws = iter([0.24, 0.0, 0.25, 0.0])  # the backend, then its endpoint
    proxy.context.random = lambda: next(draws, 0.0)
    proxy.send(b"a")
    proxy.context.random = lambda: 0.25
    proxy.send(b"b", source=OTHER)
    assert proxy.connected == [("10.0.0.1", 1), ("10.0.0.2", 2)]


def test_one_socket_does_not_take_all_of_a_turn(proxy: DatagramProxy) -> None:
    proxy.send(*[b"x"] * (AT_ONCE + 3))
    assert len(proxy.far.sent) == AT_ONCE
    proxy.send()
    assert len(proxy.far.sent) == AT_ONCE + 3
    proxy.answer(*[b"y"] * (AT_ONCE + 1))
    assert len(proxy.sock.replies) == AT_ONCE
    proxy.answer()
    assert len(proxy.sock.replies) == AT_ONCE + 1


def test_what_the_system_says_of_an_earlier_answer_stops_nobody(proxy: DatagramProxy) -> None:
    proxy.sock.came.append(GONE)
    proxy.send(b"x")
    assert proxy.far.sent == [b"x"]


# Silence, drain, and binds that go.


def test_a_datagram_either_way_prolongs_a_session(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    for send in (proxy.send, proxy.answer, proxy.send):
        proxy.passes(IDLE_TIMEOUT - 1)
        send(b"x")
    proxy.passes(IDLE_TIMEOUT - 1)
    assert proxy.sources() == ["192.0.2.7:40000"]
    proxy.passes(1)
    assert proxy.sources() == [] and not proxy.loop.timers  # nobody is left to look for
    proxy.send(b"a")
    assert len(proxy.fars) == 2 and len(proxy.loop.timers) == 1


def test_a_drain_begins_no_session_and_ends_those_that_fall_silent(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    proxy.datagrams.drain()
    proxy.send(b"b", source=OTHER)
    assert (proxy.sources(), proxy.dropped("Draining")) == (["192.0.2.7:40000"], 1)
    proxy.passes(DRAIN_SILENCE - 1)
    proxy.send(b"c")
    proxy.passes(DRAIN_SILENCE - 1)
    assert proxy.far.sent == [b"a", b"c"] and proxy.sources()
    proxy.passes(DRAIN_SILENCE)
    assert not proxy.sources()


def test_what_is_in_use_at_the_end_of_a_drain_ends_for_that_reason(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    proxy.datagrams.drain()
    proxy.datagrams.close()
    assert ends(proxy) == ["received.bytes=1 sent.bytes=0 reason=Drained"]
    assert proxy.sock.closed and proxy.far.closed and proxy.datagrams.listening() == 0


def test_a_bind_that_is_gone_ends_its_sessions_and_no_others(proxy: DatagramProxy) -> None:
    second = FakeSocket(("198.51.100.2", 5300))
    proxy.datagrams.listen("another", second)  # type: ignore[arg-type]
    assert proxy.datagrams.listening() == 2
    proxy.send(b"a")
    proxy.datagrams.stop("another")
    proxy.datagrams.stop("one that never was")
    assert second.closed and proxy.sources() == ["192.0.2.7:40000"]
    proxy.datagrams.stop(proxy.bind)
    assert (proxy.sock.closed, proxy.datagrams.listening()) == (True, 0)
    assert ends(proxy) == ["received.bytes=1 sent.bytes=0 reason=BindClosed"]


# Bounds.


def test_a_client_that_was_never_seen_to_take_an_answer_goes_first(proxy: DatagramProxy) -> None:
    proxy.context.descriptors = lambda: 4  # half of them are for sessions
    proxy.send(b"q")
    proxy.answer(b"a")
    proxy.send(b"again")  # it is there
    proxy.send(b"x", source=OTHER)
    proxy.send(b"x", source=("192.0.2.9", 1))
    assert sorted(proxy.sources()) == ["192.0.2.7:40000", "192.0.2.9:1"]
    assert ends(proxy) == ["received.bytes=1 sent.bytes=0 reason=Displaced"]


def test_sessions_in_use_are_displaced_by_nobody_until_they_are_silent_for_a_while(proxy: DatagramProxy) -> None:
    proxy.context.descriptors = lambda: 1
    proxy.send(b"q")
    proxy.answer(b"a")
    proxy.send(b"again")
    proxy.send(b"x", source=OTHER)
    assert (proxy.sources(), proxy.dropped("TooManySessions")) == (["192.0.2.7:40000"], 1)
    proxy.passes(KEPT)
    proxy.send(b"x", source=OTHER)
    assert proxy.sources() == ["192.0.2.8:40000"]


def test_datagrams_that_go_nowhere_have_one_line_in_a_while(
    proxied: Callable[[str], DatagramProxy], caplog: pytest.LogCaptureFixture
) -> None:
    proxy = proxied(config(routes="[]"))
    with caplog.at_level(logging.WARNING, "dataplane.server"):
        proxy.send(b"1", b"2", b"3")
        proxy.passes(PAUSE)
        proxy.send(b"4")
    assert caplog.messages == ["datagram of 192.0.2.7 dropped: RouteNotFound"] * 2
    assert proxy.dropped("RouteNotFound") == 4


# Where nothing leads.


@pytest.mark.parametrize(
    ("action", "expression"),
    [
        ("Deny", 'source.address == "192.0.2.8"'),
        ("Allow", 'source.address == "192.0.2.7"'),
        ("Require", 'source.address == "192.0.2.7"'),
    ],
)
def test_who_may_not_connect_begins_no_session(
    action: str, expression: str, proxied: Callable[[str], DatagramProxy]
) -> None:
    rule = f"{{action: {action}, policy: {{matchExpressions: ['{expression}']}}}}"
    proxy = proxied(config(more=f"frontendPolicies: {{networkAuthorization: {rule}}}\n"))
    proxy.send(b"x", source=OTHER)
    proxy.send(b"y")
    assert (proxy.sources(), proxy.dropped("NetworkAuthorizationDenied")) == (["192.0.2.7:40000"], 1)


def test_no_backend_has_a_weight(proxied: Callable[[str], DatagramProxy]) -> None:
    proxy = proxied(config('{host: "10.0.0.1:53", weight: 0}'))
    proxy.send(b"x")
    assert (proxy.sources(), proxy.dropped("NoValidBackend")) == ([], 1)


def test_a_listener_of_another_protocol_takes_no_datagrams(proxy: DatagramProxy) -> None:
    proxy.load("binds: [{port: 5300, listeners: [{name: dns, protocol: TCP}]}]")
    proxy.send(b"x")
    proxy.load("binds: []")
    proxy.send(b"x")
    assert (proxy.sources(), proxy.dropped("ListenerNotFound")) == ([], 2)


def _without_backends(resource: resource_pb2.Resource) -> None:
    for each in resource.udp_route.backends:
        each.backend = "backend/that/is/gone"


def _invalid(resource: resource_pb2.Resource) -> None:
    for each in resource.udp_route.backends:
        each.invalid.reason = "RefNotPermitted other/dns"


def _refused(resource: resource_pb2.Resource) -> None:
    if resource.HasField("backend"):
        resource.backend.refused = "its TLS cannot be applied"


def _without_endpoints(resource: resource_pb2.Resource) -> None:
    if resource.HasField("backend"):
        resource.backend.service.empty = True


@pytest.mark.parametrize(
    ("edit", "reason", "detail"),
    [
        (_invalid, "InvalidBackend", "RefNotPermitted other/dns"),
        (_refused, "BackendRefused", "its TLS cannot be applied"),
        (_without_endpoints, "NoEndpoints", "backend/"),
    ],
)
def test_what_a_route_leads_to_cannot_be_sent_to(
    proxy: DatagramProxy,
    caplog: pytest.LogCaptureFixture,
    edit: Callable[[resource_pb2.Resource], None],
    reason: str,
    detail: str,
) -> None:
    proxy.load("binds: []")  # a backend keeps the object that it was made from
    change(proxy, config(), edit)
    proxy.send(b"x")
    assert (proxy.sources(), proxy.dropped(reason)) == ([], 1)
    assert f"datagram of 192.0.2.7 dropped: {reason} ({detail}" in caplog.text


def test_an_endpoint_that_is_a_unix_socket_takes_no_datagrams(proxied: Callable[[str], DatagramProxy]) -> None:
    proxy = proxied(config("{host: 'unix:/run/dns.sock'}"))
    proxy.send(b"x")
    error = "datagrams go to an address and port, not to a Unix socket"
    assert ends(proxy) == [f'received.bytes=0 sent.bytes=0 error="{error}" reason=ConnectFailed']
    assert proxy.dropped("Refused") == 1 and not proxy.connected


def test_an_address_that_the_system_knows_no_way_to(proxy: DatagramProxy) -> None:
    proxy.refuses = OSError(errno.ENETUNREACH, "Network is unreachable")
    proxy.send(b"x")
    assert ends(proxy) == [
        'received.bytes=0 sent.bytes=0 error="10.0.0.1:53: Network is unreachable" reason=ConnectFailed'
    ]
    assert (proxy.sources(), proxy.count("upstream_connections_active")) == ([], 0)
    assert proxy.count("upstream_connections_total", "failed") == 1


# Names.


@pytest.fixture
def named(proxied: Callable[[str], DatagramProxy]) -> DatagramProxy:
    return proxied(config("{host: 'dns.test:53'}"))


def test_datagrams_wait_for_a_name_a_bounded_number_of_them(named: DatagramProxy) -> None:
    named.send(*[b"%d" % number for number in range(WAITING + 2)])
    assert not named.connected and named.dropped("Waiting") == 2
    named.resolver.answers("10.0.0.9")
    assert named.connected == [("10.0.0.9", 53)]
    assert named.far.sent == [b"%d" % number for number in range(WAITING)]


def test_a_name_that_nobody_has_ends_the_session_and_what_waits(named: DatagramProxy) -> None:
    named.send(b"1", b"2")
    named.resolver.answers()
    (line,) = ends(named)
    assert "sent.bytes=0 error=" in line and line.endswith("reason=DnsFailed")
    assert (named.sources(), named.dropped("DnsFailed")) == ([], 2)


def test_what_a_name_resolves_to_later_is_for_nobody_when_the_session_is_over(named: DatagramProxy) -> None:
    named.send(b"1")
    named.passes(IDLE_TIMEOUT)
    assert (named.sources(), named.dropped("IdleTimeout")) == ([], 1)
    named.resolver.answers("10.0.0.9")
    assert not named.connected


def test_a_backend_that_is_gone_when_its_name_is_known(named: DatagramProxy) -> None:
    named.send(b"1")
    named.load(config())
    named.resolver.answers("10.0.0.9")
    assert ends(named)[0].endswith("reason=InvalidBackend") and not named.connected


def test_an_answer_that_comes_twice_connects_once(named: DatagramProxy) -> None:
    named.send(b"1")
    (ready,) = named.resolver.waiting
    named.resolver.answers("10.0.0.9")
    ready()
    assert len(named.connected) == 1


# Changes of configuration.


def test_a_session_stays_while_it_goes_where_the_table_has_it_go(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.load(config(more="frontendPolicies: {limits: {streamIdleTimeout: 5s}}\n"))  # another table
    proxy.send(b"2")
    assert [far.sent for far in proxy.fars] == [[b"1", b"2"]]


@pytest.mark.parametrize(
    "text",
    [
        config('{host: "10.0.0.2:53"}'),
        config(routes='[{name: another, backends: [{host: "10.0.0.2:53"}]}]'),
        config('{host: "10.0.0.1:53", weight: 0}', '{host: "10.0.0.2:53"}'),
    ],
    ids=["another endpoint", "another route", "no weight"],
)
def test_a_session_moves_with_its_route(proxy: DatagramProxy, text: str) -> None:
    proxy.send(b"1")
    proxy.load(text)
    proxy.send(b"2")
    assert [far.sent for far in proxy.fars] == [[b"1"], [b"2"]]
    assert proxy.connected[1] == ("10.0.0.2", 53)
    assert ends(proxy) == ["received.bytes=1 sent.bytes=0 reason=Moved"]


def test_a_session_ends_with_its_route(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.load(config(routes="[]"))
    proxy.send(b"2")
    assert (proxy.sources(), proxy.dropped("RouteNotFound")) == ([], 1)


def test_a_session_whose_backend_is_gone_moves(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    change(proxy, config(), _without_backends)
    proxy.send(b"2")
    assert proxy.sources() == [] and ends(proxy) == ["received.bytes=1 sent.bytes=0 reason=Moved"]


# What the system says of a session's socket.


def test_a_full_buffer_loses_a_datagram_and_no_session(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.far.fails = BlockingIOError()
    proxy.send(b"2")
    proxy.send(b"3")
    assert (proxy.far.sent, proxy.dropped("UpstreamFull")) == ([b"1", b"3"], 1)


def test_a_port_where_nobody_listens_ends_the_session_when_it_is_sent_to(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.far.fails = GONE
    proxy.send(b"2")
    assert (proxy.sources(), proxy.dropped("Unreachable")) == ([], 1)
    assert ends(proxy)[0].endswith("reason=Unreachable")
    proxy.send(b"3")
    assert proxy.far.sent == [b"3"] and len(proxy.fars) == 2


def test_a_port_where_nobody_listens_ends_the_session_when_it_is_read(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.answer(b"a", GONE, b"never read")
    assert (proxy.sources(), len(proxy.sock.replies)) == ([], 1)
    assert ends(proxy)[0].endswith("reason=Unreachable")


def test_an_answer_that_the_system_does_not_take_is_counted(proxy: DatagramProxy) -> None:
    proxy.send(b"1")
    proxy.sock.fails = BlockingIOError()
    proxy.answer(b"lost", b"sent")
    assert (proxy.dropped("ClientFull"), [each[0] for each in proxy.sock.replies]) == (1, [b"sent"])
    proxy.passes(IDLE_TIMEOUT)
    assert ends(proxy) == ["received.bytes=1 sent.bytes=4"]


def endpoint_of(proxy: DatagramProxy) -> Endpoint:
    (plan,) = proxy.applier.current.table.backends.values()
    (found,) = plan.endpoints
    return found


def test_an_endpoint_has_so_many_sessions_as_go_to_it(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    proxy.send(b"b", source=OTHER)
    assert endpoint_of(proxy).pending == 2
    proxy.datagrams.stop(proxy.bind)
    assert endpoint_of(proxy).pending == 0


def test_the_log_says_how_long_it_took(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    proxy.passes(2.5)
    proxy.datagrams.stop(proxy.bind)
    (line,) = proxy.log_lines()
    assert " duration=2500.000ms" in line and " reason=BindClosed" in line


def test_the_agent_reads_whose_datagrams_are_looked_at(proxy: DatagramProxy) -> None:
    now = proxy.context.writes.now
    proxy.send(b"a")
    assert now[0]
    number, now[0] = now[0], 0
    proxy.answer(b"b")
    assert now[0] == number


def test_where_descriptors_are_few_an_idle_client_goes_before_a_socket_is_opened(proxy: DatagramProxy) -> None:
    seen: list[int] = []
    proxy.connector.before_opening = lambda: seen.append(len(proxy.connected))
    proxy.send(b"a")
    proxy.send(b"b")
    proxy.send(b"c", source=OTHER)
    assert seen == [0, 1]


def test_nothing_is_left_to_look_at_when_all_is_closed(proxy: DatagramProxy) -> None:
    proxy.send(b"a")
    assert [timer.cancelled for timer in proxy.loop.timers] == [False]
    proxy.datagrams.close()
    assert [timer.cancelled for timer in proxy.loop.timers] == [True]


def test_one_of_several_backends_keeps_its_session_when_the_rest_changes(
    proxied: Callable[[str], DatagramProxy],
) -> None:
    two = ('{host: "10.0.0.1:1", weight: 1}', '{host: "10.0.0.2:2", weight: 1}')
    proxy = proxied(config(*two))
    proxy.send(b"a")
    proxy.load(config(*two, '{host: "10.0.0.3:3", weight: 9}'))
    proxy.send(b"b")
    assert (proxy.far.sent, len(proxy.connected)) == ([b"a", b"b"], 1)
