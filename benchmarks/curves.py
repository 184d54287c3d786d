"""Curves of `docs/scale.md`, drawn from the rows that the benchmarks wrote. Draws only: it measures nothing.

The same rows give the same bytes, so that a drawing that is out of date shows in a diff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Row = Mapping[str, float]
_WIDTH, _HEIGHT = 6.4, 3.2


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a figure: a column of the rows under the name that the reader sees."""

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure. `x` is the column of the rows that the others grow with."""

    name: str
    """File name without suffix."""
    title: str
    x: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    logarithmic: bool = True
    """Both axes; where the x values are far apart and growth with a power is the question."""


def draw(curve: Curve, rows: Sequence[Row], folder: Path) -> Path:
    """Write `<name>.svg`. Rows without a line's column (not measured at that size) are left out of that line."""
    import matplotlib as mpl  # a second of imports, for who draws
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "gatewright", "svg.fonttype": "none", "font.size": 9.0}):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        for line in curve.lines:
            points = [(row[curve.x], row[line.column]) for row in rows if line.column in row]
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=line.name)
        if curve.logarithmic:
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set(title=curve.title, xlabel=curve.x_title, ylabel=curve.y_title)
        axes.grid(visible=True, which="major", linewidth=0.4)
        if len(curve.lines) > 1:
            axes.legend(frameon=False)
        path = folder / f"{curve.name}.svg"
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    return path


def table(columns: Mapping[str, str], rows: Sequence[Row]) -> str:
    """The same rows as Markdown: column -> title as the reader sees it."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(_figure(row.get(column)) for column in columns) + " |")
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
