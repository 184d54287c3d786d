"""`gatewright lint PATH...`: what `controlplane.lint` finds, for people and for pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Final

from controlplane.cli import exits
from controlplane.lint import lint
from gatewright.api.lint.lint import Document
from gatewright.api.lint.report import Report
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.near_names import did_you_mean

STANDARD_INPUT = "-"
NAME_OF_INPUT = "<standard input>"

FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "text": Report.text,
    "json": Report.json,
    "sarif": Report.sarif,
    "github": Report.github,
}


def kinds(texts: Iterable[str]) -> frozenset[str]:
    """The values of --elsewhere: names of kinds, divided by commas. Raises Failure for what is the name of none."""
    found = frozenset(name.strip() for text in texts for name in text.split(","))
    for name in sorted(found - KINDS.keys()):
        raise exits.Failure(exits.USAGE, f'--elsewhere: "{name}" is no kind{did_you_mean(name, list(KINDS))}')
    return found


def run(arguments: argparse.Namespace) -> int:
    """0: no errors; 1: errors (with --strict: warnings, too), also a file that cannot be read; 4: a path that does not
    exist."""
    files = [path for path in arguments.paths if path != STANDARD_INPUT]
    report = lint.lint_paths(files, elsewhere=kinds(arguments.elsewhere))
    if STANDARD_INPUT in arguments.paths:
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        piped = lint.examine([Document(NAME_OF_INPUT, text)])
        problems = (*report.problems, *piped.problems)
        counts = report.files + piped.files, report.objects + piped.objects
        report = Report(problems, *counts, report.absent)
    if text := FORMS[arguments.output](report):
        print(text)
    if report.absent:
        return exits.DEPENDENCY
    failing = ("error", "warning") if arguments.strict else ("error",)
    return exits.CONFIG if any(problem.severity in failing for problem in report.problems) else exits.OK
