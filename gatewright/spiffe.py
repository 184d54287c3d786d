"""Identities of workloads in certificates (SPIFFE, X.509-SVID): which one a certificate has. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

_ID: Final = re.compile(r"spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._/-]*)?").fullmatch
_WORKLOAD: Final = re.compile(r"spiffe://([^/]+)/ns/([^/]+)/sa/([^/]+)").fullmatch


def identity(uris: Sequence[str]) -> str | None:
    """The SPIFFE id of a certificate with these URIs (X.509-SVID 2: there is exactly one)."""
    return uris[0] if len(uris) == 1 and _ID(uris[0]) else None


def trust_domain(uris: Sequence[str]) -> str | None:
    """That of the SPIFFE id; None: there is none."""
    return (identity(uris) or "").removeprefix("spiffe://").partition("/")[0] or None


def workload(uris: Sequence[str]) -> tuple[str, str, str] | None:
    """Trust domain, namespace and service account of a workload of Kubernetes."""
    match = _WORKLOAD(identity(uris) or "")
    return None if match is None else (match[1], match[2], match[3])


def uris_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """URIs among the names of a certificate. Raises what the library raises for names that it cannot read: ValueError,
    `x509.DuplicateExtension`, `x509.UnsupportedGeneralNameType`."""
    from cryptography import x509  # here: most workers do without

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(extension.get_values_for_type(x509.UniformResourceIdentifier))


def readable_uris_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The same; () where they cannot be read."""
    from cryptography import x509  # as above

    try:
        return uris_of(certificate)
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return ()
