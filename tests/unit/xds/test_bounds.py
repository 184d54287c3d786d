"""However much a client says, what is kept of it is bounded."""

from __future__ import annotations

import json

import pytest

from controlplane.answers import nacks
from controlplane.snapshot import RESOURCE_TYPE, Difference, Record, Snapshot, Snapshots
from controlplane.xds.node import ProtocolError
from controlplane.xds.protocol import subscription
from controlplane.xds.protocol.delta import MOST_BYTES, Chunk, Part, cut, encode
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import discovery_pb2


def request(subscribe: list[str], unsubscribe: list[str] | None = None) -> discovery_pb2.DeltaDiscoveryRequest:
    return discovery_pb2.DeltaDiscoveryRequest(
        type_url=RESOURCE_TYPE, resource_names_subscribe=subscribe, resource_names_unsubscribe=unsubscribe or []
    )


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "MOST_TEXT", 100_000)


def test_names_without_end_are_refused() -> None:
    subscribed = Subscription(request(["*"]))
    with pytest.raises(ProtocolError, match="names of one subscription"):
        for number in range(1000):
            subscribed.update(request([f"{number}/{part}" for part in range(10)]))
    assert len(subscribed.names) < 1000


def test_names_that_are_given_up_without_end_are_refused() -> None:
    subscribed = Subscription(request(["*"]))
    with pytest.raises(ProtocolError):
        for number in range(1000):
            subscribed.update(request([], [f"{number}/{part}" for part in range(10)]))


def test_one_long_name_is_refused() -> None:
    with pytest.raises(ProtocolError):
        Subscription(request(["x" * 200_000]))


def test_the_same_names_again_are_no_more() -> None:
    subscribed = Subscription(request(["*"]))
    for _ in range(1000):
        subscribed.update(request([f"{part}" for part in range(100)]))
    assert len(subscribed.names) == 100


def test_refusals_of_many_nacks() -> None:
    known: dict[str, nacks.Refusal] = {}
    for start in range(0, 5000, 500):
        nacks.note(known, json.dumps([{"key": f"{start + n}", "error": "no"} for n in range(500)]))
    assert len(known) <= nacks.MOST_REFUSALS + 10  # and what counts the others


def test_the_size_of_a_chunk_is_about_what_it_takes_on_the_wire() -> None:
    names = tuple(f"route/default/ü{number}" for number in range(200))
    for removed in ((), names[:1], names):
        chunk = Chunk(removed=removed)
        data = encode(Part(RESOURCE_TYPE, "1.0.Resource", (chunk,)), 0, "").data
        bare = encode(Part(RESOURCE_TYPE, "1.0.Resource", (Chunk(),)), 0, "").data
        wire = len(data) - len(bare)
        assert wire <= chunk.size <= wire + 4 * len(removed)


def state(filler: int = 1) -> Snapshot:
    snapshots = Snapshots()
    snapshots.apply([("a/b", RESOURCE_TYPE, "big", b"x" * filler), ("a/b", RESOURCE_TYPE, "c", b"y" * 10)])
    return snapshots.newest("a/b")


def records(filler: int) -> tuple[Record, ...]:
    return tuple(state(filler).resources(RESOURCE_TYPE))


@pytest.mark.parametrize(("over", "chunks"), [(0, [2]), (1, [1, 1])])
def test_a_chunk_has_a_mebibyte_at_most(over: int, chunks: list[int]) -> None:
    filler = MOST_BYTES - 500
    filler += MOST_BYTES - sum(len(record.wire) for record in records(filler)) + over
    made = records(filler)
    assert sum(len(record.wire) for record in made) == MOST_BYTES + over
    assert [len(chunk.records) for chunk in cut(Difference(made, ()))] == chunks


@pytest.mark.parametrize(("count", "chunks"), [(1, [1]), (250, [250]), (251, [250, 1])])
def test_a_chunk_has_250_resources_at_most(count: int, chunks: list[int]) -> None:
    snapshots = Snapshots()
    snapshots.apply([("a/b", RESOURCE_TYPE, f"r{number}", b"") for number in range(count)])
    difference = Difference(tuple(snapshots.newest("a/b").resources(RESOURCE_TYPE)), ())
    assert [len(chunk.records) for chunk in cut(difference)] == chunks


def test_who_leaves_everything_is_sent_nothing_of_it_again() -> None:
    """A name that was given up while everything was wanted is answered, unless everything was given up as well."""
    subscribed = Subscription(request(["*", "kept"]))
    subscribed.update(request([], ["c"]))
    subscribed.update(request(["kept"], ["*"]))
    assert subscribed.difference(state().resources(RESOURCE_TYPE)) == Difference((), ("kept",))


def test_names_may_take_all_that_they_are_allowed_and_no_byte_more() -> None:
    """Each costs its length and about a hundred bytes."""
    Subscription(request(["x" * 99_900]))
    with pytest.raises(ProtocolError):
        Subscription(request(["x" * 99_901]))
