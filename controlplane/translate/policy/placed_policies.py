"""GatewayPolicies on the Gateways that have their places: the second of two steps, after `policies.translate`.

`placed` joins what a policy says with its attachment (module `policy_targets`), and runs again when a target comes,
goes or moves. Where a Gateway does not get a Secret of the policy, the fields that need it refuse what they cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from controlplane.translate import wire
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.keys import (
    ObjectKey,
    SecretUse,
    policy_resource,
    written_field,
)
from controlplane.translate.policy.policies import PolicyTranslation, inherits
from controlplane.translate.policy.policy_targets import Attachment
from gatewright.attach.outcome import Claim
from gatewright.attach.places import PlaceKey
from gatewright.wire.v1 import policy_pb2

Closed = Mapping[str, str]
"""Fields that refuse what they cover at a Gateway, as it does not get a Secret that they need, and why."""
_NOWHERE: Final[Mapping[ObjectKey, Closed]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlacedPolicy:
    """A policy on the Gateways that have one of its places."""

    translation: PolicyTranslation
    gateways: tuple[ObjectKey, ...]
    places: tuple[PlaceKey, ...]
    resources: tuple[tuple[ObjectKey, str, bytes], ...] = field(repr=False)
    """Gateway, resource name, bytes."""
    closed: Mapping[ObjectKey, Closed]
    """Of Gateways from which Secrets stay."""

    def secrets(self) -> Iterator[SecretUse]:
        """Those that its Gateways get for it."""
        for gateway in self.gateways:
            closed = self.closed.get(gateway, ())
            for name, secret in self.translation.secrets:
                if name not in closed:
                    yield SecretUse(gateway, secret)

    def closed_places(self) -> Iterator[tuple[ObjectKey, PlaceKey]]:
        """Where fields refuse for want of a Secret: places of Gateways."""
        return ((gateway, place) for gateway in self.closed for place in self.places)


def placed(
    key: ObjectKey, translation: PolicyTranslation, attachment: Attachment, withheld: Callable[[SecretUse], str | None]
) -> PlacedPolicy | None:
    """The resources of a policy for every Gateway that has one of its places; None where there is nothing to send.
    `withheld`: why a Secret is kept from a Gateway."""
    if not translation.fields or not attachment.places:
        return None
    closed = _closed(translation, attachment, withheld) if translation.secrets else _NOWHERE
    return PlacedPolicy(
        translation,
        tuple(gateway for gateway, _ in attachment.places),
        tuple(sorted({place for _, places in attachment.places for place in places})),
        tuple(
            resource
            for gateway, places in attachment.places
            for resource in _resources(key, translation, gateway, places, closed.get(gateway, {}))
        ),
        closed,
    )


def whys(closed: Closed) -> list[str]:
    """Why Secrets stay, each once, without the reason that is in front of it for proxies."""
    return [*dict.fromkeys(text.removeprefix(f"{NOT_PERMITTED}: ") for text in closed.values())]


def _closed(
    translation: PolicyTranslation, attachment: Attachment, withheld: Callable[[SecretUse], str | None]
) -> Mapping[ObjectKey, Closed]:
    found: dict[ObjectKey, dict[str, str]] = {}
    for gateway, _ in attachment.places:
        for name, secret in translation.secrets:
            why = withheld(SecretUse(gateway, secret))
            if why is not None:
                found.setdefault(gateway, {}).setdefault(name, f"{NOT_PERMITTED}: {why}")
    return found


def _resources(
    key: ObjectKey,
    translation: PolicyTranslation,
    gateway: ObjectKey,
    places: tuple[PlaceKey, ...],
    closed: Closed,
) -> Iterator[tuple[ObjectKey, str, bytes]]:
    where = [_place(place) for place in places]
    for setting, content in translation.fields:
        name = policy_resource(key, setting.field)
        message = policy_pb2.Policy(places=where)
        message.MergeFromString(content)
        if setting.field in closed:
            message.ClearField(setting.field)
            getattr(message, setting.field).SetInParent()
            message.invalid = closed[setting.field]
        yield gateway, name, wire.resource(name, policy=message)
    for name, content in translation.written:
        if written_field(name) not in closed:
            yield gateway, name, content


def _place(place: PlaceKey) -> policy_pb2.Place:
    thing = policy_pb2.ObjectRef(kind=place.kind, namespace=place.namespace, name=place.name)
    return policy_pb2.Place(object=thing, section=place.section)


class ClaimKey(NamedTuple):
    """A policy at one of its places."""

    place: PlaceKey
    policy: ObjectKey


def claims(key: ObjectKey, policy: PlacedPolicy) -> dict[ClaimKey, tuple[Claim[ObjectKey], ...]]:
    """What the policy sets where: nothing that changes with the values that it sets."""
    made = policy.translation
    return {
        ClaimKey(place, key): tuple(
            Claim(key, place, setting, made.order, made.override and inherits(setting.phase))
            for setting, _ in made.fields
        )
        for place in policy.places
    }
