"""How a difference is cut into responses, and how many of them are kept for other streams."""

from __future__ import annotations

import pytest

from controlplane.snapshot import RESOURCE_TYPE, Difference, Record, Snapshots
from controlplane.xds.protocol import delta
from controlplane.xds.protocol.delta import MOST_BYTES, MOST_RECORDS, Chunk, Library, Part, cut, encode
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import discovery_pb2

GATEWAY = "shop/web"
NAME_OVERHEAD = 4


def records(*sizes: int) -> tuple[Record, ...]:
    snapshots = Snapshots()
    snapshots.apply((GATEWAY, RESOURCE_TYPE, f"r{n:04}", b"x" * size) for n, size in enumerate(sizes))
    return tuple(sorted(snapshots.newest(GATEWAY).resources(RESOURCE_TYPE), key=lambda record: record.name))


def shapes(changed: tuple[Record, ...], removed: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """Records and removed names of each chunk; together they are all, in their order."""
    chunks = cut(Difference(changed, removed))
    assert tuple(record for chunk in chunks for record in chunk.records) == changed
    assert tuple(name for chunk in chunks for name in chunk.removed) == removed
    return [(len(chunk.records), len(chunk.removed)) for chunk in chunks]


def test_at_most_so_many_resources_in_a_chunk() -> None:
    assert shapes(()) == []
    assert shapes(records(*[1] * MOST_RECORDS)) == [(MOST_RECORDS, 0)]
    assert shapes(records(*[1] * (MOST_RECORDS + 1))) == [(MOST_RECORDS, 0), (1, 0)]
    assert shapes(records(*[1] * (2 * MOST_RECORDS + 3))) == [(MOST_RECORDS, 0), (MOST_RECORDS, 0), (3, 0)]


def test_at_most_so_many_bytes_and_what_is_bigger_travels_alone() -> None:
    half = MOST_BYTES // 2
    assert shapes(records(half, half)) == [(1, 0), (1, 0)]
    assert shapes(records(half - 200, half - 200)) == [(2, 0)]
    assert shapes(records(MOST_BYTES, 1, 1)) == [(1, 0), (2, 0)]
    assert shapes(records(1, MOST_BYTES, 1)) == [(1, 0), (1, 0), (1, 0)]
    two = records(half - 1000, half - 1000)
    left = MOST_BYTES - sum(len(record.wire) for record in two)
    (probe,) = records(left - 100)
    fits = left - (len(probe.wire) - (left - 100))
    assert sum(len(record.wire) for record in records(half - 1000, half - 1000, fits)) == MOST_BYTES
    assert shapes(records(half - 1000, half - 1000, fits)) == [(3, 0)]
    assert shapes(records(half - 1000, half - 1000, fits + 1)) == [(2, 0), (1, 0)]
    assert shapes(records(MOST_BYTES, half - 1000, half - 1000, fits)) == [(1, 0), (3, 0)]


def test_removed_names_count_as_bytes() -> None:
    size = 1000
    most = MOST_BYTES // (size + NAME_OVERHEAD)
    names = tuple(f"{n:04}" + "n" * (size - 4) for n in range(most + 1))
    assert shapes((), names[:most]) == [(0, most)]
    assert shapes((), names) == [(0, most), (0, 1)]
    half = 2**19 - NAME_OVERHEAD
    assert shapes((), ("a" * half, "b" * half)) == [(0, 2)]
    assert shapes((), ("a" * half, "b" * half, "")) == [(0, 2), (0, 1)]
    assert shapes((), ("n" * MOST_BYTES, "a" * half, "b" * half)) == [(0, 1), (0, 2)]
    assert shapes((), ("a", "n" * MOST_BYTES, "b")) == [(0, 1), (0, 1), (0, 1)]
    assert shapes((), ("n" * MOST_BYTES, "b")) == [(0, 1), (0, 1)]
    assert shapes((), ("é" * (MOST_BYTES // 2 - 4), "b" * 4)) == [(0, 1), (0, 1)]


def test_a_small_change_is_one_message() -> None:
    assert shapes(records(1), ("a", "b")) == [(1, 2)]
    assert shapes(records(MOST_BYTES - 100), ("a" * 200,)) == [(1, 0), (0, 1)]
    left = MOST_BYTES - Chunk(records(MOST_BYTES - 500)).size - NAME_OVERHEAD
    assert shapes(records(MOST_BYTES - 500), ("a" * left,)) == [(1, 1)]
    assert shapes(records(MOST_BYTES - 500), ("a" * (left + 1),)) == [(1, 0), (0, 1)]
    assert shapes(records(*[1] * (MOST_RECORDS + 1)), ("a",)) == [(MOST_RECORDS, 0), (1, 0), (0, 1)]
    assert shapes(records(MOST_BYTES, 1)) == [(1, 0), (1, 0)]


def test_the_size_of_a_chunk_is_about_its_bytes() -> None:
    (record,) = records(100)
    assert Chunk((record,), ("é", "ab")).size == len(record.wire) + 2 + 2 * (2 + NAME_OVERHEAD) - 2


def part(name: str, size: int, *, shared: bool = True) -> Part:
    return Part(RESOURCE_TYPE, name, (Chunk(records(size)),), shared)


def test_responses_are_kept_up_to_so_many_bytes_the_oldest_go_first() -> None:
    parts = [part(name, 1000) for name in "abcd"]
    size = len(encode(parts[0], 0, "").data)
    library = Library(most_bytes=3 * size)
    first = [library.response(each, 0, "") for each in parts[:3]]
    assert library.size == 3 * size
    assert library.response(parts[0], 0, "") is first[0]  # used again: it is no longer the oldest
    library.response(parts[3], 0, "")
    assert library.size == 3 * size
    assert library.response(parts[0], 0, "") is first[0]
    assert library.response(parts[1], 0, "") is not first[1]
    small = Library(most_bytes=10)
    for each in parts[:2]:
        small.response(each, 0, "")
        assert small.size == size  # one is always kept
    own = part("own", 1000, shared=False)
    assert small.response(own, 0, "") is not small.response(own, 0, "")
    assert small.size == size


def test_a_response_says_what_it_is_and_its_plain_answer() -> None:
    made = encode(part("7.0.Resource", 5), 0, "v1")
    response = discovery_pb2.DeltaDiscoveryResponse.FromString(made.data)
    assert (response.type_url, response.nonce, response.system_version_info) == (RESOURCE_TYPE, "7.0.Resource.0", "v1")
    assert [resource.name for resource in response.resources] == ["r0000"]
    answer = discovery_pb2.DeltaDiscoveryRequest.FromString(made.ack)
    assert answer == discovery_pb2.DeltaDiscoveryRequest(type_url=RESOURCE_TYPE, response_nonce=made.nonce)


def test_steps_that_streams_share_are_cut_once_and_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "SHARED_PARTS", 2)
    snapshots, library = Snapshots(), Library()

    def steps() -> delta.Steps:
        entry = Subscription(discovery_pb2.DeltaDiscoveryRequest(type_url=RESOURCE_TYPE))
        return library.steps(snapshots.newest(GATEWAY), 0, (RESOURCE_TYPE,), {RESOURCE_TYPE: entry})

    for number in range(5):
        snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", str(number).encode())])
        assert steps() is steps()
        assert len(steps()) == 1
        assert len(library._steps) <= 2 and len(library._parts) <= 2


def test_what_streams_share_is_kept_for_those_that_come_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two: of parts those that were used last, of steps those that were cut last."""
    monkeypatch.setattr(delta, "SHARED_PARTS", 2)
    snapshots, library = Snapshots(), Library()
    states = []
    for number in range(3):
        snapshots.apply([(GATEWAY, RESOURCE_TYPE, "a", str(number).encode())])
        states.append(snapshots.newest(GATEWAY))
    entry = Subscription(discovery_pb2.DeltaDiscoveryRequest(type_url=RESOURCE_TYPE))
    parts = [library.step(state, entry, 0) for state in states[:2]]
    assert library.step(states[0], entry, 0) is parts[0]
    newest = library.step(states[2], entry, 0)
    assert library.step(states[0], entry, 0) is parts[0] and library.step(states[2], entry, 0) is newest
    assert library.step(states[1], entry, 0) is not parts[1]

    def steps(number: int) -> delta.Steps:
        return library.steps(states[number], 0, (RESOURCE_TYPE,), {RESOURCE_TYPE: entry})

    first, second = steps(0), steps(1)
    assert steps(0) is first
    third = steps(2)
    assert steps(1) is second and steps(2) is third
    assert steps(0) is not first
