"""The server's stream and the proxy's, joined in memory: what a proxy applies is what the control plane published."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshot, Snapshots
from controlplane.xds.delta import Library
from controlplane.xds.nacks import Refusal
from controlplane.xds.stream import Acknowledged, Outcome, Refused, Stream
from dataplane.agent.xds_stream import Request, State, XdsStream
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
        self.connect()

    def connect(self) -> None:
        self.stream = Stream(self.library, lambda: 0.0)
        for request in self.proxy.open():
            self._receive(request)

    def _receive(self, request: Request) -> None:
        self.stream.receive(Request.FromString(request.SerializeToString()))

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
        st.tuples(st.just("connect")),
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
    assert link.settle() == (Refused(2, link.newest.version, (Refusal("b", "bad content"),), complete=True),)
    link.publish("a", b"2")
    assert link.settle() == (Refused(3, link.newest.version, (Refusal("b", "bad content"),), complete=True),)
    link.publish("b", b"1")
    assert link.settle() == (Acknowledged(4, link.newest.version),)


def test_reconnect_costs_less_than_two_kilobytes_and_removes_what_went() -> None:
    link = Link()
    for number in range(2000):
        link.publish(f"route/shop/r{number}/0", b"x" * 500)
    link.settle()
    before = link.sent
    link.connect()
    link.settle()
    assert link.sent - before < 200
    link.publish("route/shop/r7/0", None)
    link.connect()
    link.settle()
    assert (len(link.held), link.sent - before < 2000) == (1999, True)


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
