"""One object for equal settings, and from policies to what a route meets.

Rules with equal inline policies share one `RoutePolicies`, those with equal backends their targets. What is shared is
forgotten with the last plan that holds it. The small constant values are kept up to a limit and then forgotten
together: sharing saves memory, nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from typing import Any, TypeVar
from weakref import WeakSet, WeakValueDictionary, finalize, ref

from dataplane.chain.chain import EMPTY, Chain
from dataplane.chain.filter import FRONTEND, OF_KIND, SETTING, Env, Filter, Origin, Refused, Row, no_secrets
from dataplane.chain.tasks import in_tasks
from dataplane.table.built import Built, build, refusing, steps_of
from dataplane.table.parted import PartedDict
from dataplane.table.plans import NO_KINDS, RoutePolicies, Upper
from dataplane.table.store import digest
from dataplane.tls.client import security
from dataplane.upstream.auth.setting import refused_auth
from dataplane.upstream.backend_rules import Rules
from dataplane.upstream.settings import NO_SETTINGS, Auth, ClientCertificate, Settings, Tls, Tunnel
from gatewright.attach.merge import Attached, merge, winner
from gatewright.attach.places import Level
from gatewright.wire.v1 import policy_pb2

T = TypeVar("T")

LIMIT = 8192
"""Constant values kept."""

CONNECTING = {
    "backend_http": "http",
    "backend_tcp": "tcp",
    "backend_tls": "tls",
    "backend_client_certificate": "client",
    "backend_tunnel": "tunnel",
    "backend_auth": "auth",
    "backend_ext_auth": "ext_auth",
    "backend_transformation": "transformation",
    "endpoint_picker": "picker",
}
"""Policies about connections to a backend and what is sent there, and their fields of `upstream/settings.Settings`."""


@lru_cache(1024)
def _refused_step(name: str, refused: str) -> Filter:
    """One for equal reasons: settings are compared."""
    return refusing(name, refused)


REFUSED: dict[str, Callable[..., Tls | ClientCertificate | Tunnel | Auth | Filter]] = {
    "backend_tls": Tls,
    "backend_client_certificate": ClientCertificate,
    "backend_tunnel": Tunnel,
    "backend_auth": refused_auth,
    "backend_ext_auth": partial(_refused_step, "backend_ext_auth"),
    "endpoint_picker": partial(_refused_step, "endpoint_picker"),
}
"""What takes the place of one that cannot be built."""

BACKEND_SETTINGS = frozenset((*CONNECTING, "backend_hash", "backend_limits", "health"))
"""Policies that a backend has as values (`plans.BackendPlan`), beside those of its kind."""

_SAME = "same"
_CLOSED = "closed"


class _Known(ref[RoutePolicies]):
    """What equal inline policies came to, by a digest of their bytes, as long as a plan holds it."""

    __slots__ = ("key",)
    key: bytes


class Interns:
    def __init__(self, rows: Iterable[Row], env: Env) -> None:
        self.rows = {row.name: (index, row) for index, row in enumerate(rows)}
        self.env = env
        self.secret_digest: Callable[[str], bytes] = _no_digest
        """Of the present content of a Secret, by its key."""
        self.has_dropped = False
        """Policies of rules or backends may be in force no more since this was set to False."""
        self.none = RoutePolicies()
        """Those of all rules without any."""
        self.dead: list[int] = []
        """Numbers of uppers that no listener has any more."""
        self._known: PartedDict[bytes, _Known] = PartedDict()
        self._attached: WeakSet[RoutePolicies] = WeakSet()
        """Those with policies that name a route or rule; they are not shared."""
        self._values: dict[object, object] = {}
        self._uppers: WeakValueDictionary[tuple[Attached[Built], ...], Upper] = WeakValueDictionary()
        self._numbers = count()
        self._system_tls: Tls | None = None
        self._forgotten = self._forget  # one bound method for all, instead of one for each

    @property
    def system_tls(self) -> Tls:
        """TLS to a backend of which a Service port says nothing more than that."""
        if self._system_tls is None:
            self._system_tls = Tls(security(self.env.kept))
        return self._system_tls

    def row(self, policy: policy_pb2.Policy) -> tuple[int, Row]:
        """Place and row of a policy. Raises `Refused` when this proxy does not know it."""
        name = policy.WhichOneof("field")
        if name is None:
            raise Refused("a policy that this proxy does not know")
        found = self.rows.get(name)
        if found is None:
            raise Refused(f"policy {name} is not supported yet")
        return found

    def inline(self, policies: Sequence[policy_pb2.Policy], owner: str) -> RoutePolicies:
        """What the inline policies of a rule, or of a backend reference, come to. `owner`: the key of the route.

        Raises `Refused` for one that cannot be built, unless it is of a kind that refuses what it covers.
        """
        if not policies:
            return self.none
        written = [self._written(policy) for policy in policies]
        written.sort(key=_place)  # stable: equal policies stay as written
        parts = [_delimited(index, raw) for index, _, raw, _ in written]
        if any(row.per_target for _, row, _, _ in written):
            parts.append(owner.encode())
        parts += [self.secret_digest(secret) for secret in self.secrets(policies)]
        key = digest(b"".join(parts))
        known = self._known.get(key)
        found = None if known is None else known()
        if found is None:
            built = tuple([self._inline(index, row, raw, policy, owner) for index, row, raw, policy in written])
            found = self.compose((), (), built)
            known = self._known[key] = _Known(found, self._forgotten)
            known.key = key
        return found

    def of_backend(self, policies: Sequence[policy_pb2.Policy], owner: str) -> tuple[Attached[Built], ...]:
        """A backend's own policies. `owner`: its key. Raises `Refused` for what is none of a backend's."""
        for policy in policies:
            name = self.row(policy)[1].name
            if name not in BACKEND_SETTINGS and self.rows[name][1].kind != OF_KIND:
                raise Refused(f"{name} is not supported as a policy of a backend")
        written = [self._written(policy) for policy in policies]
        built = [self._inline(index, row, raw, policy, owner) for index, row, raw, policy in written]
        return tuple([Attached(each.row.name, Level.BACKEND_INLINE, "", False, each) for each in built])

    def secrets(self, policies: Iterable[policy_pb2.Policy]) -> Iterator[str]:
        """Keys of the Secrets that inline policies read. Raises `Refused`."""
        for policy in policies:
            row = self.row(policy)[1]
            if row.secrets is not no_secrets:
                yield from row.secrets(getattr(policy, row.name))

    def with_attached(self, attached: tuple[Attached[Built], ...], own: RoutePolicies) -> RoutePolicies:
        """The policies of a rule (its inline ones are in `own`) with those that name its route or itself."""
        if not attached and not own.attached:
            return own
        made = self.compose((), attached, own.inline)
        self._attached.add(made)
        return made

    def _written(self, policy: policy_pb2.Policy) -> tuple[int, Row, bytes, policy_pb2.Policy]:
        index, row = self.row(policy)
        raw = getattr(policy, row.name).SerializeToString(deterministic=True)
        # No message begins with a zero octet: what is invalid never passes for a message that reads like the reason.
        return index, row, b"\0%b\0%b" % (policy.invalid.encode(), raw) if policy.invalid else raw, policy

    def _inline(self, index: int, row: Row, raw: bytes, policy: policy_pb2.Policy, owner: str) -> Built:
        config = getattr(policy, row.name)
        if row.kind in (SETTING, OF_KIND) and row.secrets is no_secrets and not row.per_target and not policy.invalid:
            value = self.kept((index, raw))
            return Built(index, row, self.keep((index, raw), build(row, config, self.env)) if value is None else value)
        target = owner if row.per_target else ""
        return self.built(policy, index, row, Origin("", row.name, target, digest(raw).hex()))

    def built(self, policy: policy_pb2.Policy, index: int, row: Row, origin: Origin) -> Built:
        """A policy, made. Raises `Refused` unless its kind refuses what it covers."""
        try:
            if policy.invalid:
                raise Refused(f"{row.name}: {policy.invalid}")
            return Built(index, row, build(row, getattr(policy, row.name), replace(self.env, origin=origin)))
        except Refused as error:
            if not row.refuses:
                raise
            return Built(index, row, None, str(error), origin.policy, row.hides(getattr(policy, row.name)))

    def upper(self, attached: Iterable[Attached[Built]]) -> Upper | None:
        """What routes inherit, one object for equal ones; None for nothing."""
        ingredients = tuple(attached)
        if not ingredients:
            return None
        found = self._uppers.get(ingredients)
        if found is None:
            number = next(self._numbers)
            found = self._uppers[ingredients] = Upper(number, ingredients, self.of_backends(ingredients))
            finalize(found, self.dead.append, number).atexit = False
        return found

    def of_backends(self, attached: Iterable[Attached[Built]]) -> RoutePolicies:
        """What policies say of connections to backends, and nothing else of them."""
        effective = merge(attached).effective
        return RoutePolicies(backend=self.same(settings_of(effective)), rules=self.rules(effective))

    def prepare(self, upper: Upper | None, own: RoutePolicies) -> None:
        """See to it that a request finds what `own` comes to below `upper`."""
        if upper is None:
            return
        if own.under is None:
            own.under = {}
        if upper.number not in own.under:
            own.under[upper.number] = self.compose(upper.ingredients, own.attached, own.inline)

    def compose(
        self, above: Iterable[Attached[Built]], attached: tuple[Attached[Built], ...], inline: tuple[Built, ...]
    ) -> RoutePolicies:
        """Merge, and make a chain and settings of what is in effect."""
        own = [Attached(each.row.name, Level.INLINE, "", False, each) for each in inline]
        effective = merge((*above, *attached, *own)).effective
        chain, settings = self.chain(effective)
        rules = self.rules(effective)
        if rules is not None:
            settings["rules"] = rules
        of_kind = self.of_kind(effective)
        if of_kind is not NO_KINDS:
            settings["of_kind"] = of_kind
        backend = self.same(settings_of(effective))
        return RoutePolicies(chain, **settings, backend=backend, inline=inline, attached=attached)

    def rules(self, effective: dict[str, list[Attached[Built]]]) -> Rules | None:
        """What policies say for the sake of backends, one object for equal ones; None: nothing."""
        found = {field: effective[field][-1].value.made for field in Rules._fields if field in effective}
        return self.same(Rules(**found)) if found else None

    def of_kind(self, effective: dict[str, list[Attached[Built]]]) -> Mapping[str, object]:
        """What policies say of what happens in kinds of backends, by name of the policy."""
        made: dict[str, object] = {}
        for name, found in effective.items():
            row = found[0].value.row
            if row.kind != OF_KIND:
                continue
            assert row.closed is not None and row.merged is not None  # `chain/filter.Row`: those of this kind have both
            refused = next((each.value.why for each in found if each.value.refused), "")
            values = [each.value.made for each in found]
            made[name] = row.closed(refused) if refused else row.merged(values, winner(found).value.made)
        return made or NO_KINDS

    def chain(self, effective: dict[str, list[Attached[Built]]]) -> tuple[Chain, dict[str, Any]]:
        """The steps in order of the registry, and values of plan fields."""
        steps: list[tuple[int, Filter]] = []
        settings: dict[str, Any] = {}
        for found in effective.values():
            built = [each.value for each in found]
            index, row = built[0].index, built[0].row
            refused = next((each for each in built if each.refused), None)
            if row.name in CONNECTING or row.kind == OF_KIND:
                continue
            if refused is not None:
                steps.append((index, refusing(row.name, refused.why, refused.hides)))
            elif row.kind == SETTING:
                values = tuple(each.made for each in built)
                settings[row.plan_field] = self.same(values) if row.many else values[-1]
            elif row.kind != FRONTEND:
                made = steps_of(row, built)
                steps += [(index, in_tasks(step, self.env) if row.task else step) for step in made]
        steps.sort(key=_place)
        return Chain([step for _, step in steps]) if steps else EMPTY, settings

    def closed(self, name: str, why: str) -> Chain:
        """The chain that answers everything in place of a policy of this name."""
        key = (_CLOSED, name, why)
        found: Chain | None = self.kept(key)
        return self.keep(key, Chain([refusing(name, why)])) if found is None else found

    def forget_uppers(self) -> Iterator[None]:
        """Drop what was made for uppers that no rule has any more, a few rules' to a step."""
        dead, self.dead[:] = self.dead[:], []
        if not dead:
            return
        self.none.forget(dead)
        for own in list(self._attached):
            own.forget(dead)
        yield
        for part in self._known.parts():
            for known in list(part.values()):
                shared = known()
                if shared is not None:
                    shared.forget(dead)
            yield

    def _forget(self, known: _Known) -> None:
        self.has_dropped = True
        if self._known.get(known.key) is known:
            del self._known[known.key]

    def inline_policies(self) -> Iterator[Built]:
        """Those that are written in rules, each once for equal ones."""
        for known in self._known.values():
            found = known()
            if found is not None:
                yield from found.inline

    def kept(self, key: object) -> Any:
        """What was made of this key, or None."""
        return self._values.get(key)

    def keep(self, key: object, value: T) -> T:
        """Remember a value that is made of its key, constant, and small."""
        if len(self._values) >= LIMIT:
            self._values.clear()
        self._values[key] = value
        return value

    def same(self, value: T) -> T:
        """A value equal to this one, the first that was seen. It must be hashable and constant."""
        if value is NO_SETTINGS:
            return value
        known: T | None = self.kept((_SAME, value))
        return self.keep((_SAME, value), value) if known is None else known

    def __len__(self) -> int:
        """Distinct inline policies that a plan holds."""
        return len(self._known)

    def __repr__(self) -> str:
        return f"Interns({len(self._known)} sets of policies, {len(self._values)} values)"


def settings_of(effective: dict[str, list[Attached[Built]]]) -> Settings:
    """What merged policies say of how backends are connected to. One that cannot be built counts as written: it must
    not leave what it covers in plain text."""
    values: dict[str, Any] = {}  # Any: the type of the field
    for name, field in CONNECTING.items():
        found = effective.get(name)
        if found:
            built = found[-1].value
            values[field] = REFUSED[name](refused=built.refused) if built.refused else built.made
    return Settings(**values) if values else NO_SETTINGS


def _no_digest(key: str) -> bytes:
    return b""


def _place(step: tuple[Any, ...]) -> int:
    place: int = step[0]
    return place


def _delimited(index: int, raw: bytes) -> bytes:
    return b"%d %d %b" % (index, len(raw), raw)
