"""A certificate with its private key, as OpenSSL presents it: loaded as proxies load it, and whether a handshake can
come of it at all.

Called by data planes, which present it, and by those who check it before (`gatewright.api.checks.certificates`): what
they take must be the same. A plane that cannot use one says why in the same words.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import PublicKeyAlgorithmOID

if TYPE_CHECKING:
    from cryptography import x509
    from OpenSSL import SSL

CURVES: Final = frozenset(
    ("secp256r1", "secp384r1", "secp521r1", "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1")
)
"""Curves whose keys sign handshakes (RFC 8446 4.2.3, RFC 8734), by SECG's names. OpenSSL loads others too, and then has
no cipher in common with anybody."""


class Unusable(Exception):
    """Why it cannot be presented: a text that follows "the certificate"."""


def check(certificate: x509.Certificate, pem: bytes, key: Any) -> None:
    """Raises `Unusable`. `certificate`: the first of the chain `pem`; `key`: its private key (Any: of cryptography)."""
    if certificate.public_key_algorithm_oid == PublicKeyAlgorithmOID.RSASSA_PSS:
        raise Unusable("is for RSA-PSS alone (rsassaPss); a key of plain RSA (rsaEncryption) signs with it as well")
    public = certificate.public_key()
    if isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name not in CURVES:
        raise Unusable(f"has a key of the curve {public.curve.name}, with which TLS does not sign; P-256 is taken")
    from OpenSSL import SSL  # here: most who check configuration have no certificates

    use(SSL.Context(SSL.TLS_SERVER_METHOD), pem, key)


def use(context: SSL.Context, pem: bytes, key: Any) -> None:
    """Present a chain (PEM, its own certificate first), beside those with keys of other kinds. Raises `Unusable`.

    pyOpenSSL has one chain for all certificates of a context; of a file OpenSSL takes one for each.
    """
    from OpenSSL import SSL

    try:
        with _as_file(pem) as path:
            context.use_certificate_chain_file(path)
        context.use_privatekey(key)
    except SSL.Error as error:
        raise Unusable(f"cannot be used: {reason_of(error)}") from None


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A file in memory, where the system has such; certificates are public."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("chain", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def reason_of(error: SSL.Error) -> str:
    """OpenSSL's own words for what went wrong: `no shared cipher`."""
    entries = error.args[0] if error.args else ()
    words = str(entries[-1][2]) if entries and isinstance(entries, (list, tuple)) else type(error).__name__
    return _CLEARER.get(words, words)


_CLEARER: Final = {"no application protocol": "no application protocol in common"}
"""OpenSSL's words, where they say less than is known."""
