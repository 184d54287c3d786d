"""Settings that are valid but cannot be honoured yet: one literal table, shorter with every release.

Called by decoding (a lint error, verdict `unsupported`) and by translation (a condition that names the setting). Such
a setting is never accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from gatewright.api.metadata import KubeObject
from gatewright.api.model import Model
from gatewright.api.problem import UNSUPPORTED

# Kind (or "Standalone", the file) to paths of its fields, "[]" for any item. The comment says what waits for it.
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "GatewayClass": (
        "spec.parametersRef",  # provisioning
    ),
    "Gateway": (
        "spec.addresses",  # provisioning
        "spec.infrastructure",  # provisioning
        "spec.allowedListeners",  # ListenerSet
        "spec.tls",  # TLS
        "spec.defaultScope",  # default Gateways (experimental)
        "spec.listeners[].tls",  # TLS; concerns that listener alone
        "spec.listeners[].filters",  # experimental
    ),
    "HTTPRoute": (
        "spec.useDefaultGateways",  # experimental
        "spec.rules[].sessionPersistence",  # experimental
        "spec.rules[].filters[].cors",  # policies
        "spec.rules[].filters[].externalAuth",  # policies
        "spec.rules[].filters[].extensionRef",  # no kind of ours is one
        "spec.rules[].backendRefs[].filters[].cors",
        "spec.rules[].backendRefs[].filters[].externalAuth",
        "spec.rules[].backendRefs[].filters[].extensionRef",
    ),
    "GatewayPolicy": (
        "spec.frontend",  # policies
        "spec.traffic",  # policies
        "spec.backend",  # policies
    ),
    "GatewayParameters": (
        "spec.logging",  # provisioning, as all of these
        "spec.rawConfig",
        "spec.image",
        "spec.env",
        "spec.resources",
        "spec.shutdown",
        "spec.istio",
        "spec.deployment",
        "spec.service",
        "spec.serviceAccount",
        "spec.podDisruptionBudget",
        "spec.horizontalPodAutoscaler",
    ),
    "Standalone": (
        "config.dynamicForwardProxy",  # agent backends
        "frontendPolicies",  # policies
        "binds[].listeners[].tls",  # TLS
        "binds[].listeners[].policies",  # policies
        "binds[].listeners[].tcpRoutes",  # TCP
        "binds[].listeners[].routes[].backends[].mcp",  # agent backends
        "binds[].listeners[].routes[].backends[].ai",
        "binds[].listeners[].routes[].backends[].a2a",
        "binds[].listeners[].routes[].backends[].aws",
        "binds[].listeners[].routes[].backends[].dynamicForwardProxy",
        "binds[].listeners[].routes[].backends[].policies",  # policies, as all that follow
        "binds[].listeners[].routes[].policies.transformation",
        "binds[].listeners[].routes[].policies.extProc",
        "binds[].listeners[].routes[].policies.extAuthz",
        "binds[].listeners[].routes[].policies.rateLimit",
        "binds[].listeners[].routes[].policies.cors",
        "binds[].listeners[].routes[].policies.csrf",
        "binds[].listeners[].routes[].policies.hostRewrite",
        "binds[].listeners[].routes[].policies.authorization",
        "binds[].listeners[].routes[].policies.jwtAuthentication",
        "binds[].listeners[].routes[].policies.basicAuthentication",
        "binds[].listeners[].routes[].policies.apiKeyAuthentication",
        "binds[].listeners[].routes[].policies.directResponse",
        "binds[].listeners[].routes[].policies.buffer",
        "binds[].listeners[].routes[].policies.tcp",
        "binds[].listeners[].routes[].policies.tls",
        "binds[].listeners[].routes[].policies.http",
        "binds[].listeners[].routes[].policies.tunnel",
        "binds[].listeners[].routes[].policies.auth",
        "binds[].listeners[].routes[].policies.ai",
        "binds[].listeners[].routes[].policies.mcp",
        "binds[].listeners[].routes[].policies.health",
        "backends[].mcp",
        "backends[].ai",
        "backends[].a2a",
        "backends[].aws",
        "backends[].dynamicForwardProxy",
        "backends[].policies",
    ),
    "GatewayBackend": (
        "spec.a2a",  # agent backends
        "spec.ai",
        "spec.mcp",
        "spec.aws",
        "spec.dynamicForwardProxy",
        "spec.policies",  # policies
    ),
}

# What a listener protocol waits for; such a listener opens no port, the Gateway's other listeners work.
LISTENER_PROTOCOLS: Final = ("HTTPS", "TLS", "TCP", "UDP")


class Unsupported(NamedTuple):
    """A set field that cannot be honoured: its path in API names, and the message."""

    path: tuple[str | int, ...]
    message: str


class _Step(NamedTuple):
    """A field on the way to unsupported ones: attribute and API name, and what lies below."""

    attribute: str
    name: str
    refused: bool
    below: tuple[_Step, ...]


def unsupported(item: KubeObject) -> tuple[Unsupported, ...]:
    """Every set field of `item` that cannot be honoured yet."""
    return unsupported_fields(item.kind, item)


def unsupported_fields(kind: str, value: Model) -> tuple[Unsupported, ...]:
    """As `unsupported`, for a value that is no Kubernetes object: the row `kind` of FIELDS counts."""
    steps = _TREES.get(kind)
    return tuple(_found(value, steps, ())) if steps else ()


def _found(value: Any, steps: tuple[_Step, ...], path: tuple[str | int, ...]) -> Iterator[Unsupported]:
    for attribute, name, refused, below in steps:
        field = getattr(value, attribute)
        if field is None or field == ():
            continue
        if refused:
            yield Unsupported((*path, name), f"{UNSUPPORTED}remove {name} to have the rest accepted")
        elif isinstance(field, tuple):
            for index, item in enumerate(field):
                yield from _found(item, below, (*path, name, index))
        else:
            yield from _found(field, below, (*path, name))


def _tree(paths: list[list[str]]) -> tuple[_Step, ...]:
    """Paths by their first field, so that one walk over an object finds all of them."""
    by_first: dict[str, list[list[str]]] = {}
    for first, *rest in paths:
        by_first.setdefault(first.removesuffix("[]"), []).append(rest)
    return tuple(
        _Step(_attribute(name), name, [] in rests, _tree([rest for rest in rests if rest]))
        for name, rests in by_first.items()
    )


def _attribute(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_TREES: Final = {kind: _tree([path.split(".") for path in paths]) for kind, paths in FIELDS.items()}
