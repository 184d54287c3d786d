"""Several reasons as one text."""

from __future__ import annotations

import pytest

from controlplane.facts import LONGEST_MESSAGE, MOST_REASONS, bounded


@pytest.mark.parametrize(("more", "end"), [(-1, ""), (0, ""), (1, "; and 1 more"), (5, "; and 5 more")])
def test_so_many_are_named_and_the_rest_counted(more: int, end: str) -> None:
    reasons = [f"reason {number}" for number in range(MOST_REASONS + more)]
    assert bounded(reasons) == "; ".join(reasons[:MOST_REASONS]) + end


@pytest.mark.parametrize(("length", "is_cut"), [(LONGEST_MESSAGE, False), (LONGEST_MESSAGE + 1, True)])
def test_a_text_is_cut_with_a_mark(length: int, is_cut: bool) -> None:
    text = bounded(["a" * length])
    assert (len(text), text.endswith("…")) == (LONGEST_MESSAGE, is_cut)
