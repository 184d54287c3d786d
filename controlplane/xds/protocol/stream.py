"""One delta ADS stream as a state machine: requests in, responses out, no event loop.

Pure; `session` moves the bytes. Its laws:

- A *state* is everything that a stream lacks of a snapshot: Endpoints, then Resources, then other types; its last
  response alone carries `system_version_info`. A stream's first state is sent even when it is empty.
- At most one state is unanswered. While it is, newer snapshots replace each other; afterwards the newest one is sent.
- A state is answered when its last response is. Answers to earlier responses may come or not; a NACK to any of them
  makes the state a refused one. What was refused is not sent again until it changes.
- A proxy that claims to hold a state (`claim`) is believed, or asked, before its first state. One that holds a recent
  one is sent that first, by an empty state of that version, and then what is new since.
- Subscriptions are taken from every request, whatever its nonce; an unknown or old nonce answers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from controlplane.answers import nacks
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshot
from controlplane.xds.node import Exhausted, Identity, ProtocolError, identify
from controlplane.xds.protocol import reports
from controlplane.xds.protocol.claim import OWN_AGENT, Claim, Recall, no_memory
from controlplane.xds.protocol.delta import Library, Part, Steps, empty_part, steps_of
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import discovery_pb2, node_pb2

ORDER: Final = {ENDPOINT_TYPE: 0, RESOURCE_TYPE: 1}
"""Endpoints before the resources that use them; other types follow in the order in which they were subscribed to."""

WAIT: Final = 0.1
WAIT_OWN: Final = 5.0
"""Seconds to wait for the second of our two types before the first state is sent without it: that state's marker would
say to a proxy that half a configuration is the whole. Our own agent (by `user_agent_name`) always asks for both."""

MOST_TYPES: Final = 32
"""Types of resources that one stream may ask for."""

LONGEST_TYPE: Final = 1024
"""Characters of the name of one."""

MOST_NODE: Final = 256 << 10
"""Bytes of a node: that of Envoy, which lists its extensions, has up to 100,000."""
_NODE_OVERHEAD: Final = 8
"""Bytes in memory for one of a node's, whose metadata may consist of tiny values."""

MOST_WEIGHT: Final = 24 << 20
"""Bytes that one stream may make us keep, about."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The proxy holds this state."""

    sequence: int
    version: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The proxy refuses a part of this state. `complete`: it has answered all of it."""

    sequence: int
    version: str
    refusals: Mapping[str, nacks.Refusal]
    complete: bool


Outcome = Acknowledged | Refused


@dataclass(slots=True)
class _Flight:
    """A state on its way: its responses, how many are sent, by which bytes each is acknowledged, what was refused."""

    snapshot: Snapshot
    steps: Steps
    sent: int = 0
    nonces: dict[bytes, str] = field(default_factory=dict)
    marker: str = ""
    refusals: Mapping[str, nacks.Refusal] = field(default_factory=lambda: nacks.NONE)
    answered: bool = False

    @property
    def is_sent(self) -> bool:
        return self.sent == len(self.steps)


class Stream:
    """One stream. `clock` gives monotonic seconds, `recall` recent states, for proxies that claim to hold one."""

    def __init__(self, library: Library, clock: Callable[[], float], recall: Recall = no_memory) -> None:
        self._library = library
        self._clock = clock
        self._recall = recall
        self._flight: _Flight | None = None
        self._held = 0
        self._outcomes: list[Outcome] = []
        self._serial = 0
        self._plain: tuple[str, ...] = ()
        """Types, in order, when this stream wants the whole of each and holds the state `_held` of all of them."""
        self._opened: float | None = None
        self._claim = Claim()
        self._node_weight = 0
        self.node: node_pb2.Node | None = None
        self.identity: Identity | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.refusals: Mapping[str, nacks.Refusal] = nacks.NONE
        self.report = ""
        """The newest of endpoints that are not well, as the proxy wrote it (`reports`)."""

    def __repr__(self) -> str:
        who = self.identity.node_id if self.identity else "unknown"
        return f"<Stream {who} held={self._held} {list(self.subscriptions.values())}>"

    @property
    def weight(self) -> int:
        """About the bytes that it makes us keep, beside what is the same for every stream. Refusals count where no
        other stream has the same."""
        texts = sum(entry.weight for entry in self.subscriptions.values())
        return self._node_weight + texts + len(self.report) + nacks.weight(self.refusals, self)

    def forget(self) -> None:
        """No proxy will be served by it: what the peer said is kept no longer."""
        self.subscriptions.clear()
        self.node, self.report, self.refusals = None, "", nacks.NONE
        self._node_weight = 0

    # Requests

    def take(self, data: bytes) -> None:
        """Take one request in as it came. A plain ACK is known by its bytes: of all requests nearly all are that.

        Raises:
            ProtocolError: as `receive`, or the bytes are no request.
        """
        flight = self._flight
        nonce = flight.nonces.get(data) if flight is not None else None
        if flight is not None and nonce is not None:
            self._acknowledge(flight, nonce)
            return
        try:
            request = discovery_pb2.DeltaDiscoveryRequest.FromString(data)
        except DecodeError as error:
            raise ProtocolError(f"a request is not a DeltaDiscoveryRequest: {error}") from None
        self.receive(request)

    def _acknowledge(self, flight: _Flight, nonce: str) -> None:
        if nonce == flight.marker and not flight.answered:
            flight.answered = True
            self._note_answered(flight)
            self._report(flight, complete=True)

    def receive(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        """Take one request in.

        Raises:
            ProtocolError: the first request has no usable node, a later one another node's id, or the type is missing.
            Exhausted: the stream makes us keep too much.
        """
        self._check_node(request)
        self.report = reports.written(request.node) or self.report
        if not request.type_url:
            raise ProtocolError("a request on an aggregated stream must carry a type_url")
        if len(request.type_url) > LONGEST_TYPE:
            raise Exhausted(f"the type_url has more than {LONGEST_TYPE} characters")
        self._subscribe(request)
        if request.response_nonce and not self._claim.take(request, self.subscriptions[request.type_url]):
            self._answer(request)

    def _check_node(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        if self.identity is None:
            size = request.node.ByteSize()
            if size > MOST_NODE:
                raise Exhausted(f"the node has {size} bytes, more than {MOST_NODE}")
            self.identity = identify(request.node)
            self.node = node_pb2.Node()
            self.node.CopyFrom(request.node)  # itself it would keep the whole request
            self._node_weight = size * _NODE_OVERHEAD
            self._claim = Claim(request.node)
        elif request.node.id not in ("", self.identity.node_id):
            raise ProtocolError(f"this stream belongs to {self.identity.node_id}: a stream cannot change its node")

    def _subscribe(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        subscription = self.subscriptions.get(request.type_url)
        if subscription is not None:
            if subscription.update(request):
                self._plain = ()
                self._check_weight()
            return
        if len(self.subscriptions) == MOST_TYPES:
            raise ProtocolError(f"more than {MOST_TYPES} types on one stream")
        if self._opened is None:
            self._opened = self._clock()
        self.subscriptions[request.type_url] = Subscription(request)
        self._plain = ()
        self._check_weight()

    def _check_weight(self) -> None:
        if self.weight > MOST_WEIGHT:
            raise Exhausted(f"this stream makes the control plane keep more than {MOST_WEIGHT} bytes")

    def _answer(self, request: discovery_pb2.DeltaDiscoveryRequest) -> None:
        """An ACK or NACK. It counts when it belongs to the newest state, also when that was answered before."""
        flight = self._flight
        if flight is None or request.response_nonce not in flight.nonces.values():
            return
        if not request.HasField("error_detail"):
            self._acknowledge(flight, request.response_nonce)
            return
        flight.refusals = nacks.noted(flight.refusals, request.error_detail.message)
        if request.response_nonce == flight.marker and not flight.answered:
            flight.answered = True
            self._note_answered(flight)
        else:
            self.refusals = {**self.refusals, **flight.refusals}
        self._report(flight, complete=flight.answered)

    def _note_answered(self, flight: _Flight) -> None:
        self.refusals = flight.refusals
        if "" not in flight.refusals:  # which of its resources were refused is known
            for subscription in self.subscriptions.values():
                subscription.answered = subscription.base

    def _report(self, flight: _Flight, *, complete: bool) -> None:
        snapshot = flight.snapshot
        if flight.refusals:
            self._outcomes.append(Refused(snapshot.sequence, snapshot.version, flight.refusals, complete))
        else:
            self._outcomes.append(Acknowledged(snapshot.sequence, snapshot.version))

    def take_outcomes(self) -> tuple[Outcome, ...]:
        """What became known since the last call, oldest first."""
        if not self._outcomes:
            return ()
        taken = tuple(self._outcomes)
        self._outcomes.clear()
        return taken

    # Responses

    def next_response(self, newest: Snapshot) -> bytes | None:
        """The next bytes to send, or None when there is nothing to send now. `newest` is the Gateway's newest state."""
        if self._flight is None or self._flight.answered:
            self._begin(newest)
        flight = self._flight
        if flight is None or flight.is_sent:
            return self._claim.next_question()
        part, index = flight.steps[flight.sent]
        flight.sent += 1
        response = self._library.response(part, index, flight.snapshot.version if flight.is_sent else "")
        flight.nonces[response.ack] = response.nonce
        if flight.is_sent:
            flight.marker = response.nonce
        return response.data

    def prepare(self, newest: Snapshot) -> int | None:
        """About the bytes that `next_response` is going to cost, or None when there is nothing to send now.

        Nothing is serialised yet, so that a stream which waits for its turn holds no bytes.
        """
        if self._flight is None or self._flight.answered:
            self._begin(newest)
        if self._flight is None or self._flight.is_sent:
            return self._claim.cost(newest)
        part, index = self._flight.steps[self._flight.sent]
        return part.chunks[index].size

    @property
    def is_asked(self) -> bool:
        """Whether the proxy was, or is about to be, asked what it holds."""
        return self._claim.is_asked

    def has_more(self, newest: Snapshot) -> bool:
        """Whether `next_response` may give something, now or after `wait`."""
        flight = self._flight
        if flight is None or not flight.is_sent:
            return True
        return flight.answered and self._lacks(newest)

    def _lacks(self, newest: Snapshot) -> bool:
        if newest.sequence != self._held:
            return True
        return not self._plain and any(entry.dirty for entry in self.subscriptions.values())

    def admitted(self) -> None:
        """The proxy may have resources from now on. What it waited for that does not count as waiting for its second
        type: that request may be there and not be read yet."""
        if self._opened is not None:
            self._opened = self._clock()

    def wait(self) -> float | None:
        """Seconds after which `next_response` should be asked again although nothing happened."""
        if self._flight is not None or self._opened is None or self._is_both() or self._claim.version:
            return None
        return max(0.0, self._opened + self._patience() - self._clock())

    def _is_both(self) -> bool:
        return ORDER.keys() <= self.subscriptions.keys()

    def _is_early(self) -> bool:
        """Whether a state would be half of one. Who claims a whole one would take the half for all: no time is up."""
        if self._opened is None:
            return True
        return not self._is_both() if self._claim.version else bool(self.wait())

    def _patience(self) -> float:
        is_own = self.node is not None and self.node.user_agent_name == OWN_AGENT
        return WAIT_OWN if is_own else WAIT

    def _begin(self, newest: Snapshot) -> None:
        """Start to send what the stream lacks of the newest state, if it lacks anything."""
        if self._flight is None:
            if self._is_early():
                return
            newest = self._claim.compare(self.subscriptions, newest, self._recall)
            if self._claim.is_asked:
                return
        if not self._lacks(newest):
            return
        steps = self._steps(newest)
        for subscription in self.subscriptions.values():
            subscription.sent(newest.resources(subscription.type_url), newest.sequence)
        self._held = newest.sequence
        if steps:
            self._flight = _Flight(newest, steps)
        else:
            self._pass_over(newest)

    def _steps(self, newest: Snapshot) -> Steps:
        """Nearly all streams want all there is, and make the same step."""
        if self._plain:
            return self._library.steps(newest, self._held, self._plain, self.subscriptions)
        steps = steps_of(self._parts(newest))
        if all(entry.wildcard for entry in self.subscriptions.values()):
            self._plain = tuple(entry.type_url for entry in self._in_order())
        return steps

    def _in_order(self) -> list[Subscription]:
        return sorted(self.subscriptions.values(), key=lambda entry: ORDER.get(entry.type_url, len(ORDER)))

    def _parts(self, newest: Snapshot) -> list[Part]:
        """What each type contributes, in order. A type never answered gets an answer, unless it is an own proxy and not
        alone."""
        parts: list[Part] = []
        empty: Part | None = None
        for subscription in self._in_order():
            self._serial += 1
            part = self._library.step(newest, subscription, self._serial)
            if part is None and subscription.fresh:
                empty = empty_part(newest, subscription, self._serial)
                part = empty if subscription.type_url not in ORDER else None
            if part is not None:
                parts.append(part)
        if parts or empty is None:
            return parts
        return [empty]

    def _pass_over(self, newest: Snapshot) -> None:
        """The newest state differs in nothing that this stream gets: it holds it without a message."""
        if not self.refusals:
            self._outcomes.append(Acknowledged(newest.sequence, newest.version))
