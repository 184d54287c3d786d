"""The cycle collector while a controller runs, and as it was afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from controlplane import collector


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_full_collections_set_aside_what_they_leave_and_the_end_undoes_all() -> None:
    before = gc.get_threshold(), len(gc.callbacks)
    with pytest.raises(ZeroDivisionError), collector.paced():
        assert gc.get_threshold() == (*before[0][:2], 3)
        gc.unfreeze()
        gc.collect(1)
        assert gc.get_freeze_count() == 0, "not after a smaller collection"
        gc.collect()
        assert gc.get_freeze_count() > 1000
        raise ZeroDivisionError
    assert (gc.get_threshold(), len(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_slice_is_looked_at_unless_nobody_wants_collections(is_enabled: bool) -> None:
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    gc.callbacks.append(note)
    try:
        collector.after_slice()
    finally:
        gc.callbacks.remove(note)
        (gc.enable if was_enabled else gc.disable)()
    assert generations[-1:] == ([1] if is_enabled else [])
