"""Random conversations: whatever a client asks, answers and misses, in the end it holds what it subscribed to."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.snapshot import RESOURCE_TYPE, Snapshots
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Stream
from gatewright.wire.external import discovery_pb2

GATEWAY = "shop/web"
NAMES = ("a", "b", "c", "d")


class Client:
    """A client by the letter of the xDS specification."""

    def __init__(self, snapshots: Snapshots) -> None:
        self.snapshots = snapshots
        self.names: set[str] = set()
        self.held: dict[str, str] = {}
        self.unanswered: list[str] = []
        self.wildcard = True
        self.connect()

    def connect(self) -> None:
        self.stream = Stream(Library(most_bytes=10), lambda: 0.0)
        self.unanswered.clear()
        subscribed = sorted(self.names) + (["*"] if self.wildcard and self.names else [])
        if not self.wildcard and not self.names:
            self.wildcard = True  # a first request without names means everything
        self._send(subscribe=subscribed, node="shop/web/one", versions=self.held)
        self._send("type.googleapis.com/gatewright.wire.v1.Endpoint")

    def _send(
        self,
        type_url: str = RESOURCE_TYPE,
        *,
        subscribe: object = (),
        unsubscribe: object = (),
        node: str = "",
        nonce: str = "",
        error: bool = False,
        versions: object = None,
    ) -> None:
        request = discovery_pb2.DeltaDiscoveryRequest(
            type_url=type_url,
            resource_names_subscribe=subscribe,  # type: ignore[arg-type]
            resource_names_unsubscribe=unsubscribe,  # type: ignore[arg-type]
            initial_resource_versions=versions,  # type: ignore[arg-type]
            response_nonce=nonce,
        )
        if node:
            request.node.id = node
        if error:
            request.error_detail.message = "no"
        self.stream.receive(request)

    def read(self, most: int) -> None:
        for _ in range(most):
            data = self.stream.next_response(self.snapshots.newest(GATEWAY))
            if data is None:
                return
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            for resource in response.resources:
                if self.wildcard or resource.name in self.names:
                    self.held[resource.name] = resource.version
            for name in response.removed_resources:
                self.held.pop(name, None)
            self.unanswered.append(response.nonce)

    def answer(self, *, error: bool) -> None:
        for nonce in self.unanswered:
            self._send(nonce=nonce, error=error)
        self.unanswered.clear()

    def subscribe(self, name: str) -> None:
        if name == "*":
            self.wildcard = True
        else:
            self.names.add(name)
        self._send(subscribe=[name])

    def unsubscribe(self, name: str) -> None:
        if name == "*":
            self.wildcard = False
            self.held = {held: version for held, version in self.held.items() if held in self.names}
        else:
            self.names.discard(name)
            self.held.pop(name, None)  # the server must send it again if the wildcard still covers it
        self._send(unsubscribe=[name])

    def publish(self, name: str, content: bytes | None) -> None:
        self.snapshots.apply([(GATEWAY, RESOURCE_TYPE, name, content)])

    def wanted(self) -> dict[str, str]:
        target = self.snapshots.newest(GATEWAY).resources(RESOURCE_TYPE)
        return {record.name: record.version for record in target if self.wildcard or record.name in self.names}


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(NAMES), st.sampled_from([None, b"1", b"2"])),
    st.tuples(st.sampled_from(["subscribe", "unsubscribe"]), st.sampled_from((*NAMES, "*"))),
    st.tuples(st.just("read"), st.integers(1, 2)),
    st.tuples(st.just("ack")),
    st.tuples(st.just("nack")),
    st.tuples(st.just("connect")),
)


@example([("publish", "a", b"1"), ("read", 1), ("unsubscribe", "*"), ("subscribe", "*")])  # nothing was sent again
@example([("publish", "a", b"1"), ("read", 1), ("connect",), ("unsubscribe", "*"), ("subscribe", "*")])  # nor here
@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_client_ends_with_what_it_subscribed_to(steps: list[tuple[object, ...]]) -> None:
    client = Client(Snapshots())
    for step, *values in steps:
        if step in ("ack", "nack"):
            client.answer(error=step == "nack")
        else:
            getattr(client, str(step))(*values)
    for _ in range(4):  # what is in flight, then what was asked meanwhile
        client.read(100)
        client.answer(error=False)
    assert client.held == client.wanted()
    assert client.stream.next_response(client.snapshots.newest(GATEWAY)) is None
