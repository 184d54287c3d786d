"""What is valid and still not what the user means: warnings about one object by itself.

Called by lint, for objects and for the standalone file alike (its models are the CRDs' own). One row for each warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.mcp import BackendMCP
from gatewright.api.gateway_policy import GatewayPolicySpec
from gatewright.api.parts import Path, parts


class Advice(NamedTuple):
    """A warning: where, in API names, and what to do instead."""

    path: Path
    message: str


def advice(value: BaseModel) -> Iterator[Advice]:
    """Every warning about a valid object or file."""
    for path, part in parts(value):
        for model, look in _LOOKS:
            if isinstance(part, model):
                yield from (Advice((*path, *found.path), found.message) for found in look(part))


def _deprecated_authentication(mcp: BackendMCP) -> Iterator[Advice]:
    if mcp.authentication is not None:
        message = "is deprecated: use traffic.jwtAuthentication with mcp, which runs before transformations and limits"
        yield Advice(("authentication",), message)


def _bearer_twice(auth: BackendAuth) -> Iterator[Advice]:
    if auth.key is not None and auth.key.lower().startswith("bearer "):
        message = 'begins with "Bearer ", and is written as it is after the prefix Bearer: leave it out here'
        yield Advice(("key",), message)


def _no_section(spec: GatewayPolicySpec) -> Iterator[Advice]:
    if spec.frontend is None and spec.traffic is None and spec.backend is None:
        yield Advice((), "does nothing: none of frontend, traffic and backend is set")


def _timeouts_of_grpc(spec: GatewayPolicySpec) -> Iterator[Advice]:
    if spec.traffic is None or spec.traffic.timeouts is None:
        return
    kinds = [target.kind for target in spec.target_refs or ()] + [each.kind for each in spec.target_selectors or ()]
    if "GRPCRoute" in kinds:
        yield Advice(("traffic", "timeouts"), "has no effect on a GRPCRoute: timeouts apply to HTTPRoutes only")


_LOOKS: Final[tuple[tuple[type[BaseModel], Callable[[Any], Iterator[Advice]]], ...]] = (
    (BackendMCP, _deprecated_authentication),
    (BackendAuth, _bearer_twice),
    (GatewayPolicySpec, _no_section),
    (GatewayPolicySpec, _timeouts_of_grpc),
)
"""What is looked at, and how; the order is that of the warnings about one part."""
