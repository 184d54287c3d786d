"""The row of dynamic forward proxies: a request is sent to the host that it names, or a connection to its server name.

The destination is found and judged (`destinations`); from then on it is a backend as any other, whose plan has that one
destination's addresses and nothing else to resolve.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from dataplane.backends.dynamic import names
from dataplane.exchange import Exchange
from dataplane.telemetry.log_rows.dynamic import DESTINATION
from dataplane.upstream.destinations import Named, NoDestination
from dataplane.upstream.kinds import Row

if TYPE_CHECKING:
    from dataplane.backends.dynamic.destinations import Destinations
    from dataplane.upstream.lease import BackendPlan, Lease, Leases

RESOLV_CONF: Final = Path("/etc/resolv.conf")


class Dynamic(Row):
    """`kinds.Kind`."""

    name = "dynamic_forward_proxy"
    type = "dynamic"
    by_request = True
    modules: tuple[str, ...] = (
        "cffi",
        "pycares",
        "aiodns",
        "dataplane.backends.dynamic.addresses",
        "dataplane.backends.dynamic.destinations",
    )

    def services(self, worker: Any) -> Destinations:
        from dataplane.backends.dynamic.addresses import Rules  # by the first request of this kind
        from dataplane.backends.dynamic.destinations import Destinations

        settings = worker.forwarding
        rules = Rules(settings.allow, lambda address, port: settings.own.are_at(address, port, ""), settings.api_server)
        return Destinations(worker, rules, names.cluster_suffixes(_resolv_conf()))

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        if not isinstance(holder, Exchange):
            holder.lease_failed(
                "refused", f"{plan.key}: requests of clients name a destination, no calls and no copies"
            )
            return
        x, number = cast("Any", holder), holder.lease

        def begin() -> None:
            if x.lease == number:  # else it is not waited for any more
                self.begin(holder, plan, leases)

        try:
            found = leases.toward(plan, Named(x.host, names.port_of(x.authority), x.peer), begin)
        except NoDestination as error:
            holder.lease_failed(error.cause, f"{plan.key}: {error}")
        except ValueError as error:
            holder.lease_failed("forbidden", f"{plan.key}: {error}")
        else:
            if found is not None:
                x.leave(DESTINATION, f"{found.where.name}:{found.where.port}")
                x.leads_to(found)


def _resolv_conf() -> str:
    try:
        return RESOLV_CONF.read_text(errors="replace")
    except OSError:  # then there is no search list either
        return ""
