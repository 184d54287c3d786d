"""MCP backends (MCPBackend): the servers behind one endpoint."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.backend.simple import BackendSimple
from gatewright.api.schema.fields import ByteSize, FailureMode, LongString, Port, SectionName, ShortString
from gatewright.api.schema.label_selector import LabelSelector
from gatewright.api.schema.model import Model, RuledModel, unique
from gatewright.api.schema.references import LocalServiceReference
from gatewright.api.schema.rules import exactly_one, not_both
from gatewright.api.schema.size_rules import at_least, at_most


class McpSelector(Model):
    """Services by their labels."""

    namespaces: LabelSelector | None = None
    """Namespaces that are searched; only the backend's own when unset."""
    services: LabelSelector | None = None
    """Services that are selected. Policies for one of them are attached by a GatewayPolicy that targets it."""


class McpTarget(RuledModel):
    """One MCP server."""

    host: ShortString | None = None
    """The server's host."""
    backend_ref: LocalServiceReference | None = None
    """A Service of the same namespace, in place of host."""
    port: Port
    """The server's port."""
    path: LongString | None = None
    """The server's path; default is /sse for SSE and /mcp for StreamableHTTP."""
    protocol: Literal["StreamableHTTP", "SSE"] | None = None
    """The transport; StreamableHTTP when unset."""
    policies: BackendSimple | None = None
    """Policies for connecting to it, with host only; they win over those of the GatewayBackend and of
    GatewayPolicies."""

    cel_rules = (
        exactly_one("host", "backendRef"),
        not_both(
            "backendRef",
            "policies",
            "policies is valid only with host; attach a GatewayPolicy to the Service instead",
        ),
    )


class McpTargetSelector(RuledModel):
    """A server, or Services that are servers."""

    name: SectionName
    """Name of the target, by which policies can target it."""
    selector: McpSelector | None = None
    """Services by their labels; the recommended form within a cluster."""
    static: McpTarget | None = None
    """One MCP server."""

    cel_rules = (exactly_one("selector", "static"),)


ANSWER_SIZES: Final = (1024, 64 * 1024 * 1024)
"""The smallest and the largest `maxAnswerSize`."""


class MCPBackend(RuledModel):
    """MCP servers behind one endpoint."""

    targets: Annotated[
        tuple[McpTargetSelector, ...],
        Field(min_length=1, max_length=32),
        unique(lambda target: target.name, field="name"),
    ]
    """The servers."""
    session_routing: Literal["Stateful", "Stateless"] = "Stateful"
    """`Stateful` makes sessions and keeps a session's requests at one replica of the server."""
    failure_mode: FailureMode = "FailClosed"
    """Whether a session fails when one target does (FailClosed), or goes on with the others (FailOpen)."""
    max_answer_size: ByteSize | None = None
    """The largest answer, or event of one, that is read whole: of several targets, lists for rules, results for
    guardrails, lines of commands. A call whose answer is larger fails, not its session; 4Mi when unset."""

    cel_rules = (at_least("maxAnswerSize", ANSWER_SIZES[0]), at_most("maxAnswerSize", ANSWER_SIZES[1]))
