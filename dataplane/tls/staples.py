"""OCSP responses that a listener presents beside its certificate (stapling: RFC 6066 8, RFC 6960): read, and verified
against the certificate that they are about. Pure but for the time that is handed in.

A response is in the entry `STAPLE` of the certificate's Secret; whatever renews the certificate writes it there. No
responder is asked from here.
One that is wrong, or not valid now, is not presented: clients would refuse what they accept without it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from dataplane.tls.settings import BadSettings

STAPLE: Final = "tls.ocsp-staple"
"""The entry of a Secret: a response in DER, or that in base64."""

LARGEST: Final = 65_536
"""Bytes of a response; each handshake of a client that asks for it carries them."""

LARGEST_RSA: Final = 8192
"""Bits of a responder's key. Checking a signature with a larger one takes too long."""

MOST_RESPONDERS: Final = 8
"""Certificates of a response that are looked at for its responder's."""

EARLY: Final = 300.0
"""Seconds by which a responder's clock may be ahead."""

_SEQUENCE: Final = b"\x30"
"""What DER of a response begins with."""


@dataclass(frozen=True, slots=True)
class Staple:
    """A response that says that a certificate is good, between two moments in seconds since the epoch."""

    response: bytes = field(repr=False)
    begins: float
    ends: float

    def is_valid(self, now: float) -> bool:
        return self.begins - EARLY <= now < self.ends


def read(content: bytes, chain: list[x509.Certificate], now: float) -> Staple:
    """The response in `content`, which is about the first certificate of `chain`. `chain` has its issuer. Raises
    `BadSettings`."""
    if len(content) > 2 * LARGEST:
        raise BadSettings(f"it is longer than {LARGEST} bytes")
    der = content if content.startswith(_SEQUENCE) else _decoded(content)
    if len(der) > LARGEST:
        raise BadSettings(f"it is longer than {LARGEST} bytes")
    try:
        response = ocsp.load_der_ocsp_response(der)
    except ValueError:
        raise BadSettings("it is no OCSP response") from None
    if response.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
        raise BadSettings(f"its responder answered {response.response_status.name}")
    own, issuer = chain[0], _issuer(chain)
    about = _about(response, own, issuer)
    _verify(response, issuer, now)
    if about.certificate_status is not ocsp.OCSPCertStatus.GOOD:
        raise BadSettings(f"it says that the certificate is {about.certificate_status.name}")
    if about.next_update_utc is None:
        raise BadSettings("it does not say until when it is valid")
    staple = Staple(der, about.this_update_utc.timestamp(), about.next_update_utc.timestamp())
    if not staple.is_valid(now):
        begins, ends = (f"{each:%Y-%m-%d %H:%M}" for each in (about.this_update_utc, about.next_update_utc))
        raise BadSettings(f"it is valid from {begins} to {ends} UTC")
    return staple


def _decoded(content: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(content.split()), validate=True)
    except binascii.Error:
        raise BadSettings("it is neither DER nor base64") from None


def _issuer(chain: list[x509.Certificate]) -> x509.Certificate:
    for each in chain[1:]:
        if each.subject == chain[0].issuer:
            key = each.public_key()
            if isinstance(key, rsa.RSAPublicKey) and key.key_size > LARGEST_RSA:
                raise BadSettings(f"its issuer's RSA key has {key.key_size} bits, more than {LARGEST_RSA}")
            return each
    raise BadSettings("the certificate that signed the listener's is in neither tls.crt nor ca.crt")


def _about(response: ocsp.OCSPResponse, own: x509.Certificate, issuer: x509.Certificate) -> ocsp.OCSPSingleResponse:
    """The part about our certificate."""
    for each in response.responses:
        if _names(each, own, issuer):
            return each
    raise BadSettings("it is about another certificate")


def _names(single: ocsp.OCSPSingleResponse, own: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether a part names our certificate (RFC 6960 4.1.1: its number, and digests of its issuer's name and key)."""
    if single.serial_number != own.serial_number:
        return False
    try:
        asked = ocsp.OCSPRequestBuilder().add_certificate(own, issuer, single.hash_algorithm).build()
    except (ValueError, UnsupportedAlgorithm):
        return False
    return (asked.issuer_name_hash, asked.issuer_key_hash) == (single.issuer_name_hash, single.issuer_key_hash)


def _verify(response: ocsp.OCSPResponse, issuer: x509.Certificate, now: float) -> None:
    """RFC 6960 4.2.2.2: it is signed by the issuer, or by whom the issuer has named as a responder."""
    named = response.certificates[:MOST_RESPONDERS]
    signer = next((each for each in named if _is_delegate(each, issuer, now)), issuer)
    try:
        _check(signer.public_key(), response)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        raise BadSettings("its signature is not that of the certificate's issuer, or of a responder of his") from None


def _is_delegate(certificate: x509.Certificate, issuer: x509.Certificate, now: float) -> bool:
    if not certificate.not_valid_before_utc.timestamp() <= now < certificate.not_valid_after_utc.timestamp():
        return False
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        certificate.verify_directly_issued_by(issuer)
    except (x509.ExtensionNotFound, ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return ExtendedKeyUsageOID.OCSP_SIGNING in usage


def _check(key: object, response: ocsp.OCSPResponse) -> None:
    """Raises InvalidSignature, or what the library raises for a key that it cannot check with."""
    signature, signed, algorithm = response.signature, response.tbs_response_bytes, response.signature_hash_algorithm
    if isinstance(key, rsa.RSAPublicKey) and algorithm is not None and key.key_size <= LARGEST_RSA:
        key.verify(signature, signed, padding.PKCS1v15(), algorithm)
    elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm is not None:
        key.verify(signature, signed, ec.ECDSA(algorithm))
    elif isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        key.verify(signature, signed)
    else:
        raise UnsupportedAlgorithm("a key that no response is checked with")
