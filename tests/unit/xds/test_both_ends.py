"""The server's stream and the proxy's, joined in memory: what a proxy applies is what the control plane published."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.answers.nacks import Refusal, Refusals
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshot, Snapshots
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Acknowledged, Outcome, Refused, Stream
from dataplane.agent.xds_stream import STATE_KEY, Request, State, XdsStream
from gatewright.wire.external import discovery_pb2

GATEWAY = "shop/web"
TYPES = (RESOURCE_TYPE, ENDPOINT_TYPE)
BAD = b"bad"

Held = dict[tuple[str, str], bytes]


class Link:
    """A proxy that refuses the content "bad" and keeps its last good version of it, and the server's stream."""

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self.library = Library()
        self.proxy = XdsStream(GATEWAY, "one", "0")
        self.held: Held = {}
        self.refused: dict[str, str] = {}
        self.versions: list[str] = []
        self.sent = 0
        self.received = 0
        self.asked = 0
        self.knows_claims = True
        self.connect()

    @property
    def exchanged(self) -> int:
        """Bytes of all messages in both directions."""
        return self.sent + self.received

    def connect(self) -> None:
        self.stream = Stream(self.library, lambda: 0.0)
        for request in self.proxy.open():
            self._receive(request)

    def restart(self) -> None:
        """Another server with the same content, but nothing else in common."""
        changes = [(GATEWAY, *key, content) for key, content in self.wanted().items()]
        self.snapshots, self.library = Snapshots(), Library()
        self.snapshots.apply(reversed(changes))
        self.connect()

    def forget_claims(self) -> None:
        """Replaced by a server that does not know of claims."""
        self.knows_claims = False
        self.restart()

    def _receive(self, request: Request) -> None:
        data = request.SerializeToString()
        self.received += len(data)
        received = Request.FromString(data)
        if not self.knows_claims and received.HasField("node"):
            received.node.metadata.fields.pop(STATE_KEY, None)
        self.stream.receive(received)

    def publish(self, name: str, content: bytes | None) -> None:
        type_url = ENDPOINT_TYPE if name.startswith("endpoint") else RESOURCE_TYPE
        self.snapshots.apply([(GATEWAY, type_url, name, content)])

    @property
    def newest(self) -> Snapshot:
        return self.snapshots.newest(GATEWAY)

    def step(self) -> bool:
        """Carry one response over. False: there is none."""
        data = self.stream.next_response(self.newest)
        if data is None:
            return False
        self.sent += len(data)
        found = self.proxy.receive(discovery_pb2.DeltaDiscoveryResponse.FromString(data))
        if isinstance(found, State):
            self._apply(found)
            for answer in self.proxy.answer(self.refused):
                self._receive(answer)
        elif found is not None:
            self.asked += 1
            self._receive(found)
        return True

    def _apply(self, state: State) -> None:
        self.versions.append(state.version)
        for record in state.records:
            self.refused.pop(record.name, None)
            if record.value == BAD:
                self.refused[record.name] = "bad content"
            elif record.value is None:
                self.held.pop((record.type_url, record.name), None)
            else:
                self.held[record.type_url, record.name] = record.value

    def settle(self) -> tuple[Outcome, ...]:
        while self.step():
            pass
        return self.stream.take_outcomes()

    def wanted(self) -> Held:
        return {
            (type_url, record.name): record.content().value
            for type_url in TYPES
            for record in self.newest.resources(type_url)
        }


NAMES = ("a", "b", "endpoint/a", "endpoint/b")

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("publish"),
            st.sampled_from(NAMES),
            st.sampled_from([None, b"1", b"2", BAD]),
        ),
        st.tuples(st.just("step")),
        st.tuples(st.just("settle")),
        st.tuples(st.sampled_from(["connect", "restart", "forget_claims"])),
    ),
    max_size=30,
)


def good(contents: Mapping[tuple[str, str], bytes]) -> Held:
    return {key: content for key, content in contents.items() if content != BAD}


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_proxy_holds_what_was_published_and_refuses_what_is_bad(steps: list[tuple[str, ...]]) -> None:
    link = Link()
    for step, *values in steps:
        getattr(link, step)(*values)
    link.settle()
    wanted = link.wanted()
    bad = {name for (_, name), content in wanted.items() if content == BAD}
    assert {key: content for key, content in link.held.items() if key in good(wanted)} == good(wanted)
    assert all(wanted.get(key) == BAD for key in link.held if key not in good(wanted))
    assert set(link.stream.refusals) == bad == set(link.refused)
    assert link.versions[-1] == link.newest.version


def test_answers_reach_the_server_as_outcomes() -> None:
    link = Link()
    link.publish("a", b"1")
    assert link.settle() == (Acknowledged(1, link.newest.version),)
    link.publish("b", BAD)
    assert link.settle() == (Refused(2, link.newest.version, Refusals((Refusal("b", "bad content"),)), complete=True),)
    link.publish("a", b"2")
    assert link.settle() == (Refused(3, link.newest.version, Refusals((Refusal("b", "bad content"),)), complete=True),)
    link.publish("b", b"1")
    assert link.settle() == (Acknowledged(4, link.newest.version),)


def big() -> Link:
    """10,000 resources, settled."""
    link = Link()
    contents = [(RESOURCE_TYPE, f"route/httproute/shop/r{number}/0", b"x" * 500) for number in range(8000)]
    contents += [(ENDPOINT_TYPE, f"shop/s{number}/80/10.0.0.1:80", b"x" * 50) for number in range(2000)]
    link.snapshots.apply((GATEWAY, *content) for content in contents)
    link.settle()
    return link


def test_return_to_a_restarted_server_costs_less_than_two_kilobytes_in_both_directions() -> None:
    link = big()
    for reconnect in (link.connect, link.restart, link.restart):
        before = link.exchanged
        reconnect()
        assert link.settle() == (Acknowledged(1, link.newest.version),)
        assert 0 < link.exchanged - before < 1000
    assert (link.asked, link.held, link.refused) == (0, link.wanted(), {})


def test_what_changed_meanwhile_is_asked_for_and_nothing_else_is_sent() -> None:
    link = big()
    link.publish("route/httproute/shop/r7/0", None)
    link.publish("route/httproute/shop/r8/0", b"new")
    link.publish("route/httproute/shop/r9999/0", b"added")
    before = link.sent
    link.restart()
    assert link.settle() == (Acknowledged(1, link.newest.version),)
    assert link.sent - before < 1000
    assert (link.asked, link.held) == (2, link.wanted())
    before = link.exchanged
    link.restart()
    link.settle()
    assert (link.asked, link.exchanged - before < 1000) == (2, True)


def test_a_server_that_went_back_takes_the_proxy_with_it() -> None:
    link = Link()
    link.publish("a", b"1")
    link.publish("b", b"1")
    link.settle()
    old = link.snapshots
    link.snapshots = Snapshots()
    for name, content in (("a", b"2"), ("b", b"1"), ("c", b"1"), ("endpoint/c", b"1")):
        link.publish(name, content)
    link.restart()
    link.settle()
    assert len(link.held) == 4
    link.snapshots = old
    link.restart()
    assert link.settle() == (Acknowledged(1, link.newest.version),)
    assert link.held == {(RESOURCE_TYPE, "a"): b"1", (RESOURCE_TYPE, "b"): b"1"}


def test_a_server_that_lost_everything_is_obeyed() -> None:
    link = Link()
    link.publish("a", b"1")
    link.settle()
    link.snapshots = Snapshots()
    link.restart()
    assert link.settle() == (Acknowledged(0, link.newest.version),)
    assert link.held == {}


def test_a_change_while_versions_are_asked_for_is_in_the_state_that_follows() -> None:
    link = Link()
    link.publish("a", b"1")
    link.settle()
    link.publish("a", b"2")
    link.restart()
    assert link.step()
    link.publish("b", b"1")
    link.settle()
    assert (link.asked, link.held) == (2, link.wanted())


def test_who_refuses_something_tells_its_versions_at_once_and_is_sent_it_again() -> None:
    link = Link()
    link.publish("a", b"1")
    link.publish("b", BAD)
    link.settle()
    states = len(link.versions)
    link.restart()
    assert link.settle() == (Refused(1, link.newest.version, Refusals((Refusal("b", "bad content"),)), complete=True),)
    assert (link.asked, len(link.versions)) == (0, states + 1)
    link.publish("b", None)
    link.restart()
    assert link.settle() == (Acknowledged(1, link.newest.version),)
    assert (link.asked, link.refused) == (0, {})


def test_a_server_that_does_not_know_of_claims_tells_everything_and_the_rest_goes() -> None:
    link = Link()
    for name in ("a", "b", "endpoint/a"):
        link.publish(name, b"1")
    link.settle()
    link.publish("b", None)
    link.publish("c", b"1")
    link.forget_claims()
    assert link.settle() == (Acknowledged(1, link.newest.version),)
    assert (link.asked, link.held) == (0, link.wanted())
    link.restart()  # nothing changed, everything comes all the same
    link.settle()
    assert link.held == link.wanted()


def test_a_half_state_does_not_change_what_is_claimed() -> None:
    link = Link()
    link.publish("a", b"1")
    link.settle()
    link.publish("b", b"1")
    link.publish("endpoint/b", b"1")
    assert link.step()  # the endpoint; the end of the state does not come
    link.restart()
    link.settle()
    assert (link.asked, link.held) == (2, link.wanted())


def test_refused_resource_that_went_during_an_outage_is_forgotten() -> None:
    link = Link()
    link.publish("a", BAD)
    link.publish("b", b"1")
    link.settle()
    link.publish("b", BAD)
    link.settle()
    assert set(link.refused) == {"a", "b"}
    link.publish("a", None)
    link.publish("b", b"1")  # back to what the proxy had accepted before
    link.connect()
    assert link.settle() == (Acknowledged(5, link.newest.version),)
    assert link.refused == {}
