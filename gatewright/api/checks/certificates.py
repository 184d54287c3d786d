"""What is wrong with certificates, keys and lists of revoked certificates in PEM form; nothing of what is in them.

Called by translation for Secrets and ConfigMaps, and by the standalone file for its own. Anyone who may write one of
these must not hold its reader up: all are bounded, and no key is examined that takes long.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from gatewright import presenting

CERTIFICATE: Final = "tls.crt"
"""The entry of a Secret with a certificate and those that signed it."""
KEY: Final = "tls.key"
"""The entry with its private key."""
STAPLE: Final = "tls.ocsp-staple"
"""The entry with an OCSP response about the certificate, DER or that in base64. Gatewright extension."""
AUTHORITIES: Final = "ca.crt"
"""The entry with who signed the certificate, PEM."""
LONGEST_CHAIN: Final = 262_144
LONGEST_KEY: Final = 16_384
LONGEST_BUNDLE: Final = 1_048_576
"""Bytes. The certificates of all public authorities are a quarter of the last."""
SMALLEST_RSA: Final = 2_048
"""Bits. OpenSSL takes no smaller key at its default security level."""
LARGEST_RSA: Final = 8_192
"""Bits. Checking a larger key, and signing with it, takes seconds."""


EXPIRES_SOON: Final = 14 * 86_400
"""Seconds before a certificate expires in which it is warned of."""


class EntryProblem(NamedTuple):
    """What is wrong with an entry: a text that follows "that" or the entry's name."""

    entry: str
    text: str


def pair_problem(chain: bytes, key: bytes) -> EntryProblem | None:
    """What keeps a certificate and its key from being used."""
    for entry, value, longest in ((CERTIFICATE, chain, LONGEST_CHAIN), (KEY, key, LONGEST_KEY)):
        if len(value) > longest:
            return EntryProblem(entry, f"is longer than {longest} bytes")
    try:
        certificates = x509.load_pem_x509_certificates(chain)
        public = certificates[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        return EntryProblem(CERTIFICATE, "is no certificate in PEM form")
    try:
        # Whether an RSA key is sound is asked where it is used: of a large one the answer takes seconds.
        private = serialization.load_pem_private_key(key, None, unsafe_skip_rsa_key_validation=True)
        own = private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        return EntryProblem(KEY, "is no private key in PEM form without a password")
    if own != public:
        return EntryProblem(KEY, "does not belong to the certificate")
    if isinstance(own, rsa.RSAPublicKey) and not SMALLEST_RSA <= own.key_size <= LARGEST_RSA:
        return EntryProblem(KEY, f"is an RSA key of {own.key_size} bits; {SMALLEST_RSA} to {LARGEST_RSA} are taken")
    if not isinstance(
        own, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey
    ):
        return EntryProblem(KEY, "is of a kind that TLS does not sign with: RSA, EC, Ed25519 and Ed448 do")
    try:
        presenting.check(certificates[0], b"".join(each.public_bytes(Encoding.PEM) for each in certificates), private)
    except presenting.Unusable as error:
        return EntryProblem(CERTIFICATE, str(error))
    return None


def expiry(chain: bytes) -> datetime | None:
    """When the first certificate of a chain that could be read, or one that signed it, is not valid any more."""
    try:
        return min(each.not_valid_after_utc for each in x509.load_pem_x509_certificates(chain))
    except ValueError:
        return None


def expiry_warning(expires: datetime | None, now: float) -> str:
    """What is said of a certificate that expires soon, or has expired; "" of others. `now`: seconds since the epoch."""
    if expires is None or expires.timestamp() - now > EXPIRES_SOON:
        return ""
    verb = "expires" if expires.timestamp() > now else "has expired"
    return f"{verb} on {expires:%Y-%m-%d} at {expires:%H:%M} UTC"


_PRIVATE: Final = "PRIVATE KEY-----"


def authorities_problem(text: str) -> str:
    """Why the text is no bundle of certificates; "" when it is. Bundles are public: one with a private key is none, as
    every client of what it verifies would get the key."""
    if len(text) > LONGEST_BUNDLE:
        return f"is longer than {LONGEST_BUNDLE} bytes"
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return "is no certificate in PEM form"
    return "has a private key: certificates of authorities are public" if _PRIVATE in text else ""


_END: Final = "-----END X509 CRL-----"


def revocations_problem(text: str) -> str:
    """Why the text is no sequence of lists of revoked certificates; "" when it is."""
    if len(text) > LONGEST_BUNDLE:
        return f"is longer than {LONGEST_BUNDLE} bytes"
    *lists, _ = text.split(_END)
    try:
        for each in lists:
            x509.load_pem_x509_crl(f"{each}{_END}".encode())
    except ValueError:
        lists = []
    return "" if lists else "is no list of revoked certificates in PEM form"
