"""What one stream asked for of one type of resource, and what it has been sent of it.

Pure. The rules are those of xDS, "How the client specifies what resources to return" and "Unsubscribing": a first
request without names, or the name `*`, subscribes to everything; named subscriptions live beside that one and survive
it; a name that does not exist is remembered; a name subscribed again is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controlplane.snapshot import Difference, Record, ResourceMap
from controlplane.snapshot.resource_map import EMPTY
from controlplane.xds.node import Exhausted
from gatewright.wire.external import discovery_pb2

WILDCARD: Final = "*"

MOST_TEXT: Final = 16 << 20
"""Bytes that the names of one subscription may take, about: 100,000 names as long as those of Gatewright."""
TOO_MUCH: Final = f"the names of one subscription take more than {MOST_TEXT} bytes"
_NAME_OVERHEAD: Final = 100  # of a string, and of its place in a set
_VERSION_OVERHEAD: Final = 200  # of two strings, and of their place in a dictionary


class Subscription:
    """One type URL of one stream. `base` is what was sent, `answered` what was sent and answered."""

    __slots__ = (
        "_anew",
        "_known",
        "_known_text",
        "_resend",
        "_text",
        "answered",
        "base",
        "base_sequence",
        "fresh",
        "names",
        "type_url",
        "wildcard",
    )

    def __init__(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        """Subscribe as the first request of a type on a stream says; only there initial versions count.

        Raises Exhausted: see `update` and `knows`.
        """
        self._text = self._known_text = 0
        self.names: set[str] = set()
        self._resend: set[str] = set()
        self._weigh(request)
        self.type_url = request.type_url
        subscribed = set(request.resource_names_subscribe)
        self.wildcard = not subscribed or WILDCARD in subscribed
        self.names = subscribed - {WILDCARD}
        self._known: dict[str, str] = {}
        self._know(request)
        self._resend = self.names - self._known.keys()
        self.base: ResourceMap = EMPTY
        self.base_sequence = 0
        self.answered: ResourceMap = EMPTY
        self.fresh = True
        self._anew = False
        """Everything is to be sent again, whatever state the stream holds."""

    def __repr__(self) -> str:
        asked = [WILDCARD] * self.wildcard + sorted(self.names)
        return f"<Subscription {self.type_url.rpartition('.')[2]} {asked[:4]} base={self.base_sequence}>"

    def covers(self, name: str) -> bool:
        """Whether this stream gets the resource of that name."""
        return self.wildcard or name in self.names

    @property
    def dirty(self) -> bool:
        """Whether something must be sent although the snapshot is the one that was sent."""
        return self.fresh or self._anew or bool(self._resend)

    @property
    def common(self) -> bool:
        """Whether the next difference is that between two states, hence the same for every such stream."""
        return self.wildcard and not self._known and not self._resend

    def update(self, request: discovery_pb2.DeltaDiscoveryRequest) -> bool:
        """Change the subscription as a later request of this type says. Whether it says anything about that.

        Raises:
            Exhausted: all names together, those that were given up too, are more than `MOST_TEXT`.
        """
        if not request.resource_names_subscribe and not request.resource_names_unsubscribe:
            return False
        self._weigh(request)
        for name in request.resource_names_subscribe:
            self._subscribe(name)
        for name in request.resource_names_unsubscribe:
            self._unsubscribe(name)
        return True

    def _weigh(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        """Count the names that a request brings. Those that came twice or left count until the sum is too much."""
        subscribed, unsubscribed = request.resource_names_subscribe, request.resource_names_unsubscribe
        if (len(subscribed) + len(unsubscribed)) * _NAME_OVERHEAD > MOST_TEXT:  # they need not be looked at
            raise Exhausted(TOO_MUCH)
        asked = _weight(subscribed) + _weight(unsubscribed)
        if self._text + asked > MOST_TEXT:
            self._text = _weight(self.names | self._resend)
            if self._text + asked > MOST_TEXT:
                raise Exhausted(TOO_MUCH)
        self._text += asked

    def _subscribe(self, name: str) -> None:
        if name != WILDCARD:
            self.names.add(name)
            self._resend.add(name)
        elif not self.wildcard:
            # The client dropped everything unnamed when it left, so everything is sent again.
            self.wildcard = self._anew = True
            self._resend.update(known for known in self.names if known in self.base)
            self.base, self.base_sequence = EMPTY, 0

    def _unsubscribe(self, name: str) -> None:
        if name == WILDCARD:
            self.wildcard = False
            self._resend &= self.names
            self._known = {known: version for known, version in self._known.items() if known in self.names}
            return
        self.names.discard(name)
        if self.wildcard:
            # Still covered: the server says so by sending it (or its absence), or the client would think it gone.
            self._resend.add(name)
        else:
            self._resend.discard(name)
            self._known.pop(name, None)  # the client has dropped it

    def difference(self, target: ResourceMap) -> Difference:
        """What this stream lacks to hold `target`, as far as it subscribes to it."""
        plain = target.since(self.base)
        if self.common:
            return plain
        changed = {record.name: record for record in plain.changed if self._lacks(record)}
        removed = {name for name in plain.removed if self.covers(name)}
        removed.update(name for name in self._known if name not in target and self.covers(name))
        for name in self._resend:
            record = target.get(name)
            if record is None:
                removed.add(name)
            else:
                changed[name] = record
        return Difference(tuple(changed.values()), tuple(sorted(removed)))

    def _lacks(self, record: Record) -> bool:
        return self.covers(record.name) and self._known.get(record.name) != record.version

    def knows(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        """The client holds the resources of this request, as if its first one had said so. Before the first state only.

        Raises:
            Exhausted: their names and versions are more than `MOST_TEXT`.
        """
        self._know(request)

    def _know(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        count = len(request.initial_resource_versions)
        weight = request.ByteSize() + count * _VERSION_OVERHEAD if count else 0
        if weight > MOST_TEXT:  # before they become objects
            raise Exhausted(f"initial_resource_versions of one subscription take more than {MOST_TEXT} bytes")
        self._known, self._known_text = dict(request.initial_resource_versions), weight

    @property
    def weight(self) -> int:
        """About the bytes that it makes us keep."""
        return self._text + self._known_text

    def holds(self, target: ResourceMap, sequence: int) -> None:
        """The client holds exactly the state of that sequence. Before the first state only; that is empty then."""
        self.base, self.base_sequence = target, sequence

    def sent(self, target: ResourceMap, sequence: int) -> None:
        """The difference to `target`, the state of that sequence, is on its way."""
        self.base, self.base_sequence = target, sequence
        if self.fresh or self._anew or self._known or self._resend:
            self._known, self._known_text = {}, 0
            self._resend.clear()
            self.fresh = self._anew = False


def _weight(names: Iterable[str]) -> int:
    return sum(len(name) + _NAME_OVERHEAD for name in names)
