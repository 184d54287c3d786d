"""Our side of the delta xDS conversation as a state machine: responses in, requests and whole states out. Pure.

Laws
- Both types are subscribed to with the wildcard when a stream opens, and the control plane learns what is held, so
  that it sends differences and removals only. One of two ways: a *claim*, the version of the last state, in the node's
  metadata, when all of it was applied and nothing is refused; else the versions of all resources.
- A control plane that holds another state than the claimed one asks for the versions of a type by an empty response
  whose nonce is "versions"; it is answered at once. One that holds the claimed state sends an empty one of the same
  version. Any other first state comes from a control plane without claims and is all: the rest is gone.
- Who holds so much that its versions are too long for a request says that it holds nothing: then, too, the first state
  is everything.
- The parts of a state are kept until the response that carries `system_version_info`; a state is applied as a whole.
- No response is answered before its state is applied: an ACK means that all workers serve it. The answer to the last
  one names every resource that is still refused, also of earlier states (the control plane's conditions live on it).
- The version of a refused resource is recorded as empty, which no version is: after a reconnect it is sent again, and
  removed when it went meanwhile.
- What a broken stream left half is forgotten; it comes again.
- Endpoints that are not well are reported by requests of their own, at any time after the first ones (`reporting`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from dataplane.link.messages import TYPE_URLS, Record
from gatewright import revisions
from gatewright.wire.external import discovery_pb2, node_pb2

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
WILDCARD = "*"
USER_AGENT = "gatewright"

STATE_KEY = "gatewright.state"
"""Of the node's metadata: the claim."""

SHOWN = 32
"""Digits of a state's version that may be seen: those after them are of its secrets (`controlplane.snapshot`)."""

ENDPOINTS_KEY = "gatewright.endpoints"
"""Of the node's metadata, in requests that answer nothing: endpoints that are not well (`agent/troubles`)."""

QUESTION = "versions"
"""The nonce of the control plane's question after a claim."""

INVALID_ARGUMENT = 3
"""google.rpc.Code of a NACK."""

MAX_VERSIONS = 3 << 20
"""Bytes of the names and versions that one stream says it holds; a control plane takes messages of 4 MiB."""
WHOLE = "-"
"""In place of a claim: nothing was said, so the first state is the whole. No version looks like this."""

MAX_NAME = 4096
MAX_REFUSALS = 500
"""Named in one NACK; the rest is counted."""

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse


@dataclass(frozen=True, slots=True)
class State:
    """A whole difference to the state before, to be applied at once."""

    version: str
    """As far as it may be seen."""
    records: tuple[Record, ...]


@dataclass(slots=True)
class _Part:
    """A response that is not answered yet."""

    type_url: str
    nonce: str
    names: tuple[str, ...]


@dataclass(slots=True)
class _Incoming:
    """The state that is being received: the last word on each resource, in order."""

    version: str = ""
    parts: list[_Part] = field(default_factory=list)
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    versions: dict[tuple[str, str], str] = field(default_factory=dict)
    wrong: dict[tuple[str, str], str] = field(default_factory=dict)


class XdsStream:
    """The conversation of one proxy, over all the streams that it opens one after the other."""

    def __init__(self, gateway: str, instance: str, version: str) -> None:
        self._node = _node(gateway, instance, version)
        self._accepted: dict[str, dict[str, str]] = {type_url: {} for type_url in TYPE_URLS}
        self._unreadable: dict[tuple[str, str], str] = {}
        self._incoming = _Incoming()
        self._state = ""
        """The version of the state that is held, while nothing is refused."""
        self._claim: str
        """What this stream claimed and was not answered yet; `open` sets it."""

    def open(self) -> list[Request]:
        """The first requests of a new stream."""
        self._incoming = _Incoming()
        self._claim = "" if any("" in versions.values() for versions in self._accepted.values()) else self._state
        if not self._claim and self._holds_too_much():
            self._claim = WHOLE
        first, *others = (self._subscription(type_url) for type_url in TYPE_URLS)
        first.node.CopyFrom(self._node)
        if self._claim and self._claim != WHOLE:
            first.node.metadata[STATE_KEY] = self._claim
        return [first, *others]

    @staticmethod
    def reporting(endpoints: str) -> Request:
        """A request that changes no subscription and answers nothing. A control plane that does not know of reports
        passes over what is in the metadata."""
        request = Request(type_url=TYPE_URLS[0])
        request.node.metadata[ENDPOINTS_KEY] = endpoints
        return request

    def receive(self, response: Response) -> State | Request | None:
        """Take a response: None while the state is not whole, the state when it is, or an answer to send at once.

        The answer is the refusal of a type that was not subscribed to, or the versions of one.
        """
        if response.type_url not in self._accepted:
            return _answer(response.type_url, response.nonce, {"": f"unknown type {response.type_url[:200]!r}"})
        if _is_question(response):
            too_much = self._holds_too_much()
            self._claim = WHOLE if too_much else ""
            versions = {} if too_much else self._accepted[response.type_url]
            return Request(type_url=response.type_url, response_nonce=QUESTION, initial_resource_versions=versions)
        self._collect(response)
        if not response.system_version_info:
            return None
        incoming = self._incoming
        incoming.version = response.system_version_info
        self._conclude(incoming)
        records = tuple(
            record for key, record in incoming.records.items() if key not in incoming.wrong and _is_name(record.name)
        )
        return State(response.system_version_info[:SHOWN], records)

    def answer(self, refused: Mapping[str, str]) -> list[Request]:
        """Answers to every response of the state. `refused`: name -> reason of all that workers refuse by now."""
        incoming, self._incoming = self._incoming, _Incoming()
        self._record(incoming, refused)
        still = {**refused, **{name: reason for (_, name), reason in self._unreadable.items()}}
        self._state = "" if still else incoming.version
        requests = []
        for part in incoming.parts:
            named = still if part is incoming.parts[-1] else {name: still[name] for name in part.names if name in still}
            requests.append(_answer(part.type_url, part.nonce, named))
        return requests

    def _holds_too_much(self) -> bool:
        """Whether to name all that is held would be too long for a request."""
        held = self._accepted.values()
        return sum(len(name) + len(version) + 8 for each in held for name, version in each.items()) > MAX_VERSIONS

    def _subscription(self, type_url: str) -> Request:
        versions = None if self._claim else self._accepted[type_url]
        return Request(type_url=type_url, resource_names_subscribe=[WILDCARD], initial_resource_versions=versions)

    def _conclude(self, incoming: _Incoming) -> None:
        """The end of a state. The first one after a claim is the claimed one, or the whole (see the laws)."""
        claim, self._claim = self._claim, ""
        if not claim or (claim == incoming.version and not incoming.records):
            return
        for type_url, accepted in self._accepted.items():
            for name in accepted:
                incoming.records.setdefault((type_url, name), Record(type_url, name, None))

    def _collect(self, response: Response) -> None:
        incoming, type_url = self._incoming, response.type_url
        names: dict[str, None] = {}
        for resource in response.resources:
            key = (type_url, resource.name)
            wrong = "sent twice in one response" if resource.name in names else _wrong(resource, type_url)
            names[resource.name] = None
            incoming.wrong.pop(key, None)
            if wrong:
                incoming.wrong[key] = wrong
            incoming.records.pop(key, None)
            incoming.records[key] = Record(type_url, resource.name, resource.resource.value)
            incoming.versions[key] = resource.version
        for name in response.removed_resources:
            key = (type_url, name)
            names[name] = None
            incoming.wrong.pop(key, None)
            incoming.records.pop(key, None)
            incoming.records[key] = Record(type_url, name, None)
        incoming.parts.append(_Part(type_url, response.nonce, tuple(names)))

    def _record(self, incoming: _Incoming, refused: Mapping[str, str]) -> None:
        for key, record in incoming.records.items():
            accepted = self._accepted[record.type_url]
            self._unreadable.pop(key, None)
            if record.value is None:
                accepted.pop(record.name, None)
            elif key in incoming.wrong:
                self._unreadable[key], accepted[record.name] = incoming.wrong[key], ""
            else:
                accepted[record.name] = "" if record.name in refused else incoming.versions[key]


def _is_question(response: Response) -> bool:
    """Whether the control plane asks for the versions of a type."""
    has_content = response.resources or response.removed_resources or response.system_version_info
    return response.nonce == QUESTION and not has_content


def _is_name(name: str) -> bool:
    """Whether a resource can have it: no worker is informed that one without such a name is gone, as it never had
    it."""
    return 0 < len(name) <= MAX_NAME


def _wrong(resource: discovery_pb2.Resource, type_url: str) -> str:
    """Why a resource cannot be taken, or empty."""
    if not _is_name(resource.name):
        return f"the name of a resource has 1 to {MAX_NAME} characters"
    if resource.resource.type_url != type_url:
        return f"is of type {resource.resource.type_url[:200]!r} in a response of type {type_url!r}"
    return ""


def _answer(type_url: str, nonce: str, refused: Mapping[str, str]) -> Request:
    """An ACK, or a NACK whose message is a JSON array of {key, error}."""
    request = Request(type_url=type_url, response_nonce=nonce)
    if refused:
        rows = [{"key": key, "error": reason} for key, reason in sorted(refused.items())[:MAX_REFUSALS]]
        if len(refused) > MAX_REFUSALS:
            rows.append({"key": "", "error": f"and {len(refused) - MAX_REFUSALS} more"})
        request.error_detail.code = INVALID_ARGUMENT
        request.error_detail.message = json.dumps(rows)
    return request


def _node(gateway: str, instance: str, version: str) -> node_pb2.Node:
    """architecture.md, "The wire": `node.id` = namespace/gateway/instance, `node.cluster` = namespace/gateway."""
    node = node_pb2.Node(
        id=f"{gateway}/{instance}", cluster=gateway, user_agent_name=USER_AGENT, user_agent_version=version
    )
    node.metadata["wire_revision"] = revisions.NEWEST
    return node
