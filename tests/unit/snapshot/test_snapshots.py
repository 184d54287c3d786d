"""Snapshots: content-hash versions, sequences, sharing, and differences between any two states."""

from __future__ import annotations

import time
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Change, Snapshot, Snapshots, shown

WEB = "shop/web"
OTHER = "shop/other"


def put(name: str, content: bytes | None, gateway: str = WEB, type_url: str = RESOURCE_TYPE) -> Change:
    return (gateway, type_url, name, content)


def contents(snapshot: Snapshot, type_url: str = RESOURCE_TYPE) -> dict[str, bytes]:
    return {record.name: record.content().value for record in snapshot.resources(type_url)}


def test_unknown_gateway_is_empty() -> None:
    snapshot = Snapshots().newest("no/body")
    assert (snapshot.sequence, contents(snapshot)) == (0, {})
    assert snapshot.version == "0" * 32


def test_a_version_that_comes_back_is_the_last_to_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.snapshot.snapshots.KNOWN_VERSIONS", 3)
    snapshots = Snapshots()
    versions = [snapshots.apply([put("a", content)])[0].version for content in (b"1", b"2", b"3", b"1", b"4", b"5")]
    assert versions[0] == versions[3] and len(set(versions)) == 5
    known = [snapshots.sequence_of(WEB, version) for version in versions]
    assert known == [4, -1, -1, 4, 5, 6]


def test_each_gateway_has_its_own_states() -> None:
    snapshots = Snapshots()
    published = snapshots.apply([put("a", b"1"), put("a", b"2", OTHER), put("b", b"3")])
    assert [snapshot.gateway for snapshot in published] == [WEB, OTHER]
    assert contents(snapshots.newest(WEB)) == {"a": b"1", "b": b"3"}
    assert contents(snapshots.newest(OTHER)) == {"a": b"2"}
    snapshots.apply([put("c", b"4", OTHER)])
    assert (snapshots.newest(WEB).sequence, snapshots.newest(OTHER).sequence) == (1, 2)
    assert snapshots.gateways() == (OTHER, WEB)


def test_equal_bytes_are_no_change() -> None:
    snapshots = Snapshots()
    snapshots.apply([put("a", b"1")])
    before = snapshots.newest(WEB)
    assert snapshots.apply([put("a", b"1"), put("missing", None)]) == ()
    assert snapshots.newest(WEB) is before


def test_last_change_of_a_batch_counts() -> None:
    snapshots = Snapshots()
    snapshots.apply([put("a", b"1"), put("a", b"2"), put("b", b"1"), put("b", None)])
    assert contents(snapshots.newest(WEB)) == {"a": b"2"}
    assert snapshots.newest(WEB).sequence == 1


def test_type_is_part_of_a_name() -> None:
    snapshots = Snapshots()
    snapshots.apply([put("a", b"1"), put("a", b"2", type_url=ENDPOINT_TYPE)])
    assert contents(snapshots.newest(WEB)) == {"a": b"1"}
    assert contents(snapshots.newest(WEB), ENDPOINT_TYPE) == {"a": b"2"}


def test_published_snapshot_never_changes() -> None:
    snapshots = Snapshots()
    (first,) = snapshots.apply([put("a", b"1"), put("b", b"1")])
    snapshots.apply([put("a", b"2"), put("b", None), put("c", b"3")])
    assert contents(first) == {"a": b"1", "b": b"1"}
    assert len(first.resources(RESOURCE_TYPE)) == 2


def test_listener_hears_of_new_states_until_it_stops() -> None:
    snapshots = Snapshots()
    heard: list[tuple[str, int]] = []
    stop = snapshots.listen(lambda snapshot: heard.append((snapshot.gateway, snapshot.sequence)))
    snapshots.apply([put("a", b"1"), put("a", b"1", OTHER)])
    snapshots.apply([put("a", b"1")])
    stop()
    snapshots.apply([put("a", b"2")])
    assert heard == [(WEB, 1), (OTHER, 1)]


def test_published_time_is_that_of_the_content() -> None:
    now = [10.0]
    snapshots = Snapshots(clock=lambda: now[0])
    snapshots.apply([put("a", b"1"), put("b", b"1")])
    now[0] = 20.0
    snapshots.apply([put("a", b"2"), put("b", b"1")])
    times = {record.name: record.published for record in snapshots.newest(WEB).resources(RESOURCE_TYPE)}
    assert times == {"a": 20.0, "b": 10.0}


def test_what_is_shown_of_a_version_does_not_depend_on_secrets() -> None:
    snapshots, bare = Snapshots(), Snapshots()
    bare.apply([put("route/httproute/a/b/0", b"1")])
    versions = []
    for secret in (b"weak", b"weaker", b"weak"):
        snapshots.apply([put("route/httproute/a/b/0", b"1"), put("secret/a/b", secret)])
        versions.append(snapshots.newest(WEB).version)
    assert versions[0] == versions[2] != versions[1]
    assert {shown(version) for version in versions} == {bare.newest(WEB).version}
    snapshots.apply([put("secret/a/b", None)])
    assert snapshots.newest(WEB).version == bare.newest(WEB).version


NAMES = st.sampled_from([f"{kind}/shop/{letter}/0" for kind in ("route", "secret") for letter in "abcd"])
BATCHES = st.lists(st.lists(st.tuples(NAMES, st.none() | st.sampled_from([b"1", b"2", b"3"])), max_size=6), max_size=8)


@given(BATCHES)
def test_version_depends_on_content_alone(batches: list[list[tuple[str, bytes | None]]]) -> None:
    """However a replica came to its content, equal content has equal versions, and other content another one."""
    snapshots = Snapshots()
    wanted: dict[str, bytes] = {}
    seen: dict[str, dict[str, bytes]] = {snapshots.newest(WEB).version: {}}
    for batch in batches:
        snapshots.apply([put(name, content) for name, content in batch])
        for name, content in batch:
            wanted.pop(name, None)
            if content is not None:
                wanted[name] = content
        newest = snapshots.newest(WEB)
        assert contents(newest) == wanted
        assert len(newest.resources(RESOURCE_TYPE)) == len(wanted)
        assert seen.setdefault(newest.version, dict(wanted)) == wanted
    replica = Snapshots()
    replica.apply([put(name, content) for name, content in sorted(wanted.items(), reverse=True)])
    assert replica.newest(WEB).version == snapshots.newest(WEB).version


@given(BATCHES)
def test_difference_leads_from_any_state_to_any_other(batches: list[list[tuple[str, bytes | None]]]) -> None:
    snapshots = Snapshots()
    states = [snapshots.newest(WEB)]
    for batch in batches:
        states += snapshots.apply([put(name, content) for name, content in batch])
    for older in states:
        for newer in states:
            difference = newer.resources(RESOURCE_TYPE).since(older.resources(RESOURCE_TYPE))
            held = contents(older)
            assert all(held[name] for name in difference.removed)
            assert all(held.get(record.name) != record.content().value for record in difference.changed)
            held.update((record.name, record.content().value) for record in difference.changed)
            assert {name: held[name] for name in held if name not in difference.removed} == contents(newer)


@pytest.mark.slow
def test_one_edit_among_many_is_cheap() -> None:
    """One edit and its difference among 100,000 resources cost what they cost among a hundred."""
    assert edit_cost(100_000) < 10 * edit_cost(100)


def edit_cost(count: int) -> float:
    """CPU seconds of the thread; the least of twenty."""
    snapshots = Snapshots()
    snapshots.apply([put(f"route/httproute/shop/r{number}/0", b"1") for number in range(count)])
    costs = []
    for attempt in range(20):
        before = snapshots.newest(WEB).resources(RESOURCE_TYPE)
        started = time.thread_time()
        (after,) = snapshots.apply([put("route/httproute/shop/r7/0", f"edit {attempt}".encode())])
        difference = after.resources(RESOURCE_TYPE).since(before)
        costs.append(time.thread_time() - started)
        assert [record.name for record in difference.changed] == ["route/httproute/shop/r7/0"]
    return min(costs)


def test_a_version_is_the_same_in_every_release() -> None:
    """A sum over the resources. Controllers of two releases agree while one follows the other: a proxy that comes to
    the other one has nothing to fetch."""
    snapshots = Snapshots()
    snapshots.apply([put("gone", b"0"), put("a", b"1"), put("secret/x", b"2"), put("a", b"3", type_url=ENDPOINT_TYPE)])
    snapshots.apply([put("gone", None), put("a", b"4")])
    newest = snapshots.newest(WEB)
    sums = {"": 0, "secret/": 0}
    for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
        for record in newest.resources(type_url):
            text = f"{type_url}\0{record.name}\0{record.version}".encode()
            kind = "secret/" if record.name.startswith("secret/") else ""
            sums[kind] += int.from_bytes(blake2b(text, digest_size=16).digest(), "big")
    assert newest.version == "".join(f"{each % 2**128:032x}" for each in sums.values())
