"""Delta ADS from the server's side: both ends of a stream joined in memory, no event loop."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from controlplane.answers.nacks import Refusal, Refusals
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots, history
from controlplane.xds.node import ProtocolError
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Acknowledged, Outcome, Refused, Stream
from gatewright.wire.external import discovery_pb2

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse

CLUSTER_TYPE = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
SECRET_TYPE = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
GATEWAY = "shop/web"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pair:
    """A stream, the snapshots that it serves, and what a client made of the responses."""

    def __init__(self, snapshots: Snapshots | None = None, library: Library | None = None) -> None:
        self.snapshots = snapshots or Snapshots()
        self.clock = Clock()
        self.stream = Stream(library or Library(), self.clock)
        self.named = False
        self.held: dict[str, dict[str, str]] = {}

    def publish(self, type_url: str = RESOURCE_TYPE, gateway: str = GATEWAY, **contents: str | None) -> None:
        """Publish by name; None removes."""
        self.snapshots.apply(
            (gateway, type_url, name, None if content is None else content.encode())
            for name, content in contents.items()
        )

    def send(self, type_url: str = RESOURCE_TYPE, **fields: object) -> None:
        request = Request(type_url=type_url, **fields)  # type: ignore[arg-type]
        if not self.named:
            request.node.id, self.named = "shop/web/one", True
        self.stream.receive(request)

    def subscribe(self, *names: str, type_url: str = RESOURCE_TYPE) -> None:
        self.send(type_url, resource_names_subscribe=names)

    def unsubscribe(self, *names: str, type_url: str = RESOURCE_TYPE) -> None:
        self.send(type_url, resource_names_unsubscribe=names)

    def open(self) -> None:
        """Subscribe to everything of our two types, in the order that is not the one of sending."""
        self.subscribe(type_url=RESOURCE_TYPE)
        self.subscribe(type_url=ENDPOINT_TYPE)

    def raw(self) -> bytes | None:
        return self.stream.next_response(self.snapshots.newest(GATEWAY))

    def read(self) -> list[Response]:
        """Every response that the server sends now, applied."""
        responses = []
        while (data := self.raw()) is not None:
            responses.append(Response.FromString(data))
            held = self.held.setdefault(responses[-1].type_url, {})
            held.update((resource.name, resource.version) for resource in responses[-1].resources)
            for name in responses[-1].removed_resources:
                held.pop(name, None)
        return responses

    def ack(self, response: Response) -> tuple[Outcome, ...]:
        self.send(response.type_url, response_nonce=response.nonce)
        return self.stream.take_outcomes()

    def nack(self, response: Response, message: str) -> tuple[Outcome, ...]:
        self.send(response.type_url, response_nonce=response.nonce, error_detail={"code": 3, "message": message})
        return self.stream.take_outcomes()

    def settle(self) -> None:
        """Let the time pass in which a second type could be subscribed to."""
        self.clock.now += 0.1

    def synced(self) -> list[Response]:
        """Read, and acknowledge the end of the state."""
        responses = self.read()
        assert responses, "nothing was sent"
        self.ack(responses[-1])
        return responses


def names(responses: Iterable[Response]) -> list[str]:
    return sorted(resource.name for response in responses for resource in response.resources)


def removed(responses: Iterable[Response]) -> list[str]:
    return sorted(name for response in responses for name in response.removed_resources)


@pytest.fixture
def pair() -> Pair:
    return Pair()


# A state and its end


def test_endpoints_travel_before_resources_and_the_last_response_ends_the_state(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.open()
    responses = pair.read()
    assert [response.type_url for response in responses] == [ENDPOINT_TYPE, RESOURCE_TYPE]
    assert [response.system_version_info for response in responses] == ["", pair.snapshots.newest(GATEWAY).version]
    assert len({response.nonce for response in responses}) == 2
    assert all(response.nonce for response in responses)


def test_resource_carries_name_version_and_its_bytes(pair: Pair) -> None:
    pair.publish(a="content")
    pair.open()
    (response,) = pair.read()
    (resource,) = response.resources
    assert (resource.name, resource.resource.type_url, resource.resource.value) == ("a", RESOURCE_TYPE, b"content")
    (record,) = pair.snapshots.newest(GATEWAY).resources(RESOURCE_TYPE)
    assert resource.version == record.version


def test_empty_state_is_one_empty_response(pair: Pair) -> None:
    pair.open()
    (response,) = pair.read()
    assert (names([response]), removed([response])) == ([], [])
    assert response.system_version_info == pair.snapshots.newest(GATEWAY).version


def test_first_state_waits_for_the_second_of_our_types(pair: Pair) -> None:
    """Its marker would tell the proxy that resources without endpoints are all there is."""
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.publish(a="1")
    pair.subscribe(type_url=ENDPOINT_TYPE)
    assert pair.read() == []
    assert pair.stream.wait() == pytest.approx(0.1)
    pair.subscribe(type_url=RESOURCE_TYPE)
    assert pair.stream.wait() is None
    assert [bool(response.system_version_info) for response in pair.read()] == [False, True]


def test_a_proxy_that_had_to_wait_for_its_admission_still_gets_time_for_its_second_type(pair: Pair) -> None:
    pair.publish(a="1")
    pair.subscribe(type_url=ENDPOINT_TYPE)
    pair.clock.now += 30.0
    pair.stream.admitted()
    assert pair.raw() is None
    pair.subscribe(type_url=RESOURCE_TYPE)
    assert [response.type_url for response in pair.read()] == [RESOURCE_TYPE]


def test_own_agent_gets_time_for_its_second_subscription(pair: Pair) -> None:
    node = {"id": "shop/web/one", "user_agent_name": "gatewright"}
    pair.stream.receive(Request(node=node, type_url=ENDPOINT_TYPE))  # type: ignore[arg-type]
    pair.clock.now += 4.9
    assert pair.read() == []
    pair.clock.now += 0.1
    assert len(pair.read()) == 1


@pytest.mark.parametrize("type_url", [ENDPOINT_TYPE, RESOURCE_TYPE])
def test_stream_of_one_type(pair: Pair, type_url: str) -> None:
    pair.publish(RESOURCE_TYPE, a="1")
    pair.publish(ENDPOINT_TYPE, a="1")
    pair.subscribe(type_url=type_url)
    pair.settle()
    (response,) = pair.synced()
    assert (response.type_url, bool(response.system_version_info)) == (type_url, True)
    pair.publish(type_url, b="1")
    (response,) = pair.synced()
    assert (names([response]), bool(response.system_version_info)) == (["b"], True)


def test_change_of_another_type_is_acknowledged_without_a_message(pair: Pair) -> None:
    pair.publish(a="1")
    pair.subscribe(type_url=RESOURCE_TYPE)
    pair.settle()
    pair.synced()
    pair.publish(ENDPOINT_TYPE, e="1")
    assert pair.read() == []
    assert pair.stream.take_outcomes() == (Acknowledged(2, pair.snapshots.newest(GATEWAY).version),)


def test_change_of_endpoints_alone_ends_its_state(pair: Pair) -> None:
    pair.open()
    pair.synced()
    pair.publish(ENDPOINT_TYPE, e="1")
    (response,) = pair.read()
    assert (response.type_url, bool(response.system_version_info)) == (ENDPOINT_TYPE, True)


def test_type_joining_later_gets_its_resources(pair: Pair) -> None:
    pair.publish(a="1")
    pair.publish(CLUSTER_TYPE, c="1")
    pair.open()
    pair.synced()
    pair.subscribe(type_url=CLUSTER_TYPE)
    (response,) = pair.synced()
    assert (response.type_url, names([response]), bool(response.system_version_info)) == (CLUSTER_TYPE, ["c"], True)


def test_foreign_types_without_resources_are_answered_each(pair: Pair) -> None:
    """An Envoy waits for an answer to each wildcard subscription before it starts to serve."""
    pair.subscribe(type_url=CLUSTER_TYPE)
    pair.subscribe(type_url=SECRET_TYPE)
    pair.settle()
    responses = pair.read()
    assert [(response.type_url, len(response.resources)) for response in responses] == [
        (CLUSTER_TYPE, 0),
        (SECRET_TYPE, 0),
    ]
    assert [bool(response.system_version_info) for response in responses] == [False, True]


def test_250_resources_or_a_mebibyte_a_response(pair: Pair) -> None:
    pair.publish(**{f"r{number}": "x" for number in range(600)})
    pair.open()
    assert [len(response.resources) for response in pair.synced()] == [250, 250, 100]
    pair.publish(**{f"big{number}": "x" * 400_000 for number in range(5)})
    assert [len(response.resources) for response in pair.synced()] == [2, 2, 1]
    pair.publish(huge="x" * 3_000_000, small="x")
    responses = pair.synced()
    assert [len(response.resources) for response in responses] == [1, 1]
    assert names(responses) == ["huge", "small"]


def test_many_removals_are_cut_too(pair: Pair) -> None:
    long_names = {f"route/shop/{'x' * 200}{number}/0": "x" for number in range(6000)}
    pair.publish(**long_names)
    pair.open()
    pair.synced()
    pair.publish(**dict.fromkeys(long_names))
    responses = pair.synced()
    assert len(removed(responses)) == 6000
    assert [response.ByteSize() < 1 << 20 for response in responses] == [True, True]
    assert [bool(response.system_version_info) for response in responses] == [False, True]
    assert pair.held[RESOURCE_TYPE] == {}


def test_change_and_removal_travel_in_one_response(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.open()
    pair.synced()
    pair.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"2"), (GATEWAY, RESOURCE_TYPE, "b", None)])
    (response,) = pair.synced()
    assert (names([response]), removed([response])) == (["a"], ["b"])


# A5 13: wildcard


def test_empty_first_subscription_is_wildcard(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.open()
    assert names(pair.synced()) == ["a", "b"]
    pair.publish(c="1")
    assert names(pair.synced()) == ["c"]


def test_star_is_wildcard_and_leaving_it_keeps_named_ones(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("*", "a")
    pair.settle()
    assert names(pair.synced()) == ["a", "b"]
    pair.unsubscribe("*")
    pair.publish(a="2", b="2")
    assert names(pair.synced()) == ["a"]
    pair.publish(a=None, b=None)
    assert removed(pair.synced()) == ["a"]


def test_returning_to_wildcard_sends_everything(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("*", "a", "b")
    pair.settle()
    pair.synced()
    pair.unsubscribe("*")
    pair.publish(b=None, c="1")
    pair.subscribe("*")
    responses = pair.synced()
    assert (names(responses), removed(responses)) == (["a", "c"], ["b"])


def test_empty_later_request_is_not_wildcard(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("a")
    pair.settle()
    pair.synced()
    pair.subscribe()
    pair.publish(b="2")
    assert pair.read() == []


def test_unsubscribing_a_name_within_wildcard_is_answered_with_it(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("*", "a")
    pair.settle()
    pair.synced()
    pair.unsubscribe("a", "ghost")
    responses = pair.synced()
    assert (names(responses), removed(responses)) == (["a"], ["ghost"])


# A5 14: unknown names


def test_unknown_name_is_reported_remembered_and_sent_when_it_appears(pair: Pair) -> None:
    pair.publish(a="1")
    pair.subscribe("ghost")
    pair.settle()
    responses = pair.synced()
    assert (names(responses), removed(responses)) == ([], ["ghost"])
    pair.publish(other="1")
    assert pair.read() == []
    pair.publish(ghost="1")
    assert names(pair.synced()) == ["ghost"]
    pair.publish(ghost=None)
    assert removed(pair.synced()) == ["ghost"]
    pair.publish(ghost="1")
    assert names(pair.synced()) == ["ghost"]


# A5 15: unsubscribe, subscribe again


def test_unsubscribed_name_is_silent_and_comes_again_unchanged(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("a", "b")
    pair.settle()
    pair.synced()
    pair.unsubscribe("a")
    pair.publish(a="2")
    assert pair.read() == []
    pair.publish(a="1")
    pair.subscribe("a")
    assert names(pair.synced()) == ["a"]


def test_subscribing_a_held_name_sends_it_again(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("a", "b")
    pair.settle()
    pair.synced()
    pair.subscribe("a")
    assert names(pair.synced()) == ["a"]
    assert pair.read() == []


# A5 16: reconnect


def reconnect(old: Pair) -> Pair:
    """The proxy of `old` on a new stream, with all that it holds."""
    new = Pair(old.snapshots)
    new.held = old.held
    for type_url in (ENDPOINT_TYPE, RESOURCE_TYPE):
        new.send(type_url, initial_resource_versions=old.held.get(type_url, {}))
    return new


def test_reconnect_without_change_is_one_empty_response(pair: Pair) -> None:
    pair.publish(**{f"r{number}": "x" for number in range(1000)})
    pair.open()
    pair.synced()
    again = reconnect(pair)
    (response,) = again.read()
    assert response.ByteSize() < 200
    assert again.ack(response) == (Acknowledged(1, pair.snapshots.newest(GATEWAY).version),)


def test_reconnect_sends_differences_and_removals(pair: Pair) -> None:
    pair.publish(a="1", b="1", c="1")
    pair.open()
    pair.synced()
    pair.publish(a="2", b=None, d="1")
    again = reconnect(pair)
    responses = again.synced()
    assert (names(responses), removed(responses)) == (["a", "d"], ["b"])
    again.publish(c="2")
    assert names(again.synced()) == ["c"]


def test_reconnect_to_another_replica_resends_nothing(pair: Pair) -> None:
    """Its sequences differ; versions are content hashes, so it knows that nothing changed."""
    pair.publish(a="1", b="1")
    pair.open()
    pair.synced()
    replica = Snapshots()
    for name in ("b", "x", "a"):
        replica.apply([(GATEWAY, RESOURCE_TYPE, name, b"1")])
    replica.apply([(GATEWAY, RESOURCE_TYPE, "x", None)])
    old_version = pair.snapshots.newest(GATEWAY).version
    pair.snapshots = replica
    (response,) = reconnect(pair).read()
    assert (names([response]), removed([response])) == ([], [])
    assert response.system_version_info == old_version


def test_reconnect_with_names(pair: Pair) -> None:
    pair.publish(a="1", b="2", c="1")
    held = {record.name: record.version for record in pair.snapshots.newest(GATEWAY).resources(RESOURCE_TYPE)}
    known = {"a": held["a"], "b": "old", "gone": "1", "unwanted": "1"}
    pair.send(resource_names_subscribe=["a", "b", "gone", "never"], initial_resource_versions=known)
    pair.settle()
    responses = pair.synced()
    assert (names(responses), removed(responses)) == (["b"], ["gone", "never"])


def test_initial_versions_count_in_the_first_request_only(pair: Pair) -> None:
    pair.publish(a="1")
    pair.open()
    pair.synced()
    pair.send(initial_resource_versions={"ghost": "1"})
    assert pair.read() == []


# A5 17: nonces


def test_stale_and_unknown_nonces_answer_nothing(pair: Pair) -> None:
    pair.publish(a="1")
    pair.open()
    (first,) = pair.synced()
    pair.publish(a="2")
    (second,) = pair.read()
    assert pair.ack(first) == ()
    assert pair.nack(first, "too late") == ()
    pair.send(response_nonce="made up")
    pair.publish(a="3")
    assert pair.read() == []
    assert pair.ack(second) == (Acknowledged(2, second.system_version_info),)
    assert names(pair.synced()) == ["a"]


def test_subscription_beside_a_stale_nonce_counts(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.subscribe("a")
    pair.settle()
    pair.synced()
    pair.send(resource_names_subscribe=["b"], response_nonce="made up")
    assert names(pair.synced()) == ["b"]


def test_unsolicited_and_doubled_acks_are_harmless(pair: Pair) -> None:
    pair.publish(a="1")
    pair.open()
    (response,) = pair.read()
    assert len(pair.ack(response)) == 1
    assert pair.ack(response) == ()
    pair.send()
    assert pair.read() == []


def test_nack_does_not_resend_until_something_changes(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.open()
    (response,) = pair.read()
    message = '[{"key": "a", "error": "no such filter"}]'
    version = response.system_version_info
    assert pair.nack(response, message) == (
        Refused(1, version, Refusals((Refusal("a", "no such filter"),)), complete=True),
    )
    assert pair.read() == []
    pair.publish(b="2")
    (response,) = pair.read()
    assert names([response]) == ["b"]
    assert pair.nack(response, message)[0].sequence == 2
    pair.publish(a="fixed")
    (response,) = pair.read()
    assert names([response]) == ["a"]
    assert pair.ack(response) == (Acknowledged(3, response.system_version_info),)


def test_refused_state_is_not_passed_over_silently(pair: Pair) -> None:
    """A change that the stream does not get leaves the refusal as it is."""
    pair.publish(a="1")
    pair.subscribe(type_url=RESOURCE_TYPE)
    pair.settle()
    pair.nack(pair.read()[-1], "no")
    pair.publish(ENDPOINT_TYPE, e="1")
    assert pair.read() == []
    assert pair.stream.take_outcomes() == ()


def test_client_that_answers_each_response(pair: Pair) -> None:
    """Envoy: an ACK per response; one NACK refuses the state, its reason is known before the state ends."""
    pair.publish(**{f"r{number}": "x" for number in range(600)})
    pair.open()
    first, second, third = pair.read()
    assert pair.ack(first) == ()
    version = third.system_version_info
    assert pair.nack(second, "bad") == (Refused(1, version, Refusals((Refusal("", "bad"),)), complete=False),)
    pair.publish(r0="y")
    assert pair.read() == []
    assert pair.ack(third) == (Refused(1, version, Refusals((Refusal("", "bad"),)), complete=True),)
    (response,) = pair.read()
    assert names([response]) == ["r0"]
    assert pair.ack(response) == (Acknowledged(2, response.system_version_info),)


def test_client_that_answers_the_end_of_a_state_only(pair: Pair) -> None:
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.publish(**{f"r{number}": "x" for number in range(300)})
    pair.open()
    responses = pair.read()
    assert len(responses) == 3
    assert pair.ack(responses[-1]) == (Acknowledged(2, responses[-1].system_version_info),)
    pair.publish(r0="y")
    assert names(pair.read()) == ["r0"]


def test_nack_of_an_earlier_response_counts_after_the_end_was_acknowledged(pair: Pair) -> None:
    """Answers of two types may overtake each other."""
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.publish(a="1")
    pair.open()
    endpoints, resources = pair.read()
    pair.ack(resources)
    (outcome,) = pair.nack(endpoints, "bad address")
    assert isinstance(outcome, Refused)
    assert (outcome.complete, outcome.refusals) == (True, Refusals([Refusal("", "bad address")]))


# A5 18, 19: one state in flight, then the newest


def test_updates_during_an_unanswered_state_become_one(pair: Pair) -> None:
    pair.publish(a="1", b="1")
    pair.open()
    (first,) = pair.read()
    for number in range(100):
        pair.publish(a=f"later {number}", c=str(number))
        assert pair.read() == []
    pair.publish(c=None)
    pair.ack(first)
    responses = pair.synced()
    assert (names(responses), removed(responses)) == (["a"], [])
    assert pair.read() == []


def test_change_and_back_while_unanswered_sends_nothing(pair: Pair) -> None:
    pair.publish(a="1")
    pair.open()
    (first,) = pair.read()
    pair.publish(a="2")
    pair.publish(a="1")
    pair.ack(first)
    assert pair.read() == []
    assert pair.stream.take_outcomes() == (Acknowledged(3, first.system_version_info),)


def test_state_being_sent_stays_the_same_state(pair: Pair) -> None:
    """A change between two responses of a state does not mix into it."""
    pair.publish(**{f"r{number}": "old" for number in range(500)})
    pair.open()
    first = pair.raw()
    assert first is not None
    old = pair.snapshots.newest(GATEWAY)
    pair.publish(**{f"r{number}": "new" for number in range(500)})
    (second,) = pair.read()
    assert {resource.resource.value for resource in second.resources} == {b"old"}
    assert second.system_version_info == old.version
    pair.ack(second)
    assert len(names(pair.synced())) == 500


def test_two_changes_in_one_batch_are_sent_once(pair: Pair) -> None:
    pair.open()
    pair.synced()
    pair.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"1"), (GATEWAY, RESOURCE_TYPE, "a", b"2")])
    (response,) = pair.synced()
    assert [resource.resource.value for resource in response.resources] == [b"2"]


def test_slow_reader_costs_no_memory(pair: Pair) -> None:
    """A stream that stopped in the middle of a state, and one that does not answer, while 40 MB of changes pass by."""
    waiting = Pair(pair.snapshots)
    for each in (pair, waiting):
        each.open()
        each.synced()
    pair.publish(**{f"r{number}": "x" * 2000 for number in range(600)})
    assert pair.raw() is not None  # one of three responses
    assert len(waiting.read()) == 3
    tracemalloc.start()
    try:
        for number in range(200):
            pair.publish(r0=f"{number}" + "y" * 100_000, r1=f"{number}" + "z" * 100_000)
            assert waiting.read() == []
        gc.collect()
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < history.MOST_BYTES + 1_000_000  # what is remembered for proxies that come back


# A5 20: node


def test_first_request_must_carry_a_node(pair: Pair) -> None:
    with pytest.raises(ProtocolError, match="must carry a node"):
        pair.stream.receive(Request(type_url=RESOURCE_TYPE))


def test_node_is_known_from_the_first_request(pair: Pair) -> None:
    pair.open()
    pair.stream.receive(Request(type_url=RESOURCE_TYPE, node={"id": "shop/web/one"}))  # type: ignore[arg-type]
    assert pair.stream.identity is not None
    assert (pair.stream.identity.gateway, pair.stream.identity.instance) == (GATEWAY, "one")
    with pytest.raises(ProtocolError, match="cannot change its node"):
        pair.stream.receive(Request(type_url=RESOURCE_TYPE, node={"id": "shop/other/one"}))  # type: ignore[arg-type]


def test_type_url_is_required(pair: Pair) -> None:
    with pytest.raises(ProtocolError, match="type_url"):
        pair.send("")


def test_types_of_a_stream_are_bounded(pair: Pair) -> None:
    with pytest.raises(ProtocolError, match="more than 32 types"):
        for number in range(40):
            pair.subscribe(type_url=f"type.googleapis.com/t{number}")


# A5 23: scoping


def test_proxy_sees_its_own_gateway_only(pair: Pair) -> None:
    for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE, CLUSTER_TYPE):
        pair.publish(type_url, mine="1")
        pair.publish(type_url, gateway="shop/other", theirs="1")
    pair.open()
    pair.subscribe("theirs", type_url=CLUSTER_TYPE)
    responses = pair.synced()
    assert set(names(responses)) == {"mine"}
    assert removed(responses) == ["theirs"]
    pair.publish(gateway="shop/other", theirs="2")
    assert pair.read() == []


def test_gateway_that_is_no_longer_ours_takes_everything_away(pair: Pair) -> None:
    pair.publish(a="1")
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.open()
    pair.synced()
    pair.publish(a=None)
    pair.publish(ENDPOINT_TYPE, e=None)
    assert removed(pair.synced()) == ["a", "e"]


# One byte string for many


def test_streams_that_make_the_same_step_share_the_bytes() -> None:
    snapshots, library = Snapshots(), Library()
    pairs = [Pair(snapshots, library) for _ in range(50)]
    pairs[0].publish(a="x" * 2000)
    for pair in pairs:
        pair.open()
    first = [pair.raw() for pair in pairs]
    assert all(response is first[0] for response in first)
    for pair, response in zip(pairs, first, strict=True):
        assert response is not None
        pair.ack(Response.FromString(response))
    pairs[0].publish(b="y" * 2000)
    second = [pair.raw() for pair in pairs]
    assert all(response is second[0] for response in second)
    assert library.size < 5000
    assert sys.getrefcount(second[0]) > 50


def test_who_wants_all_makes_the_steps_of_all_after_each_answer_too() -> None:
    asked: list[int] = []

    class Noted(Library):
        def steps(self, snapshot: Any, held: int, types: tuple[str, ...], entries: Any) -> Any:
            asked.append(snapshot.sequence)
            return super().steps(snapshot, held, types, entries)

    pair = Pair(library=Noted())
    pair.publish(a="1")
    pair.open()
    pair.synced()
    assert asked == [], "its first state is its own"
    for content in ("2", "3"):
        pair.publish(a=content)
        assert names(pair.synced()) == ["a"]
    newest = pair.snapshots.newest(GATEWAY).sequence
    assert asked == [newest - 1, newest]
    pair.subscribe("a")
    pair.unsubscribe("*")
    pair.publish(a="4", b="1")
    assert names(pair.synced()) == ["a"]
    assert len(asked) == 2, "who does not want all has steps of its own"


def test_library_forgets_the_oldest() -> None:
    snapshots, library = Snapshots(), Library(most_bytes=300_000)
    pair = Pair(snapshots, library)
    pair.open()
    pair.synced()
    for number in range(20):
        pair.publish(a=f"{number}" + "x" * 100_000)
        assert names(pair.synced()) == ["a"]
        assert library.size <= 300_000
