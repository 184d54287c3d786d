"""GatewayPolicies to wire: one Policy per top-level field, and what is wrong with which (GatewayPolicy).

Two steps, as for routes. `translate` makes of a policy what it says wherever it attaches; it runs once per edit of the
policy, and when what one of its references leads to changes. `placed` joins that with the policy's attachment (module
`policy_targets`), and runs again when a target comes, goes or moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from controlplane.derive import Context
from controlplane.translate import support, wire
from controlplane.translate.backend import backend_auth, secrets, tls_references
from controlplane.translate.backend.backend_auth import AuthSecret
from controlplane.translate.backend.backends import BACKEND_NOT_FOUND, Backends, Referrer, parts, resolve
from controlplane.translate.backend.tls_references import AUTHORITIES_NOT_FOUND, Known
from controlplane.translate.conditions import UNTRANSLATED, Condition, joined
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.keys import (
    BackendKey,
    ObjectKey,
    SecretUse,
    policy_resource,
    secret_resource,
    written_field,
    written_secret,
    written_secret_resource,
)
from controlplane.translate.policy.policy_targets import Attachment
from gatewright.api.advice.effects import unjudged
from gatewright.api.backend.auth import CREDENTIAL_ENTRY, BackendAuth
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.lower import to_wire
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.names import GROUP
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.text.places import Path
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.basic_authentication import USERS_ENTRY, BasicAuthentication
from gatewright.api.traffic.jwt_authentication import SHARED_SECRET_ENTRY, JWTProvider
from gatewright.attach.outcome import Claim, Setting, order
from gatewright.attach.places import Phase, PlaceKey
from gatewright.attach.policies import BACKEND, BY_NAME, FRONTEND, POLICIES, Policy, named
from gatewright.wire.v1 import policy_pb2

_NOT_THERE = frozenset({BACKEND_NOT_FOUND, secrets.NOT_FOUND, AUTHORITIES_NOT_FOUND})

Credentials = BasicAuthentication | APIKeyAuthentication | JWTProvider | BackendTLS | AuthSecret

KIND = "GatewayPolicy"

_NOTHING: Final[Mapping[str, policy_pb2.Policy]] = MappingProxyType({})

_ENTRIES: Final[dict[type[Credentials], tuple[str, ...]]] = {
    BasicAuthentication: (USERS_ENTRY,),
    JWTProvider: (SHARED_SECRET_ENTRY,),
}
"""The entries that a Secret must have; API keys are all entries of theirs."""


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


Closed = Mapping[str, str]
"""Fields that refuse what they cover at a Gateway, as it does not get a Secret that they need, and why."""
_NOWHERE: Final[Mapping[ObjectKey, Closed]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlacedPolicy:
    """A policy on the Gateways that have one of its places."""

    translation: PolicyTranslation
    gateways: tuple[ObjectKey, ...]
    places: tuple[PlaceKey, ...]
    resources: tuple[tuple[ObjectKey, str, bytes], ...] = field(repr=False)
    """Gateway, resource name, bytes."""
    closed: Mapping[ObjectKey, Closed]
    """Of Gateways from which Secrets stay."""

    def secrets(self) -> Iterator[SecretUse]:
        """Those that its Gateways get for it."""
        for gateway in self.gateways:
            closed = self.closed.get(gateway, ())
            for name, secret in self.translation.secrets:
                if name not in closed:
                    yield SecretUse(gateway, secret)

    def closed_places(self) -> Iterator[tuple[ObjectKey, PlaceKey]]:
        """Where fields refuse for want of a Secret: places of Gateways."""
        return ((gateway, place) for gateway in self.closed for place in self.places)


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


def placed(
    key: ObjectKey, translation: PolicyTranslation, attachment: Attachment, withheld: Callable[[SecretUse], str | None]
) -> PlacedPolicy | None:
    """The resources of a policy for every Gateway that has one of its places; None where there is nothing to send.
    `withheld`: why a Secret is kept from a Gateway."""
    if not translation.fields or not attachment.places:
        return None
    closed = _closed(translation, attachment, withheld) if translation.secrets else _NOWHERE
    return PlacedPolicy(
        translation,
        tuple(gateway for gateway, _ in attachment.places),
        tuple(sorted({place for _, places in attachment.places for place in places})),
        tuple(
            resource
            for gateway, places in attachment.places
            for resource in _resources(key, translation, gateway, places, closed.get(gateway, {}))
        ),
        closed,
    )


def whys(closed: Closed) -> list[str]:
    """Why Secrets stay, each once, without the reason that is in front of it for proxies."""
    return [*dict.fromkeys(text.removeprefix(f"{NOT_PERMITTED}: ") for text in closed.values())]


def _closed(
    translation: PolicyTranslation, attachment: Attachment, withheld: Callable[[SecretUse], str | None]
) -> Mapping[ObjectKey, Closed]:
    found: dict[ObjectKey, dict[str, str]] = {}
    for gateway, _ in attachment.places:
        for name, secret in translation.secrets:
            why = withheld(SecretUse(gateway, secret))
            if why is not None:
                found.setdefault(gateway, {}).setdefault(name, f"{NOT_PERMITTED}: {why}")
    return found


def _resources(
    key: ObjectKey,
    translation: PolicyTranslation,
    gateway: ObjectKey,
    places: tuple[PlaceKey, ...],
    closed: Closed,
) -> Iterator[tuple[ObjectKey, str, bytes]]:
    where = [_place(place) for place in places]
    for setting, content in translation.fields:
        name = policy_resource(key, setting.field)
        message = policy_pb2.Policy(places=where)
        message.MergeFromString(content)
        if setting.field in closed:
            message.ClearField(setting.field)
            getattr(message, setting.field).SetInParent()
            message.invalid = closed[setting.field]
        yield gateway, name, wire.resource(name, policy=message)
    for name, content in translation.written:
        if written_field(name) not in closed:
            yield gateway, name, content


def _place(place: PlaceKey) -> policy_pb2.Place:
    thing = policy_pb2.ObjectRef(kind=place.kind, namespace=place.namespace, name=place.name)
    return policy_pb2.Place(object=thing, section=place.section)


class ClaimKey(NamedTuple):
    """A policy at one of its places."""

    place: PlaceKey
    policy: ObjectKey


def claims(key: ObjectKey, policy: PlacedPolicy) -> dict[ClaimKey, tuple[Claim[ObjectKey], ...]]:
    """What the policy sets where: nothing that changes with the values that it sets."""
    made = policy.translation
    return {
        ClaimKey(place, key): tuple(
            Claim(key, place, setting, made.order, made.override and _inherits(setting.phase))
            for setting, _ in made.fields
        )
        for place in policy.places
    }


def _inherits(phase: Phase) -> bool:
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
        if self.override and _inherits(phase):
            message.inheritance = policy_pb2.INHERITANCE_OVERRIDE


class _Translator:
    """One run over one policy."""

    def __init__(
        self, context: Context, backends: Backends, known: Known, key: ObjectKey, policy: GatewayPolicy
    ) -> None:
        self._policy = policy
        self._envelope = _Envelope(key, policy)
        self._references = _References(context, backends, known, key)

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


class _References:
    """The references of one policy: what they lead to, and what is wrong with them."""

    def __init__(self, context: Context, backends: Backends, known: Known, key: ObjectKey) -> None:
        self._context = context
        self._backends = backends
        self._known = known
        self._key = key
        self.called: set[BackendKey] = set()
        self.read: set[tuple[str, ObjectKey]] = set()
        self.written: dict[str, bytes] = {}
        self.unresolved: list[Condition] = []

    def backend(self, reference: PolicyBackendReference) -> str | to_wire.Unresolved:
        found = resolve(self._context, self._backends, Referrer(GROUP, KIND, self._key.namespace), reference)
        if isinstance(found, Condition):
            return self._refuse(found)
        self.called.update((found, *parts(self._context, self._backends, found)))
        return found.resource

    def secrets(self, field: str, model: Credentials) -> tuple[str, ...] | to_wire.Unresolved:
        if isinstance(model, BasicAuthentication) and model.users is not None:
            users = "".join(f"{user}\n" for user in model.users).encode()
            return (self._write(field, USERS_ENTRY, users),)
        if isinstance(model, BackendAuth) and model.key is not None:
            self.read.add((field.partition("/")[0], written_secret(KIND, self._key)))
            return (self._write(field, CREDENTIAL_ENTRY, model.key.encode()),)
        found = self._secrets(model)
        if isinstance(found, Condition):
            return self._refuse(found)
        name = field.partition("/")[0]  # without what comes below it
        self.read.update((name, secret) for secret in found)
        return tuple(map(secret_resource, found))

    def authorities(self, tls: BackendTLS) -> tuple[str, ...] | to_wire.Unresolved:
        found = tls_references.authorities(self._context, self._known, self._key.namespace, tls)
        return self._refuse(found) if isinstance(found, Condition) else found

    def all(self) -> to_wire.References:
        return to_wire.References(self.backend, self.secrets, self.authorities, self.server)

    def server(self, where: Path, make: to_wire.ServerMade) -> str:
        """A backend that the policy brings: it travels with it."""
        below = "-".join(map(str, where))
        secrets = partial(self._secrets_below, below)
        name = f"backend/gatewaypolicy/{self._key}/{below}"
        message = make(to_wire.References(self.backend, secrets, self.authorities, self.server))
        self.written[name] = wire.resource(name, backend=message)
        return name

    def _secrets_below(self, below: str, _: str, model: Credentials) -> tuple[str, ...] | to_wire.Unresolved:
        return self.secrets(f"backend_ai/{below}", model)

    def _secrets(self, model: Credentials) -> tuple[ObjectKey, ...] | Condition:
        namespace = self._key.namespace
        if isinstance(model, BackendTLS):
            found = tls_references.certificate(self._context, self._known, namespace, model)
            return found if isinstance(found, Condition) else (found,)
        if isinstance(model, AuthSecret):
            return backend_auth.named(self._context, self._known.secrets, namespace, model)
        if isinstance(model, APIKeyAuthentication) and model.secret_selector is not None:
            return secrets.selected(self._context, self._known.secrets, namespace, model.secret_selector.match_labels)
        reference = model.shared_secret_ref if isinstance(model, JWTProvider) else model.secret_ref
        assert reference is not None  # a rule of the model: one of them is set
        return secrets.named(self._context, self._known.secrets, namespace, reference, *_ENTRIES.get(type(model), ()))

    def _write(self, field: str, entry: str, content: bytes) -> str:
        """What the policy holds itself travels as a Secret as well, the only message that is redacted."""
        name = written_secret_resource(self._key, field)
        self.written[name] = secrets.resource(self._key, {entry: content}, name)
        return name

    def _refuse(self, condition: Condition) -> to_wire.Unresolved:
        self.unresolved.append(condition)
        return to_wire.Unresolved(f"{condition.reason}: {condition.message}")
