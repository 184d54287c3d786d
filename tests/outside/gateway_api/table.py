"""`verdicts.txt`, the table: a path at the margin, below it the lines of `judged`."""

from __future__ import annotations

from pathlib import Path

from tests.outside.gateway_api.judged import judged
from tests.outside.gateway_api.modules import CONFORMANCE, EXAMPLES, files

TABLE = Path(__file__).parent / "verdicts.txt"

Verdicts = dict[str, tuple[str, ...]]


def found() -> Verdicts:
    """What we make of each file now. Files of the conformance suite stand on its base, as in its runs."""
    verdicts = {path: judged(text) for path, text in files(EXAMPLES)}
    suite = dict(files(CONFORMANCE))
    base = suite["base/manifests.yaml"]
    return verdicts | {f"conformance/{path}": judged(text, base) for path, text in suite.items()}


def read() -> Verdicts:
    """The table."""
    verdicts: dict[str, list[str]] = {}
    for line in TABLE.read_text().splitlines():
        if not line.startswith(" "):
            below = verdicts.setdefault(line, [])
        else:
            below.append(line.strip())
    return {path: tuple(lines) for path, lines in verdicts.items()}


def text(verdicts: Verdicts) -> str:
    """A table as text."""
    return "".join(f"{path}\n" + "".join(f"  {line}\n" for line in lines) for path, lines in sorted(verdicts.items()))
