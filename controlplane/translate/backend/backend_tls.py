"""BackendTLSPolicies (Gateway API 1.7): what each asks for, which of them counts for a backend, and what becomes of it.

The one that counts travels with the backend, like a `backend_tls` of the backend itself. It wins over GatewayPolicies,
and `policies.tls` of a GatewayBackend wins over it. One that cannot be honoured refuses the backend as a whole: the
client that sends to it, a request, a mirror or a policy's call, gets an error, and never plaintext in place of TLS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from controlplane.derive import Collection, Context, Index
from controlplane.translate import support
from controlplane.translate.backend.backends import GatewayBackendView
from controlplane.translate.backend.service_views import ServiceView
from controlplane.translate.certificates import CaView
from controlplane.translate.conditions import UNTRANSLATED, Condition
from controlplane.translate.keys import BackendKey, ObjectKey, Referral
from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy
from gatewright.api.schema.names import GROUP
from gatewright.api.schema.references import LocalObjectReference
from gatewright.attach.outcome import order
from gatewright.wire.v1 import backend_policy_pb2, policy_pb2

KIND: Final = "BackendTLSPolicy"

TARGETS: Final = {("", "Service"): "service", (GROUP, "GatewayBackend"): "gatewaybackend"}
"""Group and kind of a target to the kind of backend that it is."""

WELL_KNOWN: Final = ("System",)
"""Values of wellKnownCACertificates that Gateway API defines."""


class Place(NamedTuple):
    """What a policy may name: a backend object or, with a section, a part of it."""

    kind: str
    """As backends have it."""
    key: ObjectKey
    section: str


@dataclass(frozen=True, slots=True)
class TLSVerdict:
    """A policy without what changes nothing for backends: what it names, and what is wrong with it."""

    order: str
    """The smaller text counts where two name one place."""
    places: tuple[Place, ...]
    refused: Condition | None
    """`Accepted` False: nothing is sent to what it names."""
    unresolved: Condition | None
    message: bytes = b""
    """Its `backend_tls`, a Policy of the wire; b"" where it is refused."""


def verdict(
    context: Context, certificates: Collection[ObjectKey, CaView], key: ObjectKey, policy: BackendTLSPolicy
) -> TLSVerdict:
    """The policy by itself, with the CA certificates that it names."""
    if policy.unread:
        return _closed(key, policy, f"not valid: {policy.unread}")
    found = _authorities(context, certificates, key.namespace, policy)
    problems = [each for each in found if isinstance(each, Condition)]
    refused = _refused(policy, problems if len(problems) == len(found) else ())
    return TLSVerdict(
        order=order(policy.metadata.creation_timestamp, key.namespace, key.name),
        places=tuple(_places(key.namespace, policy)),
        refused=refused,
        unresolved=_unresolved(problems),
        message=b"" if refused is not None else _message(policy, [each for each in found if isinstance(each, str)]),
    )


def _message(policy: BackendTLSPolicy, authorities: Sequence[str]) -> bytes:
    """`hostname` is sent, and verified unless there are others (Gateway API, BackendTLSPolicyValidation)."""
    validation = policy.spec.validation
    names = [name for each in validation.subject_alt_names if (name := each.hostname or each.uri)]
    made = backend_policy_pb2.BackendTls(
        authorities=authorities, sni=validation.hostname, verify_subject_alt_names=names
    )
    return policy_pb2.Policy(backend_tls=made).SerializeToString(deterministic=True)


def _places(namespace: str, policy: BackendTLSPolicy) -> Iterator[Place]:
    for target in policy.spec.target_refs:
        kind = TARGETS.get((target.group, target.kind))
        if kind is not None:
            yield Place(kind, ObjectKey(namespace, target.name), target.section_name or "")


def _authorities(
    context: Context, certificates: Collection[ObjectKey, CaView], namespace: str, policy: BackendTLSPolicy
) -> list[str | Condition]:
    """Of each reference the certificates in PEM form, or what is wrong with it."""
    references = policy.spec.validation.ca_certificate_refs or ()
    return [_authority(context, certificates, namespace, reference) for reference in references]


def _authority(
    context: Context, certificates: Collection[ObjectKey, CaView], namespace: str, reference: LocalObjectReference
) -> str | Condition:
    if (reference.group, reference.kind) != ("", "ConfigMap"):
        shown = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return _bad("InvalidKind", f"{shown} {reference.name}: CA certificates are in ConfigMaps")
    key = ObjectKey(namespace, reference.name)
    view = context.fetch(certificates, key)
    if view is None:
        return _bad("InvalidCACertificateRef", f"ConfigMap {key} does not exist")
    return _bad("InvalidCACertificateRef", f"ConfigMap {key} {view.problem}") if view.problem else view.authorities


def _bad(reason: str, message: str) -> Condition:
    return Condition("ResolvedRefs", False, reason, message)


def _unresolved(problems: list[Condition]) -> Condition | None:
    """One condition for all bad references: the reason of the first, the messages of all."""
    if not problems:
        return None
    return _bad(problems[0].reason, "; ".join(dict.fromkeys(each.message for each in problems)))


CLOSED: Final = "requests to its targets are answered with 500"
"""What becomes of backends, as conditions of policies say it."""


def _refused(policy: BackendTLSPolicy, of_all_references: Sequence[Condition]) -> Condition | None:
    """`of_all_references`: what is wrong with each, where none is good."""
    well_known = policy.spec.validation.well_known_ca_certificates
    if of_all_references:
        why = "; ".join(dict.fromkeys(each.message for each in of_all_references))
        return Condition("Accepted", False, "NoValidCACertificate", f"{why}; {CLOSED}")
    if well_known is not None and well_known not in WELL_KNOWN:
        why = f"wellKnownCACertificates {well_known} is not known; known: {', '.join(WELL_KNOWN)}"
        return Condition("Accepted", False, "Invalid", f"{why}; {CLOSED}")
    paths = support.unsupported_fields(policy)
    return Condition("Accepted", False, "Invalid", f"{support.message(paths)}; {CLOSED}") if paths else None


Target = tuple[str, ObjectKey]
"""The kind and the name of a backend, without sections."""

Firsts = Mapping[str, ObjectKey]
"""Which policy counts for a target (""), and for each of its ports."""


UNKNOWN: Final = ObjectKey("", "")
"""In place of the policy that counts, where a bug keeps it from being found."""
UNDECIDED: Final[Firsts] = {"": UNKNOWN}


class Parts(NamedTuple):
    """The collections that say what a target is made of."""

    services: Collection[ObjectKey, ServiceView]
    gateway_backends: Collection[ObjectKey, GatewayBackendView]


@dataclass(frozen=True, slots=True)
class TLSPolicies:
    """The collections that say which policy counts where."""

    parts: Parts
    verdicts: Collection[ObjectKey, TLSVerdict]
    firsts: Collection[Target, Firsts]
    """Found once for each target, however many policies name it: each of them asks."""


class Outcome(NamedTuple):
    """What BackendTLSPolicies come to for a backend."""

    message: bytes = b""
    """A Policy of the wire; b"": none."""
    refused: str = ""
    """Why nothing may be sent to it."""


def outcome(context: Context, policies: TLSPolicies, key: BackendKey) -> Outcome:
    """What becomes of a backend, by the policy that counts for it."""
    found = winner(context, policies, key)
    if found is None:
        return Outcome()
    policy = context.fetch(policies.verdicts, found)
    if policy is None:
        return Outcome(refused=f"which {KIND} counts for it is not known: {UNTRANSLATED}")
    if policy.refused is not None:
        why = policy.refused.message.removesuffix(f"; {CLOSED}")
        return Outcome(refused=f"{KIND} {found} is not accepted: {why}")
    return Outcome(policy.message)


def winner(context: Context, policies: TLSPolicies, key: BackendKey) -> ObjectKey | None:
    """The policy that counts for a backend: one that names the port before one that names the whole Service."""
    firsts = context.fetch(policies.firsts, (key.kind, key.object)) or {}
    port = str(key.port) if key.kind == "service" else ""
    return firsts.get(port) or firsts.get("")


def firsts(context: Context, target: Target, policies: Iterable[tuple[ObjectKey, TLSVerdict]], parts: Parts) -> Firsts:
    """Of those that name a target or a part of it that is there: for each the one that comes first."""
    sections = _sections(context, parts, *target)
    found: dict[str, tuple[str, ObjectKey]] = {}
    for name, each in policies:
        for place in each.places:
            section = sections.get(place.section) if (place.kind, place.key) == target else None
            if section is not None:
                found[section] = min(found.get(section, (each.order, name)), (each.order, name))
    return {section: name for section, (_, name) in sorted(found.items())}


def _sections(context: Context, parts: Parts, kind: str, key: ObjectKey) -> dict[str, str]:
    """Every way to name the object ("") or a part of it, with the one name of what is meant. Nothing: it is not there.

    Ports are parts of a Service, by name as Gateway API has it, or by number as with our own policies."""
    if kind != "service":
        return {"": ""} if context.fetch(parts.gateway_backends, key) is not None else {}
    service = context.fetch(parts.services, key)
    if service is None:
        return {}
    ports = {name: str(port.port) for port in service.ports for name in (port.name, str(port.port)) if name}
    return {"": "", **ports}


class Standing(NamedTuple):
    """What became of one place of a policy, seen from a Gateway that uses it."""

    place: Place
    is_there: bool
    beaten_by: ObjectKey | None = None
    """The policy that names the same place and comes first."""


Standings = dict[ObjectKey, list[Standing]]
"""By Gateway."""

Uses = Index[tuple[str, ObjectKey], Referral, Any]
"""Of backends, by kind and object."""


def standings(context: Context, policies: TLSPolicies, uses: Uses, key: ObjectKey, policy: TLSVerdict) -> Standings:
    """The Gateways that send to something that the policy names, with what became of it."""
    found: Standings = {}
    for place in policy.places:
        section = _sections(context, policies.parts, place.kind, place.key).get(place.section)
        standing = _standing(context, policies, key, place, section)
        users = [each.use for each, _ in context.fetch_index(uses, (place.kind, place.key))]
        for gateway in dict.fromkeys(use.gateway for use in users if section in ("", None, str(use.backend.port))):
            found.setdefault(gateway, []).append(standing)
    return {gateway: found[gateway] for gateway in sorted(found)}


def _standing(context: Context, policies: TLSPolicies, key: ObjectKey, place: Place, section: str | None) -> Standing:
    if section is None:
        return Standing(place, is_there=False)
    firsts = context.fetch(policies.firsts, (place.kind, place.key)) or {}
    first = UNKNOWN if firsts == UNDECIDED else firsts.get(section)
    return Standing(place, is_there=True, beaten_by=None if first == key else first)


def undecided(_: Target, __: object) -> Firsts:
    """The verdict on the policies of a target of which `firsts` raised, which is a bug: none of them may be passed
    over, also where another one counted before."""
    return UNDECIDED


def untranslated(key: ObjectKey, policy: BackendTLSPolicy) -> TLSVerdict:
    """The verdict on a policy on which `verdict` raised, which is a bug."""
    return _closed(key, policy, UNTRANSLATED)


def _closed(key: ObjectKey, policy: BackendTLSPolicy, why: str) -> TLSVerdict:
    """Of a policy nothing is known but its targets, which must not get plaintext."""
    refused = Condition("Accepted", False, "Invalid", f"{why}; {CLOSED}")
    rank = order(policy.metadata.creation_timestamp, key.namespace, key.name)
    return TLSVerdict(rank, tuple(_places(key.namespace, policy)), refused, None)
