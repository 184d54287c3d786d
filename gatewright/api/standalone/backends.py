"""Backends in the standalone file: those of a route, and those of the top level that others name.

Part of standalone_file. The variants are those of a GatewayBackend; a static one is written `host`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from gatewright.api.backend.backend import BackendFull
from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.backend.providers import AIBackend
from gatewright.api.objects.gateway_backend import A2ABackend, AwsBackend, DynamicForwardProxyBackend
from gatewright.api.schema.fields import Integer, SectionName
from gatewright.api.schema.model import Broken, RuledModel, one_of
from gatewright.api.schema.targets import HostText
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.references import NamesBackend


class Destination(RuledModel):
    """The variants that a backend of the file can be, and the policies for connecting to it."""

    variants: ClassVar[tuple[str, ...]] = ("host", "mcp", "ai", "a2a", "aws", "dynamic_forward_proxy")
    """Attributes of which exactly one is set."""

    host: HostText | None = None
    """HOST:PORT, [IPV6]:PORT or unix:/PATH."""
    mcp: MCPBackend | None = None
    """MCP servers behind one endpoint."""
    ai: AIBackend | None = None
    """LLM providers."""
    a2a: A2ABackend | None = None
    """An A2A agent."""
    aws: AwsBackend | None = None
    """A service of AWS."""
    dynamic_forward_proxy: DynamicForwardProxyBackend | None = None
    """The destination that each request names. It can reach anything that the proxy can: guard it by an authorization
    policy."""
    policies: BackendFull | None = None
    """Policies for connecting to it."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, *self.variants)
        if getattr(self, "backend", None) is None:
            yield from policies_fit(self.policies, self)


def policies_fit(policies: BaseModel | None, destination: Destination) -> Iterator[Broken]:
    """`ai` and `mcp` are for backends of that type alone (spec 1, GatewayBackend); paths begin at the backend."""
    for name in ("ai", "mcp"):
        if getattr(policies, name, None) is not None and getattr(destination, name) is None:
            yield Broken(("policies", name), f"is valid only for a backend of type {name}")


@file_form
class FileRouteBackend(Destination, NamesBackend):
    """An item of `routes[].backends`: a backend, or the name of a top-level one."""

    variants: ClassVar = ("host", "backend", "mcp", "ai", "a2a", "aws", "dynamic_forward_proxy")

    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1
    """Its share of the requests, relative to the other backends' weights."""


@file_form
class FileBackend(Destination):
    """An item of the top-level `backends`."""

    name: SectionName
    """Its name."""
