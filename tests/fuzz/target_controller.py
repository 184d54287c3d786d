"""Target `controller`: requests of any client, honest, confused or hostile, into the control plane's delta stream.

The bytes are a script: publications, requests with any field, reads, answers. A naive client that follows the xDS
specification keeps the books. Promises: nothing but `ProtocolError` ends a stream; a client that reads and answers
holds exactly what it subscribed to in the end; refusals and names are kept in bounded number and size; every response
is one that the client can read, of a type that it asked for, and a state ends with its marker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from controlplane.answers import nacks
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots
from controlplane.xds.node import ProtocolError
from controlplane.xds.protocol.claim import OWN_AGENT, QUESTION, STATE_KEY
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import MOST_TYPES, Stream
from controlplane.xds.protocol.subscription import WILDCARD
from gatewright.wire.external import discovery_pb2
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require

GATEWAY = "shop/web"
NODES = ("shop/web/one", "shop/web/one", "shop/web/two", "", "shop", "a/b/c/d", "\x00/é/x", "shop/web/" + "x" * 300)
TYPES = (RESOURCE_TYPE, ENDPOINT_TYPE, RESOURCE_TYPE, ENDPOINT_TYPE, "type.example/Other", "")
NAMES = ("a", "b", "c", "d", WILDCARD, "", "nobody", "x" * 5000, "é\x00")
VERSIONS = ("", "1", "wrong")
TEXTS = (
    "",
    "no",
    '[{"key": "a", "error": "bad"}]',
    '[{"key": "a"}, {"key": 1, "error": 2}, 3, null, {"key": "b", "error": ""}]',
    "[" * 3000,
    "[" + "9" * 5000 + "]",
    '["\\ud800"]',
    '[{"key": "\\ud800\\u0000", "error": "\\u2028"}]',
    json.dumps([{"key": f"k{n}", "error": "x" * 3000} for n in range(40)]),
)
FLOODS = tuple(json.dumps([{"key": f"{n}", "error": ""} for n in range(700 * k, 700 * k + 700)]) for k in range(4))
Request = discovery_pb2.DeltaDiscoveryRequest

SEEDS = (
    bytes((0, 0, 1, 1, 0, 0, 0, 0, 2, 9, 3, 9)),
    bytes((0, 0, 1, 0, 1, 1, 1, 2, 0, 4, 1, 0, 0, 0, 2, 9, 3, 3, 0, 2, 0, 2, 9, 4, 2)),
    bytes((5, 0, 0, 0, 1, 2, 9, 5, 1, 2, 9, 3, 9)),
    bytes((5, 1, 0, 0, 1, 2, 9, 0, 1, 2, 2, 9, 3, 9)),
    bytes((7, *b"\x12\x05\x0a\x03a/b")),
    bytes((1, 0, 0, 2, 0, 0, 1, 1, 1, 1, 2, 9, 6, 7, 6, 8, 3, 1)),
)
LONGEST = 600
MOST_STEPS = 100


@dataclass(slots=True)
class Wanted:
    """What a client subscribed to of one type, and holds."""

    wildcard: bool
    names: set[str]
    held: dict[str, str]

    def covers(self, name: str) -> bool:
        return self.wildcard or name in self.names


@dataclass(slots=True)
class Client:
    """A client by the letter of the specification, whatever it says."""

    wanted: dict[str, Wanted] = field(default_factory=dict)
    unanswered: list[tuple[str, str]] = field(default_factory=list)
    known: bool = False
    claim: str = ""
    """Of our own agent, until the server has asked or sent a state."""

    def say(self, request: Request) -> None:
        """Note what a request that was accepted means."""
        self.known = True
        wanted = self.wanted.get(request.type_url)
        if wanted is None:
            names = set(request.resource_names_subscribe)
            wanted = self.wanted[request.type_url] = Wanted(not names or WILDCARD in names, names - {WILDCARD}, {})
            versions = request.initial_resource_versions  # of what it did not ask for, it holds nothing
            wanted.held = {name: version for name, version in versions.items() if wanted.covers(name)}
            return
        for name in request.resource_names_subscribe:
            self._subscribe(wanted, name)
        for name in request.resource_names_unsubscribe:
            self._unsubscribe(wanted, name)

    def _subscribe(self, wanted: Wanted, name: str) -> None:
        if name == WILDCARD:
            wanted.wildcard = True
        else:
            wanted.names.add(name)

    def _unsubscribe(self, wanted: Wanted, name: str) -> None:
        """It lets go of what it no longer asks for; what the wildcard still covers has to come again."""
        if name == WILDCARD:
            wanted.wildcard = False
            wanted.held = {held: version for held, version in wanted.held.items() if held in wanted.names}
        else:
            wanted.names.discard(name)
            wanted.held.pop(name, None)

    def hear(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        require(response.type_url in self.wanted, f"a response of type {response.type_url!r}, which nobody asked for")
        claim = ""
        if response.type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):  # a claim is of these two; our agent asks for no other
            claim, self.claim = self.claim, ""
        empty = not response.resources and not response.removed_resources
        if claim and not (empty and response.system_version_info == claim):
            for each in self.wanted.values():  # it neither believed nor asked: it tells everything
                each.held.clear()
        wanted = self.wanted[response.type_url]
        for resource in response.resources:
            require(resource.version and resource.name, "a resource without name or version")
            if wanted.covers(resource.name):
                wanted.held[resource.name] = resource.version
        for name in response.removed_resources:
            wanted.held.pop(name, None)
        self.unanswered.append((response.type_url, response.nonce))


class Run:
    def __init__(self) -> None:
        self.snapshots = Snapshots(clock=lambda: 0.0)
        self.now = 0.0
        self.stream = Stream(Library(most_bytes=100), lambda: self.now)
        self.client = Client()
        self.claims = False

    def publish(self, dice: Dice) -> None:
        content = None if dice.chance(4) else dice.one_of((b"1", b"2", b"3" * 2000))
        type_url, name = dice.one_of(TYPES[:5]), dice.one_of(("a", "b", "c", "d", "é\x00"))
        self.snapshots.apply([(GATEWAY, type_url, name, content)])

    def send(self, request: Request) -> None:
        """As the call does: what it cannot take in ends the stream, and that was the client's fault."""
        self.stream.take(request.SerializeToString())
        self.client.say(request)
        self.bounded()

    def request(self, dice: Dice) -> None:
        if self.client.claim:  # our own agent says nothing else until its claim is believed or asked about
            return
        request = Request(type_url=dice.one_of(TYPES))
        request.node.id = "" if self.client.known and dice.chance(2) else dice.one_of(NODES)
        request.resource_names_subscribe.extend(dice.one_of(NAMES) for _ in range(dice.below(4)))
        request.resource_names_unsubscribe.extend(dice.one_of(NAMES) for _ in range(dice.below(4)))
        for _ in range(dice.below(3)):
            request.initial_resource_versions[dice.one_of(NAMES)] = dice.one_of(VERSIONS)
        if dice.chance(3):
            request.response_nonce = dice.one_of(("x", "1.0.Resource.0", "~" * 300))
        if dice.chance(3):
            request.error_detail.message = dice.one_of(TEXTS)
        self.send(request)

    def open_as_agent(self, dice: Dice) -> None:
        """Our own agent's first requests, with the claim of a state that may be the newest one."""
        if self.client.known:
            return
        newest = self.snapshots.newest(GATEWAY)
        held = {url: {r.name: r.version for r in newest.resources(url)} for url in (RESOURCE_TYPE, ENDPOINT_TYPE)}
        claim = dice.one_of((newest.version, "f" * 32, ""))
        if claim != newest.version:
            held = {url: {"a": "1"} for url in held}
        for url in (ENDPOINT_TYPE, RESOURCE_TYPE):
            request = Request(type_url=url, resource_names_subscribe=[WILDCARD])
            if not self.client.known:
                request.node.id, request.node.user_agent_name = NODES[0], OWN_AGENT
                request.node.metadata[STATE_KEY] = claim
            if not claim:
                request.initial_resource_versions.update(held[url])
            self.send(request)
            self.client.wanted[url].held = dict(held[url])
        self.client.claim = claim

    def read(self, most: int) -> None:
        for _ in range(most):
            data = self.stream.next_response(self.snapshots.newest(GATEWAY))
            if data is None:
                return
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            if response.nonce == QUESTION:
                self.client.claim = ""
                held = self.client.wanted[response.type_url].held
                answer = Request(type_url=response.type_url, response_nonce=QUESTION, initial_resource_versions=held)
                self.stream.take(answer.SerializeToString())
            else:
                self.client.hear(response)

    def answer(self, text: str | None, most: int = 1000) -> None:
        """ACKs, or NACKs with a text."""
        unanswered, self.client.unanswered = self.client.unanswered[:most], self.client.unanswered[most:]
        for type_url, nonce in unanswered:
            request = Request(type_url=type_url, response_nonce=nonce)
            if text is not None:
                request.error_detail.message = text
            self.send(request)

    def flood(self, dice: Dice) -> None:
        """Refusals without end for the same response."""
        for type_url, nonce in self.client.unanswered[:2]:
            request = Request(type_url=type_url, response_nonce=nonce)
            request.error_detail.message = dice.one_of(FLOODS)
            self.send(request)

    def foreign(self, data: bytes) -> None:
        try:
            request = Request.FromString(data)
        except DecodeError:
            return  # gRPC refuses the message and the stream breaks
        if request.response_nonce != QUESTION and not self.client.claim:
            self.send(request)

    def bounded(self) -> None:
        """What a client says is kept in bounded size."""
        stream = self.stream
        require(len(stream.subscriptions) <= MOST_TYPES, "types without end")
        require(len(stream.refusals) <= 2 * (nacks.MOST_REFUSALS + 10), f"{len(stream.refusals)} refusals")
        for outcome in stream.take_outcomes():
            for refusal in getattr(outcome, "refusals", nacks.NONE).values():
                require(len(refusal.key) <= nacks.LONGEST_KEY, "a key without end")
                require(len(refusal.error) <= nacks.LONGEST_REASON, "a reason without end")
                (refusal.key + refusal.error).encode()  # lone surrogates could not be sent on

    def settle(self) -> None:
        """Read and acknowledge until nothing comes: then the client holds what it asked for."""
        self.now += 100
        for _ in range(6):
            self.read(1000)
            self.answer(None)
        newest = self.snapshots.newest(GATEWAY)
        require(self.stream.next_response(newest) is None, "responses without end")
        for type_url, wanted in self.client.wanted.items():
            right = {r.name: r.version for r in newest.resources(type_url) if wanted.covers(r.name)}
            held = {name: version for name, version in wanted.held.items() if wanted.covers(name)}
            require(held == right, f"{type_url}: holds {held}, wanted {right}")


def check(data: bytes) -> None:
    run = Run()
    try:
        play(Dice(data), run)
    except ProtocolError as error:
        require(str(error) and len(str(error)) < 3000, f"an explanation of {len(str(error))} characters")
        return
    if run.client.wanted:
        run.settle()


def play(dice: Dice, run: Run) -> None:
    for _ in range(MOST_STEPS):
        if dice.empty:
            return
        match dice.below(9):
            case 0:
                run.publish(dice)
            case 1:
                run.request(dice)
            case 2:
                run.read(dice.below(8))
            case 3:
                run.answer(None, dice.below(8))
            case 4:
                run.answer(dice.one_of(TEXTS))
            case 5:
                run.open_as_agent(dice)
            case 6:
                run.flood(dice)
            case 7:
                run.foreign(dice.rest())
            case _:
                run.now += dice.byte() / 10
