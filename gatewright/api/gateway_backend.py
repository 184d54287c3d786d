"""GatewayBackend (spec 1): static hosts and Unix sockets in full; the other variants are envelopes (unsupported)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatewright.api.fields import Json, Port, ShortString
from gatewright.api.metadata import KubeObject
from gatewright.api.model import Broken, RuledModel, one_of
from gatewright.api.status import ConditionsStatus


class StaticBackend(RuledModel):
    """A host and port, or the path of a Unix domain socket."""

    host: ShortString | None = None
    port: Port | None = None
    unix_path: Annotated[str, Field(min_length=1)] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.unix_path is not None:
            if self.host is not None:
                yield Broken(("host",), "must be absent when unixPath is set")
            if self.port is not None:
                yield Broken(("port",), "must be absent when unixPath is set")
        elif self.host is None and self.port is None:
            yield Broken((), "host and port, or unixPath, must be set")
        elif self.host is None:
            yield Broken(("host",), "is required with port")
        elif self.port is None:
            yield Broken(("port",), "is required with host")


class GatewayBackendSpec(RuledModel):
    """GatewayBackend.spec: exactly one variant, and policies for connecting to it."""

    static: StaticBackend | None = None
    a2a: Json = None
    ai: Json = None
    mcp: Json = None
    dynamic_forward_proxy: Json = None
    aws: Json = None
    policies: Json = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "ai", "static", "dynamic_forward_proxy", "mcp", "aws", "a2a")


class GatewayBackend(KubeObject):
    """What to connect to."""

    spec: GatewayBackendSpec
    status: ConditionsStatus | None = None
