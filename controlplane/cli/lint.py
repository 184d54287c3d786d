"""`gatewright lint PATH...`: what `gatewright.api.lint` finds, as text or JSON."""

from __future__ import annotations

import argparse
import sys

from controlplane.cli import exits
from gatewright.api import lint

STANDARD_INPUT = "-"
NAME_OF_INPUT = "<standard input>"


def run(arguments: argparse.Namespace) -> int:
    """0: no errors; 1: errors, also a path that cannot be read."""
    report = lint.lint_paths(path for path in arguments.paths if path != STANDARD_INPUT)
    if STANDARD_INPUT in arguments.paths:
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        piped = lint.examine([lint.Document(NAME_OF_INPUT, text)])
        problems = (*report.problems, *piped.problems)
        report = lint.Report(problems, report.files + piped.files, report.objects + piped.objects)
    print(report.json() if arguments.output == "json" else report.text())
    return exits.CONFIG if report.errors else exits.OK
