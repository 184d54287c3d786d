"""Whether a server's certificate is for a name that is meant (RFC 9525). Pure.

Only subjectAltName counts, never the subject (RFC 9525 6.3). Fails closed: what cannot be read matches nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

_is_uri = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match


def matches(certificate: x509.Certificate, names: Iterable[str]) -> bool:
    """Whether it has one of `names`: DNS names, IP addresses, or URIs, recognized by their form."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return False
    return any(_has(found, name) for name in names)


def _has(found: x509.SubjectAlternativeName, name: str) -> bool:
    from cryptography import x509

    address = address_of(name)
    if address is not None:
        return address in found.get_values_for_type(x509.IPAddress)
    if _is_uri(name):
        return name in found.get_values_for_type(x509.UniformResourceIdentifier)
    return any(is_dns_name(pattern, name) for pattern in found.get_values_for_type(x509.DNSName))


def address_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a name is; None: it is none."""
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def is_dns_name(pattern: str, name: str) -> bool:
    """Whether a DNS name of a certificate is this one: equal but for case, or with `*` as its whole first label, for
    one label (RFC 9525 6.3). A wildcard stands below at least two labels."""
    pattern, name = pattern.lower().rstrip("."), name.lower().rstrip(".")
    if not pattern.startswith("*."):
        return bool(name) and pattern == name
    first, _, rest = name.partition(".")
    return bool(first) and rest == pattern[2:] and "." in rest and "*" not in rest
