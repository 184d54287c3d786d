"""What works of each kind of objects and of the standalone file, and what is refused by decision: tables, by path.

Read by `unsupported`, which finds what they do not name. The table of policies is `gatewright/attach/policies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.names import AWAITED
from gatewright.attach.policies import BACKEND, FRONTEND, TCP, TRAFFIC, UDP, of

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
