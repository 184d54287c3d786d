"""Secrets that policies and GatewayBackends name, and which of them are kept from a Gateway (`consent`).

Asked for Gateways of other namespaces alone: within one there is nothing to decide, and nothing is computed. A decision
is made anew when a grant, or who leads to the Secret at that Gateway, changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.derive import Collection, Context, Graph, Groups, Index
from controlplane.translate import consent
from controlplane.translate.collections.views import Views
from controlplane.translate.conditions import UNTRANSLATED
from controlplane.translate.consent import Chooser
from controlplane.translate.keys import POOL, BackendKey, BackendUse, ObjectKey, Referral, SecretUse
from controlplane.translate.policy.policies import PolicyTranslation
from controlplane.translate.policy.policy_targets import Attachment
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.names import GATEWAY_BACKEND, INFERENCE_POOL
from gatewright.attach.places import PlaceKey

_BACKENDS = {"Service": "service", GATEWAY_BACKEND: "gatewaybackend", INFERENCE_POOL: POOL}
"""Kinds of places that others lead to, as keys of backends say them."""
_ATTACHED = frozenset({"Gateway", "ListenerSet", *ROUTE_KINDS})
"""Kinds of places that are attached to the Gateway by who made them, or are it."""
PLACES = {kind: name for name, kind in _BACKENDS.items()}
"""The reverse."""


class Consents:
    """What goes to which Gateway."""

    def __init__(
        self,
        graph: Graph,
        views: Views,
        translations: Collection[ObjectKey, PolicyTranslation],
        attachments: Collection[ObjectKey, Attachment],
        referrals: Groups[Referral],
        leads: Index[BackendUse, Referral, Any],
    ) -> None:
        """`leads`: the referrals to a backend at a Gateway."""
        self._views = views
        self._attachments = attachments
        self._leads = leads
        abroad = graph.map("secrets of policies abroad", translations, self._of_policy)
        self._policies = abroad.index("use", lambda _, uses: uses)
        of_backends = graph.map("secrets of backends", referrals, self._of_backend)
        self._backends = of_backends.index("abroad", lambda each, uses: uses if _is_abroad(each.use) else ())
        asked = graph.groups("secrets asked for abroad", self._policies, self._backends)
        self._decisions = graph.map("consents to secrets", asked, self._decide, _undecided, keeps=False)
        with_secrets = graph.groups("backends with secrets", of_backends.index("backend", lambda each, _: [each.use]))
        self.closed = graph.map("backends that are closed", with_secrets, self._closed)
        """Why a Gateway may send nothing to a backend: it does not get a Secret that this needs. "": it gets all."""
        going = graph.map("secrets that go with backends", with_secrets, self._going)
        self.uses = going.index("uses", lambda _, uses: uses)
        """What backends bring to Gateways."""

    def withheld(self, context: Context, use: SecretUse) -> str | None:
        """Why a Secret is kept from a Gateway; None: it goes there."""
        if use.gateway.namespace == use.secret.namespace:
            return None
        decision = context.fetch(self._decisions, use)
        return _undecided(use) if decision is None else decision or None

    def _of_policy(
        self, context: Context, key: ObjectKey, translation: PolicyTranslation
    ) -> tuple[SecretUse, ...] | None:
        where = context.fetch(self._attachments, key) if translation.secrets else None
        if where is None:
            return None
        gateways = [gateway for gateway, _ in where.places if gateway.namespace != key.namespace]
        secrets = dict.fromkeys(secret for _, secret in translation.secrets)
        return tuple(SecretUse(gateway, secret) for gateway in gateways for secret in secrets) or None

    def _of_backend(self, context: Context, referral: Referral, _: bool) -> tuple[SecretUse, ...] | None:
        return self._needed(context, referral.use) or None

    def _needed(self, context: Context, use: BackendUse) -> tuple[SecretUse, ...]:
        """What the own policies of a backend read, at a Gateway that sends to it."""
        if use.backend.kind != "gatewaybackend":
            return ()
        view = context.fetch(self._views.gateway_backends, use.backend.object)
        return tuple(SecretUse(use.gateway, secret) for secret in view.secrets) if view is not None else ()

    def _decide(self, context: Context, use: SecretUse, _: bool) -> str:
        """Why it stays; "": it goes."""
        lacking = consent.missing(
            self._choosers(context, use),
            use.secret,
            lambda permission: context.fetch(self._views.granted, permission) is not None,
        )
        return consent.withheld(use, lacking) if lacking else ""

    def _closed(self, context: Context, use: BackendUse, _: bool) -> str:
        uses = self._needed(context, use)
        return "; ".join(text for each in uses if (text := self.withheld(context, each)) is not None)

    def _going(self, context: Context, use: BackendUse, _: bool) -> tuple[SecretUse, ...] | None:
        return self._needed(context, use) if context.fetch(self.closed, use) == "" else None

    def _choosers(self, context: Context, use: SecretUse) -> Iterator[Chooser]:
        """Who leads to the Secret at the Gateway; last the Gateway itself, as a grant for what refers says more."""
        for policy in context.fetch_keys(self._policies, use):
            where = context.fetch(self._attachments, policy)
            for place in dict(where.places).get(use.gateway, ()) if where is not None else ():
                yield from self._at(context, use.gateway, place)
        for referral in context.fetch_keys(self._backends, use):
            yield from self._who(context, referral)
        yield _chooser("Gateway", use.gateway.namespace)

    def _at(self, context: Context, gateway: ObjectKey, place: PlaceKey) -> Iterator[Chooser]:
        if place.kind in _ATTACHED:
            yield _chooser(place.kind, place.namespace)
            return
        kind = _BACKENDS[place.kind]
        for backend in self._meant(context, kind, place):
            yield from self._leading(context, BackendUse(gateway, backend))

    def _meant(self, context: Context, kind: str, place: PlaceKey) -> Iterator[BackendKey]:
        """The backends that a place means: an object, or a part of it."""
        key = ObjectKey(place.namespace, place.name)
        if kind == "service":
            service = context.fetch(self._views.services, key)
            for port in service.ports if service is not None else ():
                if place.section in ("", str(port.port)):
                    yield BackendKey(kind, *key, port.port, port.protocol)
            return
        view = context.fetch(self._views.gateway_backends, key)
        for part in ("", *(view.parts if view is not None else ())):
            yield BackendKey(kind, *key, part=part)

    def _leading(self, context: Context, use: BackendUse) -> Iterator[Chooser]:
        """Who leads to a backend."""
        for referral in context.fetch_keys(self._leads, use):
            yield from self._who(context, referral)

    def _who(self, context: Context, referral: Referral) -> Iterator[Chooser]:
        """A GatewayBackend that brings parts of its own namespace chose nothing by that: who leads to it did."""
        gateway, backend = referral.use
        if referral.kind == GATEWAY_BACKEND and referral.namespace == backend.namespace:
            whole = BackendKey(_BACKENDS[GATEWAY_BACKEND], referral.namespace, referral.name)
            yield from self._leading(context, BackendUse(gateway, whole))
        else:
            yield _chooser(referral.kind, referral.namespace)


def _undecided(use: SecretUse, _: bool = True) -> str:
    """The answer in place of a decision that a bug prevents."""
    return f"Secret {use.secret} is kept from Gateway {use.gateway}: {UNTRANSLATED}"


def _is_abroad(use: BackendUse) -> bool:
    return use.gateway.namespace != use.backend.namespace


def _chooser(kind: str, namespace: str) -> Chooser:
    return Chooser(KINDS[kind].group, kind, namespace)
