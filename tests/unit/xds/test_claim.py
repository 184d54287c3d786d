"""A returning proxy's claim, from the server's side: believed, asked about, or of no account."""

from __future__ import annotations

import pytest
from google.protobuf.struct_pb2 import Struct

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots, history
from controlplane.xds.protocol.claim import OWN_AGENT, QUESTION, STATE_KEY, Claim, no_memory
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Acknowledged, Stream
from controlplane.xds.protocol.subscription import Subscription
from dataplane.agent import xds_stream
from gatewright.wire.external import discovery_pb2, node_pb2

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse

GATEWAY = "shop/web"


class Server:
    """A stream over a few published resources, and what it says."""

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        for name in ("a", "b"):
            self.snapshots.apply([(GATEWAY, RESOURCE_TYPE, name, b"1"), (GATEWAY, ENDPOINT_TYPE, name, b"1")])
        self.now = 0.0
        self.stream = Stream(Library(), lambda: self.now)

    @property
    def version(self) -> str:
        return self.snapshots.newest(GATEWAY).version

    def known(self, type_url: str) -> dict[str, str]:
        return {record.name: record.version for record in self.snapshots.newest(GATEWAY).resources(type_url)}

    def open(
        self, claim: object, *, agent: str = OWN_AGENT, types: tuple[str, ...] = (ENDPOINT_TYPE, RESOURCE_TYPE)
    ) -> None:
        node = node_pb2.Node(id="shop/web/one", user_agent_name=agent)
        node.metadata[STATE_KEY] = claim  # type: ignore[assignment]  # any kind of value, on purpose
        for type_url in types:
            self.stream.receive(Request(type_url=type_url, resource_names_subscribe=["*"], node=node))
            node = node_pb2.Node()

    def tell(self, type_url: str, versions: dict[str, str] | None = None) -> None:
        self.stream.receive(Request(type_url=type_url, response_nonce=QUESTION, initial_resource_versions=versions))

    def read(self) -> list[Response]:
        responses = []
        while (data := self.stream.next_response(self.snapshots.newest(GATEWAY))) is not None:
            responses.append(Response.FromString(data))
        return responses


@pytest.fixture
def server() -> Server:
    return Server()


def is_question(response: Response) -> bool:
    return response == Response(type_url=response.type_url, nonce=QUESTION)


def names(responses: list[Response]) -> list[str]:
    return sorted(resource.name for response in responses for resource in response.resources)


def test_both_planes_use_the_same_words() -> None:
    assert (OWN_AGENT, STATE_KEY, QUESTION) == (xds_stream.USER_AGENT, xds_stream.STATE_KEY, xds_stream.QUESTION)


def test_claim_of_the_newest_state_is_answered_by_an_empty_one(server: Server) -> None:
    server.open(server.version)
    (response,) = server.read()
    assert (names([response]), list(response.removed_resources)) == ([], [])
    assert response.system_version_info == server.version
    server.stream.receive(Request(type_url=response.type_url, response_nonce=response.nonce))
    assert server.stream.take_outcomes() == (Acknowledged(2, server.version),)
    server.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", None)])
    (response,) = server.read()
    assert (names([response]), list(response.removed_resources)) == ([], ["a"])


def test_what_a_question_costs() -> None:
    """The first one pays for the answers to both: what names and versions of all resources may take."""
    snapshots = Snapshots()
    snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"1"), (GATEWAY, ENDPOINT_TYPE, "b", b"1")])
    snapshots.apply([(GATEWAY, RESOURCE_TYPE, "c", b"1")])
    newest = snapshots.newest(GATEWAY)
    wholes = {kind: Subscription(Request(type_url=kind)) for kind in (ENDPOINT_TYPE, RESOURCE_TYPE)}
    node = node_pb2.Node(user_agent_name=OWN_AGENT)
    node.metadata[STATE_KEY] = "0" * 32
    claim = Claim(node)
    assert claim.compare(wholes, newest, no_memory) is newest
    costs = []
    while claim.next_question() is not None:
        costs.append(claim.cost(newest))
    assert (costs, claim.is_asked) == ([0, None], True)
    claim = Claim(node)
    claim.compare(wholes, newest, no_memory)
    assert claim.cost(newest) == 3 * 300
    nobody = Claim()
    assert nobody.compare(wholes, newest, no_memory) is newest
    assert (nobody.cost(newest), nobody.is_asked) == (None, False)


def test_claim_of_another_state_is_asked_about_for_each_type_once(server: Server) -> None:
    server.open("0" * 32)
    questions = server.read()
    assert [question.type_url for question in questions] == [ENDPOINT_TYPE, RESOURCE_TYPE]
    assert all(map(is_question, questions))
    server.tell(RESOURCE_TYPE, {**server.known(RESOURCE_TYPE), "b": "older", "gone": "1"})
    assert server.read() == []
    server.tell(ENDPOINT_TYPE, server.known(ENDPOINT_TYPE))
    (response,) = server.read()
    assert (names([response]), list(response.removed_resources)) == (["b"], ["gone"])
    assert response.system_version_info == server.version


def test_state_waits_for_both_types_however_long_it_takes(server: Server) -> None:
    """Its proxy would take the half for the whole."""
    server.open(server.version, types=(RESOURCE_TYPE,))
    server.now += 3600
    assert (server.read(), server.stream.wait()) == ([], None)
    server.stream.receive(Request(type_url=ENDPOINT_TYPE))
    assert [response.system_version_info for response in server.read()] == [server.version]


@pytest.mark.parametrize("agent", ["", "envoy", "Gatewright"])
def test_nobody_else_is_believed_or_asked(server: Server, agent: str) -> None:
    for claim in (server.version, "0" * 32):
        server.stream = Stream(Library(), lambda: 0.0)
        server.open(claim, agent=agent)
        assert names(server.read()) == ["a", "a", "b", "b"]


def test_versions_that_are_told_unasked_count_instead_of_the_claim(server: Server) -> None:
    node = node_pb2.Node(id="shop/web/one", user_agent_name=OWN_AGENT)
    node.metadata[STATE_KEY] = server.version
    versions = {"a": server.known(RESOURCE_TYPE)["a"]}
    server.stream.receive(Request(type_url=RESOURCE_TYPE, node=node, initial_resource_versions=versions))
    server.stream.receive(Request(type_url=ENDPOINT_TYPE))
    responses = server.read()
    assert [names([response]) for response in responses] == [["a", "b"], ["b"]]


def test_who_wants_a_selection_is_served_as_the_standard_says(server: Server) -> None:
    node = node_pb2.Node(id="shop/web/one", user_agent_name=OWN_AGENT)
    node.metadata[STATE_KEY] = server.version
    server.stream.receive(Request(type_url=RESOURCE_TYPE, node=node, resource_names_subscribe=["b"]))
    server.stream.receive(Request(type_url=ENDPOINT_TYPE, resource_names_subscribe=["a"]))
    assert names(server.read()) == ["a", "b"]


def struct(depth: int) -> Struct:
    made = Struct()
    made["claim"] = "x" if depth == 0 else struct(depth - 1)
    return made


@pytest.mark.parametrize("claim", [None, True, 7.0, float("nan"), "", ["x"], struct(0), struct(20)], ids=repr)
def test_claim_that_is_no_text_is_none(server: Server, claim: object) -> None:
    server.open(claim)
    assert names(server.read()) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("claim", ["x" * 200_000, "\0", "*", "../..", "%s%n", "\u2028\U0001f600"], ids=lambda c: c[:4])
def test_claim_of_nonsense_is_asked_about_and_repeated_nowhere(server: Server, claim: str) -> None:
    server.open(claim)
    questions = server.read()
    assert len(questions) == 2
    assert all(map(is_question, questions))
    assert len(repr(server.stream)) < 500


def test_who_does_not_answer_gets_nothing_and_costs_nothing(server: Server) -> None:
    server.open("other")
    assert len(server.read()) == 2
    for number in range(100):
        server.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", str(number).encode())])
        for type_url in (ENDPOINT_TYPE, RESOURCE_TYPE):
            server.stream.receive(Request(type_url=type_url, response_nonce="1.0.Resource.0"))
        assert server.read() == []
    assert server.stream.take_outcomes() == ()
    server.tell(ENDPOINT_TYPE)
    server.tell(RESOURCE_TYPE)
    assert names(server.read()) == ["a", "a", "b", "b"]


def test_answers_that_nobody_asked_for_change_nothing(server: Server) -> None:
    server.open(server.version)
    server.tell(RESOURCE_TYPE, {"gone": "1"})
    assert [list(response.removed_resources) for response in server.read()] == [[]]
    server.stream = Stream(Library(), lambda: 0.0)
    server.open("other")
    server.read()
    server.tell(RESOURCE_TYPE, server.known(RESOURCE_TYPE))
    server.tell(RESOURCE_TYPE, {"gone": "1"})  # the second answer to one question
    server.tell(ENDPOINT_TYPE, server.known(ENDPOINT_TYPE))
    (response,) = server.read()
    assert (names([response]), list(response.removed_resources)) == ([], [])


def test_versions_of_nonsense_harm_only_who_tells_them(server: Server) -> None:
    server.open("other")
    server.read()
    server.tell(RESOURCE_TYPE, {"": "", "x" * 10_000: "y" * 10_000, "a": "\0"})
    server.tell(ENDPOINT_TYPE, {name: version * 2 for name, version in server.known(ENDPOINT_TYPE).items()})
    responses = server.read()
    assert names(responses) == ["a", "a", "b", "b"]
    assert sorted(name for response in responses for name in response.removed_resources) == ["", "x" * 10_000]
    other = Stream(Library(), lambda: 0.0)
    server.stream = other
    server.open("")
    assert names(server.read()) == ["a", "a", "b", "b"]


def test_claim_of_a_recent_state_gets_that_state_and_then_what_is_new_since(server: Server) -> None:
    server.stream = Stream(Library(), lambda: server.now, server.snapshots.recall)
    claimed = server.snapshots.newest(GATEWAY)
    server.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", None), (GATEWAY, RESOURCE_TYPE, "c", b"1")])
    server.open(claimed.version)
    (first,) = server.read()
    assert (first.system_version_info, names([first]), list(first.removed_resources)) == (claimed.version, [], [])
    server.stream.receive(Request(type_url=first.type_url, response_nonce=first.nonce))
    assert server.stream.take_outcomes() == (Acknowledged(claimed.sequence, claimed.version),)
    (second,) = server.read()
    assert (second.system_version_info, names([second]), list(second.removed_resources)) == (
        server.version,
        ["c"],
        ["a"],
    )


def test_claim_of_a_forgotten_state_is_asked_about(server: Server) -> None:
    server.stream = Stream(Library(), lambda: server.now, server.snapshots.recall)
    claimed = server.version
    for number in range(history.MOST_STATES + 1):
        server.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", f"{number}".encode() * 2)])
    server.open(claimed)
    assert all(map(is_question, server.read()))
