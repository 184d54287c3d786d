"""The view and the status of GatewayBackends. Policies and parameters have modules of their own (`policies`,
`policy_status`, `parameters`).

Settings of GatewayBackend that do not work yet are not read: such an object is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from controlplane.derive import Context
from controlplane.translate import mcp, support
from controlplane.translate.backends import BACKEND_NOT_FOUND, GatewayBackendView
from controlplane.translate.conditions import Condition, StatusBody, joined, rendered
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.fleet import FleetView, programmed, rejected
from controlplane.translate.keys import ObjectKey
from controlplane.translate.mcp import Lookups
from controlplane.translate.tls_references import Known, OfBackend
from gatewright.api.lower import to_wire
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.schema.metadata import KubeObject
from gatewright.wire.v1 import policy_pb2

ACCEPTED = Condition("Accepted", True, "Accepted", "")
RESOLVED = Condition("ResolvedRefs", True, "ResolvedRefs", "")
NOT_EXAMINED = Condition("ResolvedRefs", None, "Pending", "not examined, because the object is not accepted")
NOT_PROGRAMMED = Condition("Programmed", False, "Invalid", "not accepted")
UNUSED = Condition("Programmed", False, "Pending", "no route or policy of a Gateway leads here")


def refused(item: KubeObject) -> Condition | None:
    """The `Accepted` condition of an object with settings that are not supported yet (reason as GEP-713)."""
    paths = support.unsupported_fields(item)
    return Condition("Accepted", False, "Invalid", support.message(paths)) if paths else None


def backend_view(
    context: Context, known: Known, lookups: Lookups, key: ObjectKey, backend: GatewayBackend
) -> GatewayBackendView:
    """What routes see of a GatewayBackend. A host without a port is sent so: what its port is depends on all policies
    for connecting to it (decisions: 80, with TLS 443)."""
    condition = refused(backend)
    address = backend.spec.static or backend.spec.a2a
    if condition is not None or (address is None and backend.spec.mcp is None):
        return GatewayBackendView(refused=condition)
    found = OfBackend(context, known, key.namespace)
    policies = to_wire.backend_policies(backend.spec.policies, found.references())
    if address is None:
        return _mcp_view(found, lookups, key, backend, policies)
    return GatewayBackendView(
        host=address.host or "",
        port=address.port or 0,
        unix_path=getattr(address, "unix_path", None) or "",
        is_agent=backend.spec.a2a is not None,
        policies=tuple(policy.SerializeToString(deterministic=True) for policy in policies),
        secrets=tuple(sorted(found.read)),
        unresolved=found.unresolved[0] if found.unresolved else None,
    )


def _mcp_view(
    found: OfBackend, lookups: Lookups, key: ObjectKey, backend: GatewayBackend, policies: list[policy_pb2.Policy]
) -> GatewayBackendView:
    model = backend.spec.mcp
    assert model is not None  # the caller looked
    own = {
        target.name: by_field(to_wire.backend_policies(target.static.policies, found.references()))
        for target in model.targets
        if target.static is not None and target.static.policies is not None
    }
    view, problems = mcp.view(key, model, by_field(policies), own, lookups)
    messages = [each.message for each in found.unresolved] + problems
    unresolved = None
    if messages:
        shown = "; ".join(messages[: mcp.MAX_MESSAGES])
        reason = found.unresolved[0].reason if found.unresolved else BACKEND_NOT_FOUND
        unresolved = Condition("ResolvedRefs", False, reason, shown)
    return GatewayBackendView(mcp=view, secrets=tuple(sorted(found.read)), unresolved=unresolved)


def by_field(policies: Iterable[policy_pb2.Policy]) -> dict[str, policy_pb2.Policy]:
    return {policy.WhichOneof("field") or "": policy for policy in policies}


def backend_status(
    view: GatewayBackendView,
    fleets: Sequence[FleetView | None],
    refusals: Iterable[str],
    closed: Sequence[str],
    generation: int,
) -> StatusBody:
    """Status of a GatewayBackend: programmed when it is with every Gateway that has a route or policy that leads to it.

    `fleets` are those Gateways' proxies, `refusals` what any of them said against it, `closed` why some of these
    Gateways send nothing to it.
    """
    if view.refused is not None:
        return {"conditions": rendered([view.refused, NOT_EXAMINED, NOT_PROGRAMMED], generation)}
    texts = list(refusals)
    resolved = view.unresolved or (
        Condition("ResolvedRefs", False, NOT_PERMITTED, joined(closed)) if closed else RESOLVED
    )
    accepted = ACCEPTED
    if view.mcp is not None:
        accepted = replace(ACCEPTED, message=mcp.long_names(view.mcp))
    return {"conditions": rendered([accepted, resolved, rejected(texts) if texts else _everywhere(fleets)], generation)}


def _everywhere(fleets: Sequence[FleetView | None]) -> Condition:
    if not fleets:
        return UNUSED
    verdicts = [programmed(fleet) for fleet in fleets]
    return next((verdict for verdict in verdicts if not verdict.status), verdicts[0])
