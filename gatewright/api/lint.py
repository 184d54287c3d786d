"""`gatewright lint` without the command: what is wrong with a file or a directory of configuration, offline.

Called by the CLI. It knows Kubernetes YAML and standalone files apart by their top-level fields. References between
objects are not followed here: in a directory they may lead to objects that live elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from gatewright.api import standalone, yaml_text
from gatewright.api.documents import Decoded, decode, split_documents
from gatewright.api.metadata import ObjectKey
from gatewright.api.problem import Problem

SUFFIXES: Final = (".yaml", ".yml", ".json")


class Document(NamedTuple):
    """A file that was read: its name for messages, and its text."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What lint found. `objects` counts what was read, good or bad."""

    problems: tuple[Problem, ...]
    files: int
    objects: int

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


def lint(documents: Iterable[Document], log_modules: Collection[str] | None = None) -> list[Problem]:
    """Every problem of the files, in their order. `log_modules`: as in standalone.load."""
    return list(examine(documents, log_modules).problems)


def lint_paths(paths: Iterable[str | Path], log_modules: Collection[str] | None = None) -> Report:
    """Lint files, and directories with all below them (hidden files and `..data` left out, as the directory source
    does). A path that cannot be read is a problem of the report."""
    documents: list[Document] = []
    unreadable: list[Problem] = []
    for path in _files(map(Path, paths), unreadable):
        try:
            documents.append(Document(str(path), path.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as failure:
            unreadable.append(_unreadable(path, failure))
    report = examine(documents, log_modules)
    return Report((*unreadable, *report.problems), report.files + len(unreadable), report.objects)


def examine(documents: Iterable[Document], log_modules: Collection[str] | None = None) -> Report:
    """As `lint`, with the counts."""
    problems: list[Problem] = []
    first: dict[ObjectKey, Decoded] = {}
    files = objects = 0
    for file, text in documents:
        files += 1
        if _is_standalone(text):
            loaded = standalone.load(text, file, log_modules)
            problems += loaded.problems
            objects += 1
            continue
        for decoded in decode(text, file):
            objects += 1
            problems += decoded.problems
            problems += _repeated(decoded, first)
    return Report(tuple(problems), files, objects)


def _repeated(decoded: Decoded, first: dict[ObjectKey, Decoded]) -> Iterator[Problem]:
    """One object may stand in one place only: which of two would count is not for us to guess."""
    if decoded.key is None:
        return
    other = first.setdefault(decoded.key, decoded)
    if other is not decoded:
        message = f"is defined twice; the other is at {other.file}:{other.line}"
        yield Problem(decoded.file, decoded.line, str(decoded.key), "", message)


def _is_standalone(text: str) -> bool:
    documents = split_documents(text)
    if not documents:
        return False
    try:
        return standalone.is_standalone(yaml_text.load(documents[0][1]))
    except yaml_text.TextError:
        return any(line.startswith("binds:") for line in text.splitlines())


def _files(paths: Iterable[Path], unreadable: list[Problem]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            for folder, below, names in os.walk(path):
                below[:] = sorted(name for name in below if not name.startswith("."))
                visible = sorted(name for name in names if not name.startswith(".") and name.endswith(SUFFIXES))
                yield from (Path(folder, name) for name in visible)
        elif path.exists():
            yield path
        else:
            unreadable.append(Problem(str(path), 0, "", "", "does not exist"))


def _unreadable(path: Path, failure: OSError | UnicodeDecodeError) -> Problem:
    reason = failure.strerror if isinstance(failure, OSError) else "is not UTF-8 text"
    return Problem(str(path), 0, "", "", f"cannot be read: {reason}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
