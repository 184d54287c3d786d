"""What lint found, in the forms that people and pipelines read: text, JSON, SARIF, annotations of GitHub's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from gatewright.api.lint.codes import CODES
from gatewright.api.text.problem import Problem, Severity, mark_join

PAGE: Final = "docs/lint.md"
"""The page with a section for each code."""

SARIF_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
"""SARIF 2.1.0, 3.27.10."""
GITHUB_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}
"""The workflow commands that make annotations."""


@dataclass(frozen=True, slots=True)
class Report:
    """What lint found. `objects` counts what was read, good or bad."""

    problems: tuple[Problem, ...]
    files: int
    objects: int
    absent: bool = False
    """Whether a path was given that does not exist."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that make lint fail."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    def text(self) -> str:
        """One line per problem and one in conclusion."""
        warnings = sum(problem.severity == "warning" for problem in self.problems)
        unsupported = sum(problem.unsupported for problem in self.problems)
        counts = [f"{_count(self.objects, 'object')} in {_count(self.files, 'file')}"]
        counts.append(_count(len(self.errors), "error"))
        if warnings:
            counts.append(_count(warnings, "warning"))
        if unsupported:
            counts.append(f"{unsupported} not supported yet")
        return "\n".join([*map(str, self.problems), ", ".join(counts)])

    def json(self) -> str:
        """The same for machines: problems with all their fields, and the counts."""
        content = {
            "problems": [problem.as_json() for problem in self.problems],
            "files": self.files,
            "objects": self.objects,
            "errors": len(self.errors),
            "warnings": sum(problem.severity == "warning" for problem in self.problems),
            "unsupported": sum(problem.unsupported for problem in self.problems),
        }
        return json.dumps(content, indent=2)

    def sarif(self) -> str:
        """A log of one run as SARIF 2.1.0 has it; codes are its rules."""
        used = [code for code in CODES if any(problem.code == code for problem in self.problems)]
        rules = [{"id": code, "shortDescription": {"text": CODES[code]}, "helpUri": _page(code)} for code in used]
        driver = {"name": "gatewright lint", "rules": rules}
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "results": [_sarif_result(problem) for problem in self.problems],
        }
        log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
        return json.dumps(log, indent=2)

    def github(self) -> str:
        """Workflow commands: one annotation for each problem."""
        return "\n".join(map(_annotation, self.problems))


def _page(code: str) -> str:
    return f"{PAGE}#{code}"


def _sarif_result(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": problem.file}}
    if problem.line:
        location["region"] = {"startLine": problem.line, **({"startColumn": problem.column} if problem.column else {})}
    return {
        "ruleId": problem.code,
        "level": SARIF_LEVELS[problem.severity],
        "message": {"text": _said(problem)},
        "locations": [{"physicalLocation": location}],
    }


def _annotation(problem: Problem) -> str:
    fields = {"file": problem.file, "line": problem.line, "col": problem.column, "title": problem.code}
    shown = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in fields.items() if value)
    return f"::{GITHUB_COMMANDS[problem.severity]} {shown}::{_escaped(_said(problem))}"


def _said(problem: Problem) -> str:
    return mark_join(problem.object, problem.path, problem.message)


def _escaped(text: str, more: str = "") -> str:
    """With `%`, line ends and `more` as workflow commands write them."""
    return "".join(f"%{ord(each):02X}" if each in "%\r\n" + more else each for each in text)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
