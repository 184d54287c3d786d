"""The view and the status of GatewayBackends, of whichever kind: what one is becomes wire by its row (`lower/kinds`).

Settings of GatewayBackend that do not work yet are not read: such an object is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from controlplane.derive import Context
from controlplane.translate import support
from controlplane.translate.backend.backend_references import GatewayBackendReferences
from controlplane.translate.backend.backends import GatewayBackendView
from controlplane.translate.backend.found_services import Lookups
from controlplane.translate.backend.tls_references import Known
from controlplane.translate.conditions import Condition, StatusBody, joined, rendered
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.fleet import FleetView, programmed, rejected
from controlplane.translate.keys import ObjectKey
from gatewright.api.advice.effects import unjudged
from gatewright.api.lower.kinds import registry
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.schema.metadata import KubeObject
from gatewright.wire.v1 import backend_pb2

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
    """What routes and proxies see of a GatewayBackend."""
    condition, found = refused(backend), registry.of_object(backend.spec)
    if condition is not None or found is None:
        return GatewayBackendView(refused=condition)
    kind, model = found
    references = GatewayBackendReferences(context, known, lookups, key, kind.facts.parts)
    made = kind.lowered(model, references.policies("", backend.spec.policies, ()), references)
    return GatewayBackendView(
        kind=kind.facts,
        message=_bytes(made.message),
        parts={name: _bytes(part) for name, part in made.parts.items()},
        address=made.address,
        leads=(*(references.keys[name] for _, name in made.leads), *references.called),
        sections=made.sections,
        secrets=references.secrets,
        written=references.written,
        unresolved=references.unresolved,
        warning=joined([*filter(None, [made.warning]), *unjudged(backend)]),
    )


def _bytes(message: backend_pb2.Backend) -> bytes:
    return message.SerializeToString(deterministic=True)


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
    accepted = replace(ACCEPTED, message=view.warning)
    return {"conditions": rendered([accepted, resolved, rejected(texts) if texts else _everywhere(fleets)], generation)}


def _everywhere(fleets: Sequence[FleetView | None]) -> Condition:
    if not fleets:
        return UNUSED
    verdicts = [programmed(fleet) for fleet in fleets]
    return next((verdict for verdict in verdicts if not verdict.status), verdicts[0])
