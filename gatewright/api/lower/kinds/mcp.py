"""MCP servers behind one endpoint. A target with a host is a part; others lead to what is a backend by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.lower.kinds.kind import STDIO, BackendReferences, Kind, Lowered, Policies, Server
from gatewright.api.schema.byte_size import byte_size
from gatewright.api.text.places import Path
from gatewright.attach.policies import BY_NAME
from gatewright.wire.v1 import backend_pb2, policy_pb2

LONG_NAME: Final = 32
"""Characters of a target's name beyond which names of its tools may be too long for clients."""
MAX_SHOWN: Final = 8
"""Names that one message lists."""

_OF_CALLS: Final = "backend_mcp"
"""The policy of an MCP backend that is its own; others are for the servers behind it."""

_PROTOCOLS: Final = {
    None: backend_pb2.MCP_PROTOCOL_UNSPECIFIED,
    "StreamableHTTP": backend_pb2.MCP_PROTOCOL_STREAMABLE_HTTP,
    "SSE": backend_pb2.MCP_PROTOCOL_SSE,
    STDIO: backend_pb2.MCP_PROTOCOL_STDIO,
}


class Mcp(Kind):
    """`spec.mcp`."""

    facts = KINDS["mcp"]

    def lowered(self, model: MCPBackend, policies: Policies, references: BackendReferences) -> Lowered:
        servers: dict[str, Server] = {}
        parts: dict[str, backend_pb2.Backend] = {}
        for index, target in enumerate(model.targets):
            for server, part in _servers(target, ("targets", index), policies, references, servers):
                if server.name in servers:  # the first one gets it
                    references.problem(f"target {server.name}: the name is taken")
                    continue
                servers[server.name] = server
                if part is not None:
                    parts[server.name] = part
        message = backend_pb2.Backend(mcp=_message(model, servers.values()), policies=_sorted(policies))
        selectors = (target.name for target in model.targets if target.selector is not None)
        leads = tuple((each.name, each.backend) for each in servers.values())
        return Lowered(message, parts, leads, (*servers, *selectors), _long_names(list(servers)))


def _servers(
    target: Any, path: Path, policies: Policies, references: BackendReferences, taken: dict[str, Server]
) -> Sequence[tuple[Server, backend_pb2.Backend | None]]:
    """What one target leads to, each with the Backend of a part. Any: McpTargetSelector, or the file's form of it."""
    static = target.static
    if static is None:
        return [(each, None) for each in references.found(target, taken)]
    path = (*path, "static")
    if static.host is None:
        key = references.named(target.name, static.backend_ref, static.port, path)
        return [(Server(target.name, key, static.path, static.protocol), None)]
    own = references.policies(target.name, static.policies, (*path, "policies")) if static.policies is not None else {}
    part = backend_pb2.Backend(
        static=backend_pb2.StaticBackend(host=static.host, port=static.port), policies=_of_server(policies, own)
    )
    return [(Server(target.name, references.part(target.name), static.path, static.protocol), part)]


def _sorted(policies: Policies) -> Iterator[policy_pb2.Policy]:
    """An MCP backend's own: what is about calls, and how servers are connected to that are Services."""
    return (policies[field] for field in sorted(policies))


def _of_server(policies: Policies, own: Policies) -> Iterator[policy_pb2.Policy]:
    """Those for connecting to one of its servers, which may have its `own`: these win, field by field."""
    both = {field: policy for field, policy in policies.items() if not BY_NAME[field].is_step} | dict(own)
    return (both[field] for field in sorted(both) if field != _OF_CALLS)


def _message(model: MCPBackend, servers: Iterable[Server]) -> backend_pb2.McpBackend:
    return backend_pb2.McpBackend(
        targets=[
            backend_pb2.McpTarget(
                name=each.name,
                backend=each.backend,
                path=each.path or "",
                protocol=_PROTOCOLS[each.protocol],
                selector=each.selector,
            )
            for each in servers
        ],
        stateless=model.session_routing == "Stateless",
        fail_open=model.failure_mode == "FailOpen",
        max_answer=byte_size(model.max_answer_size) if model.max_answer_size is not None else 0,
    )


def _long_names(names: list[str]) -> str:
    """Several clients take tools of 64 characters at most."""
    long = [name for name in names if len(name) > LONG_NAME] if len(names) > 1 else []
    shown = ", ".join(long[:MAX_SHOWN])
    return f"names of tools begin with their target's and may exceed 64 characters: {shown}" if long else ""
