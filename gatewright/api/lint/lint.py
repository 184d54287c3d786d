"""`gatewright lint` without the command: what is wrong with a file or a directory of configuration, offline.

Called by `controlplane.lint`. It knows Kubernetes YAML and standalone files apart by their top-level fields. Beside
what decoding finds it warns of what is valid and hardly meant (`advice`), and of the little between objects that the
control plane has no answer for. What the control plane would say of them as a whole it is given as a function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gatewright import files, folders
from gatewright.api.advice.advice import refusals, warnings
from gatewright.api.decode.documents import Decoded, decode_document, split_documents
from gatewright.api.lint import links, metadata, ports, reach
from gatewright.api.lint.dropped_guards import dropped_guards
from gatewright.api.lint.expiring import expiring
from gatewright.api.lint.left_out import left_out, refused_secrets
from gatewright.api.lint.report import Report
from gatewright.api.lint.sections import without_sections
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.standalone import standalone
from gatewright.api.text import yaml_text
from gatewright.api.text.places import Place, Subject
from gatewright.api.text.problem import Advice, Problem


class Document(NamedTuple):
    """A file that was read: its name for messages, and its text."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Folder:
    """What was read of Kubernetes YAML, for those who look between objects."""

    objects: reach.Objects
    """Those that are valid."""
    known: Collection[ObjectKey]
    """All, those with mistakes among them."""
    whole: bool
    """Whether the files are a whole: what is in none of them is missing, but for the kinds `elsewhere`."""
    elsewhere: frozenset[str]
    erroneous: frozenset[ObjectKey]
    """Objects that have an error by themselves."""


Found = tuple[str, ObjectKey, Advice]
"""A code, whom it concerns, and what there is to say."""

Judge = Callable[[Folder], Iterable[Found]]
"""What there is to say between the objects of a folder."""


def quietly(_: str) -> None:
    """For those who do not want to know what is being read."""


def no_judge(_: Folder) -> Iterable[Found]:
    """The judge of those who want to know of single objects alone."""
    return ()


def lint(
    documents: Iterable[Document], log_modules: Collection[str] | None = None, judge: Judge = no_judge
) -> list[Problem]:
    """Every problem of the files, in their order. `log_modules`: as in standalone.load."""
    return list(examine(documents, log_modules, judge=judge).problems)


def lint_paths(
    paths: Iterable[str | Path],
    log_modules: Collection[str] | None = None,
    elsewhere: Collection[str] = (),
    judge: Judge = no_judge,
    reading: Callable[[str], None] = quietly,
) -> Report:
    """Lint files, and directories with all below them (hidden files and `..data` left out, as the directory source
    does). A path that cannot be read is a problem of the report. References between objects are followed when one of
    the paths is a folder; not those to objects of the kinds `elsewhere`, which come from somebody else.
    `reading` is called with the name of each file before it is read."""
    documents: list[Document] = []
    unreadable: list[Problem] = []
    places = [Path(path) for path in paths]
    for path in _files(places, unreadable):
        reading(str(path))
        try:
            documents.append(Document(str(path), files.read(path).decode("utf-8-sig")))
        except (OSError, UnicodeDecodeError) as failure:
            unreadable.append(_unreadable(path, failure))
    together = any(place.is_dir() for place in places)
    report = examine(_each(documents, reading), log_modules, together=together, elsewhere=elsewhere, judge=judge)
    if together and not report.objects and not unreadable:
        folder = next(place for place in places if place.is_dir())
        unreadable.append(Problem(str(folder), 0, "", "", "holds no object: nothing is served", code="serves-nothing"))
        report = replace(report, files=report.files - 1)  # it is no file
    absent = any(not place.exists() for place in places)
    return Report((*unreadable, *report.problems), report.files + len(unreadable), report.objects, absent)


def _each(documents: Iterable[Document], reading: Callable[[str], None]) -> Iterator[Document]:
    for document in documents:
        reading(document.file)
        yield document


def examine(
    documents: Iterable[Document],
    log_modules: Collection[str] | None = None,
    *,
    together: bool = False,
    elsewhere: Collection[str] = (),
    judge: Judge = no_judge,
) -> Report:
    """As `lint`, with the counts. `together`: the documents are a whole, so that references should lead somewhere, but
    for those to the kinds `elsewhere`."""
    seen = _Seen()
    for number, document in enumerate(documents):
        seen.read(number, document, log_modules)
    seen.look_between(together, frozenset(elsewhere), judge)
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
        if is_standalone(document.text):
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
            yield from _advised(subject, warnings(decoded.item), "hardly-meant")
        _, other, _ = self._first.setdefault(decoded.key, (number, decoded, subject))
        if other is not decoded:
            # One object may stand in one place only: which of two would count is not for us to guess.
            message = f"is defined twice; the other is at {other.file}:{other.line}"
            yield Problem(decoded.file, decoded.line, str(decoded.key), "", message, code="defined-twice")

    def look_between(self, together: bool, elsewhere: frozenset[str], judge: Judge) -> None:
        """What needs a look at other objects."""
        items = {key: decoded.item for key, (_, decoded, _) in self._first.items() if decoded.item is not None}
        named = {problem.object for _, problem in self._problems if problem.severity == "error"}
        erroneous = frozenset(key for key in items if str(key) in named)
        folder = Folder(items, self._first.keys(), together, elsewhere, erroneous)
        for code, key, advice in (*_between(folder), *judge(folder)):
            number, _, subject = self._first[key]
            self._problems += ((number, problem) for problem in _advised(subject, [advice], code))


def _between(folder: Folder) -> Iterator[Found]:
    """What the control plane has no answer for: it does not serve `ai` and forward proxies yet, does not look into
    Secrets, and does not know what stands in no file."""
    items = folder.objects
    found = [
        ("open-forward", links.open_forwards(items)),
        ("dropped-guard", dropped_guards(items)),
        ("left-out", left_out(items)),
        ("refused", refused_secrets(items)),
        ("no-section", without_sections(items)),
        ("expiring", expiring(items, time.time())),
    ]
    if folder.whole:
        found += [
            ("leads-nowhere", links.dangling(items, folder.known, folder.elsewhere)),
            ("tls-port", ports.tls_ports(items)),
        ]
    return ((code, key, advice) for code, advised in found for key, advice in advised)


def _advised(subject: Subject, found: Iterable[Advice], code: str) -> Iterator[Problem]:
    return (subject.problem(*each, code=code) for each in found)


def _standalone(document: Document, log_modules: Collection[str] | None) -> Iterator[Problem]:
    loaded = standalone.load(document.text, document.file, log_modules, now=time.time())
    yield from loaded.problems
    if loaded.content is not None:
        ((line, text),) = split_documents(document.text)
        subject = Subject(Place(text, document.file, line), (), "")
        yield from _advised(subject, warnings(loaded.content), "hardly-meant")
        yield from (subject.problem(*each, refused=True) for each in refusals(loaded.content))
        yield from _advised(subject, metadata.hidden_metadata_of_file(loaded.content), "hardly-meant")
        yield from _advised(subject, links.open_forwards_of_file(loaded.content), "open-forward")


def is_standalone(text: str) -> bool:
    """Whether a text is the file of a proxy, not objects of Kubernetes."""
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
            yield from (path / relative for relative, _ in folders.walk(str(path)))
        elif path.exists():
            yield path
        else:
            unreadable.append(Problem(str(path), 0, "", "", "does not exist", code="unreadable"))


def _unreadable(path: Path, failure: OSError | UnicodeDecodeError) -> Problem:
    reason = failure.strerror if isinstance(failure, OSError) else "is not UTF-8 text; save it as UTF-8"
    return Problem(str(path), 0, "", "", f"cannot be read: {reason}", code="unreadable")
