"""Places that policies attach to, from the least to the most specific.

Pure; over wire messages. A *position* is where something happens (a rule on a listener, a backend a rule leads to);
its places are all that a policy may name to act there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from gatewright.wire.v1 import policy_pb2


class Level(IntEnum):
    """How specific a place is."""

    GATEWAY = 0
    LISTENER_SET = 1
    LISTENER = 2
    ROUTE = 3
    RULE = 4
    INLINE = 5
    """A rule's own filters and fields."""
    BACKEND = 6
    """A Service or GatewayBackend as a whole."""
    SECTION = 7
    """A port of a Service, a provider or target of a GatewayBackend."""
    BACKEND_INLINE = 8
    """`GatewayBackend.spec.policies`."""
    SECTION_INLINE = 9
    """The provider's or target's own policies."""


class Phase(Enum):
    """Sets of policies that are merged apart from each other, in the order in which they run.

    The value is the section of a GatewayPolicy's spec that the set comes from, and which of its phases.
    """

    FRONTEND = "frontend", ""
    PRE_ROUTING = "traffic", "PreRouting"
    POST_ROUTING = "traffic", "PostRouting"
    BACKEND = "backend", ""

    @property
    def section(self) -> str:
        """Field of the policy's spec."""
        return self.value[0]

    @property
    def written(self) -> str:
        """What the field's own `phase` says; "" where it has none."""
        return self.value[1]


class PlaceKey(NamedTuple):
    """A place as a key for looking up. `section` "" is the object as a whole."""

    kind: str
    namespace: str
    name: str
    section: str = ""

    def __str__(self) -> str:
        text = f"{self.kind} {self.namespace}/{self.name}"
        return f"{text} {self.section}" if self.section else text


_LEVELS: Final = {
    "Gateway": (Level.GATEWAY, Level.LISTENER),
    "ListenerSet": (Level.LISTENER_SET, Level.LISTENER),
    "Service": (Level.BACKEND, Level.SECTION),
    "GatewayBackend": (Level.BACKEND, Level.SECTION),
    "InferencePool": (Level.BACKEND, Level.SECTION),
}
"""Level of the object as a whole, and of a section of it; of other kinds, which are routes, that of route and rule."""


def level_of(place: PlaceKey) -> Level:
    """How specific a place is that a policy object can name."""
    whole, section = _LEVELS.get(place.kind, (Level.ROUTE, Level.RULE))
    return section if place.section else whole


def key_of(place: policy_pb2.Place) -> PlaceKey:
    """A place of the wire as a key."""
    thing = place.object
    return PlaceKey(thing.kind, thing.namespace, thing.name, place.section)


@dataclass(frozen=True, slots=True)
class ListenerPosition:
    """A listener: what all its routes have in common."""

    gateway: tuple[str, str]
    """Namespace and name."""
    listener: str
    """Section name."""
    listener_set: tuple[str, str] | None = None
    """The ListenerSet that has the listener, if it is not the Gateway's own."""

    def places(self) -> Iterator[tuple[Level, PlaceKey]]:
        """Least specific first. A listener of a set is a section of the set, not of the Gateway."""
        yield Level.GATEWAY, PlaceKey("Gateway", *self.gateway)
        if self.listener_set is not None:
            yield Level.LISTENER_SET, PlaceKey("ListenerSet", *self.listener_set)
            yield Level.LISTENER, PlaceKey("ListenerSet", *self.listener_set, self.listener)
        else:
            yield Level.LISTENER, PlaceKey("Gateway", *self.gateway, self.listener)


def rule_places(kind: str, namespace: str, name: str, rule: str) -> Iterator[tuple[Level, PlaceKey]]:
    """Places of a route's rule; a rule without a name has none of its own."""
    yield Level.ROUTE, PlaceKey(kind, namespace, name)
    if rule:
        yield Level.RULE, PlaceKey(kind, namespace, name, rule)


def backend_places(kind: str, namespace: str, name: str, *sections: str) -> Iterator[tuple[Level, PlaceKey]]:
    """Places of a backend; `sections` are all names that its part has (a Service's port has a name and a number)."""
    yield Level.BACKEND, PlaceKey(kind, namespace, name)
    for section in dict.fromkeys(sections):
        if section:
            yield Level.SECTION, PlaceKey(kind, namespace, name, section)
