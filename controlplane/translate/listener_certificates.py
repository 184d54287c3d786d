"""Certificates that listeners name: whether each reference leads to a pair of certificate and key (Gateway API,
ListenerTLSConfig.certificateRefs).

Whether a reference is permitted is asked before whether its object is there: nobody learns of another namespace what is
in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controlplane.translate.conditions import Condition
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects import grants
from gatewright.api.objects.gateway import Listener
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.secret import Secret
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import SecretObjectReference
from gatewright.attach.parents import Owner

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
LONGEST_CHAIN: Final = 262_144
LONGEST_KEY: Final = 16_384
"""Bytes. Whoever may write a Secret must not hold the controller by the reading of it."""
MAX_RSA: Final = 8192
"""Bits of an RSA key that proxies sign with."""
NOT_PERMITTED: Final = "RefNotPermitted"
INVALID: Final = "InvalidCertificateRef"

Pair = Callable[[ObjectKey], str | None]
"""A Secret to what is wrong with its pair ("" when nothing is), or None when there is no such Secret."""
Granted = Callable[[Permission], bool]


def pair_problem(secret: Secret) -> str:
    """What is wrong with the pair of a Secret; nothing of its values."""
    values = secret.values()
    missing = [entry for entry in (CERTIFICATE, KEY) if not values.get(entry)]
    if missing:
        return f"has no entry {' and '.join(missing)}"
    if len(values[CERTIFICATE]) > LONGEST_CHAIN or len(values[KEY]) > LONGEST_KEY:
        return f"has an entry {CERTIFICATE} over {LONGEST_CHAIN} bytes, or {KEY} over {LONGEST_KEY}"
    try:
        chain = x509.load_pem_x509_certificates(values[CERTIFICATE])
    except ValueError:
        return f"has an entry {CERTIFICATE} that is no certificate in PEM form"
    try:
        key = serialization.load_pem_private_key(values[KEY], None, unsafe_skip_rsa_key_validation=True)
        # Whether an RSA key is sound is asked where it is used: of a large one the answer takes seconds.
        fits = key.public_key() == chain[0].public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        return f"has an entry {KEY} that is no private key in PEM form without a password"
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size > MAX_RSA:
        return f"has an entry {KEY} with an RSA key of {key.key_size} bits, more than {MAX_RSA}"
    return "" if fits else f"has an entry {KEY} that does not belong to the certificate"


def unresolved(owner: Owner, listener: Listener, pair: Pair, granted: Granted) -> Condition | None:
    """The `ResolvedRefs` of a listener whose certificates cannot all be used; the reason is that of the first one that
    is not permitted, otherwise of the first one that is wrong."""
    if listener.tls is None or listener.tls.mode != "Terminate":
        return None
    found = [_problem(owner, reference, pair, granted) for reference in listener.tls.certificate_refs]
    problems = [each for each in found if each is not None]
    if not problems:
        return None
    reason = NOT_PERMITTED if any(reason == NOT_PERMITTED for reason, _ in problems) else INVALID
    return Condition("ResolvedRefs", False, reason, "; ".join(message for _, message in problems))


def _problem(owner: Owner, reference: SecretObjectReference, pair: Pair, granted: Granted) -> tuple[str, str] | None:
    """Reason and message."""
    if (reference.group, reference.kind) != ("", "Secret"):
        return INVALID, f"{reference.kind} {reference.name}: certificates are in Secrets"
    key = ObjectKey(reference.namespace or owner.namespace, reference.name)
    wanted = Permission(GATEWAY_API_GROUP, owner.kind, owner.namespace, "", "Secret", key.namespace, key.name)
    if not grants.permitted(wanted, granted):
        return NOT_PERMITTED, f"Secret {key}: {grants.lacking(wanted)}"
    problem = pair(key)
    if problem is None:
        return INVALID, f"Secret {key} does not exist"
    return (INVALID, f"Secret {key} {problem}") if problem else None
