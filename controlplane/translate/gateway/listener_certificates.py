"""Certificates that listeners name: whether each reference leads to a pair of certificate and key (Gateway API,
ListenerTLSConfig.certificateRefs).

Whether a reference is permitted is asked before whether its object is there: no namespace learns of another what is
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from controlplane.translate import consent
from controlplane.translate.conditions import Condition
from controlplane.translate.consent import NOT_PERMITTED, Chooser, Granted
from controlplane.translate.keys import ObjectKey
from gatewright.api.checks import certificates
from gatewright.api.checks.certificates import CERTIFICATE, KEY
from gatewright.api.objects import grants
from gatewright.api.objects.gateway import Listener
from gatewright.api.objects.secret import Secret
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import SecretObjectReference
from gatewright.attach.parents import Owner

EXPIRING: Final = "CertificateExpiring"
INVALID: Final = "InvalidCertificateRef"

Pair = Callable[[ObjectKey], str | None]
"""A Secret to what is wrong with its pair ("" when nothing is), or None when there is no such Secret."""


def pair_problem(secret: Secret) -> str:
    """What is wrong with the pair of a Secret; nothing of its values."""
    values = secret.values()
    missing = [entry for entry in (CERTIFICATE, KEY) if not values.get(entry)]
    if missing:
        return f"has no entry {' and '.join(missing)}"
    problem = certificates.pair_problem(values[CERTIFICATE], values[KEY])
    return f"has an entry {problem.entry} that {problem.text}" if problem is not None else ""


def expiry(secret: Secret) -> datetime | None:
    """When the certificate of a Secret is not valid any more; None where there is none that can be read."""
    chain = secret.values().get(CERTIFICATE)
    return certificates.expiry(chain) if chain is not None and len(chain) <= certificates.LONGEST_CHAIN else None


def expiring(key: ObjectKey, expires: datetime, now: float) -> Condition | None:
    """What a listener with the certificate says when it expires soon, or has expired. `now`: seconds since the
    epoch."""
    warning = certificates.expiry_warning(expires, now)
    if not warning:
        return None
    reason = "ExpiresSoon" if expires.timestamp() > now else "Expired"
    return Condition(EXPIRING, True, reason, f"the certificate of Secret {key} {warning}")


def all_expiring(found: Sequence[Condition]) -> Condition | None:
    """One condition of a listener with several such certificates; the reason is the worst."""
    if not found:
        return None
    reason = min(each.reason for each in found)  # Expired before ExpiresSoon
    return Condition(EXPIRING, True, reason, "; ".join(each.message for each in found))


def resolved(
    owner: Owner, listener: Listener, pair: Pair, granted: Granted
) -> tuple[tuple[ObjectKey, ...], Condition | None]:
    """The Secrets of a listener that ends TLS which can be used, each once, and the `ResolvedRefs` that says what is
    wrong with the others."""
    references = listener.tls.certificate_refs if listener.tls is not None else ()
    found = [_certificate(owner, reference, pair, granted) for reference in references]
    usable = dict.fromkeys(each for each in found if isinstance(each, ObjectKey))
    return tuple(usable), summary([each for each in found if not isinstance(each, ObjectKey)])


def summary(problems: Sequence[tuple[str, str]]) -> Condition | None:
    """One `ResolvedRefs` for all bad references, each with reason and message; the reason is that of the first one that
    is not permitted, otherwise of the first one that is wrong."""
    if not problems:
        return None
    reasons = [reason for reason, _ in problems]
    reason = NOT_PERMITTED if NOT_PERMITTED in reasons else reasons[0]
    return Condition("ResolvedRefs", False, reason, "; ".join(dict.fromkeys(message for _, message in problems)))


INVALID_CLIENT: Final = "InvalidClientCertificateRef"


def of_gateway(
    gateway: ObjectKey, reference: SecretObjectReference, pair: Pair, granted: Granted
) -> ObjectKey | Condition:
    """The Secret with a Gateway's own certificate for backends, or the `ResolvedRefs` that says what is wrong."""
    found = _certificate(Owner("Gateway", *gateway), reference, pair, granted)
    if isinstance(found, ObjectKey):
        return found
    reason, message = found
    return Condition("ResolvedRefs", False, INVALID_CLIENT if reason == INVALID else reason, message)


def _certificate(
    owner: Owner, reference: SecretObjectReference, pair: Pair, granted: Granted
) -> ObjectKey | tuple[str, str]:
    """The Secret, or reason and message."""
    if (reference.group, reference.kind) != ("", "Secret"):
        return INVALID, f"{reference.kind} {reference.name}: certificates are in Secrets"
    key = ObjectKey(reference.namespace or owner.namespace, reference.name)
    lacking = consent.missing([Chooser(GATEWAY_API_GROUP, owner.kind, owner.namespace)], key, granted)
    if lacking:
        return NOT_PERMITTED, f"Secret {key}: {grants.lacking(*lacking)}"
    problem = pair(key)
    if problem is None:
        return INVALID, f"Secret {key} does not exist"
    return (INVALID, f"Secret {key} {problem}") if problem else key
