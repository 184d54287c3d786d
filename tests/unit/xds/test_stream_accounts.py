"""What all streams together may make the server keep: who is refused, and that nothing is left of whoever is gone."""

from __future__ import annotations

import json

import pytest

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots
from controlplane.xds import accounts
from controlplane.xds.accounts import Accounts, Opening, host
from controlplane.xds.node import Exhausted, Peer
from controlplane.xds.protocol import stream, subscription
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.reports import KEY
from controlplane.xds.protocol.stream import Stream
from gatewright.wire.external import discovery_pb2, node_pb2

GATEWAY, OTHER = "shop/web", "shop/other"
Request = discovery_pb2.DeltaDiscoveryRequest


def test_a_gateway_has_so_many_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_STREAMS", 3)
    kept = Accounts()
    charges = [kept.open(GATEWAY) for _ in range(3)]
    with pytest.raises(Exhausted, match="shop/web has 3 streams already"):
        kept.open(GATEWAY)
    kept.open(OTHER)
    charges[0].end()
    charges[0].end()
    kept.open(GATEWAY)


def test_who_is_one_too_many_for_its_host_does_not_count_for_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_STREAMS", 1)
    kept = Accounts()
    kept.open("10.0.0.1")
    with pytest.raises(Exhausted, match=r"10\.0\.0\.1 has"):
        kept.open(GATEWAY, "10.0.0.1")
    kept.open(GATEWAY, "10.0.0.2")


def test_whoever_brings_an_account_over_its_bytes_is_ended_and_nobody_else() -> None:
    kept = Accounts()
    half = accounts.MOST_BYTES // 2
    first, second, other = kept.open(GATEWAY), kept.open(GATEWAY), kept.open(OTHER)
    first.weigh(half)
    with pytest.raises(Exhausted, match="the streams of shop/web make this control plane keep more than"):
        second.weigh(half + 1)
    other.weigh(half)
    second.end()
    first.weigh(half - 1)
    first.weigh(half)
    first.end()
    other.end()
    assert (kept.weight, repr(kept)) == (0, "<Accounts of 0, 0 bytes>")


def test_all_gateways_together_have_so_many_bytes() -> None:
    kept = Accounts()
    charges = [kept.open(f"shop/{number}") for number in range(accounts.MOST_OF_ALL // accounts.MOST_BYTES + 1)]
    for charge in charges[:-1]:
        charge.weigh(accounts.MOST_BYTES)
    with pytest.raises(Exhausted, match="all streams make"):
        charges[-1].weigh(1)


def test_a_host_opens_so_many_streams_and_makes_room_when_it_has_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_OPENING_OF_HOST", 3)
    monkeypatch.setattr(accounts, "MOST_OPENING", 4)
    opening, gone = Opening(), []
    calls = [lambda number=number: gone.append(number) for number in range(4)]
    for call in calls[:3]:
        opening.enter("greedy", call)
    with pytest.raises(Exhausted, match="greedy has 3 streams without a first request"):
        opening.enter("greedy", calls[3])
    for number in range(3):
        opening.enter(f"other {number}", lambda: gone.append(-1))
    assert gone == [0, 1]
    for call in calls:
        opening.leave("greedy", call)
        opening.leave("greedy", call)
    assert len(opening) == 3


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        (Peer("ipv4:10.0.0.1:5", False), "ipv4:10.0.0.1"),
        (Peer("ipv6:[::1]:5", False), "ipv6:[::1]"),
        (Peer("unix:", True), "unix:"),
    ],
)
def test_a_host_is_an_address_without_its_port(peer: Peer, name: str) -> None:
    assert host(peer) == name


# What a stream weighs.


def opened(**fields: object) -> Stream:
    made = Stream(Library(), lambda: 0.0)
    made.receive(Request(type_url=RESOURCE_TYPE, node=node_pb2.Node(id=f"{GATEWAY}/one"), **fields))  # type: ignore[arg-type]
    return made


def test_versions_weigh_until_the_first_state() -> None:
    bare = opened(resource_names_subscribe=["*"]).weight
    made = opened(resource_names_subscribe=["*"], initial_resource_versions={f"r{n}": "1" for n in range(1000)})
    assert made.weight > bare + 200_000
    made.admitted()
    made.receive(Request(type_url=ENDPOINT_TYPE))
    made.prepare(Snapshots().newest(GATEWAY))
    assert made.weight < bare + 1000


def test_reports_names_and_metadata_weigh() -> None:
    made = opened()
    before = made.weight
    node = node_pb2.Node()
    node.metadata[KEY] = "x" * 50_000
    made.receive(Request(type_url=RESOURCE_TYPE, node=node))
    made.receive(Request(type_url=RESOURCE_TYPE, resource_names_subscribe=["y" * 30_000]))
    assert 80_000 <= made.weight - before < 81_000


def test_refusals_weigh_for_one_of_those_who_say_the_same() -> None:
    snapshots = Snapshots()
    snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", b"x")])
    message = json.dumps([{"key": f"k{n}", "error": "no" * 100} for n in range(100)])
    streams = []
    for _ in range(3):
        made = opened()
        made.admitted()
        made.receive(Request(type_url=ENDPOINT_TYPE))
        made.prepare(snapshots.newest(GATEWAY))
        made.next_response(snapshots.newest(GATEWAY))
        before = made.weight
        answer = Request(type_url=RESOURCE_TYPE, response_nonce=next(iter(made._flight.nonces.values())))  # type: ignore[union-attr]
        answer.error_detail.message = message
        made.receive(answer)
        assert made.refusals
        streams.append((made, made.weight - before))
    assert [weight > 20_000 for _, weight in streams] == [True, False, False]


@pytest.mark.parametrize(
    "fields",
    [
        {"initial_resource_versions": {str(number): "" for number in range(100_000)}},
        {"resource_names_subscribe": [""] * 200_000},
        {"resource_names_unsubscribe": ["x"] * 200_000},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_small_on_the_wire_and_large_in_memory_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(Exhausted, match=f"more than {subscription.MOST_TEXT} bytes"):
        opened(**fields)


def test_many_types_weigh_together() -> None:
    made = opened()
    with pytest.raises(
        Exhausted, match=f"this stream makes the control plane keep more than {stream.MOST_WEIGHT} bytes"
    ):
        for number in range(3):
            versions = {f"{index}": "1" for index in range(60_000)}
            made.receive(Request(type_url=f"type {number}", initial_resource_versions=versions))


def test_a_large_node_is_refused_and_a_node_keeps_nothing_of_its_request() -> None:
    node = node_pb2.Node(id=f"{GATEWAY}/one", user_agent_name="x" * stream.MOST_NODE)
    with pytest.raises(Exhausted, match="the node has 262"):
        Stream(Library(), lambda: 0.0).receive(Request(type_url=RESOURCE_TYPE, node=node))
    with pytest.raises(Exhausted, match="the type_url has"):
        opened().receive(Request(type_url="x" * 2000))
