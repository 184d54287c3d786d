"""Kinds that are one address: `static` and `a2a`."""

from __future__ import annotations

from typing import Any

from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.lower.kinds.kind import Address, BackendReferences, Kind, Lowered, Policies
from gatewright.api.schema.targets import Target, target
from gatewright.wire.v1 import backend_pb2


class Static(Kind):
    """A host and port, or a Unix domain socket. A host without a port is sent so: what its port is depends on all
    policies for connecting to it."""

    facts = KINDS["static"]

    def of_file(self, written: str) -> Target:
        return target(written)

    def unnamed(self, model: Any) -> str:
        return str(model)

    def lowered(self, model: Any, policies: Policies, references: BackendReferences) -> Lowered:
        address = backend_pb2.StaticBackend(
            host=model.host or "", port=model.port or 0, unix_path=model.unix_path or ""
        )
        where = Address(address.host, address.port) if address.host else None
        return Lowered(backend_pb2.Backend(static=address, policies=policies.values()), address=where)


class Agent(Kind):
    """An A2A agent."""

    facts = KINDS["a2a"]

    def unnamed(self, model: Any) -> str:
        return f"a2a:{model.host}:{model.port}"

    def lowered(self, model: Any, policies: Policies, references: BackendReferences) -> Lowered:
        address = backend_pb2.StaticBackend(host=model.host, port=model.port)
        where = Address(model.host, model.port)
        return Lowered(backend_pb2.Backend(a2a=address, policies=policies.values()), address=where)
