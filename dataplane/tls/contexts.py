"""From settings to OpenSSL's contexts, one function for each side. What cannot be used raises `BadSettings`.

A context is made when configuration changes and shared by all connections that are spoken by it. It holds the keys that
seal the tickets of its sessions (RFC 8446 4.6.1), so a session is resumed by the context that began it alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from OpenSSL import SSL, crypto

from dataplane.tls import binding, staples
from dataplane.tls.settings import (
    GROUPS,
    NOT_ASKED,
    SUITES_1_2,
    SUITES_1_3,
    TLS_1_2,
    Asks,
    BadSettings,
    Identity,
    TlsSettings,
    Verification,
)
from dataplane.tls.staples import Staple
from gatewright import presenting, spiffe

log = logging.getLogger("dataplane.tls")

SESSION_NAME: Final = b"gatewright"
"""Which server's sessions these are (SSL_CTX_set_session_id_context): asked for where clients have certificates."""

SESSION_SECONDS: Final = 7200
"""How long a session may be resumed."""

NO_AUTO_CHAIN: Final = 8
"""SSL_MODE_NO_AUTO_CHAIN: present the chain that was given. Without it OpenSSL looks in each handshake for
authorities of a certificate that comes alone, among those that are meant for clients' certificates."""

MAX_DEPTH: Final = 10
"""Certificates between a peer's and an authority's."""

MAX_RSA: Final = 8192
"""Bits of a private key. A signature takes the cube of them: 80 ms of 16,384."""

MAX_DSA: Final = 3072
"""Bits of a key of DSA in a chain that a client sends: checking a signature takes eight times as long as with RSA."""

PrivateKey: TypeAlias = (
    rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
)

_KINDS: Final = {
    rsa.RSAPrivateKey: "RSA",
    ec.EllipticCurvePrivateKey: "EC",
    ed25519.Ed25519PrivateKey: "Ed25519",
    ed448.Ed448PrivateKey: "Ed448",
}
"""Kinds of keys, of each of which a context has one certificate."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """An identity that was read and checked."""

    chain: bytes = field(repr=False)
    """PEM, its own certificate first."""
    key: PrivateKey = field(repr=False)
    kind: str
    """Of its key."""
    expires: float
    """When the first certificate of the chain is not valid any more, in seconds since the epoch."""
    staple: Staple | None = None
    """What is presented beside it to clients that ask."""
    unstapled: str = ""
    """Why a staple that there is is not presented."""


def load(identity: Identity, now: float = 0.0) -> Loaded:
    """Raises `BadSettings`. `now`, in seconds since the epoch: for staples."""
    try:
        chain = x509.load_pem_x509_certificates(identity.chain)
    except ValueError:
        raise BadSettings("the certificate is not in PEM form") from None
    try:
        # Whether a large RSA key is sound is not asked: the answer takes seconds, and others wait meanwhile.
        key = load_pem_private_key(identity.key, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # the error may repeat what it could not read
        raise BadSettings("the private key cannot be read") from None
    kind = next((name for of, name in _KINDS.items() if isinstance(key, of)), "")
    if not kind:
        raise BadSettings("the private key is of a kind that TLS has no use for")
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size > MAX_RSA:
        raise BadSettings(f"the RSA key has {key.key_size} bits, more than {MAX_RSA}: signing with it takes too long")
    if chain[0].public_key() != key.public_key():
        raise BadSettings("the private key is not that of the certificate")
    pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)
    try:
        presenting.check(chain[0], pem, key)
    except presenting.Unusable as error:
        raise BadSettings(f"the certificate {error}") from None
    expires = min(certificate.not_valid_after_utc.timestamp() for certificate in chain)
    staple, unstapled = _stapled(identity, chain, now) if identity.staple else (None, "")
    return Loaded(pem, cast("PrivateKey", key), kind, expires, staple, unstapled)


def _stapled(identity: Identity, chain: list[x509.Certificate], now: float) -> tuple[Staple | None, str]:
    """The staple, or why there is none: a certificate is presented without one."""
    try:
        above = x509.load_pem_x509_certificates(identity.authorities) if identity.authorities else []
        return staples.read(identity.staple, [*chain, *above], now), ""
    except BadSettings as error:
        return None, str(error)
    except ValueError:
        return None, "the certificates of ca.crt are not in PEM form"


def server_context(
    settings: TlsSettings, identities: Sequence[Loaded], clients: Verification = NOT_ASKED
) -> SSL.Context:
    """The context of a listener. Raises `BadSettings`. Of several identities with keys of one kind the first counts."""
    context = _context(SSL.TLS_SERVER_METHOD, settings)
    context.set_options(SSL.OP_CIPHER_SERVER_PREFERENCE)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)  # sessions are in tickets; a cache would be memory per client
    context.set_session_id(SESSION_NAME)
    context.set_timeout(SESSION_SECONDS)
    if not identities:
        raise BadSettings("no certificate")
    used = [
        next(each for each in identities if each.kind == kind) for kind in dict.fromkeys(i.kind for i in identities)
    ]
    for identity in used:
        _use(context, identity)
    _staple(context, used)
    if settings.alpn:
        binding.choose_protocol(context, settings.alpn)
    _verify(context, clients)
    if clients.asks is Asks.VALID:
        whom = _of_domains(clients.trust_domains) if clients.trust_domains else None
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, whom)
        if whom is not None:
            context.set_options(SSL.OP_NO_TICKET)  # certificates of workloads are short-lived: each is looked at
    elif clients.asks is Asks.PERHAPS:
        # A resumed session would not say whether its certificate was valid, so there is none.
        context.set_options(SSL.OP_NO_TICKET)
        context.set_verify(SSL.VERIFY_PEER, any_certificate)
    return context


def _staple(context: SSL.Context, used: Sequence[Loaded]) -> None:
    """Present responses of OCSP to clients that ask (RFC 6066 8), each beside its own certificate."""
    found = {_der_of(identity): identity.staple for identity in used if identity.staple is not None}
    if not found:
        return
    ended: set[bytes] = set()

    def present(connection: SSL.Connection, _: object) -> bytes:
        own = connection.get_certificate()  # the one that OpenSSL has chosen for this client
        if own is None:
            return b""
        name = crypto.dump_certificate(crypto.FILETYPE_ASN1, own)
        staple = found.get(name)
        if staple is None or staple.is_valid(time.time()):
            return b"" if staple is None else staple.response
        if name not in ended:
            ended.add(name)
            log.warning("an OCSP response is not presented any more: it was valid until %s", _moment(staple.ends))
        return b""

    context.set_ocsp_server_callback(present)


def _der_of(identity: Loaded) -> bytes:
    return x509.load_pem_x509_certificates(identity.chain)[0].public_bytes(Encoding.DER)


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def client_context(settings: TlsSettings, verification: Verification, identity: Loaded | None = None) -> SSL.Context:
    """A context for connections to endpoints. Raises `BadSettings`. Names in certificates are not checked by it."""
    context = _context(SSL.TLS_CLIENT_METHOD, settings)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)  # `upstream` keeps the session of each destination
    if identity is not None:
        _use(context, identity)
    if settings.alpn:
        context.set_alpn_protos(list(settings.alpn))
    if verification.asks is not Asks.NOTHING:
        _verify(context, verification)
        context.set_verify(SSL.VERIFY_PEER)
    return context


def accepting(context: SSL.Context) -> SSL.Connection:
    """The side of the server, of one connection."""
    return binding.accepted(context)


def connecting(context: SSL.Context, name: str = "") -> SSL.Connection:
    """The side of the client; `name`: the server's, for SNI; an IP address is none (RFC 6066 3)."""
    connection = SSL.Connection(context, None)
    connection.set_connect_state()
    if name:
        connection.set_tlsext_host_name(name.encode())
    return connection


def _context(method: int, settings: TlsSettings) -> SSL.Context:
    least, most = settings.versions()
    if least > most:
        raise BadSettings("the versions and cipher suites leave no version of TLS")
    context = SSL.Context(method)
    context.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_COMPRESSION)
    context.clear_mode(SSL._lib.SSL_MODE_ENABLE_PARTIAL_WRITE)  # type: ignore[attr-defined]  # BIOs take all at once
    context.set_mode(SSL.MODE_RELEASE_BUFFERS | NO_AUTO_CHAIN)
    context.set_min_proto_version(least)
    context.set_max_proto_version(most)
    unknown = [suite for suite in settings.suites if suite not in SUITES_1_2 and suite not in SUITES_1_3]
    if unknown:
        raise BadSettings(f"cipher suite {unknown[0]!r} is unknown to this proxy")
    old = [SUITES_1_2[suite] for suite in settings.suites if suite in SUITES_1_2]
    new = [SUITES_1_3[suite] for suite in settings.suites if suite in SUITES_1_3]
    if least == TLS_1_2:
        context.set_cipher_list(":".join(old).encode())
    if new:
        context.set_tls13_ciphersuites(":".join(new).encode())
    if not all(group in GROUPS for group in settings.groups) or not binding.set_groups(
        context, [GROUPS[group] for group in settings.groups]
    ):
        raise BadSettings(f"key exchange groups {', '.join(settings.groups)}: one of them is unknown to this proxy")
    return context


def _use(context: SSL.Context, identity: Loaded) -> None:
    """Present an identity, beside those with keys of other kinds."""
    try:
        presenting.use(context, identity.chain, identity.key)
    except presenting.Unusable as error:
        raise BadSettings(f"the certificate {error}") from None


def _verify(context: SSL.Context, verification: Verification) -> None:
    """Believe the authorities of a verification."""
    if verification.asks is Asks.NOTHING:
        return
    context.set_verify_depth(MAX_DEPTH)
    if verification.authorities is None:
        context.set_default_verify_paths()
    store = context.get_cert_store()
    assert store is not None  # a context that was just made has one
    for text in verification.authorities or ():
        for certificate in _authorities(text):
            store.add_cert(crypto.X509.from_cryptography(certificate))
            context.add_client_ca(certificate)  # its name is what a client is asked for
    for text in verification.revocations:
        try:
            store.add_crl(x509.load_pem_x509_crl(text.encode()))
        except ValueError:
            raise BadSettings("a revocation list is not in PEM form") from None
    if verification.revocations:
        store.set_flags(crypto.X509StoreFlags.CRL_CHECK | crypto.X509StoreFlags.CRL_CHECK_ALL)


def _authorities(text: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise BadSettings("a certificate of an authority is not in PEM form") from None


def any_certificate(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, ok: int) -> bool:
    """Goes on with a certificate that is not valid, and notes that it is not. OpenSSL checks the signatures of such a
    chain all the same, each after this was called for the key that it is checked with."""
    if not ok:
        connection.set_app_data(binding.UNPROVEN)
    return not _is_slow(certificate)


def _of_domains(domains: tuple[str, ...]) -> Callable[[SSL.Connection, crypto.X509, int, int, int], bool]:
    """Goes on with a valid certificate whose SPIFFE id is of one of these trust domains."""

    def judged(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, ok: int) -> bool:
        if not ok or depth:
            return bool(ok)
        return spiffe.trust_domain(spiffe.readable_uris_of(certificate.to_cryptography())) in domains

    return judged


def _is_slow(certificate: crypto.X509) -> bool:
    """Whether signatures of its holder take long to check: ten with keys of 16,384 bits hold a worker for 70 ms."""
    try:
        key = certificate.get_pubkey()
    except crypto.Error:
        return True  # unknown size
    return key.bits() > (MAX_DSA if key.type() == crypto.TYPE_DSA else MAX_RSA)
