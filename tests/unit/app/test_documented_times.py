"""Times and sizes that the pages promise are those of the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane import turns
from controlplane.snapshot import coalesce
from controlplane.sources import directory, watch
from controlplane.xds import permits
from controlplane.xds.protocol import delta

PAGES = Path(__file__).resolve().parents[3] / "docs"
CHANGE, OPERATIONS = "life-of-a-change.md", "operations.md"


@pytest.mark.parametrize(
    ("page", "sentence", "values", "promised"),
    [
        (
            CHANGE,
            "nothing has happened for half a millisecond and no file is open for writing, at the latest after 20 ms",
            (watch.QUIET, watch.LONGEST),
            (0.0005, 0.020),
        ),
        (CHANGE, "what is lost within 10 ms is lost as one", (directory.TOGETHER,), (0.010,)),
        (
            CHANGE,
            "for 50 ms before it counts; a file that is gone, for 5 ms in which nothing else happens in the folder",
            (directory.LOSS_DELAY, directory.GONE),
            (0.050, 0.005),
        ),
        (CHANGE, "at most some 0.2 s later", (directory.HOLD, directory.LOSS_DELAY), (pytest.approx(0.15), 0.05)),
        (CHANGE, "Every 10 s the whole folder is looked at", (directory.RESCAN,), (10.0,)),
        (CHANGE, "worked through in slices of a few milliseconds", (turns.SLICE,), (0.003,)),
        (
            CHANGE,
            "a quiet moment (10 ms) of this Gateway, otherwise together with what follows, at most 50 ms later",
            (coalesce.QUIET, coalesce.LONGEST),
            (0.010, 0.050),
        ),
        (CHANGE, "twice the time has passed that this took", (coalesce.ANSWERED,), (2,)),
        (CHANGE, "a route's backend is missing waits up to 50 ms", (coalesce.LONGEST,), (0.050,)),
        (CHANGE, "250 resources or 1 MiB", (delta.MOST_RECORDS, delta.MOST_BYTES), (250, 1 << 20)),
        (
            OPERATIONS,
            "at most 16 MiB of big messages under way to all proxies together",
            (permits.MOST_BYTES * 2,),
            (16 << 20,),
        ),
    ],
)
def test_what_a_page_promises(page: str, sentence: str, values: tuple[float, ...], promised: tuple[float, ...]) -> None:
    assert sentence in " ".join((PAGES / page).read_text().split())
    assert values == promised
