"""`gatewright lint` without the command: what is wrong with a file or a directory of configuration, offline.

Called by the CLI. It knows Kubernetes YAML and standalone files apart by their top-level fields. Beside what decoding
finds it warns of what is valid and hardly meant (`advice`), and of what does not fit together (`links`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from gatewright.api.advice.advice import advice, warnings
from gatewright.api.decode.documents import Decoded, decode_document, split_documents
from gatewright.api.lint.dropped_guards import dropped_guards
from gatewright.api.lint.left_out import left_out
from gatewright.api.lint.lint import links, sections
from gatewright.api.lint.rivals import rivals
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.standalone.standalone import standalone
from gatewright.api.text import yaml_text
from gatewright.api.text.places import Place, Subject
from gatewright.api.text.problem import Advice, Problem

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


def lint(documents: Iterable[Document], log_modules: Collection[str] | None = None) -> list[Problem]:
    """Every problem of the files, in their order. `log_modules`: as in standalone.load."""
    return list(examine(documents, log_modules).problems)


def lint_paths(paths: Iterable[str | Path], log_modules: Collection[str] | None = None) -> Report:
    """Lint files, and directories with all below them (hidden files and `..data` left out, as the directory source
    does). A path that cannot be read is a problem of the report. References between objects are followed when one of
    the paths is a folder."""
    documents: list[Document] = []
    unreadable: list[Problem] = []
    places = [Path(path) for path in paths]
    for path in _files(places, unreadable):
        try:
            documents.append(Document(str(path), path.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as failure:
            unreadable.append(_unreadable(path, failure))
    report = examine(documents, log_modules, together=any(place.is_dir() for place in places))
    absent = any(not place.exists() for place in places)
    return Report((*unreadable, *report.problems), report.files + len(unreadable), report.objects, absent)


def examine(
    documents: Iterable[Document], log_modules: Collection[str] | None = None, *, together: bool = False
) -> Report:
    """As `lint`, with the counts. `together`: the documents are a whole, so that references should lead somewhere."""
    seen = _Seen()
    for number, document in enumerate(documents):
        seen.read(number, document, log_modules)
    seen.look_between(together)
    return Report(tuple(seen.sorted_problems()), seen.files, seen.objects)


class _Seen:
    """What was read so far: problems with the number of their file, and objects with their places."""

    def __init__(self) -> None:
        self.files = self.objects = 0
        self._problems: list[tuple[int, Problem]] = []
        self._first: dict[ObjectKey, tuple[int, Decoded, Subject]] = {}

    def sorted_problems(self) -> Iterator[Problem]:
        """In the order of the files, each from its top."""
        ordered = sorted(self._problems, key=lambda row: (row[0], row[1].line, row[1].column))
        return (problem for _, problem in ordered)

    def read(self, number: int, document: Document, log_modules: Collection[str] | None) -> None:
        self.files += 1
        if _is_standalone(document.text):
            self.objects += 1
            self._problems += ((number, problem) for problem in _standalone(document, log_modules))
            return
        for line, text in split_documents(document.text):
            place = Place(text, document.file, line)
            for decoded in decode_document(text, document.file, line):
                self.objects += 1
                self._problems += ((number, problem) for problem in self._examined(number, decoded, place))

    def _examined(self, number: int, decoded: Decoded, place: Place) -> Iterator[Problem]:
        yield from decoded.problems
        if decoded.key is None:
            return
        subject = Subject(place, decoded.path, str(decoded.key))
        if decoded.item is not None:
            yield from _advised(subject, warnings(decoded.item))
        _, other, _ = self._first.setdefault(decoded.key, (number, decoded, subject))
        if other is not decoded:
            # One object may stand in one place only: which of two would count is not for us to guess.
            message = f"is defined twice; the other is at {other.file}:{other.line}"
            yield Problem(decoded.file, decoded.line, str(decoded.key), "", message)

    def look_between(self, together: bool) -> None:
        """Warnings about objects that need a look at others."""
        items = {key: decoded.item for key, (_, decoded, _) in self._first.items() if decoded.item is not None}
        found = [*links.open_forwards(items), *links.lacking(items), *dropped_guards(items), *left_out(items)]
        found += [*sections.unknown_sections(items), *rivals(items)]
        if together:
            known = self._first.keys()
            found += [*links.dangling(items, known), *links.ungranted(items, known), *sections.empty_selections(items)]
        for key, each in found:
            number, _, subject = self._first[key]
            self._problems += ((number, problem) for problem in _advised(subject, [each]))


def _advised(subject: Subject, found: Iterable[Advice]) -> Iterator[Problem]:
    return (subject.problem(*each) for each in found)


def _standalone(document: Document, log_modules: Collection[str] | None) -> Iterator[Problem]:
    loaded = standalone.load(document.text, document.file, log_modules)
    yield from loaded.problems
    if loaded.content is not None:
        ((line, text),) = split_documents(document.text)
        subject = Subject(Place(text, document.file, line), (), "")
        yield from _advised(subject, advice(loaded.content))
        yield from _advised(subject, links.open_forwards_of_file(loaded.content))


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
    reason = failure.strerror if isinstance(failure, OSError) else "is not UTF-8 text; save it as UTF-8"
    return Problem(str(path), 0, "", "", f"cannot be read: {reason}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
