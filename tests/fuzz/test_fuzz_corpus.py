"""Every committed input of every target, in each run of the tests, also where there is no atheris."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import targets

INPUTS = [(name, path) for name in targets.PACKAGES for path in targets.corpus(name)]


@pytest.mark.parametrize(("name", "path"), INPUTS, ids=lambda value: getattr(value, "name", value))
def test_input_keeps_every_promise(name: str, path: Path) -> None:
    targets.load(name).check(path.read_bytes())


@pytest.mark.parametrize("name", targets.PACKAGES)
def test_seeds_keep_every_promise(name: str) -> None:
    target = targets.load(name)
    for data in target.SEEDS:
        assert len(data) <= target.LONGEST
        target.check(data)


def test_every_target_has_a_small_corpus() -> None:
    folders = {path.name for path in targets.CORPUS.iterdir() if path.is_dir()}
    assert folders == set(targets.PACKAGES)
    assert all(targets.corpus(name) for name in targets.PACKAGES)
    assert len(INPUTS) < 400
    assert sum(path.stat().st_size for _, path in INPUTS) < 500_000
