"""Which policy wins where, and what the others lose: found once for each place, from what changes with no value."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate.collections.policies import Policies
from controlplane.translate.collections.routes import Classes
from controlplane.translate.gateway.attachment import ClassListeners
from controlplane.translate.keys import ObjectKey, RouteClass
from controlplane.translate.policy import placed_policies, positions
from controlplane.translate.policy.placed_policies import ClaimKey
from controlplane.translate.policy.positions import Ways
from gatewright.attach.outcome import Claim, Outcome, Winners, outcome, winners
from gatewright.attach.places import PlaceKey


class Outcomes:
    """Claims of policies to places, and what became of them."""

    def __init__(self, graph: Graph, placed: Policies, classes: Classes) -> None:
        self._targets = placed.targets
        self.claims = graph.derive("claims", placed.placed, lambda _, key, policy: placed_policies.claims(key, policy))
        self.claims_at = self.claims.index("place", lambda key, _: [key.place])
        self.winners = graph.map("winners", graph.groups("claimed places", self.claims_at), self._winners)
        self.locks = graph.map("locks", self.winners, lambda _, __, found: _locks(found))
        self.ways = graph.map("ways", classes.listeners, self._ways)
        """To each class of routes, as far as something is locked on them."""
        self.losses = graph.map("losses", self.claims, self._loss)
        self.losses_of = self.losses.index("policy", lambda key, _: [key.policy])

    def _winners(self, context: Context, place: PlaceKey, _: bool) -> Winners[ObjectKey]:
        return winners(claim for _, claims in context.fetch_index(self.claims_at, place) for claim in claims)

    def _ways(self, context: Context, _: RouteClass, listeners: ClassListeners) -> Ways:
        return positions.ways(listeners, lambda place: context.fetch(self.locks, place) is not None)

    def _loss(self, context: Context, key: ClaimKey, claims: tuple[Claim[ObjectKey], ...]) -> Outcome[ObjectKey] | None:
        """What a policy loses at one place."""
        found = outcome(
            claims,
            # What is above matters only as far as it locks.
            lambda place: context.fetch(self.winners if place == key.place else self.locks, place) or {},
            lambda place: positions.above(context, self._targets, self.ways, place),
        )
        return found if found.conflicts or found.overridden else None


def _locks(winners: Winners[ObjectKey]) -> Winners[ObjectKey] | None:
    return {setting: claim for setting, claim in winners.items() if claim.override} or None
