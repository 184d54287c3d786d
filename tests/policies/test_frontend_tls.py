"""`frontend.tls` as it acts in the proxy: versions, suites, groups, protocols and time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from OpenSSL import SSL

from dataplane.chain.filter import Env, Refused
from dataplane.filters.frontend import frontend_tls
from dataplane.net.writes import Writes
from dataplane.tls.settings import DEFAULT, GROUPS, SUITES_1_2, SUITES_1_3, TLS_1_2, TLS_1_3, TlsSettings
from gatewright.wire.v1 import connection_pb2, tls_pb2
from tests.fakes.certificates import EC, RSA, Authority
from tests.fakes.memory_proxy import ROUTES
from tests.fakes.secure_proxy import SecureProxy, TlsClient, client_context, secure

AUTHORITY = Authority()
ENV = Env(lambda: 0.0, lambda: 0.0)
ECDSA, WITH_RSA = AUTHORITY.issue("shop.example"), AUTHORITY.issue("shop.example", kind=RSA)


def suite(name: str) -> tls_pb2.CipherSuite:
    return tls_pb2.CipherSuite.Value(f"CIPHER_SUITE_{name}")


def group(name: str) -> tls_pb2.KeyExchangeGroup:
    return tls_pb2.KeyExchangeGroup.Value(f"KEY_EXCHANGE_GROUP_{name.replace('-', '_')}")


def built(**fields: object) -> TlsSettings:
    return frontend_tls.build(connection_pb2.FrontendTls(**fields), ENV)  # type: ignore[arg-type]  # as given


def proxy(**fields: object) -> SecureProxy:
    """With an EC and an RSA certificate."""
    config = connection_pb2.FrontendTls(**fields)  # type: ignore[arg-type]  # as given
    return SecureProxy(ROUTES, {"http": secure(ECDSA, WITH_RSA)}, config)


def connect(run: SecureProxy, context: SSL.Context | None = None, **more: object) -> TlsClient:
    return TlsClient(run.connect(), "shop.example", context=context or client_context(AUTHORITY), **more)  # type: ignore[arg-type]


def answers(client: TlsClient) -> bool:
    """Whether the connection carries a request, to a host without a route."""
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    return client.read().startswith(b"HTTP/1.1 404 ")


# --- the value


def test_unset_fields_are_the_defaults_of_the_specification() -> None:
    assert built() == DEFAULT
    assert (DEFAULT.handshake_timeout, DEFAULT.alpn) == (15.0, (b"h2", b"http/1.1"))
    assert (DEFAULT.minimum, DEFAULT.maximum) == (TLS_1_2, TLS_1_3)
    assert len(DEFAULT.suites) == 9 and DEFAULT.groups == ("X25519_MLKEM768", "X25519", "P-256", "P-384")


@pytest.mark.parametrize(
    ("fields", "versions"),
    [
        ({}, (TLS_1_2, TLS_1_3)),
        ({"cipher_suites": [suite(next(iter(SUITES_1_2)))]}, (TLS_1_2, TLS_1_2)),
        ({"cipher_suites": [suite(next(iter(SUITES_1_3)))]}, (TLS_1_3, TLS_1_3)),
        ({"min_protocol_version": tls_pb2.TLS_VERSION_1_3}, (TLS_1_3, TLS_1_3)),
        ({"max_protocol_version": tls_pb2.TLS_VERSION_1_2}, (TLS_1_2, TLS_1_2)),
    ],
)
def test_suites_of_one_version_bound_the_version(fields: dict[str, object], versions: tuple[int, int]) -> None:
    assert built(**fields).versions() == versions


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"min_protocol_version": tls_pb2.TLS_VERSION_1_3, "max_protocol_version": tls_pb2.TLS_VERSION_1_2},
            "no version",
        ),
        (
            {"min_protocol_version": tls_pb2.TLS_VERSION_1_3, "cipher_suites": [suite(next(iter(SUITES_1_2)))]},
            "no version",
        ),
        (
            {"max_protocol_version": tls_pb2.TLS_VERSION_1_2, "cipher_suites": [suite(next(iter(SUITES_1_3)))]},
            "no version",
        ),
        ({"min_protocol_version": 9}, "minProtocolVersion: 9"),
        ({"max_protocol_version": 9}, "maxProtocolVersion: 9"),
        ({"cipher_suites": [77]}, "cipherSuites: 77"),
        ({"key_exchange_groups": [77]}, "keyExchangeGroups: 77"),
        ({"alpn_protocols": [""]}, "alpnProtocols"),
        ({"alpn_protocols": ["x" * 256]}, "alpnProtocols"),
    ],
)
def test_what_leaves_nothing_or_is_unknown_is_refused(fields: dict[str, object], what: str) -> None:
    with pytest.raises(Refused, match=what):
        built(**fields)


# --- versions


@pytest.mark.parametrize(
    ("fields", "of_client", "version"),
    [
        ({}, None, "TLSv1.3"),
        ({}, SSL.TLS1_2_VERSION, "TLSv1.2"),
        ({"max_protocol_version": tls_pb2.TLS_VERSION_1_2}, None, "TLSv1.2"),
        ({"max_protocol_version": tls_pb2.TLS_VERSION_1_2}, SSL.TLS1_3_VERSION, ""),
        ({"min_protocol_version": tls_pb2.TLS_VERSION_1_3}, None, "TLSv1.3"),
        ({"min_protocol_version": tls_pb2.TLS_VERSION_1_3}, SSL.TLS1_2_VERSION, ""),
        ({}, SSL.TLS1_1_VERSION, ""),
    ],
)
def test_the_version_is_within_the_bounds_or_the_handshake_fails(
    fields: dict[str, object], of_client: int | None, version: str
) -> None:
    context = client_context(AUTHORITY)
    if of_client is not None:
        context.set_min_proto_version(of_client)
        context.set_max_proto_version(of_client)
        context.set_cipher_list(b"DEFAULT:@SECLEVEL=0")
    run = proxy(**fields)
    client = connect(run, context)
    if version:
        assert client.tls.get_protocol_version_name() == version and answers(client)
    else:
        assert client.error and not client.far.open
        assert run.counted("tls_handshake_failures_total") == {"unsupported protocol": 1}


def test_tickets_and_the_end_of_the_connection_leave_with_the_answer() -> None:
    turn: list[Callable[[], None]] = []
    run = SecureProxy(ROUTES, {"http": secure(ECDSA)}, writes=Writes(turn.append))
    client = connect(run)
    before = len(client.far.writes)
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
    assert client.read().startswith(b"HTTP/1.1 404 ") and client.ended
    assert len(client.far.writes) == before + 1 and not client.far.open


# --- suites


@pytest.mark.parametrize("name", [*SUITES_1_3, *SUITES_1_2])
def test_each_suite_alone_is_the_one_that_is_spoken(name: str) -> None:
    client = connect(proxy(cipher_suites=[suite(name)]))
    assert client.tls.get_cipher_name() == {**SUITES_1_3, **SUITES_1_2}[name] and answers(client)
    assert client.tls.get_protocol_version_name() == ("TLSv1.3" if name in SUITES_1_3 else "TLSv1.2")
    certificate = client.tls.get_peer_certificate(as_cryptography=True)
    assert certificate is not None
    kind = RSA if "_RSA_" in name else EC
    assert certificate == (WITH_RSA if kind == RSA else ECDSA).certificate


def test_of_several_suites_the_first_one_of_the_server_is_spoken() -> None:
    wanted = ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]
    for names in (wanted, wanted[::-1]):
        client = connect(proxy(cipher_suites=[suite(name) for name in names]))
        assert client.tls.get_cipher_name() == SUITES_1_2[names[0]]


@pytest.mark.parametrize("kind", ["ECDSA", "RSA"])
def test_without_a_list_of_suites_aes_of_128_bits_is_spoken_in_1_2(kind: str) -> None:
    context = client_context(AUTHORITY)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(f"ECDHE-{kind}-AES256-GCM-SHA384:ECDHE-{kind}-AES128-GCM-SHA256".encode())
    client = connect(proxy(), context)
    assert client.tls.get_cipher_name() == f"ECDHE-{kind}-AES128-GCM-SHA256" and answers(client)


def test_without_a_list_of_suites_aes_of_128_bits_is_spoken_in_1_3() -> None:
    context = client_context(AUTHORITY)
    context.set_tls13_ciphersuites(b"TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256")
    client = connect(proxy(), context)
    assert client.tls.get_cipher_name() == "TLS_AES_128_GCM_SHA256" and answers(client)


def test_without_a_suite_in_common_the_handshake_fails_with_openssls_reason() -> None:
    context = client_context(AUTHORITY)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(b"ECDHE-ECDSA-AES128-GCM-SHA256")
    run = proxy(cipher_suites=[suite("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")])
    client = connect(run, context)
    assert "handshake failure" in client.error and not client.far.open
    assert run.counted("tls_handshake_failures_total") == {"no shared cipher": 1}


# --- groups


@pytest.mark.parametrize("name", GROUPS)
def test_each_group_alone_is_the_one_that_is_used(name: str) -> None:
    client = connect(proxy(key_exchange_groups=[group(name)]))
    used = client.tls.get_group_name()
    expected = {"X25519_MLKEM768": "X25519MLKEM768", "X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}
    assert used is not None and used.lower() == expected[name].lower() and answers(client)


def test_without_a_group_in_common_the_handshake_fails_with_a_reason() -> None:
    context = client_context(AUTHORITY)
    assert SSL._lib.SSL_CTX_set1_curves_list(context._context, b"P-384") == 1  # type: ignore[attr-defined]
    run = proxy(key_exchange_groups=[group("X25519")])
    client = connect(run, context)
    assert client.error and not client.far.open
    assert run.counted("tls_handshake_failures_total") == {"no suitable key share": 1}


# --- protocols


@pytest.mark.parametrize(
    ("ours", "offered", "chosen"),
    [
        ([], (b"h2", b"http/1.1"), b"h2"),
        ([], (b"http/1.1", b"h2"), b"h2"),
        ([], (b"http/1.1",), b"http/1.1"),
        ([], (), b""),
        (["http/1.1"], (b"h2", b"http/1.1"), b"http/1.1"),
        (["http/1.1", "h2"], (b"h2", b"http/1.1"), b"http/1.1"),
    ],
)
def test_the_protocol_is_the_first_of_ours_that_the_client_offers(
    ours: list[str], offered: tuple[bytes, ...], chosen: bytes
) -> None:
    client = connect(proxy(alpn_protocols=ours), client_context(AUTHORITY, offered))
    assert client.error == "" and client.tls.get_alpn_proto_negotiated() == chosen
    if chosen != b"h2":
        assert answers(client)
    else:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        assert client.read()[3:4] == b"\4"  # SETTINGS


def test_without_a_protocol_in_common_the_handshake_fails() -> None:
    run = proxy(alpn_protocols=["h2"])
    client = connect(run, client_context(AUTHORITY, (b"http/1.1",)))
    assert "no application protocol" in client.error and not client.far.open
    assert run.counted("tls_handshake_failures_total") == {"no application protocol in common": 1}


# --- time


@pytest.mark.claims("limits: TLS handshake timeout")
@pytest.mark.parametrize(("configured", "seconds"), [(0, 15.0), (500, 0.5)])
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", None], ids=["nothing", "part of a hello", "a hello"])
def test_a_handshake_that_takes_longer_is_given_up(configured: int, seconds: float, sent: bytes | None) -> None:
    run = proxy(handshake_timeout_ms=configured)
    far = run.connect()
    if sent is None:
        client = TlsClient(far, "shop.example", AUTHORITY, handshake=False)
        with pytest.raises(SSL.WantReadError):
            client.tls.do_handshake()
        client.flush()
    elif sent:
        far.send(sent)
    run.advance(seconds - 0.1)
    assert far.open
    run.advance(0.2)
    assert not far.open
