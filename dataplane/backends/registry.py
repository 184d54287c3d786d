"""The kinds of backends, as rows: what becomes of a request, a call of a policy, or a mirror that goes to one.

What only forwards takes a lease (`upstream/lease`); a kind that ends the request itself implements `Upstream` and
calls `lease_ready` with that. Of an exchange, what has to wait runs by `Exchange.work`, and is cancelled by `reset`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.dynamic.backend import Dynamic
from dataplane.backends.llm.backend import Llm
from dataplane.backends.mcp.backend import Mcp
from dataplane.chain.filter import Refused as NotBuilt
from dataplane.http.uri import SCHEME_PORTS, is_target
from dataplane.upstream import picked
from dataplane.upstream.auth.finishers import Retargeted
from dataplane.upstream.kinds import FORWARDED, OUTSIDE, REFUSED, WITH_RULES, Address, Kind, Position, Row, checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dataplane.upstream.lease import Backend, BackendPlan, Lease, Leases
    from dataplane.upstream.outgoing import Finisher
    from gatewright.wire.v1 import backend_pb2

AGENT: Final = "a2a"
APPLICATIONS: Final = {"gatewright.dev/a2a": AGENT}
"""What ports of Services say is spoken there (`appProtocol`, lower case), where something stands between requests and
their carrier for it."""


class Forwarded:
    """Endpoints, and nothing else."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        endpoints = plan.endpoints
        if endpoints:
            leases.take(holder, endpoints, plan)
        else:
            holder.lease_failed("endpoints", f"{plan.key}: it has no endpoints")


class Service(Forwarded, Row):
    """Endpoints that the control plane sends."""

    name = type = "service"

    def awaits(self, message: backend_pb2.ServiceBackend) -> bool:
        return not message.empty

    def position(self, key: str, message: backend_pb2.ServiceBackend) -> Position:
        return Position("Service", message.namespace, message.name, (message.port_name, str(message.port)))

    def host(self, message: backend_pb2.ServiceBackend) -> str:
        """That of the cluster's DNS."""
        return f"{message.name}.{message.namespace}.svc.cluster.local"

    def spoken(self, message: backend_pb2.ServiceBackend) -> tuple[int, str]:
        return message.port, message.app_protocol

    def application(self, message: backend_pb2.ServiceBackend) -> str:
        return APPLICATIONS.get(message.app_protocol.lower(), "")


class Static(Row):
    """An address, or a name that is resolved here."""

    name = type = "static"

    def check(self, message: backend_pb2.StaticBackend) -> None:
        checked(self.address(message))

    def address(self, message: backend_pb2.StaticBackend) -> Address:
        return Address(message.host, message.port, message.unix_path)

    def spoken(self, message: backend_pb2.StaticBackend) -> tuple[int, str]:
        return message.port, message.app_protocol

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        endpoints = plan.endpoints if not plan.host else leases.resolved(holder, plan, self)
        if endpoints:
            leases.take(holder, endpoints, plan)


class Agent(Static):
    """An A2A agent at an address."""

    name = AGENT
    keeps_name = False

    def application(self, message: Any) -> str:  # Any: as `kinds.Kind`
        return AGENT


class Aws(Static):
    """A service of AWS that takes all requests on one path."""

    name = "aws"
    keeps_name = False

    def check(self, message: Any) -> None:  # Any: as `kinds.Kind`, here and below
        checked(self.address(message))
        if not is_target(message.target):
            raise NotBuilt("aws.target must begin with / and be printable ASCII without spaces and #")

    def address(self, message: Any) -> Address:
        return Address(message.host, message.port, "")

    def spoken(self, message: Any) -> tuple[int, str]:
        return message.port, "https" if message.port == SCHEME_PORTS[b"https"] else ""

    def finishers(self, message: Any) -> Sequence[Finisher]:
        return (Retargeted(message.target.encode()),)


class InferencePool(Row):
    """Pods, of which the pool's picker chooses one for each request: a step of the backend, which has run by now
    (`filters/steps/endpoint_picker`)."""

    name = "inference_pool"
    type = "inferencepool"

    def awaits(self, message: backend_pb2.InferencePoolBackend) -> bool:
        return not message.empty

    def position(self, key: str, message: backend_pb2.InferencePoolBackend) -> Position:
        return Position("InferencePool", message.namespace, message.name, ())

    def spoken(self, message: backend_pb2.InferencePoolBackend) -> tuple[int, str]:
        return 0, message.app_protocol

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        endpoints = picked.chosen(holder, plan.endpoints)
        if endpoints:
            leases.take(holder, endpoints, plan)
        else:
            holder.lease_failed("endpoints", f"{plan.key}: it has no endpoints")


class WithRules:
    """A service or static backend of which policies say something for its sake: health, limits, sessions."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        assert plan.rules is not None  # that makes it one of this kind
        state = leases.rule_state(plan, plan.rules)
        if not leases.admits(holder, plan, state):
            return
        if plan.host:
            endpoints = leases.resolved(holder, plan, self)
        else:
            endpoints = plan.endpoints if plan.steps is None else picked.chosen(holder, plan.endpoints)
            if not endpoints:
                holder.lease_failed("endpoints", f"{plan.key}: it has no endpoints")
        if endpoints:
            far = plan.far if endpoints is plan.endpoints else ()
            leases.take(holder, state.choosable(holder, plan.key, endpoints, far), plan)


class Refused:
    """One that nothing may be sent to, for the reason that its plan has."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        holder.lease_failed("refused", f"{plan.key}: {plan.refused}")


_KINDS: Final[tuple[Kind, ...]] = (Service(), Static(), Mcp(), Llm(), Agent(), Aws(), Dynamic(), InferencePool())

KINDS: Final[Mapping[str, Kind]] = {row.name: row for row in _KINDS}
"""By field of the wire's Backend message."""

ROWS: Final[Mapping[str, Backend]] = {
    **KINDS,
    # Of other processes of this proxy, which are in no table.
    FORWARDED: Forwarded(),
    # Preparation before a kind. By name: the field that stands above the kind;
    REFUSED: Refused(),
    # what forwards, with policies for its sake (`upstream/backend_rules`).
    WITH_RULES: WithRules(),
    # a server that no configuration names (`table/plans.at_host`).
    OUTSIDE: Static(),
}

LOADED_LATE: Final[Mapping[str, tuple[str, ...]]] = {
    # Of backends whose host is a name (`upstream/look_ups`).
    "named": ("cffi", "pycares", "aiodns"),
    **{row.name: row.modules for row in KINDS.values() if row.modules},
}


def load(kind: str) -> Iterator[None]:
    """Load what a kind of backends needs, in steps, before a table has one: else its first request would hold all
    others of the worker for that long."""
    for name in LOADED_LATE.get(kind, ()):
        if name not in sys.modules:
            import_module(name)
            yield
