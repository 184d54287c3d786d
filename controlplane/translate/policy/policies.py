"""GatewayPolicies to wire: one Policy per top-level field, and what is wrong with which (GatewayPolicy).

The first of two steps, as for routes. `translate` makes of a policy what it says wherever it attaches; it runs once per
edit of the policy, and when what one of its references leads to changes. `placed_policies` has the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from controlplane.derive import Context
from controlplane.translate import support
from controlplane.translate.backend import secrets
from controlplane.translate.backend.backends import BACKEND_NOT_FOUND, Backends
from controlplane.translate.backend.tls_references import AUTHORITIES_NOT_FOUND, Known
from controlplane.translate.conditions import UNTRANSLATED, Condition, joined
from controlplane.translate.keys import (
    BackendKey,
    ObjectKey,
)
from controlplane.translate.policy.policy_references import KIND, PolicyReferences
from gatewright.api.advice.effects import unjudged
from gatewright.api.lower import to_wire
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.camel import to_camel
from gatewright.attach.outcome import Setting, order
from gatewright.attach.places import Phase
from gatewright.attach.policies import BACKEND, BY_NAME, FRONTEND, POLICIES, Policy, named
from gatewright.wire.v1 import policy_pb2

_NOT_THERE = frozenset({BACKEND_NOT_FOUND, secrets.NOT_FOUND, AUTHORITIES_NOT_FOUND})

_NOTHING: Final[Mapping[str, policy_pb2.Policy]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTranslation:
    """What a policy says, wherever it attaches."""

    fields: tuple[tuple[Setting, bytes], ...]
    """Each top-level field, and its Policy message without places."""
    order: str
    override: bool
    backends: tuple[BackendKey, ...] = ()
    """Those that it calls."""
    secrets: tuple[tuple[str, ObjectKey], ...] = ()
    """Those that it reads, with the name of the field that does."""
    written: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    """Secret resources of values that the policy holds itself, by name."""
    refused: Condition | None = None
    """`Accepted` False: nothing of it is sent but security policies, which refuse what they cover, and fields of
    `frontend` that act although others cannot."""
    invalid: Condition | None = None
    """`Accepted` True, but fields refuse what they cover."""
    refusing: frozenset[str]
    """Names of these fields."""
    warning: str = ""
    """What it leaves uncovered, for its status."""
    unresolved: Condition | None = None
    unfinished: bool = False
    """Whether a backend or Secret is not there: perhaps it is still being written."""


def translate(
    context: Context, backends: Backends, known: Known, key: ObjectKey, policy: GatewayPolicy
) -> PolicyTranslation:
    """The fields of a policy, and the verdicts over them."""
    if policy.unread is not None:
        return _refused(key, policy, f"not valid: {policy.unread.message}", policy.unread.security)
    paths = support.unsupported_fields(policy)
    if paths:
        whole = _whole(policy, paths)
        return _refused(key, policy, support.message(paths), _written(policy), whole)
    return _Translator(context, backends, known, key, policy).translation()


def untranslated(key: ObjectKey, policy: GatewayPolicy) -> PolicyTranslation:
    """The result for a policy on which `translate` raised, which is a bug: what it protects must not stand open."""
    return _refused(key, policy, UNTRANSLATED, _written(policy))


def _written(policy: GatewayPolicy) -> Collection[str]:
    """Names of the policies that are set."""
    parts = {name: getattr(policy.spec, name, None) for name in type(policy.spec).model_fields}
    return {
        row.name
        for row in POLICIES
        if (part := parts.get(row.part)) is not None and row.attribute in part.model_fields_set
    }


def _whole(policy: GatewayPolicy, paths: Collection[tuple[str | int, ...]]) -> dict[str, policy_pb2.Policy]:
    """The fields of `frontend` that no setting of `paths` is in, by their names on the wire. Each of them covers
    all that a Gateway serves: a setting elsewhere is no reason to refuse that."""
    frontend = policy.spec.frontend
    if frontend is None:
        return {}
    lacking = {path[2] for path in paths if path[:2] == ("spec", "frontend")}
    lowered = to_wire.frontend_policies(frontend, to_wire.NOTHING_RESOLVES)
    messages = {message.WhichOneof("field") or "": message for message in lowered}
    return {field: message for field, message in messages.items() if to_wire.frontend_name(field) not in lacking}


def _refused(
    key: ObjectKey,
    policy: GatewayPolicy,
    why: str,
    written: Collection[str],
    whole: Mapping[str, policy_pb2.Policy] = _NOTHING,
) -> PolicyTranslation:
    """Nothing of the policy is sent but what acts nevertheless (`whole`) and its security policies, of the attributes
    that are `written`; these refuse what they cover, because no client may pass where the policy is missing. Reason as
    in GEP-713."""
    envelope = _Envelope(key, policy)
    refusing = [row for row in POLICIES if row.security and row.name in written and row.name not in whole]
    names = ", ".join(map(_as_written, refusing))
    closed = f"; what {names} would protect is refused" if refusing else ""
    acting = f"; as written act{'s' * (len(whole) == 1)} {', '.join(map(_in_frontend, whole))}" if whole else ""
    fields = []
    for name, message in whole.items():
        envelope.complete(Phase.FRONTEND, message)
        fields.append((Setting(Phase.FRONTEND, name), message.SerializeToString(deterministic=True)))
    for row in refusing:
        message = policy_pb2.Policy(invalid=why)
        getattr(message, row.name).SetInParent()
        phase = _phase(row, policy)
        envelope.complete(phase, message)
        fields.append((Setting(phase, row.name), message.SerializeToString(deterministic=True)))
    return PolicyTranslation(
        fields=tuple(fields),
        order=envelope.order,
        override=envelope.override,
        refused=Condition("Accepted", False, "Invalid", why + closed + acting),
        refusing=frozenset(row.name for row in refusing),
    )


def _phase(row: Policy, policy: GatewayPolicy) -> Phase:
    traffic = policy.spec.traffic
    if row.part in (FRONTEND, BACKEND):
        return Phase((row.part, ""))
    return Phase((row.part, traffic.phase if traffic is not None else "PostRouting"))


def _as_written(row: Policy) -> str:
    """The name that the author of a policy knows."""
    return named(row) if row.part in (FRONTEND, BACKEND) else to_camel(row.attribute)


def _in_frontend(field: str) -> str:
    return f"frontend.{to_wire.frontend_name(field)}"


def inherits(phase: Phase) -> bool:
    """`strategy.inheritance` is about traffic alone."""
    return phase.section == "traffic"


class _Envelope:
    """What every message of one policy says beside its field."""

    def __init__(self, key: ObjectKey, policy: GatewayPolicy) -> None:
        self._key = key
        self.order = order(policy.metadata.creation_timestamp, key.namespace, key.name)
        strategy = policy.spec.strategy
        self.override = strategy is not None and strategy.inheritance == "Override"

    def complete(self, phase: Phase, message: policy_pb2.Policy) -> None:
        message.source.CopyFrom(policy_pb2.ObjectRef(kind=KIND, namespace=self._key.namespace, name=self._key.name))
        message.order = self.order
        message.phase = to_wire.PHASES.get(phase.written, policy_pb2.PHASE_UNSPECIFIED)
        if self.override and inherits(phase):
            message.inheritance = policy_pb2.INHERITANCE_OVERRIDE


class _Translator:
    """One run over one policy."""

    def __init__(
        self, context: Context, backends: Backends, known: Known, key: ObjectKey, policy: GatewayPolicy
    ) -> None:
        self._policy = policy
        self._envelope = _Envelope(key, policy)
        self._references = PolicyReferences(context, backends, known, key)

    def translation(self) -> PolicyTranslation:
        found = self._references
        messages = list(self._lowered())
        for phase, message in messages:
            self._envelope.complete(phase, message)
        invalid = {message.WhichOneof("field") or "": message.invalid for _, message in messages if message.invalid}
        return PolicyTranslation(
            fields=tuple(
                (Setting(phase, message.WhichOneof("field") or ""), message.SerializeToString(deterministic=True))
                for phase, message in messages
            ),
            order=self._envelope.order,
            override=self._envelope.override,
            backends=tuple(sorted(found.called)),
            secrets=tuple(sorted(found.read)),
            written=tuple(sorted(found.written.items())),
            invalid=partially_valid(invalid),
            refusing=frozenset(invalid),
            warning=_warning(self._policy),
            unresolved=_summary(found.unresolved),
            unfinished=any(condition.reason in _NOT_THERE for condition in found.unresolved),
        )

    def _lowered(self) -> Iterator[tuple[Phase, policy_pb2.Policy]]:
        frontend, traffic = self._policy.spec.frontend, self._policy.spec.traffic
        if frontend is not None:
            for message in to_wire.frontend_policies(frontend, self._references.all()):
                yield Phase.FRONTEND, message
        if traffic is not None:
            for message in to_wire.policies(traffic, self._references.all()):
                yield Phase(("traffic", traffic.phase)), message
        if self._policy.spec.backend is not None:
            for message in to_wire.backend_policies(self._policy.spec.backend, self._references.all()):
                yield Phase.BACKEND, message


def _warning(policy: GatewayPolicy) -> str:
    return joined(unjudged(policy)) if policy.spec.backend is not None else ""


def partially_valid(invalid: Mapping[str, str]) -> Condition | None:
    """`invalid`: fields with what is wrong with them."""
    if not invalid:
        return None
    texts = "; ".join(f"{_as_written(BY_NAME[field])}: {text}" for field, text in invalid.items())
    return Condition("Accepted", True, "PartiallyValid", f"what these cover is refused: {texts}")


def _summary(unresolved: Sequence[Condition]) -> Condition | None:
    """One condition for all bad references: the reason of the first, the messages of all."""
    if not unresolved:
        return None
    messages = dict.fromkeys(condition.message for condition in unresolved)
    return Condition("ResolvedRefs", False, unresolved[0].reason, "; ".join(messages))
