"""Backends of agents' traffic as wire messages: for the control plane's translation and for the standalone file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.schema.byte_size import byte_size
from gatewright.wire.v1 import backend_pb2, policy_pb2

STDIO: Final = "stdio"
"""Stands for the protocol of servers that the proxy starts, in the standalone file."""

OF_MCP: Final = "backend_mcp"
"""The policy of an MCP backend that is its own; others are for the servers behind it."""

_PROTOCOLS: Final = {
    None: backend_pb2.MCP_PROTOCOL_UNSPECIFIED,
    "StreamableHTTP": backend_pb2.MCP_PROTOCOL_STREAMABLE_HTTP,
    "SSE": backend_pb2.MCP_PROTOCOL_SSE,
    STDIO: backend_pb2.MCP_PROTOCOL_STDIO,
}


class McpServer(NamedTuple):
    """A target, and what it leads to: the key of a Backend. `protocol`: as the API has it; `selector`: the name of that
    which found it."""

    name: str
    backend: str
    path: str | None = None
    protocol: str | None = None
    selector: str = ""


def mcp_backend(model: MCPBackend, servers: Iterable[McpServer]) -> backend_pb2.McpBackend:
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


Policies = Mapping[str, policy_pb2.Policy]
"""By field of the wire."""


def of_endpoint(policies: Policies) -> list[policy_pb2.Policy]:
    """An MCP backend's own policies: what is about calls, and how servers are connected to that are Services."""
    return [policies[field] for field in sorted(policies)]


def of_servers(policies: Policies, own: Policies) -> list[policy_pb2.Policy]:
    """Those for connecting to one of its servers, which may have its `own`: these win, field by field."""
    both = {**policies, **own}
    return [both[field] for field in sorted(both) if field != OF_MCP]
