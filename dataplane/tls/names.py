"""Who a verified certificate says its holder is, as expressions read it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MOST: Final = 256
"""Certificates whose names are remembered: requests of one connection ask for the same."""


@dataclass(frozen=True, slots=True)
class Names:
    """Texts as RFC 4514 writes names; "" and () for what there is none of."""

    subject: str = ""
    common_name: str = ""
    issuer: str = ""
    alternatives: tuple[str, ...] = ()
    """DNS names, addresses, mail addresses, URIs, in this order."""
    uris: tuple[str, ...] = ()
    """Those of `alternatives` that the certificate has as URIs."""
    pem: str = ""

    @property
    def spiffe_id(self) -> str | None:
        """The one URI that is a SPIFFE id."""
        from gatewright import spiffe  # here: most workers do without

        return spiffe.identity(self.uris)

    @property
    def workload(self) -> tuple[str, str, str] | None:
        """Trust domain, namespace and service account of a workload of Kubernetes."""
        from gatewright import spiffe  # as above

        return spiffe.workload(self.uris)


@lru_cache(maxsize=MOST)
def names_of(certificate: bytes) -> Names:
    """Names of a certificate (DER). Of one that cannot be read there are none."""
    from cryptography import x509  # here: most workers do without
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        read = x509.load_der_x509_certificate(certificate)
        subject, issuer = read.subject, read.issuer
        common = subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        others, uris = _alternatives(read)
        pem = read.public_bytes(Encoding.PEM).decode()
        name = str(common[-1].value) if common else ""
        return Names(subject.rfc4514_string(), name, issuer.rfc4514_string(), others + uris, uris, pem)
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        # OpenSSL is less strict than the library
        return Names()


def ends_of(certificate: bytes) -> float:
    """When a certificate (DER) ends, in seconds since the epoch; 0 where it cannot be read."""
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp()
    except (ValueError, x509.InvalidVersion):
        return 0.0


def _alternatives(certificate: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """URIs apart. Raises as `names_of` expects."""
    from cryptography import x509

    from gatewright import spiffe  # as above

    assert isinstance(certificate, x509.Certificate)
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return (), ()
    addresses = map(str, extension.get_values_for_type(x509.IPAddress))
    others = (
        *extension.get_values_for_type(x509.DNSName),
        *addresses,
        *extension.get_values_for_type(x509.RFC822Name),
    )
    return others, spiffe.uris_of(certificate)
