"""Settings that are valid but cannot be honoured yet: all that two tables do not name, found from the models.

Called by decoding (a lint error, verdict `unsupported`) and by translation (a condition that names the setting). Such
a setting is never accepted and ignored. A release that makes a policy work changes its row in
`gatewright/attach/policies.py`; other settings are in the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.checks.errors import MISSING, Finding
from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, model_in
from gatewright.api.schema.names import AWAITED
from gatewright.api.text.problem import UNSUPPORTED
from gatewright.attach.policies import BACKEND, BY_ATTRIBUTE, BY_FILE, FRONTEND, TCP, TRAFFIC, UDP, Policy, of

_EXTENSION: Final = "-{}.extensionRef"  # no kind of Gatewright is one
_FILTERS: Final = (_EXTENSION,)

STANDALONE: Final = "Standalone"
"""In place of a kind, for the standalone file."""


def _kinds(above: str, field: Callable[[BackendKind], str]) -> Iterator[str]:
    """Rows of backends of every kind that works. `above`: where they stand; `field`: what one is called there."""
    for kind in KINDS.values():
        if kind.works:
            yield f"{above}.{to_camel(field(kind))}"
    yield f"{above}.policies"


def _stream_backend_in_the_file(above: str, carried: str) -> Iterator[str]:
    """Of routes of connections or datagrams."""
    yield from (f"{above}.{name}" for name in ("host", "backend", "weight"))
    if carried == TCP:
        yield f"{above}.dynamicForwardProxy"
    yield from (f"{above}.policies.{to_camel(row.file_attribute)}" for row in of(BACKEND) if carried in row.carries)


HONOURED: Final[dict[str, tuple[str, ...]]] = {
    "Gateway": (
        "spec",
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
        *(row.format("spec.rules[].filters[]") for row in _FILTERS),
        *(row.format("spec.rules[].backendRefs[].filters[]") for row in _FILTERS),
    ),
    "GRPCRoute": (
        "spec",
        "-spec.useDefaultGateways",  # experimental
        _EXTENSION.format("spec.rules[].filters[]"),
        _EXTENSION.format("spec.rules[].backendRefs[].filters[]"),
    ),
    **dict.fromkeys(("TLSRoute", "TCPRoute", "UDPRoute"), ("spec", "-spec.useDefaultGateways")),
    "GatewayPolicy": tuple(
        f"spec.{name}" for name in ("targetRefs", "targetSelectors", "strategy", FRONTEND, TRAFFIC, BACKEND)
    ),
    "BackendTLSPolicy": ("spec", "-spec.options"),
    "GatewayBackend": tuple(_kinds("spec", lambda kind: kind.name)),
    "GatewayParameters": ("spec",),
    STANDALONE: (
        "config",
        "backends[].name",
        *_kinds("backends[]", lambda kind: kind.file_field),
        "binds[].port",
        "binds[].addresses",
        *(f"binds[].listeners[].{name}" for name in ("name", "protocol", "hostname", "tls", "http", "policies")),
        "-binds[].listeners[].tls.options",  # of implementations
        *(f"binds[].listeners[].routes[].{name}" for name in ("name", "hostnames", "matches", "policies")),
        *_kinds("binds[].listeners[].routes[].backends[]", lambda kind: kind.file_field),
        "binds[].listeners[].routes[].backends[].backend",
        "binds[].listeners[].routes[].backends[].weight",
        "binds[].listeners[].tcpRoutes[].name",
        "binds[].listeners[].tcpRoutes[].hostnames",
        *_stream_backend_in_the_file("binds[].listeners[].tcpRoutes[].backends[]", TCP),
        "binds[].listeners[].udpRoutes[].name",
        *_stream_backend_in_the_file("binds[].listeners[].udpRoutes[].backends[]", UDP),
        "frontendPolicies",
    ),
}
"""Kind (or STANDALONE) to what works of it: a path with all below it, `-` before one that does not work
after all, "[]" for any item. A kind without a row works wholly. What does not work of policies, wherever they stand, is
in `gatewright/attach/policies.py`."""

VALUES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("LocalBackendObjectReference", "kind"): tuple(AWAITED),
}
"""Name of a model and attribute to the values that do not work, of enums and of kinds that a reference may have.
Wherever the model stands."""

_OF_BYTES: Final = ("static", "dynamic_forward_proxy")
"""Kinds of backends that also serve what is no request."""
_OF_REQUESTS: Final = tuple(to_camel(kind.file_field) for kind in KINDS.values() if kind.name not in _OF_BYTES)
"""The others, in the file."""


def _of_stream_routes() -> Iterator[tuple[str, str]]:
    for routes, carried, why in (
        (
            "tcpRoutes",
            TCP,
            "it acts on requests, and a TCP route carries bytes: write it in `routes` of an HTTP listener",
        ),
        ("udpRoutes", UDP, "it acts on requests or connections, and a UDP route carries datagrams"),
    ):
        kinds = _OF_REQUESTS if carried == TCP else (*_OF_REQUESTS, "dynamicForwardProxy")
        yield from ((f"{routes}[].backends[].{name}", why) for name in kinds)
        policies = (to_camel(row.file_attribute) for row in of(BACKEND) if carried not in row.carries)
        yield from ((f"{routes}[].backends[].policies.{name}", why) for name in policies)


DECIDED: Final[dict[str, str]] = {
    "filters[].extensionRef": "no filter is a kind of Gatewright; GatewayPolicies act on routes and, by name, on rules",
    "spec.useDefaultGateways": "experimental; routes name their Gateways, so that none is served by accident",
    "spec.defaultScope": "experimental; routes name their Gateways, so that none serves one that does not mean it",
    "spec.listeners[].filters": "experimental; a GatewayPolicy with `phase: PreRouting` acts before routing",
    "listeners[].tls.options": "Gateway API gives its keys no meaning; `frontend.tls` of policies has what can be set",
    "spec.options": "Gateway API gives its keys no meaning; `backend.tls` of policies has what can be set",
    **dict(_of_stream_routes()),
}
"""Settings that are refused by decision, by the end of their paths, with the reason: they are not going to come."""

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


def is_awaited(group: str, kind: str) -> bool:
    """Whether a reference names a kind of objects that is known and cannot be honoured yet."""
    return AWAITED.get(kind) == group


class Unsupported(NamedTuple):
    """A set field that cannot be honoured: its path in API names, and the message."""

    path: tuple[str | int, ...]
    message: str


class _Row(NamedTuple):
    """The table's rows by their first name: whether one ends here and how, and those that go deeper."""

    honoured: bool | None
    below: dict[str, _Row]


class Step(NamedTuple):
    """A field on the way to unsupported ones: attribute and API name, whether it is one, what lies below, for those who
    list them what the field holds, and which of its values are unsupported."""

    attribute: str
    name: str
    refused: bool
    below: tuple[Step, ...]
    annotation: Any
    values: tuple[str, ...] = ()


def unsupported(item: KubeObject) -> tuple[Unsupported, ...]:
    """Every set field of `item` that cannot be honoured yet; of nested ones the topmost."""
    return unsupported_fields(item.kind, type(item), item)


def unsupported_fields(kind: str, model: type[Model], value: Model) -> tuple[Unsupported, ...]:
    """As `unsupported`, for a value that is no Kubernetes object: the row `kind` of HONOURED counts."""
    steps = tree(kind, model)
    return tuple(_found(value, steps, ())) if steps else ()


def without_what_lacks(kind: str, model: type[Model], found: Iterable[Finding]) -> list[Finding]:
    """Findings of an invalid object of `model`: a setting that cannot be honoured anyway is not worth completing, so
    that in place of the fields that it lacks it is reported itself, once."""
    steps = tree(kind, model)
    reported: dict[Finding, None] = {}
    for each in found:
        setting = _beneath(steps, each.path[:-1]) if each.message == MISSING else None
        reported[setting or each] = None
    return [*reported]


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
    for attribute, name, refused, below, _, values in steps:
        field = getattr(value, attribute)
        if field is None or field == ():
            continue
        if refused:
            if attribute in value.model_fields_set and field != _default(model, attribute):
                yield Unsupported((*path, name), _removed((*path, name)))
        elif values:
            found = field if isinstance(field, tuple) else (field,)
            yield from (Unsupported((*path, name), f"{UNSUPPORTED}{each}") for each in values if each in found)
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
    if kind != STANDALONE:  # reported are fields of a spec that do not work, never the whole spec
        rows.setdefault("spec", _Row(False, {"": _Row(None, {})}))
    return tuple(step for step in _steps(model, rows, False) if step.name not in ENVELOPE)


def _rows(paths: Iterable[str]) -> dict[str, _Row]:
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
        policy = policy_of(model, attribute)
        below = row.below
        if policy is not None and here:
            here = not policy.waits_as_a_whole
            below = _rows(_waiting_below(policy, attribute)) if here else {}
        inside: Any = model_in(field.annotation)
        values = VALUES.get((model.__name__, attribute), ()) if here else ()
        if values:
            yield Step(attribute, name, False, (), field.annotation, values)
        elif inside is not None and (here or below):
            steps = tuple(_steps(inside, below, here))
            if steps:
                yield Step(attribute, name, False, steps, field.annotation)
        elif not here:
            yield Step(attribute, name, True, (), field.annotation)


def policy_of(model: type[Model], attribute: str) -> Policy | None:
    """The policy that a field is, if its model is a part of the table of policies."""
    for part in getattr(model, "parts", ()):
        row = BY_FILE.get((part, attribute)) or BY_ATTRIBUTE.get((part, attribute))
        if row is not None:
            return row
    return None


def _waiting_below(policy: Policy, attribute: str) -> Iterator[str]:
    """Rows of what does not work of a policy that works. `attribute`: its name here, in the file or elsewhere."""
    in_file = attribute == policy.in_file
    for each in policy.waits:
        path = (each.in_file if in_file else "") or each.path
        yield f"-{path}"
        if policy.conditional:
            yield f"-conditional[].policy.{path}"
