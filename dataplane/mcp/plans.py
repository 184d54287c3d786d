"""The finished settings of MCP servers behind one endpoint: what a request meets. Made when a table is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.upstream.parts import Part
from gatewright.wire.v1 import backend_pb2

if TYPE_CHECKING:
    from dataplane.mcp.policies import McpPolicies

MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer that is read whole, unless the backend says otherwise (`mcp.maxAnswerSize`)."""
LARGEST_ANSWER: Final = 64 * 1024 * 1024
"""The most that it may say."""
MAX_TARGETS: Final = 1024
"""Selectors may find many Services; each is a place of its own."""

_SEPARATORS: Final = frozenset("_+:.")
"""What names of items, requests and events have beside a target's name (`names`)."""

_PATHS: Final = {False: "/mcp", True: "/sse"}


@dataclass(frozen=True, slots=True)
class TargetPlan(Part):
    """One MCP server."""

    path: bytes = b""
    is_sse: bool = False

    @property
    def is_stdio(self) -> bool:
        """It is a process of this proxy."""
        return self.is_local


@dataclass(frozen=True, slots=True)
class McpPlan:
    """`targets` in the order of lists. `policies`: those of the backend itself, which win over a route's."""

    targets: tuple[TargetPlan, ...]
    stateless: bool = False
    fail_open: bool = False
    policies: McpPolicies | None = None
    max_answer: int = MAX_ANSWER
    """Bytes of an answer, or of an event, that is read whole."""
    several: bool = field(init=False, compare=False, repr=False)
    """There is more than one target."""
    by_name: dict[str, TargetPlan] = field(init=False, compare=False, repr=False)

    @property
    def may_be_modern(self) -> bool:
        """Whether the revision without sessions can be had of all: it cannot over a process or the older transport."""
        return not any(target.is_stdio or target.is_sse for target in self.targets)

    def __post_init__(self) -> None:
        object.__setattr__(self, "several", len(self.targets) > 1)
        object.__setattr__(self, "by_name", {target.name: target for target in self.targets})


def check(message: backend_pb2.McpBackend) -> None:
    """Raises `Refused`."""
    names = [target.name for target in message.targets]
    if len(names) > MAX_TARGETS:
        raise Refused(f"mcp.targets: more than {MAX_TARGETS}")
    if message.max_answer > LARGEST_ANSWER:
        raise Refused(f"mcp.max_answer: more than {LARGEST_ANSWER}")
    for index, target in enumerate(message.targets):
        where = f"mcp.targets[{index}]"
        if not target.name or not _SEPARATORS.isdisjoint(target.name):
            raise Refused(f"{where}.name: must be set, without _, +, : and .")
        if names.count(target.name) > 1:
            raise Refused(f"{where}.name: {target.name} is there twice")
        if not target.backend:
            raise Refused(f"{where}.backend: must be set")
        if target.path and not (target.path.startswith("/") and target.path.isascii() and target.path.isprintable()):
            raise Refused(f"{where}.path: must begin with / and be printable ASCII")
        if " " in target.path or "#" in target.path:
            raise Refused(f"{where}.path: has a space or #")


def targets(message: backend_pb2.McpBackend) -> tuple[TargetPlan, ...]:
    """Of a message that `check` has seen."""
    return tuple(map(_target, message.targets))


def _target(target: backend_pb2.McpTarget) -> TargetPlan:
    is_sse = target.protocol == backend_pb2.MCP_PROTOCOL_SSE
    is_stdio = target.protocol == backend_pb2.MCP_PROTOCOL_STDIO
    path = (target.path or _PATHS[is_sse]).encode()
    return TargetPlan(target.name, target.backend, target.selector, is_stdio, path=path, is_sse=is_sse)
