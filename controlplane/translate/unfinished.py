"""Which resources look as if something were still missing: a route to a backend that is not there, a policy without its
Secret or server, a Service without endpoints. Pure; `pipeline` lets the coalescer wait a moment for what may complete
them.

People and tools write a route and its backend one after the other, in whichever order, and remove them so. Published
between the two, the route would answer 500 or 503 for a moment (Gateway API: what a missing backend is answered with),
and a policy would refuse all requests.
"""

from __future__ import annotations

from controlplane.translate import secrets
from controlplane.translate.program import ResourceChange
from gatewright.wire.v1 import resource_pb2

_NOT_FOUND = b"BackendNotFound"
"""How `InvalidBackend.reason` of a missing backend begins (`translate/backends`)."""

_MISSING = (_NOT_FOUND + b": ", secrets.NOT_FOUND.encode() + b": ")
"""What stands in `Policy.invalid` of a policy that lacks something (`translate/policies`)."""


def is_unfinished(change: ResourceChange) -> bool:
    """Whether requests would be refused because of what this resource names, or lacks."""
    _, _, name, content = change
    if content is None:
        return False
    if name.startswith("route/"):
        return _NOT_FOUND in content and _misses_a_backend(content)
    if name.startswith("policy/"):
        return any(reason in content for reason in _MISSING) and _misses_something(content)
    return name.startswith("backend/service/") and resource_pb2.Resource.FromString(content).backend.service.empty


def _misses_a_backend(content: bytes) -> bool:
    route = resource_pb2.Resource.FromString(content).route
    return any(backend.invalid.reason.startswith(_NOT_FOUND.decode()) for backend in route.backends)


def _misses_something(content: bytes) -> bool:
    invalid = resource_pb2.Resource.FromString(content).policy.invalid.encode()
    return any(reason in invalid for reason in _MISSING)
