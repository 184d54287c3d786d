"""The kinds of GatewayBackends: a row for each, with what the API, the control plane, lint and the pages know of it.

How a kind becomes wire stands in the table beside it (`lower/kinds`), what becomes of requests in the proxy's
(`dataplane/backends/registry.KINDS`). A kind that does not work yet has a row here alone, and who sets it is refused.
docs/architecture.md, "Adding a kind", lists what belongs to one; `tests/rules/test_backend_kinds.py` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from gatewright.api.schema.names import GROUP


class Parts(NamedTuple):
    """What a kind sends requests on to, each a Backend of its own with policies."""

    word: str
    """What one is called in messages."""
    path: str
    """Where they stand below the kind's field."""
    holder: str
    """What has `policies` of its own: the path of it below the kind's field, `[]` for any item."""
    policies: str
    """The model of these: the subset of policies that one takes."""
    selector: str = ""
    """Attribute of one by which it is Services that are selected by their labels."""


class BackendKind(NamedTuple):
    """One row."""

    name: str
    """Attribute of GatewayBackend's `spec`, and of the wire's Backend."""
    what: str
    """What is behind it, for messages."""
    refers_to: frozenset[str]
    """Kinds of objects that it may name, its policies included."""
    page: str
    """Below docs/: what a user reads of it; "": it does not work yet."""
    in_file: str = ""
    """Attribute of a backend in the standalone file, where that is another one."""
    policy: str = ""
    """The policy in `policies` that is for this kind alone; "": there is none."""
    security: tuple[str, ...] = ()
    """Attributes of that policy that keep something from clients or servers: a setting without them that replaces one
    with them deserves a warning."""
    parts: Parts | None = None
    """None: it is connected to itself."""
    app_protocols: tuple[str, ...] = ()
    """Values of `appProtocol`, in lower case, by which a port of a Service says that it is one of these."""
    routes: tuple[str, ...] = ()
    """The kinds of routes that alone may lead to it; (): all."""

    @property
    def works(self) -> bool:
        return bool(self.page)

    @property
    def file_field(self) -> str:
        """Attribute of a backend in the standalone file."""
        return self.in_file or self.name


_OF_POLICIES: Final = frozenset({"Secret", "ConfigMap"})
"""What `policies` of every kind may name: certificates."""

_ROWS: Final = (
    BackendKind("static", "an address", _OF_POLICIES, "routing.md", in_file="host"),
    BackendKind(
        "mcp",
        "MCP servers",
        _OF_POLICIES | {"Service"},
        "mcp/README.md",
        policy="mcp",
        security=("guardrails", "authentication"),
        parts=Parts("target", "targets", "targets[].static", "BackendSimple", "selector"),
        app_protocols=(f"{GROUP}/mcp", f"{GROUP}/mcp-sse"),
        routes=("HTTPRoute",),
    ),
    BackendKind(
        "ai",
        "LLM providers",
        _OF_POLICIES | {"Service", "InferencePool"},
        "llm/README.md",
        policy="ai",
        security=("prompt_guard", "authorization"),
        parts=Parts("provider", "groups", "groups[].providers[]", "BackendWithAI"),
        routes=("HTTPRoute",),
    ),
    BackendKind("a2a", "an A2A agent", _OF_POLICIES, "a2a.md", app_protocols=(f"{GROUP}/a2a",)),
    BackendKind("aws", "a service of AWS", _OF_POLICIES, "agentcore.md"),
    BackendKind(
        "dynamic_forward_proxy",
        "the destination that each request names",
        _OF_POLICIES,
        "forward-proxy.md",
        routes=("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"),
    ),
)

KINDS: Final[Mapping[str, BackendKind]] = {row.name: row for row in _ROWS}
"""By name, in the order in which messages list them."""

OWNED: Final = {row.policy: row for row in _ROWS if row.policy}
"""Policies for connecting to backends of one kind alone, with that kind."""


def misplaced(kind: BackendKind) -> str:
    """What is wrong with the policy that is for a kind alone, in a backend of another one."""
    return f"is valid only for a backend of type {kind.name}"
