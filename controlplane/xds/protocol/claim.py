"""What a returning proxy says that it holds: one version of a state instead of one for each of its resources.

Pure; `stream` asks it before it sends a first state. Our own agent (by `user_agent_name`) writes into
`node.metadata["gatewright.state"]` the `system_version_info` of the last state that all its workers applied and of
which it refuses nothing; its first requests then carry no `initial_resource_versions`, which for 10,000 routes are half
a megabyte. The conversation goes on in one of four ways:

- The newest state has that version: the proxy holds exactly this. It gets an empty state.
- A recent state had it (`Snapshots.recall`): it gets an empty state of that version, which says that it was believed,
  and after its answer the difference to the newest one.
- No state that is known has it: for each of our two types the server sends an empty response with the nonce "versions"
  and without `system_version_info`. The agent answers each with that nonce and `initial_resource_versions`; then all is
  as if its first requests had carried them.
- The server does not know of claims: it sends everything, as to a proxy that holds nothing. The agent takes the first
  state as the whole and lets go of what is not in it.

No other proxy sees the question. A proxy that claims what it does not hold, or does not answer, harms itself alone:
what it says is compared, never stored or followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshot
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import discovery_pb2, node_pb2

OWN_AGENT: Final = "gatewright"
STATE_KEY: Final = "gatewright.state"
QUESTION: Final = "versions"
"""The nonce of a question. Those of states begin with a digit."""

CLAIMED_TYPES: Final = (ENDPOINT_TYPE, RESOURCE_TYPE)

NAME_BYTES: Final = 300
"""Of a resource's name and version in an answer: as received, parsed, and kept until the state is begun (measured)."""


Recall = Callable[[str, str], Snapshot | None]
"""A recent state of a Gateway by its version, if it is remembered."""


def no_memory(_gateway: str, _version: str) -> Snapshot | None:
    """Remembers no state but the newest."""
    return None


class Claim:
    """What one stream's proxy claims, until it is known what it holds. Without a node: nothing."""

    __slots__ = ("_questions", "_untold", "version")

    def __init__(self, node: node_pb2.Node | None = None) -> None:
        self.version = _version(node) if node is not None else ""
        self._questions: list[str] = []
        self._untold: set[str] = set()

    @property
    def is_asked(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._untold)

    def compare(self, subscriptions: Mapping[str, Subscription], newest: Snapshot, recall: Recall) -> Snapshot:
        """Believe the claim or ask, once both types are subscribed to. The first call decides, later ones do nothing.

        Answers the state to begin with: the newest one, or the recent one that the proxy holds. A proxy that sent its
        versions without being asked, or wants a selection only, is served as the standard says.
        """
        version, self.version = self.version, ""
        if not version:
            return newest
        claimed = [subscriptions[type_url] for type_url in CLAIMED_TYPES]
        if not all(subscription.common for subscription in claimed):
            return newest
        held = newest if version == newest.version else recall(newest.gateway, version)
        if held is None:
            self._questions = [*reversed(CLAIMED_TYPES)]
            self._untold = {*CLAIMED_TYPES}
            return newest
        for subscription in claimed:
            subscription.holds(held.resources(subscription.type_url), held.sequence)
        return held

    def cost(self, newest: Snapshot) -> int | None:
        """About the bytes that the answers to the next question make us hold, None when there is nothing to ask.

        The first question answers for both: they are sent and answered together.
        """
        if not self._questions:
            return None
        if len(self._questions) < len(CLAIMED_TYPES):
            return 0
        return NAME_BYTES * sum(len(newest.resources(type_url)) for type_url in CLAIMED_TYPES)

    def next_question(self) -> bytes | None:
        """The next question to send, serialised."""
        if not self._questions:
            return None
        question = discovery_pb2.DeltaDiscoveryResponse(type_url=self._questions.pop(), nonce=QUESTION)
        return question.SerializeToString()

    def take(self, request: discovery_pb2.DeltaDiscoveryRequest, subscription: Subscription) -> bool:
        """Whether this request answers a question: the subscription then knows what the proxy holds of its type."""
        if request.response_nonce != QUESTION or request.type_url not in self._untold:
            return False
        self._untold.discard(request.type_url)
        subscription.knows(request)
        return True


def _version(node: node_pb2.Node) -> str:
    """The version that a node claims; empty when it is not our agent, or holds nothing, or the value is no text."""
    if node.user_agent_name != OWN_AGENT:
        return ""
    value = node.metadata.fields.get(STATE_KEY)
    return "" if value is None else value.string_value
