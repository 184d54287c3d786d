"""Status of BackendTLSPolicies: an entry for each Gateway that sends to a target (Gateway API PolicyStatus)."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.translate.backend.backend_tls import CLOSED, KIND, UNKNOWN, Place, Standing, Standings, TLSVerdict
from controlplane.translate.conditions import UNTRANSLATED, Condition, StatusBody, joined, rendered
from controlplane.translate.status.policy_status import MAX_ANCESTORS, RESOLVED, reference
from gatewright.api.schema.names import CONTROLLER_NAME


def status(verdict: TLSVerdict, standings: Standings, generation: int) -> StatusBody:
    """The status. Where no Gateway sends to a target there is no controller to speak for it, and no entry."""
    resolved = verdict.unresolved or RESOLVED
    return {
        "ancestors": [
            {
                "ancestorRef": reference(gateway),
                "controllerName": CONTROLLER_NAME,
                "conditions": rendered([_accepted(verdict, found), resolved], generation),
            }
            for gateway, found in list(standings.items())[:MAX_ANCESTORS]
        ]
    }


def _accepted(verdict: TLSVerdict, found: Sequence[Standing]) -> Condition:
    """What the policy comes to where one of its places is its own; else why none is."""
    if any(each.beaten_by == UNKNOWN for each in found):
        return Condition("Accepted", False, "Invalid", f"{UNTRANSLATED}; {CLOSED}")
    lost = [each for each in found if each.beaten_by is not None]
    missing = [each for each in found if not each.is_there]
    texts = joined([*map(_missing, missing), *map(_lost, lost)])
    if len(missing) == len(found):
        return Condition("Accepted", False, "TargetNotFound", texts)
    if len(missing) + len(lost) == len(found):
        return Condition("Accepted", False, "Conflicted", texts)
    refused = verdict.refused
    if refused is None:
        return Condition("Accepted", True, "Accepted", texts)
    message = f"{refused.message}; {texts}" if texts else refused.message
    return Condition("Accepted", refused.status, refused.reason, message)


def _missing(standing: Standing) -> str:
    place = standing.place
    return f"{_object(place)} has no {'port' if place.kind == 'service' else 'part'} {place.section}"


def _lost(standing: Standing) -> str:
    return f"{KIND} {standing.beaten_by} counts for {_shown(standing.place)}"


def _shown(place: Place) -> str:
    return f"{_object(place)} port {place.section}" if place.section else _object(place)


def _object(place: Place) -> str:
    return f"{'Service' if place.kind == 'service' else 'GatewayBackend'} {place.key}"
