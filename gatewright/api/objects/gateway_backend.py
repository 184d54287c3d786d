"""GatewayBackend (spec 1): what to connect to, and the policies for doing so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatewright.api.backend.backend import BackendFull
from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.backend.providers import AIBackend
from gatewright.api.checks.backend_kinds import KINDS, misplaced
from gatewright.api.schema.fields import Port, ShortString
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, one_of
from gatewright.api.schema.rules import exactly_one
from gatewright.api.schema.status import ConditionsStatus


class StaticBackend(RuledModel):
    """A host and port, or the path of a Unix domain socket."""

    host: ShortString | None = None
    """Host name or IP address."""
    port: Port | None = None
    """Port of the host; 80 when unset, 443 with TLS."""
    unix_path: Annotated[str, Field(min_length=1)] | None = None
    """Path of a Unix domain socket, on a volume that the gateway shares with the target."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.unix_path is not None:
            if self.host is not None:
                yield Broken(("host",), "must be absent when unixPath is set")
            if self.port is not None:
                yield Broken(("port",), "must be absent when unixPath is set")
        elif self.host is None and self.port is None:
            yield Broken((), "host or unixPath must be set")
        elif self.host is None:
            yield Broken(("host",), "is required with port")


class A2ABackend(Model):
    """An A2A agent."""

    host: ShortString
    """The agent's host."""
    port: Port
    """The agent's port."""


class DynamicForwardProxyBackend(Model):
    """The destination that each request names, by its Host header or TLS server name. It has no settings. It can reach
    anything that the gateway can: guard it by an authorization policy."""


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
    """The destination that each request names. It can reach anything that the gateway can: guard it by an
    authorization policy."""
    aws: AwsBackend | None = None
    """A service of AWS."""
    policies: BackendFull | None = None
    """Policies for connecting to this backend; they win over GatewayPolicies that set the same field."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, *KINDS)
        yield from misplaced(self.policies, self, lambda kind: kind.name)


class GatewayBackend(KubeObject):
    """What to connect to: a host, an agent, LLM providers, MCP servers, or what a request names."""

    spec: GatewayBackendSpec
    """What to connect to, and the policies for doing so."""
    status: ConditionsStatus | None = None
    """What became of it."""
