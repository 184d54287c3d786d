"""`gatewright lint PATH...`: what `controlplane.lint` finds, for people and for pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Final

from controlplane.cli import exits
from controlplane.lint import bounded
from controlplane.lint.bounded import NAME_OF_INPUT, Request
from gatewright.api.lint.report import Report
from gatewright.files import LARGEST

STANDARD_INPUT = "-"

FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "text": Report.text,
    "json": Report.json,
    "sarif": Report.sarif,
    "github": Report.github,
}


def kinds(texts: Iterable[str]) -> frozenset[str]:
    """The values of --elsewhere: names of kinds, divided by commas. Raises Failure for what is the name of none."""
    if not texts:
        return frozenset()
    from gatewright.api.objects.kinds import KINDS  # a second of computing, mostly done by another process
    from gatewright.api.schema.near_names import did_you_mean

    found = frozenset(name.strip() for text in texts for name in text.split(","))
    for name in sorted(found - KINDS.keys()):
        raise exits.Failure(exits.USAGE, f'--elsewhere: "{name}" is no kind{did_you_mean(name, list(KINDS))}')
    return found


def _piped(paths: Iterable[str]) -> str | None:
    """Raises Failure for more than a file may have."""
    if STANDARD_INPUT not in paths:
        return None
    content = sys.stdin.buffer.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise exits.Failure(exits.CONFIG, f"{NAME_OF_INPUT} is larger than {LARGEST} bytes")
    return content.decode("utf-8", "replace")


def run(arguments: argparse.Namespace) -> int:
    """0: no errors; 1: errors (with --strict: warnings, too), also a file that cannot be read; 4: a path that does not
    exist."""
    files = [path for path in arguments.paths if path != STANDARD_INPUT]
    report = bounded.lint(Request(tuple(files), kinds(arguments.elsewhere), _piped(arguments.paths)))
    if text := FORMS[arguments.output](report):
        print(text)
    if report.absent:
        return exits.DEPENDENCY
    failing = ("error", "warning") if arguments.strict else ("error",)
    return exits.CONFIG if any(problem.severity in failing for problem in report.problems) else exits.OK
