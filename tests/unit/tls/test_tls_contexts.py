"""What settings make of OpenSSL's contexts: whom each side believes, what it offers and chooses, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa, x25519
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from dataplane.tls.contexts import (
    MAX_RSA,
    SESSION_SECONDS,
    accepting,
    client_context,
    connecting,
    load,
    server_context,
)
from dataplane.tls.settings import (
    DEFAULT,
    NOT_ASKED,
    TLS_1_2,
    TLS_1_3,
    Asks,
    BadSettings,
    Identity,
    TlsSettings,
    Verification,
)
from gatewright.presenting import reason_of
from tests.fakes.certificates import EC, RSA, Authority, Issued, pem_of

AUTHORITY, OTHER = Authority(), Authority("Other Root")
NAME = "shop.example"
ISSUED = AUTHORITY.issue(NAME)


def identity(issued: Issued = ISSUED) -> Identity:
    return Identity(issued.chain, issued.key)


def believes(*authorities: Authority, revocations: tuple[str, ...] = ()) -> Verification:
    return Verification(Asks.VALID, tuple(each.pem.decode() for each in authorities), revocations)


def shaken(server: SSL.Context, client: SSL.Context, name: str = NAME) -> tuple[SSL.Connection, SSL.Connection]:
    """The server's side and the client's after their handshake. Raises as OpenSSL does on either."""
    near, far = connecting(client, name), accepting(server)
    for _ in range(3):
        for side, other in ((near, far), (far, near)):
            try:
                side.do_handshake()
            except SSL.WantReadError:
                pass
            try:
                other.bio_write(side.bio_read(65_536))
            except SSL.WantReadError:
                continue
    return far, near


# --- certificates and keys


def sized(bits: int) -> bytes:
    """An RSA key of so many bits: of two odd numbers, because looking for primes takes seconds."""
    p, q = 2**4096 - 1, 2 ** (bits - 4096) - 3
    d = pow(65537, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(65537, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return pem_of(numbers.private_key(unsafe_skip_rsa_key_validation=True))


@pytest.mark.parametrize(("bits", "words"), [(MAX_RSA, "not that of the certificate"), (MAX_RSA + 8, "8200 bits")])
def test_an_rsa_key_has_so_many_bits_at_most(bits: int, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        load(Identity(ISSUED.chain, sized(bits)))


@pytest.mark.parametrize(
    ("chain", "key", "words"),
    [
        (b"nothing", ISSUED.key, "the certificate is not in PEM form"),
        (ISSUED.chain, b"nothing", "the private key cannot be read"),
        (ISSUED.chain, pem_of(x25519.X25519PrivateKey.generate()), "of a kind that TLS has no use for"),
        (ISSUED.chain, AUTHORITY.issue(NAME).key, "the private key is not that of the certificate"),
    ],
)
def test_what_cannot_be_an_identity_is_refused_with_the_reason(chain: bytes, key: bytes, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        load(Identity(chain, key))


@pytest.mark.parametrize(("days", "first"), [(500, "authority"), (3, "own")])
def test_a_chain_expires_when_its_first_certificate_does(days: float, first: str) -> None:
    between = Authority("Between", AUTHORITY)
    issued = between.issue(NAME, days=days)
    ends = {"authority": between.certificate, "own": issued.certificate}
    loaded = load(identity(issued))
    assert loaded.expires == ends[first].not_valid_after_utc.timestamp()
    assert (loaded.kind, loaded.chain, loaded.staple, loaded.unstapled) == (EC, issued.chain, None, "")


def test_a_certificate_with_a_key_that_is_too_weak_is_refused_with_the_reason() -> None:
    weak, old = rsa.generate_private_key(65537, 1024), ISSUED.certificate
    builder = x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.issuer).serial_number(7)
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    made = builder.public_key(weak.public_key()).sign(AUTHORITY.key, hashes.SHA256())
    with pytest.raises(BadSettings, match="the certificate cannot be used: ee key too small"):
        load(Identity(made.public_bytes(Encoding.PEM), pem_of(weak)))


def test_a_server_without_a_certificate_is_refused() -> None:
    with pytest.raises(BadSettings, match="no certificate"):
        server_context(DEFAULT, [])


def test_of_several_certificates_with_keys_of_one_kind_the_first_is_presented() -> None:
    first, second, third = (AUTHORITY.issue(NAME, kind=kind) for kind in (RSA, EC, EC))
    server = server_context(DEFAULT, [load(identity(each)) for each in (first, second, third)])
    for suite, issued in (("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", first), (ECDSA_128, second)):
        client = client_context(TlsSettings(maximum=TLS_1_2, suites=(suite,)), believes(AUTHORITY))
        _, near = shaken(server, client)
        assert near.get_peer_certificate(as_cryptography=True) == issued.certificate


# --- how it is spoken

ECDSA_128, ECDSA_256 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
NEW_128, NEW_256 = "TLS13_AES_128_GCM_SHA256", "TLS13_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("server", "client", "expected"),
    [
        ((ECDSA_256, ECDSA_128), (ECDSA_128, ECDSA_256), "ECDHE-ECDSA-AES256-GCM-SHA384"),  # the server's order
        ((ECDSA_128, ECDSA_256), (ECDSA_256, ECDSA_128), "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ((ECDSA_128, ECDSA_256), (ECDSA_256,), "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ((NEW_256, NEW_128), (NEW_128, NEW_256), "TLS_AES_256_GCM_SHA384"),
        ((NEW_128, NEW_256), (NEW_256, NEW_128), "TLS_AES_128_GCM_SHA256"),
        ((NEW_256,), DEFAULT.suites, "TLS_AES_256_GCM_SHA384"),
        ((NEW_256, ECDSA_128), (ECDSA_128,), "ECDHE-ECDSA-AES128-GCM-SHA256"),  # both versions
        ((NEW_256, ECDSA_128), (NEW_256,), "TLS_AES_256_GCM_SHA384"),
        (DEFAULT.suites, (NEW_256,), "TLS_AES_256_GCM_SHA384"),
        (DEFAULT.suites, (ECDSA_256,), "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ((ECDSA_256,), DEFAULT.suites, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ],
)
def test_the_suite_is_the_servers_first_that_the_client_has(
    server: tuple[str, ...], client: tuple[str, ...], expected: str
) -> None:
    contexts = (
        server_context(TlsSettings(suites=server), [load(identity())]),
        client_context(TlsSettings(suites=client), NOT_ASKED),
    )
    assert [side.get_cipher_name() for side in shaken(*contexts)] == [expected] * 2


@pytest.mark.parametrize(
    ("server", "client"),
    [
        (TlsSettings(suites=(ECDSA_128,)), TlsSettings(suites=(ECDSA_256,))),
        (TlsSettings(suites=(NEW_128,)), TlsSettings(suites=(NEW_256,))),
        (TlsSettings(suites=(NEW_128,)), TlsSettings(suites=(ECDSA_128,))),
        (TlsSettings(minimum=TLS_1_3), TlsSettings(maximum=TLS_1_2)),
        (TlsSettings(maximum=TLS_1_2), TlsSettings(minimum=TLS_1_3)),
        (TlsSettings(groups=("P-256",)), TlsSettings(groups=("P-384", "X25519"))),
        (TlsSettings(alpn=(b"h2",)), TlsSettings(alpn=(b"http/1.1",))),
    ],
    ids=["suites", "newer suites", "versions of suites", "new and old", "old and new", "groups", "protocols"],
)
def test_sides_that_have_nothing_in_common_fail(server: TlsSettings, client: TlsSettings) -> None:
    with pytest.raises(SSL.Error):
        shaken(server_context(server, [load(identity())]), client_context(client, NOT_ASKED))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (TlsSettings(minimum=TLS_1_3, maximum=TLS_1_2), "leave no version of TLS"),
        (TlsSettings(minimum=TLS_1_3, suites=(ECDSA_128,)), "leave no version of TLS"),
        (TlsSettings(maximum=TLS_1_2, suites=(NEW_128,)), "leave no version of TLS"),
        (TlsSettings(suites=(NEW_128, "TLS_NONE", ECDSA_128)), "cipher suite 'TLS_NONE' is unknown"),
        (TlsSettings(groups=("X25519", "P-521")), "groups X25519, P-521: one of them is unknown"),
        (TlsSettings(groups=("none",)), "groups none: one of them is unknown"),
    ],
)
def test_settings_that_leave_nothing_or_are_unknown_are_refused(settings: TlsSettings, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        server_context(settings, [load(identity())])
    with pytest.raises(BadSettings, match=words):
        client_context(settings, NOT_ASKED)


@pytest.mark.parametrize("alpn", [(), (b"h2", b"http/1.1")])
@pytest.mark.parametrize("offered", [(), (b"http/1.1",), (b"http/1.1", b"h2")])
def test_a_protocol_is_chosen_where_both_sides_name_some(alpn: tuple[bytes, ...], offered: tuple[bytes, ...]) -> None:
    server = server_context(replace(DEFAULT, alpn=alpn), [load(identity())])
    far, near = shaken(server, client_context(replace(DEFAULT, alpn=offered), NOT_ASKED))
    expected = next((name for name in alpn if name in offered), b"")
    assert far.get_alpn_proto_negotiated() == near.get_alpn_proto_negotiated() == expected


@pytest.mark.parametrize("name", ["", NAME])
def test_the_name_is_sent_where_there_is_one(name: str) -> None:
    far, _ = shaken(server_context(DEFAULT, [load(identity())]), client_context(DEFAULT, NOT_ASKED), name)
    assert far.get_servername() == (name.encode() or None)


def test_sessions_are_in_tickets_for_two_hours_and_no_context_keeps_them() -> None:
    server, client = server_context(DEFAULT, [load(identity())]), client_context(DEFAULT, NOT_ASKED)
    assert SESSION_SECONDS == server.get_timeout() == 2 * 3600
    assert server.get_session_cache_mode() == client.get_session_cache_mode() == SSL.SESS_CACHE_OFF


# --- whom a side believes


@pytest.mark.parametrize(
    ("believed", "is_taken"), [((AUTHORITY,), True), ((OTHER, AUTHORITY), True), ((OTHER,), False)]
)
def test_a_client_believes_the_authorities_that_it_has(believed: tuple[Authority, ...], is_taken: bool) -> None:
    server, client = server_context(DEFAULT, [load(identity())]), client_context(DEFAULT, believes(*believed))
    if is_taken:
        _, near = shaken(server, client)
        assert near.get_peer_certificate(as_cryptography=True) == ISSUED.certificate
    else:
        with pytest.raises(SSL.Error, match="certificate verify failed"):
            shaken(server, client)


def test_those_of_the_system_are_believed_by_a_client_that_names_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "roots.pem").write_bytes(AUTHORITY.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    server = server_context(DEFAULT, [load(identity())])
    shaken(server, client_context(DEFAULT, Verification(Asks.VALID, None)))
    for named in ((OTHER.pem.decode(),), ()):
        with pytest.raises(SSL.Error, match="certificate verify failed"):
            shaken(server, client_context(DEFAULT, Verification(Asks.VALID, named)))


def test_a_client_is_asked_by_the_names_of_the_authorities() -> None:
    own = load(identity(AUTHORITY.issue("cart", client=True)))
    server = server_context(DEFAULT, [load(identity())], believes(AUTHORITY, OTHER))
    far, near = shaken(server, client_context(DEFAULT, NOT_ASKED, own))
    assert [name.CN for name in near.get_client_ca_list()] == ["Test Root", "Other Root"]
    assert far.get_peer_certificate() is not None


@pytest.mark.parametrize("asks", [Asks.NOTHING, Asks.PERHAPS])
def test_a_server_that_need_not_know_serves_a_client_without_a_certificate(asks: Asks) -> None:
    verification = replace(believes(AUTHORITY), asks=asks)
    far, _ = shaken(server_context(DEFAULT, [load(identity())], verification), client_context(DEFAULT, NOT_ASKED))
    assert far.get_peer_certificate() is None


@pytest.mark.parametrize(
    ("lists", "is_taken"),
    [
        ((), True),
        (("root", "between"), True),
        (("root without between", "between"), False),
        (("root", "between without client"), False),
        (("between",), False),  # each certificate of a chain needs one
        (("root",), False),
    ],
)
def test_every_certificate_of_a_chain_has_to_be_on_no_list(lists: tuple[str, ...], is_taken: bool) -> None:
    between = Authority("Between", AUTHORITY)
    issued = between.issue("cart", client=True)
    above = Issued(between.pem, b"", between.certificate)
    made = {
        "root": AUTHORITY.revoke(),
        "root without between": AUTHORITY.revoke(above),
        "between": between.revoke(),
        "between without client": between.revoke(issued),
    }
    verification = believes(AUTHORITY, revocations=tuple(made[name].decode() for name in lists))
    server = server_context(DEFAULT, [load(identity())], verification)
    client = client_context(DEFAULT, NOT_ASKED, load(identity(issued)))
    if is_taken:
        far, _ = shaken(server, client)
        assert far.get_peer_certificate(as_cryptography=True) == issued.certificate
    else:
        with pytest.raises(SSL.Error, match="certificate verify failed"):
            shaken(server, client)


@pytest.mark.parametrize(
    ("verification", "words"),
    [
        (Verification(Asks.VALID, ("nothing",)), "a certificate of an authority is not in PEM form"),
        (Verification(Asks.PERHAPS, (), ("nothing",)), "a revocation list is not in PEM form"),
    ],
)
def test_what_cannot_be_read_of_whom_to_believe_is_refused(verification: Verification, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        server_context(DEFAULT, [load(identity())], verification)


# --- what OpenSSL says


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SSL.Error([("lib", "function", "first"), ("lib", "function", "no shared cipher")]), "no shared cipher"),
        (SSL.Error([("lib", "function", "no application protocol")]), "no application protocol in common"),
        (SSL.Error([]), "Error"),
        (SSL.Error(), "Error"),
        (SSL.ZeroReturnError(), "ZeroReturnError"),
        (SSL.SysCallError(104, "ECONNRESET"), "SysCallError"),
    ],
)
def test_the_reason_is_the_last_that_openssl_gave_or_the_kind_of_error(error: SSL.Error, words: str) -> None:
    assert reason_of(error) == words
