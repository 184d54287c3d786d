"""TLS toward a server: settings to handshakes. Built when a policy is, used by `upstream/handshake`.

One `ClientSecurity` for equal certificates, authorities and groups: its context holds these. What differs by host
(name, ALPN, session) is each connection's own. OpenSSL is loaded when the first one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.tls import server_names
from dataplane.tls.settings import DEFAULT, GROUPS, Asks, BadSettings, Identity, TlsSettings, Verification

if TYPE_CHECKING:
    from cryptography import x509
    from OpenSSL import SSL, crypto

CHAIN, NOTHING = "chain", "nothing"
"""What of a server's certificate is verified: that an authority has signed it; nothing. Names are each connection's."""


class Kept(Protocol):
    """What is known by a key, else what `make` gives."""

    def __call__(self, key: str, make: Callable[[], ClientSecurity], /) -> ClientSecurity: ...


@dataclass(slots=True)
class Check:
    """What one connection verifies, and what came of it."""

    names: tuple[str, ...]
    """Of which the certificate must have one; () any."""
    problem: str = ""
    """Why the certificate was refused."""


class ClientSecurity:
    """`certificate`, `key`: our own, PEM, or b"". `authorities`: PEM, each some certificates; (): the system's.
    `groups`: names of the API, the preferred one first; (): the four. `verifies`: CHAIN or NOTHING. Raises
    `BadSettings`; of the system's authorities alone, which take some milliseconds and a MiB, nothing is read yet."""

    __slots__ = ("__weakref__", "_authorities", "_context", "_groups", "_identity", "_settings", "_texts", "verifies")

    def __init__(
        self,
        certificate: bytes = b"",
        key: bytes = b"",
        authorities: Sequence[bytes] = (),
        groups: Sequence[str] = (),
        verifies: str = CHAIN,
    ) -> None:
        self.verifies = verifies
        self._identity = Identity(certificate, key) if certificate else None
        self._settings = TlsSettings(alpn=(), groups=tuple(groups) or DEFAULT.groups)
        self._texts, self._groups = authorities, groups
        self._authorities = [each for text in authorities for each in _certificates(text)]
        self._context: SSL.Context | None = None
        if certificate or self._authorities:
            self._context = self._made()

    @property
    def has_certificate(self) -> bool:
        """One of our own."""
        return self._identity is not None

    def presenting(self, kept: Kept, certificate: bytes, key: bytes) -> ClientSecurity:
        """The same with a certificate of our own. As `security`."""
        return security(kept, certificate, key, self._texts, self._groups, self.verifies)

    def connection(self, server_name: str, alpn: Sequence[str], check: Check, session: object | None) -> SSL.Connection:
        """A connection that begins a handshake as a client, without a socket. `server_name`: DNS name that is sent, not
        sent when it is an address or "". `session`: of an earlier connection to the same server with equal `check`, or
        None."""
        from OpenSSL import SSL

        if self._context is None:
            self._context = self._made()
        made = SSL.Connection(self._context, None)
        made.set_app_data(check)
        made.set_connect_state()
        if server_name and server_names.address_of(server_name) is None:
            made.set_tlsext_host_name(server_name.encode("ascii"))
        if alpn:
            made.set_alpn_protos([name.encode("ascii") for name in alpn])
        if session is not None:
            made.set_session(session)  # type: ignore[arg-type]  # of an SSL.Connection
        return made

    def _made(self) -> SSL.Context:
        from OpenSSL import SSL, crypto

        from dataplane.tls import binding, contexts

        asks = Asks.NOTHING if self.verifies == NOTHING else Asks.VALID
        verification = Verification(asks, () if self._authorities else None)
        own = contexts.load(self._identity) if self._identity is not None else None
        context = contexts.client_context(self._settings, verification, own)
        binding.set_groups(context, group_shares(self._settings.groups))
        if self.verifies == NOTHING:
            context.set_verify(SSL.VERIFY_NONE)
            return context
        store = context.get_cert_store()
        assert store is not None  # a context that was just made has one
        store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)  # what is trusted need not be a root
        for each in self._authorities:
            store.add_cert(crypto.X509.from_cryptography(each))
        context.set_verify(SSL.VERIFY_PEER, _judged)
        return context

    def __repr__(self) -> str:
        return f"ClientSecurity({len(self._authorities) or 'system'} authorities)"


def security(
    kept: Kept,
    certificate: bytes = b"",
    key: bytes = b"",
    authorities: Sequence[bytes] = (),
    groups: Sequence[str] = (),
    verifies: str = CHAIN,
) -> ClientSecurity:
    """As `ClientSecurity`: the one of equal material where there is one. `kept`: `chain.filter.Env.kept`. Raises
    `BadSettings`."""
    parts = (certificate, key, verifies.encode(), ":".join(groups).encode(), *authorities)
    made = blake2b(digest_size=16)
    for part in parts:
        made.update(b"%d " % len(part) + part)
    return kept(
        f"client tls {made.hexdigest()}", lambda: ClientSecurity(certificate, key, authorities, groups, verifies)
    )


def group_shares(groups: Sequence[str]) -> list[str]:
    """The groups in OpenSSL's words, with a key share (`*`) for the first one and, where that is of ML-KEM, for the
    next: a server that does not know it needs no second round trip then (RFC 8446 4.1.4)."""
    many = 2 if groups[0] == "X25519_MLKEM768" else 1
    return [f"{'*' if index < many else ''}{GROUPS[group]}" for index, group in enumerate(groups)]


def _certificates(text: bytes) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError:
        raise BadSettings("a certificate of an authority is not in PEM form") from None


def _judged(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, good: int) -> bool:
    """Called by OpenSSL for each certificate of a chain, the server's own (depth 0) last."""
    check: Check = connection.get_app_data()
    if not good:
        check.problem = check.problem or _reason(error, depth)
        return False
    if depth == 0 and check.names and not _is_for(certificate, check.names):
        check.problem = f"its certificate is not for {' or '.join(check.names)}"
        return False
    return True


def _is_for(certificate: crypto.X509, names: Sequence[str]) -> bool:
    """Whether it has one of `names`; of one that the library cannot read, OpenSSL being less strict, none is known."""
    from cryptography import x509

    try:
        read = certificate.to_cryptography()
    except (ValueError, x509.InvalidVersion):
        return False
    return server_names.matches(read, names)


def _reason(error: int, depth: int) -> str:
    from OpenSSL import SSL

    lib: Any = SSL._lib  # type: ignore[attr-defined]  # functions of C
    text = SSL._ffi.string(lib.X509_verify_cert_error_string(error)).decode()  # type: ignore[attr-defined]
    return f"its certificate cannot be verified: {text}" + (f" (certificate {depth} of the chain)" if depth else "")


__all__ = ["CHAIN", "NOTHING", "BadSettings", "Check", "ClientSecurity", "security"]
