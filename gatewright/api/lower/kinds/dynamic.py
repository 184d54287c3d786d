"""The kind `dynamicForwardProxy`."""

from __future__ import annotations

from typing import Any

from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.lower.kinds.kind import BackendReferences, Kind, Lowered, Policies
from gatewright.wire.v1 import backend_pb2


class Dynamic(Kind):
    """Where requests want to go. It has no settings, so all that have no name are one."""

    facts = KINDS["dynamic_forward_proxy"]

    def unnamed(self, model: Any) -> str:
        return "dynamic:all"

    def lowered(self, model: Any, policies: Policies, references: BackendReferences) -> Lowered:
        anything = backend_pb2.DynamicForwardProxyBackend()
        return Lowered(backend_pb2.Backend(dynamic_forward_proxy=anything, policies=policies.values()))
