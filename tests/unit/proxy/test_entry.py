"""How a request is taken: by the table of its moment, and by the path that policies and the origin read alike."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.http import connection_rules
from dataplane.http.rules import DEFAULT
from dataplane.proxy.context import Context
from dataplane.upstream import kinds
from tests.fakes.memory_proxy import ROUTES, MemoryProxy

GET = b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n"


def answering(status: int, http: str = "{}") -> str:
    """A file whose route answers so. `http`: of the listener."""
    listener = f"    protocol: HTTP\n    http: {http}\n"
    route = f"      policies: {{directResponse: {{status: {status}}}}}\n      backends:"
    return ROUTES.replace("    protocol: HTTP\n", listener).replace("      backends:", route)


class Committing:
    """A proxy whose next table waits for the word of its agent."""

    def __init__(self, before: str, after: str) -> None:
        self.proxy = MemoryProxy(before)
        self.commits = 0
        current: Any = self.proxy.applier.current
        current._committed = lambda: self.commits
        current.number = 1
        self.client = self.proxy.connect()
        self.proxy.load(after)
        assert current.prepared is not None

    def status(self) -> bytes:
        self.client.take()
        self.client.send(GET % b"/")
        return self.client.take().split(b" ")[1]


def test_a_request_is_taken_by_the_table_of_its_moment() -> None:
    committing = Committing(answering(404), answering(403))
    assert committing.status() == b"404"
    committing.commits = 1
    assert committing.status() == b"403"
    assert committing.proxy.applier.current.prepared is None


@pytest.mark.parametrize(
    "look",
    [
        lambda context, key: context.rules(key, b"a").max_query_parameters,
        lambda context, key: context.bind_of(key) and next(context.bind_of(key).listeners()).http.max_query_parameters,
        lambda context, key: context.connection_rules(key).idle_timeout,
        lambda context, key: context.connection_rules(key, LISTENER).idle_timeout,
    ],
)
def test_whoever_asks_for_rules_gets_those_of_the_moment(look: Any) -> None:
    committing = Committing(ROUTES, answering(403, "{maxQueryParameters: 7, http1IdleTimeout: 7s}"))
    context = committing.proxy.context
    key = next(iter(committing.proxy.applier.current.table.binds))
    assert look(context, key) != 7
    committing.commits = 1
    assert look(context, key) == 7


LISTENER = "listener/gateway/default/standalone/http"


def test_of_a_bind_that_is_not_there_the_defaults_hold() -> None:
    context = MemoryProxy().context
    assert context.rules("bind/none", b"a") is DEFAULT
    assert context.connection_rules("bind/none") is connection_rules.DEFAULT
    assert context.bind_of("bind/none") is None


def test_a_worker_that_no_kind_was_asked_of_has_nothing_of_theirs() -> None:
    context = MemoryProxy().context
    assert context.worker_sockets == 0
    context.close()  # there is nothing to give back


def test_a_worker_keeps_services_of_a_kind_by_its_name_from_the_first_question_to_its_end() -> None:
    context, closed = MemoryProxy().context, []

    class Services:
        sockets = 3

        def close(self) -> None:
            closed.append(True)

    class Plain(kinds.Row):
        def begin(self, holder: object, plan: object, leases: object) -> None:
            """Nothing is sent to it."""

    class Keeping(Plain):
        def services(self, worker: object) -> Services:
            assert worker is context
            return Services()

    context.kinds = {"one": Keeping(), "other": Keeping(), "plain": Plain()}
    assert context.worker_sockets == 0, "nothing is made before it is asked for"
    assert context.of_kind("plain") is None and context.worker_sockets == 0
    assert context.of_kind("one") is context.of_kind("one") is not context.of_kind("other")
    assert context.worker_sockets == 6
    context.close()
    assert closed == [True, True]
    with pytest.raises(KeyError):
        context.of_kind("none")


def test_calls_of_a_worker_are_one_object() -> None:
    context = MemoryProxy().context
    assert context.calls is context.calls


def test_ids_of_requests_are_unique_and_look_like_others() -> None:
    """A UUID of version 4."""
    one, two = MemoryProxy().context.request_id, MemoryProxy().context.request_id
    ids = [one(), one(), one(), two()]
    assert len(set(ids)) == 4
    for each in ids:
        parts = each.split(b"-")
        assert [len(part) for part in parts] == [8, 4, 4, 4, 12] and parts[2][:1] == b"4" and parts[3][:1] == b"8"
    assert [int(each[-12:], 16) for each in ids[:3]] == [1, 2, 3]


def test_a_worker_that_is_alone_has_nothing_in_common_with_others() -> None:
    proxy = MemoryProxy()
    bare = Context(*(getattr(proxy.context, name) for name in REQUIRED))
    assert (bare.draining, bare.admitted, bare.index, bare.shares_sessions) == (False, 0, 0, False)
    assert (bare.sockets, bare.common, len(bare.session_key), bare.descriptors()) == ("", None, 32, 2**31)
    with pytest.raises(RuntimeError, match="no connections are taken here"):
        bare.enter("bind/a", None, None)  # type: ignore[arg-type]


REQUIRED = (
    *("current", "deadlines", "leases", "access_log", "recorder", "writes", "spawn", "make_future", "call_soon"),
)


def test_the_first_header_that_is_dropped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    context = MemoryProxy().context
    context.headers_dropped(2)
    context.headers_dropped(1)
    assert [record.levelname for record in caplog.records if "headers are dropped" in record.message] == ["WARNING"]


# --- paths


@pytest.mark.parametrize(
    ("settings", "path", "sent"),
    [
        ("{}", b"/A", b"/A"),
        ("{path: {case: Lower}}", b"/A", b"/a"),
        ("{path: {case: Lower}}", b"/A//B", b"/a//b"),
        ("{path: {repeatedSlashes: Merge}}", b"/A//B", b"/A/B"),
        ("{path: {repeatedSlashes: Merge}}", b"/a/b?c=//", b"/a/b?c=//"),
        ("{path: {repeatedSlashes: Reject}}", b"/a//b", b""),
        ("{path: {repeatedSlashes: Reject}}", b"/a/b", b"/a/b"),
    ],
)
def test_the_path_that_arrives(settings: str, path: bytes, sent: bytes) -> None:
    proxy = MemoryProxy(ROUTES.replace("    protocol: HTTP\n", f"    protocol: HTTP\n    http: {settings}\n"))
    client = proxy.connect()
    client.send(GET % path)
    if sent:
        assert proxy.upstream.received.startswith(b"GET %b HTTP/1.1\r\n" % sent)
    else:
        assert client.received.startswith(b"HTTP/1.1 400 ") and proxy.connector.upstreams == []


@pytest.mark.parametrize(("path", "passes"), [(b"/a//b", True), (b"//a/b", False), (b"/b//c", True)])
def test_a_path_passes_that_leads_to_one_rule_however_it_is_read(path: bytes, passes: bool) -> None:
    guarded = "    - matches: [{path: {type: PathPrefix, value: /a}}]\n      backends: [{host: '127.0.0.1:9000'}]\n"
    proxy = MemoryProxy(ROUTES.replace("    routes:\n", "    routes:\n" + guarded))
    client = proxy.connect()
    client.send(GET % path)
    assert bool(proxy.connector.upstreams) == passes
    if not passes:
        assert client.received.startswith(b"HTTP/1.1 400 ") and "reason=AmbiguousPath" in proxy.log_lines()[0]


# --- which backend

WEIGHED = ROUTES.replace(
    "      - host: 127.0.0.1:9000",
    "      - {host: 127.0.0.1:9000, weight: 0}\n      - {host: 127.0.0.1:9001, weight: LAST}",
)


@pytest.mark.parametrize("weight", [0, 5])
def test_where_no_backend_has_a_weight_there_is_none(weight: int) -> None:
    proxy = MemoryProxy(WEIGHED.replace("LAST", str(weight)))
    client = proxy.connect()
    client.send(GET % b"/")
    if weight:
        assert [each.label for each in proxy.connector.endpoints] == ["127.0.0.1:9001"]
    else:
        assert "reason=NoValidBackend" in proxy.log_lines()[0] and proxy.connector.upstreams == []


@pytest.mark.parametrize(("draw", "port"), [(0.0, 9000), (0.2499, 9000), (0.25, 9001), (0.999, 9001)])
def test_backends_are_chosen_by_their_share(draw: float, port: int) -> None:
    proxy = MemoryProxy(WEIGHED.replace("weight: 0", "weight: 1").replace("LAST", "3"))
    proxy.context.random = lambda: draw
    client = proxy.connect()
    client.send(GET % b"/")
    assert [each.label for each in proxy.connector.endpoints] == [f"127.0.0.1:{port}"]


def test_the_log_names_the_endpoint_that_broke_off() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 1\r\n\r\na")
    proxy.upstream.lose(ConnectionResetError())
    (line,) = proxy.log_lines()
    assert "reason=UpstreamFailed" in line and "127.0.0.1:9000: connection " in line


def test_heads_that_connections_remember_are_forgotten_with_their_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = MemoryProxy()
    forgotten: list[str] = []

    class Connection:
        def forget_heads(self) -> None:
            forgotten.append("one")

    real = proxy.context.connections
    monkeypatch.setattr(proxy.context, "connections", [Connection(), Connection()])
    proxy.load(answering(403, "{maxQueryParameters: 7}"))
    assert forgotten == ["one", "one"]
    proxy.load(answering(404, "{maxQueryParameters: 7}"))
    assert len(forgotten) == 2
    proxy.context.connections = real


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ("timeouts: {request: 5s}", "RequestDeadline"),
        ("timeouts: {backendRequest: 5s}", "UpstreamTimeout"),
        ("http: {requestTimeout: 5s}", "UpstreamTimeout"),
        ("timeouts: {backendRequest: 5s}, http: {requestTimeout: 60s}", "UpstreamTimeout"),
        ("timeouts: {backendRequest: 60s}, http: {requestTimeout: 5s}", "UpstreamTimeout"),
        ("timeouts: {}", ""),
    ],
)
def test_the_shortest_time_counts(policies: str, reason: str) -> None:
    proxy = MemoryProxy(ROUTES.replace("      backends:", f"      policies: {{{policies}}}\n      backends:"))
    client = proxy.connect()
    client.send(GET % b"/")
    proxy.advance(4.9)
    assert proxy.log_lines() == []
    proxy.advance(0.2)
    assert [reason in line for line in proxy.log_lines()] == ([True] if reason else [])
