"""`gatewright lint PATH...`: what `gatewright.api.lint.lint` finds, as text or JSON."""

from __future__ import annotations

import argparse
import sys

from controlplane.cli import exits
from gatewright.api.lint.lint import lint

STANDARD_INPUT = "-"
NAME_OF_INPUT = "<standard input>"


def run(arguments: argparse.Namespace) -> int:
    """0: no errors; 1: errors, also a file that cannot be read; 4: a path that does not exist."""
    report = lint.lint_paths(path for path in arguments.paths if path != STANDARD_INPUT)
    if STANDARD_INPUT in arguments.paths:
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        piped = lint.examine([lint.Document(NAME_OF_INPUT, text)])
        problems = (*report.problems, *piped.problems)
        counts = report.files + piped.files, report.objects + piped.objects
        report = lint.Report(problems, *counts, report.absent)
    print(report.json() if arguments.output == "json" else report.text())
    if report.absent:
        return exits.DEPENDENCY
    return exits.CONFIG if report.errors else exits.OK
