"""Target `agent`: responses of a control plane, through the agent's stream and the link into a worker's table.

The bytes are a script: responses with good resources, resources that must be refused, mutated ones, removals, markers,
questions, broken streams. A naive model of delta xDS (a dictionary) follows along. Promises: nothing but the documented
refusals; what is bad is refused by name and leaves the last good version where it was; what is good is never refused;
a table that grew by differences equals one that is made of the model in one step; the agent's record of versions, which
it sends when it reconnects, is the model's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from dataplane.agent.xds_stream import MAX_NAME, QUESTION, STATE_KEY, Request, State, XdsStream
from dataplane.link import codec
from dataplane.link.messages import ENDPOINT, RESOURCE, TYPE_URLS, Changes
from dataplane.table.store import Change
from gatewright.wire.external import discovery_pb2
from gatewright.wire.v1 import listener_pb2, resource_pb2
from tests.fakes import table_state
from tests.fakes.table_state import TableRun
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require

Key = tuple[str, str]

_OTHER = "backend/service/default/other/80"
GOOD: tuple[Change, ...] = (
    table_state.bind(8080),
    table_state.bind(8081, ["127.0.0.1", "::1"]),
    table_state.listener("http"),
    table_state.listener("shop", "shop.example"),
    table_state.listener("shop", "*.example"),
    table_state.listener("far", "far.example", "bind/default/gw/8081"),
    table_state.listener("late", "late.example", "bind/default/gw/9999"),
    table_state.service(),
    table_state.service(empty=True),
    table_state.service(_OTHER),
    table_state.static("backend/gatewaybackend/default/fixed", "10.0.0.9", 80),
    table_state.endpoint("10.0.0.1"),
    table_state.endpoint("10.0.0.2"),
    table_state.endpoint("10.0.0.1", backend=_OTHER),
    table_state.route("a", prefix="/a", backends=[table_state.SERVICE]),
    table_state.route("a", prefix="/b", listeners=["http", "shop"], backends=[_OTHER]),
    table_state.route("b", exact="/b", hosts=["shop.example", "*.example"]),
    table_state.route("b", regex="/b.*", hosts=["shop.example"], headers={"x": "~[a-z]+"}, query={"q": "1"}),
    table_state.route("c", method="POST", backends=["backend/gatewaybackend/default/fixed"]),
    table_state.route("c", listeners=["nowhere"], policies=[table_state.header("x-a", "b")]),
)
"""Always to be accepted; some share a name, as versions of one resource."""


def _resource(key: str, revision: int = 0, route: str = "") -> Change:
    message = resource_pb2.Resource(key=key, min_revision=revision)
    if route:
        message.route.parents.add(section=route)
    return table_state.change(message)


def _as(name: str, change: Change) -> Change:
    return Change(change.type_url, name, change.value)


BAD: tuple[Change, ...] = (
    Change(RESOURCE, table_state.route_key("a"), b"\xff\xff"),
    Change(RESOURCE, table_state.BIND, b""),
    Change(ENDPOINT, table_state.endpoint_name("10.0.0.1", 8080, table_state.SERVICE), b"\x0a\x01x"),
    _resource(table_state.route_key("a"), revision=99, route="x"),
    _resource(table_state.route_key("b")),
    _as(table_state.route_key("b"), table_state.route("a", prefix="/a")),
    _as(table_state.listener_key("http"), table_state.bind(8080)),
    table_state.route("c", prefix="no-slash"),
    table_state.route("a", regex="("),
    table_state.route("a", prefix="/", listeners=[]),
    table_state.endpoint("10.0.0.300"),
    table_state.endpoint("10.0.0.1", port=70_000),
    _as("bind/default/gw/8080", table_state.bind(70_000)),
    table_state.static("backend/gatewaybackend/default/fixed", "10.0.0.9", 70_000),
    Change(RESOURCE, "secret/default/x", b"\x0a\x01x"),
    Change(RESOURCE, "", b""),
)
"""Never to be accepted."""

NAMES = tuple(dict.fromkeys((change.type_url, change.name) for change in (*GOOD, *BAD)))
LONG = "route/" + "x" * 70_000

SEEDS = (
    bytes((0, *(b for n in range(len(GOOD)) for b in (0, n)), 7, 1, 1)),
    bytes((*(b for n in range(len(GOOD)) for b in (0, n)), 7, 1, *(b for n in range(len(BAD)) for b in (1, n)), 7, 2)),
    bytes((*(b for n in range(20) for b in (0, n)), 7, 1, *(b for n in range(20) for b in (3, n)), 7, 2, 5, 6)),
    bytes((0, 0, 0, 2, 0, 7, 0, 11, 0, 14, 7, 1, 2, 14, 30, 5, 7, 2, 5, 4, 4, 7, 3, 5, 7, 4)),
    bytes((8, *b"\x0a\x0a\x0a\x01a\x12\x01b\x22\x02\x0a\x00")),
)
LONGEST = 600
MOST_STEPS = 120


@dataclass(slots=True)
class Model:
    """Delta xDS as a dictionary. `sent`: the last word on each resource of a state that is not whole yet."""

    held: dict[Key, bytes] = field(default_factory=dict)
    versions: dict[Key, str] = field(default_factory=dict)
    sent: dict[Key, tuple[bytes | None, str, bool]] = field(default_factory=dict)


class Run:
    """One proxy: the agent's stream, a worker's applier, and the model."""

    def __init__(self) -> None:
        self.stream = XdsStream("default/gw", "one", "0")
        self.table = TableRun()
        self.model = Model()
        self.response = discovery_pb2.DeltaDiscoveryResponse(type_url=RESOURCE)
        self.twice: set[str] = set()
        self.good = set(GOOD)
        self.bad = set(BAD)
        self.serial = 0
        self.claimed = ""
        self.open()

    # What the control plane does.

    def open(self) -> None:
        requests = self.stream.open()
        self.model.sent.clear()
        self.claimed = ""
        if STATE_KEY in requests[0].node.metadata:
            self.claimed = str(requests[0].node.metadata[STATE_KEY])
            require(not any(request.initial_resource_versions for request in requests), "a claim and versions")
            return
        for request in requests:
            self.check_versions(request)

    def check_versions(self, request: Request) -> None:
        wanted = {name: v for (url, name), v in self.model.versions.items() if url == request.type_url}
        require(dict(request.initial_resource_versions) == wanted, f"versions {request.initial_resource_versions}")

    def add(self, change: Change, wrong: bool = False) -> None:
        """Put a resource into the response under way, under its own type or (`wrong`) another's."""
        self.switch(change.type_url)
        self.serial += 1
        resource = self.response.resources.add(name=change.name, version=f"v{self.serial}")
        resource.resource.value = change.value or b""
        resource.resource.type_url = "type.example/wrong" if wrong else change.type_url

    def remove(self, key: Key) -> None:
        self.switch(key[0])
        self.response.removed_resources.append(key[1])

    def switch(self, type_url: str) -> None:
        """A response is of one type: send what there is of another."""
        if self.response.type_url != type_url:
            self.send("")
            self.response.type_url = type_url

    def send(self, marker: str) -> None:
        """Send the response under way; `marker`: it ends a state of this version."""
        response, url = self.response, self.response.type_url
        self.serial += 1
        response.nonce, response.system_version_info = f"n{self.serial}", marker
        self.response = discovery_pb2.DeltaDiscoveryResponse(type_url=url)
        self.note(response)
        self.receive(response)

    def ask(self, url: str) -> None:
        """The control plane's question after a claim (or at any other time)."""
        answer = self.stream.receive(discovery_pb2.DeltaDiscoveryResponse(type_url=url, nonce=QUESTION))
        require(isinstance(answer, Request), "no answer to the question")
        self.check_versions(answer)  # type: ignore[arg-type]
        self.claimed = ""

    def foreign(self, data: bytes) -> None:
        """Bytes that may or may not be a response; what they hold goes through like any other."""
        try:
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
        except DecodeError:
            return  # gRPC refuses the message and the stream breaks
        if response.type_url not in TYPE_URLS or response.nonce == QUESTION:
            answer = self.stream.receive(response)
            question = response.nonce == QUESTION and response.type_url in TYPE_URLS
            require(answer is None or isinstance(answer, Request), "a state of no type")
            self.open() if question else None
            return
        self.note(response)
        self.receive(response)

    # What must come of it.

    def note(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        names: set[str] = set()
        for resource in response.resources:
            key = (response.type_url, resource.name)
            right = resource.resource.type_url == response.type_url and 0 < len(resource.name) <= MAX_NAME
            right = right and resource.name not in names
            names.add(resource.name)
            self.model.sent[key] = (resource.resource.value, resource.version, right)
        for name in response.removed_resources:
            self.model.sent[response.type_url, name] = (None, "", True)

    def receive(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        state = self.stream.receive(response)
        if not response.system_version_info:
            require(state is None, f"an answer before the state is whole: {state}")
            return
        require(isinstance(state, State), f"no state at the marker: {state}")
        self.apply(state)  # type: ignore[arg-type]

    def apply(self, state: State) -> None:
        if self.claimed and not (state.version == self.claimed and not self.model.sent):
            for key in self.model.versions:  # who does not know of claims has told everything
                self.model.sent.setdefault(key, (None, "", True))
        self.claimed = ""
        frames = b"".join(codec.encode(chunk) for chunk in codec.chunked(state.records))
        messages = codec.Decoder().feed(frames) if frames else []
        records = [record for message in messages if isinstance(message, Changes) for record in message.records]
        self.table.apply(*(Change(*record) for record in records))
        applier = self.table.applier
        standing = dict(applier.outcome.standing)
        self.judge(dict(applier.refused))
        answers = self.stream.answer(standing)
        require(len(answers) > 0, "a state without an answer")
        require(not any(answer.HasField("error_detail") for answer in answers) or self.refuses(standing), "a NACK")
        self.compare()

    def refuses(self, standing: dict[str, str]) -> bool:
        return bool(standing) or "" in self.model.versions.values()

    def judge(self, refused: dict[str, str]) -> None:
        """The model's own opinion where it has one, the product's verdict where it has none (mutated bytes)."""
        for (url, name), (value, version, right) in self.model.sent.items():
            key = (url, name)
            if value is None:
                self.model.held.pop(key, None)
                self.model.versions.pop(key, None)
                continue
            change = Change(url, name, value)
            if right and name in refused:
                require(change not in self.good, f"{name} is good and was refused: {refused[name]}")
            if right and name not in refused:
                require(change not in self.bad, f"{name} is bad and was accepted")
                self.model.held[key] = value
            clash = any(name in names for names in self.table.applier.conflicts.values())
            self.model.versions[key] = version if right and name not in refused and not clash else ""
        self.model.sent.clear()

    def compare(self) -> None:
        """What the worker holds is the model, whatever happened on the way."""
        fresh = TableRun()
        fresh.apply(*(Change(url, name, value) for (url, name), value in self.model.held.items()))
        require(contents(self.table) == contents(fresh), f"{contents(self.table)}\nwanted {contents(fresh)}")
        applier = self.table.applier
        for (_, name), value in self.model.held.items():
            if name in applier.waiting:
                require(applier.waiting[name] == value, f"{name} waits in another version than the last good one")
            elif name in applier.store.routes:
                require(applier.store.routes[name].is_of(value), f"{name} is in another version than the last good one")


def contents(run: TableRun) -> dict[str, object]:
    """What a table holds, for comparison; routes by name."""
    store = run.applier.store
    table = run.applier.current.table
    return {
        "routes": {*store.routes} | {*run.applier.waiting},
        "gateways": dict(store.gateways),
        "binds": {key: message.SerializeToString(deterministic=True) for key, message in store.binds.items()},
        "listeners": {key: _without_admission(message) for key, message in store.listeners.items()},
        "backends": {key: record.message.SerializeToString() for key, record in store.backends.items()},
        "endpoints": {key: (record.backend, record.endpoint.label) for key, record in store.endpoints.items()},
        "conflicts": {key: set(names) for key, names in run.applier.conflicts.items() if names},
        "table": {key: (plan.port, plan.addresses) for key, plan in table.binds.items()},
        "plans": {
            key: sorted(endpoint.label for endpoint in plan.endpoints) for key, plan in dict(table.backends).items()
        },
    }


def _without_admission(message: listener_pb2.Listener) -> bytes:
    """One whose newest version cannot be read admits nothing, whatever its last good version did."""
    shown = listener_pb2.Listener()
    shown.CopyFrom(message)
    shown.ClearField("admits")
    return shown.SerializeToString(deterministic=True)


def mutated(dice: Dice) -> Change:
    """A good resource with some of its bytes changed."""
    change = dice.one_of(GOOD)
    value = bytearray(change.value or b"")
    for _ in range(1 + dice.below(3)):
        if value:
            value[dice.byte() % len(value)] = dice.byte()
    return Change(change.type_url, change.name, bytes(value))


def check(data: bytes) -> None:
    dice, run = Dice(data), Run()
    for _ in range(MOST_STEPS):
        if dice.empty:
            break
        match dice.below(11):
            case 0:
                run.add(dice.one_of(GOOD))
            case 1:
                run.add(dice.one_of(BAD))
            case 2:
                run.add(mutated(dice))
            case 3:
                run.remove(dice.one_of(NAMES))
            case 4:
                run.add(dice.one_of(GOOD), wrong=True)
            case 5:
                run.open()
            case 6:
                run.send("")
            case 7:
                run.send(f"s{dice.below(6)}")
            case 8:
                run.foreign(dice.rest())
            case 9:
                run.ask(dice.one_of(TYPE_URLS))
            case _:
                run.remove((dice.one_of(TYPE_URLS), LONG[: dice.byte() * 300]))
    run.send("last")
