"""A workload's certificate: the key and the signing request that it is asked for with, and what is
believed of an answer.

X.509-SVID: the identity is the one URI among the subject's alternative names. An authority that gives a certificate for
another key, another workload or another trust domain is not obeyed. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gatewright import spiffe

MOST_CERTIFICATES: Final = 16
"""Of one answer."""
RENEWED_AT: Final = 0.5
"""Part of its life after which a certificate is renewed: half of it is left for an authority that does not answer."""


class NotIssued(Exception):
    """An answer that gives no certificate to use; the text says why, and has nothing secret."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A key, and the request that proves it (PEM)."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    request: bytes


@dataclass(frozen=True, slots=True)
class Issued:
    """What workers get, as PEM, and when it is valid (seconds since the epoch)."""

    chain: bytes
    key: bytes = field(repr=False)
    authorities: bytes
    identity: str
    begins: float
    ends: float

    @property
    def renewed_at(self) -> float:
        return self.begins + (self.ends - self.begins) * RENEWED_AT


def ask(identity: str) -> Asked:
    """A new key for each certificate, and a request for `identity`, a SPIFFE id."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)])
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).add_extension(names, critical=True)
    return Asked(key, made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))


def read(asked: Asked, answer: Sequence[str], identity: str, further: bytes, now: float) -> Issued:
    """What an authority answered to a request for `identity`: the certificate, what is between it and the root, the
    root. `further`: authorities that are mounted, PEM; they are trusted too, so that a mesh can change its root.
    Raises `NotIssued`."""
    chain = _certificates(answer)
    leaf = chain[0]
    if _public(leaf.public_key()) != _public(asked.key.public_key()):
        raise NotIssued("the authority gave a certificate for another key")
    found = spiffe.readable_uris_of(leaf)
    if found != (identity,) or spiffe.workload(found) is None:
        raise NotIssued(f"the authority gave a certificate for {' and '.join(found) or 'none'}, not for {identity}")
    begins, ends = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
    if ends <= now:
        raise NotIssued("the authority gave a certificate that has ended already")
    roots = chain[-1:] if len(chain) > 1 else []
    between = chain[:-1] if roots else chain
    authorities = b"".join(each.public_bytes(Encoding.PEM) for each in roots) + further
    if not authorities:
        raise NotIssued("the authority gave no root, and none is mounted: no peer could be verified")
    return Issued(
        b"".join(each.public_bytes(Encoding.PEM) for each in between),
        asked.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        authorities,
        identity,
        max(begins, now),
        ends,
    )


def _certificates(answer: Sequence[str]) -> list[x509.Certificate]:
    """Raises `NotIssued`."""
    try:
        found = [each for text in answer[:MOST_CERTIFICATES] for each in _in(text)]
    except ValueError:
        raise NotIssued("the authority's answer holds a certificate that cannot be read") from None
    if not found or len(answer) > MOST_CERTIFICATES or len(found) > MOST_CERTIFICATES:
        raise NotIssued(f"the authority's answer holds no certificate, or more than {MOST_CERTIFICATES}")
    return found


def _in(text: str) -> list[x509.Certificate]:
    """Raises ValueError."""
    return x509.load_pem_x509_certificates(text.encode()) if text.strip() else []


def _public(key: object) -> bytes:
    made: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]  # of every kind of key
    return made
