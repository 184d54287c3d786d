"""How backends are connected to, as values: which level counts, what a handshake names, what is refused; and limits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.messages import Peer
from dataplane.link.loads import Loads
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.limits import Limits, Quota, Tally
from dataplane.upstream.settings import (
    NO_SETTINGS,
    OURSELVES,
    PLAIN_TCP,
    Client,
    ClientCertificate,
    Http,
    Settings,
    Tls,
    Transport,
    finished,
    limited,
)
from dataplane.upstream.versions import BY_REQUEST, HTTP1, HTTP2
from tests.fakes.leases import Many, Up

OTHER_TCP = PLAIN_TCP._replace(connect_timeout=1.0)
QUOTA = Quota("backend/a", 1)


def test_of_two_levels_the_nearer_counts_for_what_it_says() -> None:
    near = Settings(Http(HTTP1), None, Tls(sni="near"), None)
    far = Settings(Http(HTTP2), OTHER_TCP, Tls(sni="far"), ClientCertificate(b"c"))
    assert near.over(far) == Settings(near.http, far.tcp, near.tls, far.client)
    assert near.over(NO_SETTINGS) is near and NO_SETTINGS.over(far) == far
    assert hash(near.over(far)) == hash(Settings(near.http, far.tcp, near.tls, far.client))


@pytest.mark.parametrize(
    ("policy", "known", "expected"),
    [(None, HTTP2, HTTP2), (Http(), HTTP2, HTTP2), (Http(HTTP1), HTTP2, HTTP1), (None, BY_REQUEST, BY_REQUEST)],
)
def test_the_version_that_a_policy_names_counts(policy: Http | None, known: int, expected: int) -> None:
    assert finished(Settings(policy), known, "a").version == expected
    assert finished(Settings(Http(request_timeout=3.0)), known, "a").request_timeout == 3.0


@pytest.mark.parametrize(
    ("tls", "host", "version", "refused"),
    [
        (Tls(), "a", BY_REQUEST, ""),
        (Tls(refused="no certificate"), "a", BY_REQUEST, "tls: no certificate"),
        (Tls(), "", BY_REQUEST, "tls: a Unix socket has no name that a certificate could be verified for: set sni"),
        (Tls(sni="s"), "", BY_REQUEST, ""),
        (Tls(names=("n",)), "", BY_REQUEST, ""),
        (Tls(verifies_names=False), "", BY_REQUEST, ""),
        (Tls(alpn=("h3",)), "a", BY_REQUEST, "tls.alpnProtocols [h3] leaves nothing to offer for HTTP"),
        (Tls(alpn=("h3", "h4")), "a", HTTP1, "tls.alpnProtocols [h3, h4] leaves nothing to offer for HTTP/1.1"),
        (Tls(alpn=("http/1.1",)), "a", HTTP2, "tls.alpnProtocols [http/1.1] leaves nothing to offer for HTTP/2"),
        (Tls(alpn=("http/1.1",)), "a", HTTP1, ""),
        (Tls(alpn=("h2", "x")), "a", HTTP2, ""),
    ],
)
def test_what_cannot_be_honoured_is_refused(tls: Tls, host: str, version: int, refused: str) -> None:
    assert finished(Settings(tls=tls), version, host).refused == refused
    assert finished(Settings(), version, host).refused == ""


def test_equal_transports_are_one_and_those_of_clients_are_theirs_alone() -> None:
    one, same = Transport(OTHER_TCP, None, "", QUOTA), Transport(OTHER_TCP, None, "", QUOTA)
    assert one == same and hash(one) == hash(same)
    of_client = one.of(Peer("198.51.100.7", local=b"10.0.0.1:80", port=4711))
    assert of_client == replace(one, client=Client("198.51.100.7", 4711, b"10.0.0.1:80")) != one
    assert one.of(None) == replace(one, client=OURSELVES) and hash(of_client) != hash(one)


def test_limits_make_connections_nobody_else_s() -> None:
    plain = Transport(OTHER_TCP, None, "")
    assert limited(None, None) is None and limited(plain, None) is plain
    assert limited(None, QUOTA) == Transport(PLAIN_TCP, None, "", QUOTA)
    assert limited(plain, QUOTA) == replace(plain, quota=QUOTA)
    assert limited(replace(plain, quota=QUOTA), None) == plain


class Security:
    def __init__(self, has_certificate: bool) -> None:
        self.has_certificate = has_certificate

    def presenting(self, kept: Any, certificate: bytes, key: bytes) -> Any:
        return ("presents", kept, certificate, key)


def test_our_certificate_is_presented_where_there_is_no_other() -> None:
    kept: Any = object()
    ours = ClientCertificate(b"c", b"k", "", kept)
    own: Any = Security(True)
    none: Any = Security(False)
    assert ours.on(Tls(own)) == Tls(own) and ours.on(Tls(None, "why")) == Tls(None, "why")
    assert ours.on(Tls(none, sni="s")) == Tls(("presents", kept, b"c", b"k"), sni="s")  # type: ignore[arg-type]
    assert replace(ours, refused="why").on(Tls(none)) == Tls(None, "why")
    shown = repr(ClientCertificate(b"PEM", b"KEY"))
    assert "PEM" not in shown and "KEY" not in shown


# --- limits


def counts(tally: Tally) -> str:
    return repr(tally)


def test_so_many_requests_are_admitted() -> None:
    tally = Tally("a", Limits(requests=2), Loads.local())
    assert [tally.admit() for _ in range(3)] == [True, True, False]
    assert counts(tally) == "Tally(2 in flight, 0 tried again)"
    tally.ended(False)
    assert tally.admit() and counts(tally) == "Tally(2 in flight, 0 tried again)"


@pytest.mark.parametrize(
    ("budget", "requests", "retries"),
    [(None, 1, [True] * 3), (0, 4, [True, False, False]), (50, 4, [True, True, False]), (25, 4, [True, False, False])],
)
def test_retries_are_a_part_of_what_is_in_flight_and_one_is_in_any_case(
    budget: int | None, requests: int, retries: list[bool]
) -> None:
    tally = Tally("a", Limits(retry_budget=budget), Loads.local())
    assert all(tally.admit() for _ in range(requests))
    assert [tally.retry() for _ in retries] == retries
    assert counts(tally) == f"Tally({requests} in flight, {sum(retries)} tried again)"
    tally.ended(True)
    assert counts(tally) == f"Tally({requests - 1} in flight, {sum(retries) - 1} tried again)"


# --- pools


def test_what_an_endpoint_is_called() -> None:
    assert [each.label for each in (Endpoint("192.0.2.1", 80), Endpoint("::1", 80), Endpoint("", 0, "/run/s"))] == [
        "192.0.2.1:80",
        "[::1]:80",
        "unix:/run/s",
    ]


def test_a_pool_of_a_transport_is_made_once_and_goes_with_its_endpoint() -> None:
    endpoint = Endpoint("192.0.2.1", 80)
    transport = Transport(OTHER_TCP, None, "")
    pool = endpoint.pool(transport)
    assert endpoint.pool(transport) is pool and (pool.base, pool.transport, pool.label) == (
        endpoint,
        transport,
        "192.0.2.1:80",
    )
    ups: list[Any] = [Up(), Up(), Up()]
    endpoint.idle.append(ups[0])
    pool.idle += ups[1:]
    forgotten: list[Any] = []
    gate: Any = SimpleNamespace(forget=forgotten.append)
    member: Any = SimpleNamespace(forget=lambda: forgotten.append("member"))
    pool.gate, endpoint.members = gate, {"backend/a": member}
    endpoint.close_idle()
    assert [up.heard for up in ups] == [["close"]] * 3 and forgotten == [pool, "member"]
    assert endpoint.closed and pool.closed and endpoint.pool(replace(transport, host="x")).closed


def test_an_empty_pool() -> None:
    pool = Endpoint("192.0.2.1", 80)
    assert pool.is_empty
    shared: Any = SimpleNamespace(connections=[])
    pool.shared = shared
    assert pool.is_empty
    shared.connections.append(Many())
    assert not pool.is_empty
    pool.shared = None
    up: Any = Up()
    pool.idle.append(up)
    assert not pool.is_empty
