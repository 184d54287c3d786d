"""Where a field acts: the page of docs/ that says what it does."""

from __future__ import annotations

import re
from typing import Final

from gatewright.api.schema.camel import to_camel
from gatewright.attach.policies import BACKEND, FRONTEND, POLICIES, RULE, TRAFFIC

_PARTS: Final = {"traffic": (TRAFFIC,), "frontend": (FRONTEND,), "backend": (BACKEND,)}
_SECTION: Final = re.compile(r"\b(traffic|frontend|backend|policies|frontendPolicies)[.]([A-Za-z]+)")
_POLICIES: Final[dict[tuple[str, str], str]] = {
    (part, to_camel(name)): row.page
    for row in POLICIES
    for part in (row.part,)
    for name in (row.attribute, row.file_attribute, row.rule_attribute)
}

_PLACES: Final[dict[str, str]] = {
    "GatewayBackend spec.static": "backends.md",
    "GatewayBackend spec.a2a": "a2a.md",
    "GatewayBackend spec.ai": "llm/README.md",
    "GatewayBackend spec.mcp": "mcp/README.md",
    "GatewayBackend spec.dynamicForwardProxy": "forward-proxy.md",
    "GatewayBackend spec.aws": "agentcore.md",
    "GatewayBackend status": "conditions.md",
    "GatewayBackend": "backends.md",
    "GatewayParameters spec.istio": "mesh.md",
    "GatewayParameters status": "conditions.md",
    "GatewayParameters": "deploying.md",
    "GatewayPolicy status": "conditions.md",
    "GatewayPolicy spec.target": "attachment.md",
    "GatewayPolicy spec.strategy": "attachment.md",
    "GatewayPolicy": "policies.md",
    "Standalone config.prices": "llm/prices.md",
    "Standalone config.dynamicForwardProxy": "forward-proxy.md",
    "Standalone binds[].listeners[].tls": "tls.md",
    "Standalone binds[].listeners[].tcpRoutes": "tcp-udp.md",
    "Standalone binds[].listeners[].udpRoutes": "tcp-udp.md",
    "Standalone": "standalone.md",
}
"""Kind and beginning of a path; the first that fits counts."""


def page_of(kind: str, path: str) -> str:
    """Below docs/. The innermost policy on the way has it, else what holds the field."""
    for part, name in reversed(_SECTION.findall(path)):
        for each in _PARTS.get(part, (BACKEND, TRAFFIC, FRONTEND, RULE)):
            if page := _POLICIES.get((each, name)):
                return page
    return next(page for place, page in _PLACES.items() if f"{kind} {path}".startswith(place))
