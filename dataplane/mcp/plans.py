"""The finished settings of MCP servers behind one endpoint: what a request meets. Made when a table is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.upstream.settings import NO_SETTINGS, Settings
from gatewright.wire.v1 import backend_pb2

if TYPE_CHECKING:
    from dataplane.mcp.policies import McpPolicies
    from dataplane.upstream.guards import Rules

MAX_TARGETS: Final = 1024
"""Selectors may find many Services; each is a place of its own."""

_PATHS: Final = {False: "/mcp", True: "/sse"}


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One MCP server."""

    name: str
    backend: str
    """Key of the Backend that has its address."""
    path: bytes
    is_sse: bool = False
    is_stdio: bool = False
    """It is a process of this proxy: nothing is said of connections to it."""
    own: Settings = NO_SETTINGS
    """How it is connected to, by policies that are attached to the MCP backend; what its own Backend says wins."""
    rules: Rules | None = None
    """What they say for its sake."""
    above: Settings = NO_SETTINGS
    """What the MCP backend says itself; it wins over the Backend of a target, unless that is a part of it."""
    rules_above: Rules | None = None
    selector: str = ""
    """Name of the selector that found it: policies for that are for it too."""


@dataclass(slots=True)
class McpPlan:
    """`targets` in the order of lists. `policies`: those of the backend itself, which win over a route's."""

    targets: tuple[TargetPlan, ...]
    stateless: bool = False
    fail_open: bool = False
    policies: McpPolicies | None = None

    @property
    def by_name(self) -> dict[str, TargetPlan]:
        return {target.name: target for target in self.targets}

    @property
    def several(self) -> bool:
        return len(self.targets) > 1


def check(message: backend_pb2.McpBackend) -> None:
    """Raises `Refused`."""
    names = [target.name for target in message.targets]
    if len(names) > MAX_TARGETS:
        raise Refused(f"mcp.targets: more than {MAX_TARGETS}")
    for index, target in enumerate(message.targets):
        where = f"mcp.targets[{index}]"
        if not target.name or "_" in target.name or "+" in target.name or ":" in target.name:
            raise Refused(f"{where}.name: must be set, without _, + and :")
        if names.count(target.name) > 1:
            raise Refused(f"{where}.name: {target.name} is there twice")
        if not target.backend:
            raise Refused(f"{where}.backend: must be set")
        if target.path and not (target.path.startswith("/") and target.path.isascii() and target.path.isprintable()):
            raise Refused(f"{where}.path: must begin with / and be printable ASCII")
        if " " in target.path:
            raise Refused(f"{where}.path: has a space")


def plan(message: backend_pb2.McpBackend) -> McpPlan:
    """Of a message that `check` has seen."""
    return McpPlan(tuple(map(_target, message.targets)), message.stateless, message.fail_open)


def _target(target: backend_pb2.McpTarget) -> TargetPlan:
    is_sse = target.protocol == backend_pb2.MCP_PROTOCOL_SSE
    is_stdio = target.protocol == backend_pb2.MCP_PROTOCOL_STDIO
    path = (target.path or _PATHS[is_sse]).encode()
    return TargetPlan(target.name, target.backend, path, is_sse, is_stdio, selector=target.selector)
