"""Settings that are valid but cannot be honoured yet: all that one short table does not name, found from the models.

Called by decoding (a lint error, verdict `unsupported`) and by translation (a condition that names the setting). Such
a setting is never accepted and ignored. A release that makes something work adds it to the table; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.checks.errors import MISSING, Finding
from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, model_in, to_camel
from gatewright.api.text.problem import UNSUPPORTED

_EXTENSION: Final = "-{}.extensionRef"  # no kind of ours is one
_FILTERS: Final = (
    "-{}.externalAuth",  # gRPC callouts; over HTTP a GatewayPolicy does it
    _EXTENSION,
)

_FILTERS_IN_THE_FILE: Final = ("urlRewrite", "requestRedirect", "requestMirror")
_TRAFFIC_IN_THE_FILE: Final = (
    "transformation",
    "extAuthz",
    "rateLimit",
    "cors",
    "csrf",
    "headerModifiers",
    "hostRewrite",
    "upgrades",
    "timeouts",
    "retry",
    "authorization",
    "jwtAuthentication",
    "basicAuthentication",
    "apiKeyAuthentication",
    "directResponse",
    "buffer",
)
_CONNECTING: Final = ("tcp", "tls", "http", "health", "limits")
"""Policies for connecting to a backend."""
_NOT_OF_SERVERS: Final = ("tunnel", "auth")
"""Those that do not work yet, of servers that policies call."""


_OF_KINDS: Final = tuple(kind.policy for kind in KINDS.values() if kind.works and kind.policy)
"""Policies for backends of one kind."""


def _kinds(above: str, field: Callable[[BackendKind], str]) -> Iterator[str]:
    """Rows of backends of every kind that works, and of policies for them. `above`: where they stand; `field`: what one
    is called there."""
    yield from (f"{above}.policies.{name}" for name in _CONNECTING)
    for kind in KINDS.values():
        if not kind.works:
            continue
        below = f"{above}.{to_camel(field(kind))}"
        yield below
        if kind.parts is not None:
            yield from (f"-{below}.{kind.parts.holder}.policies.{name}" for name in _NOT_OF_SERVERS)
        if kind.policy:
            yield f"{above}.policies.{kind.policy}"


_NOT_YET_IN_THE_FILE: Final = (
    *(f"extAuthz.policies.{name}" for name in _NOT_OF_SERVERS),
    "extAuthz.protocol.grpc",  # gRPC callouts
    *(f"extAuthz.conditional[].policy.policies.{name}" for name in _NOT_OF_SERVERS),
    "extAuthz.conditional[].policy.protocol.grpc",  # gRPC callouts
    "rateLimit.local[].tokens",  # LLM
    "rateLimit.conditional[].policy.local[].tokens",  # LLM
    "rateLimit.global",  # gRPC callouts
    "rateLimit.conditional[].policy.global",  # gRPC callouts
    *(f"jwtAuthentication.providers[].jwks.remote.policies.{name}" for name in _NOT_OF_SERVERS),
    *(f"jwtAuthentication.providers[].jwks.discovery.policies.{name}" for name in _NOT_OF_SERVERS),
)

STANDALONE: Final = "Standalone"
"""Stands for the standalone file where kinds are asked for."""

HONOURED: Final[dict[str, tuple[str, ...]]] = {
    "Gateway": (
        "spec",
        "-spec.addresses[].routability",  # experimental
        "-spec.defaultScope",  # default Gateways (experimental)
        "-spec.listeners[].tls.options",  # of implementations; concerns that listener alone
        "-spec.listeners[].filters",  # experimental
    ),
    "ListenerSet": (
        "spec",
        "-spec.listeners[].tls.options",  # of implementations; concerns that listener alone
        "-spec.listeners[].filters",  # experimental
    ),
    "HTTPRoute": (
        "spec",
        "-spec.useDefaultGateways",  # experimental
        "-spec.rules[].sessionPersistence",  # experimental
        *(row.format("spec.rules[].filters[]") for row in _FILTERS),
        *(row.format("spec.rules[].backendRefs[].filters[]") for row in _FILTERS),
    ),
    "GRPCRoute": (
        "spec",
        "-spec.useDefaultGateways",  # experimental
        "-spec.rules[].sessionPersistence",  # experimental
        _EXTENSION.format("spec.rules[].filters[]"),
        _EXTENSION.format("spec.rules[].backendRefs[].filters[]"),
    ),
    **dict.fromkeys(("TLSRoute", "TCPRoute", "UDPRoute"), ("spec", "-spec.useDefaultGateways")),
    "GatewayPolicy": (
        "spec.targetRefs",
        "spec.targetSelectors",
        "spec.strategy",
        "spec.frontend.accessLog",
        "spec.frontend.connect",
        "-spec.frontend.accessLog.otlp",  # telemetry
        "spec.frontend.http",
        "spec.frontend.networkAuthorization",
        "spec.frontend.proxyProtocol",
        "spec.frontend.tcp",
        "spec.frontend.tls",
        "spec.frontend.limits",
        "spec.traffic",
        "-spec.traffic.extProc",  # gRPC callouts
        "-spec.traffic.extAuth.grpc",  # gRPC callouts
        "-spec.traffic.extAuth.conditional[].policy.grpc",  # gRPC callouts
        "-spec.traffic.rateLimit.local[].tokens",  # LLM: nothing counts tokens
        "-spec.traffic.rateLimit.conditional[].policy.local[].tokens",  # LLM
        "-spec.traffic.rateLimit.global",  # gRPC callouts
        "-spec.traffic.rateLimit.conditional[].policy.global",  # gRPC callouts
        *(f"spec.backend.{name}" for name in (*_CONNECTING, *_OF_KINDS)),
    ),
    "BackendTLSPolicy": ("spec", "-spec.options"),
    "GatewayBackend": (*_kinds("spec", lambda kind: kind.name),),
    "GatewayParameters": (
        "spec",
        "-spec.istio",  # proxies take no part in a mesh
    ),
    STANDALONE: (
        "config",
        "-config.dynamicForwardProxy",  # agent backends
        "backends[].name",
        *_kinds("backends[]", lambda kind: kind.file_field),
        "binds[].port",
        "binds[].addresses",
        "binds[].listeners[].name",
        "binds[].listeners[].protocol",
        "binds[].listeners[].hostname",
        "binds[].listeners[].tls",
        "-binds[].listeners[].tls.options",  # of implementations
        "binds[].listeners[].routes[].name",
        "binds[].listeners[].routes[].hostnames",
        "binds[].listeners[].routes[].matches",
        "binds[].listeners[].routes[].backends[].backend",
        "binds[].listeners[].routes[].backends[].weight",
        *_kinds("binds[].listeners[].routes[].backends[]", lambda kind: kind.file_field),
        *(f"binds[].listeners[].routes[].policies.{name}" for name in (*_CONNECTING, *_OF_KINDS)),
        *(f"-binds[].listeners[].routes[].policies.requestMirror.policies.{name}" for name in _NOT_OF_SERVERS),
        *(
            f"binds[].listeners[].{routes}[].{field}"
            for routes in ("tcpRoutes", "udpRoutes")
            for field in ("name", "backends[].host", "backends[].backend", "backends[].weight")
        ),
        "binds[].listeners[].tcpRoutes[].hostnames",
        *(f"binds[].listeners[].tcpRoutes[].backends[].policies.{name}" for name in ("tls", "tcp", "health", "limits")),
        "binds[].listeners[].udpRoutes[].backends[].policies.health",
        *(f"binds[].listeners[].routes[].policies.{name}" for name in (*_FILTERS_IN_THE_FILE, *_TRAFFIC_IN_THE_FILE)),
        *(f"-binds[].listeners[].routes[].policies.{row}" for row in _NOT_YET_IN_THE_FILE),
        "binds[].listeners[].policies.phase",
        *(f"binds[].listeners[].policies.{name}" for name in _TRAFFIC_IN_THE_FILE),
        *(f"-binds[].listeners[].policies.{row}" for row in _NOT_YET_IN_THE_FILE),
        "frontendPolicies.accessLog",
        "frontendPolicies.connect",
        "-frontendPolicies.accessLog.otlp",  # telemetry
        "frontendPolicies.http",
        "frontendPolicies.networkAuthorization",
        "frontendPolicies.proxyProtocol",
        "frontendPolicies.tcp",
        "frontendPolicies.tls",
        "binds[].listeners[].http",
        "frontendPolicies.limits",
    ),
}
"""Kind (or STANDALONE) to what works of it: a path with all below it, `-` before one that does not work
after all, "[]" for any item. A kind without a row works wholly."""

DECIDED: Final[dict[str, str]] = {
    "filters[].extensionRef": "no kind of ours is a filter; GatewayPolicies act on routes, and on rules by their names",
    "spec.useDefaultGateways": "experimental; routes name their Gateways, so that nobody is served by accident",
    "spec.defaultScope": "experimental, the other half of `useDefaultGateways`",
    "spec.listeners[].filters": "experimental; a GatewayPolicy with `phase: PreRouting` acts before routing",
    "listeners[].tls.options": "its keys mean nothing in Gateway API; `frontend.tls` of policies has settings",
    "spec.options": "its keys mean nothing in Gateway API; `backend.tls` of policies has settings",
}
"""Settings that are refused by decision, by the end of their paths, with the reason: nobody need wait for them."""

LISTENER_PROTOCOLS: Final[tuple[str, ...]] = ()
"""What a listener protocol waits for; such a listener opens no port, the Gateway's other listeners work."""

ENVELOPE: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
"""Fields of an object that are no settings."""


REFUSED: Final = "not supported: "
"""How the message of a setting begins that is refused by decision."""


def reason(path: Path) -> str:
    """Why the setting at `path`, or the one above it that is refused, will not be honoured; "" when it only waits."""
    row = decided("".join("[]" if isinstance(part, int) else f".{part}" for part in path).lstrip("."))
    return "" if row is None else DECIDED[row]


def decided(path: str) -> str | None:
    """The row of DECIDED that a setting belongs to: `path` is that of a setting at or below it, with "[]" for items."""
    return next((row for row in DECIDED if f".{row}." in f".{path}."), None)


class Unsupported(NamedTuple):
    """A set field that cannot be honoured: its path in API names, and the message."""

    path: tuple[str | int, ...]
    message: str


class _Row(NamedTuple):
    """The table's rows by their first name: whether one ends here and how, and those that go deeper."""

    honoured: bool | None
    below: dict[str, _Row]


class Step(NamedTuple):
    """A field on the way to unsupported ones: attribute and API name, whether it is one, what lies below, and for
    those who list them what the field holds."""

    attribute: str
    name: str
    refused: bool
    below: tuple[Step, ...]
    annotation: Any


def unsupported(item: KubeObject) -> tuple[Unsupported, ...]:
    """Every set field of `item` that cannot be honoured yet; of nested ones the topmost."""
    return unsupported_fields(item.kind, type(item), item)


def unsupported_fields(kind: str, model: type[Model], value: Model) -> tuple[Unsupported, ...]:
    """As `unsupported`, for a value that is no Kubernetes object: the row `kind` of HONOURED counts."""
    steps = tree(kind, model)
    return tuple(_found(value, steps, ())) if steps else ()


def without_what_lacks(kind: str, model: type[Model], found: Iterable[Finding]) -> list[Finding]:
    """Findings of an invalid object of `model`: a setting that cannot be honoured anyway is not worth completing, so
    that in place of the fields that it lacks it is told itself, once."""
    steps = tree(kind, model)
    told: dict[Finding, None] = {}
    for each in found:
        setting = _beneath(steps, each.path[:-1]) if each.message == MISSING else None
        told[setting or each] = None
    return [*told]


def _beneath(steps: tuple[Step, ...], path: Path) -> Finding | None:
    """The unsupported setting that stands at `path` or above it."""
    for depth, part in enumerate(path, 1):
        if isinstance(part, int):
            continue
        step = next((each for each in steps if each.name == part), None)
        if step is None or step.refused:
            return Finding(path[:depth], _removed(path[:depth])) if step is not None else None
        steps = step.below
    return None


def _removed(path: Path) -> str:
    why = reason(path)
    return f"{f'{REFUSED}{why}; ' if why else UNSUPPORTED}remove {path[-1]} to have the rest accepted"


def _found(value: Any, steps: tuple[Step, ...], path: tuple[str | int, ...]) -> Iterator[Unsupported]:
    model: type[Model] = type(value)
    for attribute, name, refused, below, _ in steps:
        field = getattr(value, attribute)
        if field is None or field == ():
            continue
        if refused:
            if attribute in value.model_fields_set and field != _default(model, attribute):
                yield Unsupported((*path, name), _removed((*path, name)))
        elif isinstance(field, tuple):
            for index, item in enumerate(field):
                yield from _found(item, below, (*path, name, index))
        else:
            yield from _found(field, below, (*path, name))


@cache
def _default(model: type[Model], attribute: str) -> Any:
    """What an API server writes into an object where its user wrote nothing: it asks for what happens anyway."""
    field = model.model_fields.get(attribute)
    return field.get_default(call_default_factory=True) if field is not None else None


@cache
def tree(kind: str, model: type[Model]) -> tuple[Step, ...]:
    """The unsupported fields of a kind (its row of HONOURED) as one walk over an object of `model`, the kind's own,
    finds them; made once, when first asked for."""
    if kind not in HONOURED:
        return ()
    rows = _rows(HONOURED[kind])
    if kind != STANDALONE:  # an object is told which fields of its spec do not work, never that its spec does not
        rows.setdefault("spec", _Row(False, {"": _Row(None, {})}))
    return tuple(step for step in _steps(model, rows, False) if step.name not in ENVELOPE)


def _rows(paths: tuple[str, ...]) -> dict[str, _Row]:
    first: dict[str, _Row] = {}
    for path in paths:
        rows, honoured = first, not path.startswith("-")
        *names, last = path.removeprefix("-").replace("[]", "").split(".")
        for name in names:
            rows = rows.setdefault(name, _Row(None, {})).below
        rows[last] = _Row(honoured, rows[last].below if last in rows else {})
    return first


def _steps(model: type[Model], rows: dict[str, _Row], honoured: bool) -> Iterator[Step]:
    """`honoured`: what is true of fields without a row."""
    for attribute, field in model.model_fields.items():
        name = field.alias or attribute
        row = rows.get(name) or _Row(None, {})
        here = honoured if row.honoured is None else row.honoured
        inside: Any = model_in(field.annotation)
        if row.below and inside is not None:
            below = tuple(_steps(inside, row.below, here))
            if below:
                yield Step(attribute, name, False, below, field.annotation)
        elif not here:
            yield Step(attribute, name, True, (), field.annotation)
