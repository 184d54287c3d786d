"""What the specification says, read from its text: lines that set a bound or a field, and the names in them.

Called by the test that compares. The text stands beside the repository; where it is absent nothing is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[4] / "shared"
FILES: Final = {
    "0-names.md": FOLDER / "spec/0-names.md",
    "1-resources.md": FOLDER / "spec/1-resources.md",
    "2-policies.md": FOLDER / "spec/2-policies.md",
    "decisions.md": FOLDER / "design/decisions.md",
}
"""The files that rows cite."""

_LEFT_OUT: Final = (
    *("### Data-plane behaviour", "## What the service does", "## Endpoints", "## Versioning", "## States"),
    *("## Events", "## Errors"),
)
"""Sections about what happens, not about what may be written."""

NOT_VERDICTS: Final = {
    "| JSON | any JSON value |": "refuses nothing",
    "| ExtProc buffered body modes | 8KB |": "a limit of the running proxy",
    "| third-party rerank provider | Cohere |": "a name in documentation",
    "| `<vpn>` | Tailscale |": "a name in documentation",
    "| default JWT metadata key of gRPC ext auth |": "what is sent",
    "| custom | `custom` | unchanged |": "one spelling",
}
"""Lines of tables that no row can be about, by their beginnings, and why."""


def is_there() -> bool:
    """Whether the text stands where it is expected."""
    return all(path.is_file() for path in FILES.values())


def lines(file: str) -> tuple[str, ...]:
    """All lines of a file."""
    return tuple(FILES[file].read_text().splitlines())


def of_the_api(file: str) -> Iterator[str]:
    """Lines of the sections about what may be written."""
    inside = True
    depth = 0
    for line in lines(file):
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            if inside or level <= depth:
                inside = not line.startswith(_LEFT_OUT)
                depth = level
        if inside and not line.startswith("#"):
            yield line


def table_lines(file: str) -> Iterator[str]:
    """The body lines of its tables."""
    before = ""
    header = ""
    for line in of_the_api(file):
        if line.startswith("|---"):
            header = before
        elif line.startswith("|") and header and not line.startswith(tuple(NOT_VERDICTS)):
            yield line
        before = line
        header = header if line.startswith("|") else ""


_NAME: Final = re.compile(r"`([A-Za-z][A-Za-z0-9]*)`")


def names(file: str) -> Iterator[str]:
    """Every plain name in backticks, and the names in the first column of tables about fields."""
    for line in of_the_api(file):
        yield from _NAME.findall(line)
    for line in table_lines(file):
        first = line.split("|")[1].strip()
        if re.fullmatch(r"[a-z][A-Za-z0-9]*(, [a-z][A-Za-z0-9]*)*", first):
            yield from first.split(", ")
