"""Backends in the standalone file: those of a route, and those of the top level that others name.

Part of standalone_file. The variants are those of a GatewayBackend; a static one is written `host`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, Field

from gatewright.api.backend.backend import BackendFull
from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.backend.providers import AIBackend
from gatewright.api.checks.backend_kinds import KINDS, OWNED, misplaced
from gatewright.api.objects.gateway_backend import A2ABackend, AwsBackend, DynamicForwardProxyBackend
from gatewright.api.schema.fields import Integer, SectionName
from gatewright.api.schema.model import Broken, RuledModel, one_of
from gatewright.api.schema.targets import HostText
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.references import NamesBackend

_KINDS: Final = tuple(kind.file_field for kind in KINDS.values())


class Destination(RuledModel):
    """The variants that a backend of the file can be, and the policies for connecting to it."""

    variants: ClassVar[tuple[str, ...]] = _KINDS
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
    """The destination that each request names. It can reach anything that the proxy can: protect it by an authorization
    policy."""
    policies: BackendFull | None = None
    """Policies for connecting to it."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, *self.variants)
        if getattr(self, "backend", None) is None:
            yield from misplaced_policies(self.policies, self)


def misplaced_policies(policies: BaseModel | None, destination: Destination) -> Iterator[Broken]:
    """Policies of a backend that are for a kind which it is not; paths begin at it."""
    for policy, kind in OWNED.items():
        if getattr(policies, policy, None) is not None and getattr(destination, kind.file_field) is None:
            yield Broken(("policies", policy), misplaced(kind))


@file_form
class FileRouteBackend(Destination, NamesBackend):
    """An item of `routes[].backends`: a backend, or the name of a top-level one."""

    variants: ClassVar = (_KINDS[0], "backend", *_KINDS[1:])

    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1
    """Its share of the requests, relative to the other backends' weights."""


@file_form
class FileBackend(Destination):
    """An item of the top-level `backends`."""

    name: SectionName
    """Its name."""
