"""The kinds of backends, as rows: what becomes of a request, a call of a policy, or a mirror that goes to one.

What only forwards takes a lease (`upstream/lease`); a kind that ends the request itself implements `Upstream` and
calls `lease_ready` with that. Of an exchange, what has to wait runs by `Exchange.work`, and is cancelled by `reset`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp.backend import Mcp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.upstream.lease import Backend, BackendPlan, Lease, Leases


class Service:
    """Endpoints that the control plane sends."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        endpoints = plan.endpoints
        if endpoints:
            leases.take(holder, endpoints, plan)
        else:
            holder.lease_failed("endpoints", f"{plan.key}: it has no endpoints")


class Static:
    """An address, or a name that is resolved here."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        endpoints = plan.endpoints if not plan.host else leases.resolved(holder, plan, self)
        if endpoints:
            leases.take(holder, endpoints, plan)


class Guarded:
    """A service or static backend of which policies say something for its sake: health, limits."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        assert plan.rules is not None  # that makes it one of this kind
        guard = leases.guard(plan, plan.rules)
        if not leases.admits(holder, plan, guard):
            return
        if plan.host:
            endpoints = leases.resolved(holder, plan, self)
        else:
            endpoints = plan.endpoints
            if not endpoints:
                holder.lease_failed("endpoints", f"{plan.key}: it has no endpoints")
        if endpoints:
            leases.take(holder, guard.usable(endpoints, plan.far), plan)


class Refused:
    """One that nothing may be sent to, for the reason that its plan has."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        holder.lease_failed("refused", f"{plan.key}: {plan.refused}")


ROWS: Final[dict[str, Backend]] = {
    # name: the field of the wire's Backend message
    "service": Service(),
    "static": Static(),
    "mcp": Mcp(),
    # name: the field that stands above the kind
    "refused": Refused(),
    # of those that forward, with policies for their sake (`upstream/guards`)
    "guarded": Guarded(),
}

LOADED_LATE: Final[dict[str, tuple[str, ...]]] = {
    # Of backends whose host is a name (`upstream/look_ups`).
    "named": ("cffi", "pycares", "aiodns"),
    # Workers without such a backend need no memory for it. In this order none takes much longer than the others: the
    # loop serves between two of them.
    "mcp": (
        "msgspec",
        "cryptography.hazmat.primitives.ciphers.aead",
        "dataplane.mcp.spellings",
        "dataplane.backends.mcp.visit",
        "dataplane.backends.mcp.upstreams",
        "dataplane.backends.mcp.relay",
        "dataplane.backends.mcp.guarding",
        "dataplane.backends.mcp.sending",
        "dataplane.backends.mcp.posts",
        "dataplane.backends.mcp.outlet",
        "dataplane.backends.mcp.legacy.requests",
        "dataplane.backends.mcp.legacy.client_posts",
        "dataplane.backends.mcp.legacy.peers",
    ),
}


def load(kind: str) -> Iterator[None]:
    """Load what a kind of backends needs, in steps, before a table has one: else its first request would hold all
    others of the worker for that long."""
    for name in LOADED_LATE.get(kind, ()):
        if name not in sys.modules:
            import_module(name)
            yield
