"""The row of MCP servers: it ends the request itself. A table with one has loaded what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dataplane.exchange import Exchange

if TYPE_CHECKING:
    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.mcp.plans import McpPlan
    from dataplane.upstream.lease import BackendPlan, Lease, Leases


class Mcp:
    """`lease.Backend`."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        if not isinstance(holder, Exchange):
            holder.lease_failed("refused", f"{plan.key}: MCP servers answer requests of clients, no calls of policies")
            return
        from dataplane.backends.mcp.outlet import Outlet

        x = cast("McpExchange", holder)
        mcp = cast("McpPlan", cast("Any", plan).mcp)  # plans of this kind have one
        x.up = Outlet(x, mcp)
        x.lease_ready(x.up)
