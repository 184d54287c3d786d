"""The page about scale says what the committed results say, and shows every curve."""

from __future__ import annotations

import json

from benchmarks import scale


def test_the_tables_are_those_of_the_results() -> None:
    results = json.loads(scale.RESULTS.read_text())
    page = scale.PAGE.read_text()
    assert scale.with_tables(page, scale.tables(results)) == page, "run python -m benchmarks.scale"


def test_every_curve_is_drawn_and_shown() -> None:
    page = scale.PAGE.read_text()
    for curve in scale.CURVES:
        drawing = scale.DRAWINGS / f"{curve.name}.svg"
        assert f"({drawing.relative_to(scale.PAGE.parent)})" in page
        for line in curve.lines:
            assert f">{line.name}</text>" in drawing.read_text() or len(curve.lines) == 1
