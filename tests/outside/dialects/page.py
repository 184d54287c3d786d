"""The tables of docs/migrating.md, made of the rows: `python -m tests.outside.dialects.page` writes them anew."""

from __future__ import annotations

from pathlib import Path

from tests.outside.dialects.case import ACCEPTED, SERVES, Row
from tests.outside.dialects.rows import ROWS

PAGE = Path(__file__).parents[3] / "docs" / "migrating.md"
BEGIN = "<!-- The tables are made of tests/outside/dialects; edits between these two lines are lost. -->\n"
END = "<!-- End of the tables. -->\n"
MARKS = {True: "yes", False: "not yet"}


def tables() -> str:
    """One table for each dialect, in the order of the rows."""
    parts = []
    for dialect in dict.fromkeys(row.dialect for row in ROWS):
        lines = dict.fromkeys(_line(row) for row in ROWS if row.dialect == dialect)
        head = f"## {dialect}\n\n| There | What for | Here | Works |\n| --- | --- | --- | --- |\n"
        parts.append(head + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(row: Row) -> str:
    ours = row.ours.removesuffix(", not yet")
    return f"| {_escaped(row.theirs)} | {row.intention} | {ours} | {MARKS[row.verdict in (SERVES, ACCEPTED)]} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("$", "\\$")


def page(text: str) -> str:
    """The page with the tables of now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
