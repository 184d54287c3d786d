"""Which older states are remembered, and what that may cost."""

from __future__ import annotations

from controlplane.snapshot import RESOURCE_TYPE, Snapshot, Snapshots
from controlplane.snapshot.history import History

GATEWAY = "shop/web"


def published(snapshots: Snapshots, name: str, content: bytes | None) -> Snapshot:
    (snapshot,) = snapshots.apply([(GATEWAY, RESOURCE_TYPE, name, content)])
    return snapshot


def test_recent_states_are_found_by_version_and_the_newest_is_not_among_them() -> None:
    snapshots = Snapshots()
    first, second = published(snapshots, "a", b"1"), published(snapshots, "a", b"2")
    assert snapshots.recall(GATEWAY, first.version) is first
    assert snapshots.recall(GATEWAY, second.version) is None
    assert snapshots.recall("other/web", first.version) is None


def test_a_content_that_comes_back_is_one_state() -> None:
    history, snapshots = History(), Snapshots()
    for content in (b"1", b"2", b"1", b"2"):
        history.add(published(snapshots, "a", content), 10)
    assert ([state.sequence for state in history], history.size) == ([3, 4], 40)


def test_no_more_states_than_allowed() -> None:
    history, snapshots = History(most_states=3), Snapshots()
    for number in range(5):
        history.add(published(snapshots, "a", f"{number}".encode()), 1)
    assert ([state.sequence for state in history], history.size) == ([3, 4, 5], 3)


def test_no_more_bytes_than_allowed() -> None:
    history, snapshots = History(most_bytes=100), Snapshots()
    for number, replaced in enumerate((40, 40, 40, 0, 90)):
        history.add(published(snapshots, "a", f"{number}".encode()), replaced)
    assert ([state.sequence for state in history], history.size) == ([4, 5], 90)
    history.add(published(snapshots, "a", b"more"), 10)
    assert ([state.sequence for state in history], history.size) == ([4, 5, 6], 100)
    history.add(published(snapshots, "a", b"last"), 101)
    assert (len(history), history.size) == (0, 0)


def test_what_a_state_costs_is_what_its_successor_lacks() -> None:
    snapshots = Snapshots()
    first = published(snapshots, "big", b"x" * 5000)
    assert snapshots.remembered(GATEWAY) == 0
    big = first.resources(RESOURCE_TYPE).get("big")
    published(snapshots, "small", b"1")
    before = published(snapshots, "big", None)
    small = before.resources(RESOURCE_TYPE).get("small")
    published(snapshots, "small", b"2")
    assert small is not None and big is not None
    assert snapshots.remembered(GATEWAY) == len(big.wire) + len(small.wire)
