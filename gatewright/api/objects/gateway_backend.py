"""GatewayBackend: what to connect to, and the policies for doing so."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.backend.backend import BackendFull
from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.backend.providers import AIBackend
from gatewright.api.checks.backend_kinds import KINDS, OWNED, misplaced
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import Port, ShortString
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.rules import Rule, exactly_one, not_both, required_where
from gatewright.api.schema.status import ConditionsStatus


class StaticBackend(RuledModel):
    """A host and port, or the path of a Unix domain socket."""

    host: ShortString | None = None
    """Host name or IP address."""
    port: Port | None = None
    """Port of the host; 80 when unset, 443 with TLS."""
    unix_path: Annotated[str, Field(min_length=1)] | None = None
    """Path of a Unix domain socket, on a volume that the gateway shares with the target."""

    cel_rules = (
        not_both("unixPath", "host"),
        not_both("unixPath", "port"),
        Rule("has(self.unixPath) || has(self.host) || has(self.port)", "host or unixPath must be set"),
        required_where("host", "has(self.port) && !has(self.unixPath)", "is required with port"),
    )


class A2ABackend(Model):
    """An A2A agent."""

    host: ShortString
    """The agent's host."""
    port: Port
    """The agent's port."""


class DynamicForwardProxyBackend(Model):
    """The destination that each request names, by its Host header or TLS server name. It has no settings. It can reach
    anything that the gateway can: protect it by an authorization policy."""


class AwsAgentRuntimeBackend(Model):
    """An Amazon Bedrock AgentCore runtime."""

    agent_runtime_arn: str
    """Resource name of the runtime."""
    qualifier: str | None = None
    """Alias or version."""


class AwsBackend(RuledModel):
    """A service of AWS: one kind of them."""

    agent_runtime: AwsAgentRuntimeBackend | None = None
    """An Amazon Bedrock AgentCore runtime."""

    cel_rules = (exactly_one("agentRuntime"),)


class GatewayBackendSpec(RuledModel):
    """What to connect to: exactly one kind of backend, and policies for connecting to it."""

    static: StaticBackend | None = None
    """A host and port, or a Unix domain socket."""
    a2a: A2ABackend | None = None
    """An A2A agent."""
    ai: AIBackend | None = None
    """LLM providers."""
    mcp: MCPBackend | None = None
    """MCP servers."""
    dynamic_forward_proxy: DynamicForwardProxyBackend | None = None
    """The destination that each request names. It can reach anything that the gateway can: protect it by an
    authorization policy."""
    aws: AwsBackend | None = None
    """A service of AWS."""
    policies: BackendFull | None = None
    """Policies for connecting to this backend; they win over GatewayPolicies that set the same field."""

    cel_rules = (
        exactly_one(*map(to_camel, KINDS)),
        *(
            Rule(
                f"!has(self.policies) || !has(self.policies.{policy}) || has(self.{to_camel(kind.name)})",
                f"policies.{policy} {misplaced(kind)}",
                path=("policies", policy),
            )
            for policy, kind in OWNED.items()
        ),
    )


class GatewayBackend(KubeObject):
    """What to connect to: a host, an agent, LLM providers, MCP servers, or what a request names."""

    spec: GatewayBackendSpec
    """What to connect to, and the policies for doing so."""
    status: ConditionsStatus | None = None
    """What became of it."""
