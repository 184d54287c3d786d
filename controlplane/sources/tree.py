"""What a folder of YAML holds: of each file its state (`file_state`), over all files one winner for each object. Pure.

`sources.directory` reads files and calls `stage` and `committing`; what comes out are changes of objects. Both are
generators that yield often, so that their caller can let others run; until one has ended no other may begin, and of
the tree's answers only `file_of` is to be asked for. The laws:

- An object that several files define comes from the first of them in sorted order; the others get a problem that
  names both.
- An object that is in error where it would come from is reported as `Invalid`, with every reason and with what stays of
  it; one that no file defines without an error as well.
- `metadata.generation` counts the contents that an object has had, as an API server would; status and formatting do not
  count, and reasons do. A change is reported only when the content, or what is wrong with it, differs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.facts import Fact, Invalid, Origin
from controlplane.sources.file_state import Decode, FileState, Object, Reasons, Staged, located, replaced, staging
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem

SOURCE: Final = "directory"
"""The origin of the facts."""


WithGeneration = Callable[[Any, int], Any]


@dataclass(slots=True)
class _Claims:
    """Who defines one object: file to its objects of this key, in order, and to what is wrong with it; and what was
    last reported."""

    files: dict[str, list[Object]] = field(default_factory=dict)
    invalid: dict[str, tuple[Reasons, bool]] = field(default_factory=dict)
    """With whether what the file keeps of it is a part."""
    generation: int = 0
    reported: tuple[object, Reasons, bool] | None = None
    """Content of what acts, reasons, whether it is a part."""
    model: Any = None
    """What acts, with the generation that it was reported with."""

    @property
    def file(self) -> str | None:
        """Where the object comes from."""
        return min(self.files or self.invalid, default=None)

    def present(self) -> tuple[Object | None, Reasons, bool]:
        """What acts, what is wrong with the object, and whether what acts is a part."""
        assert self.file is not None
        reasons, is_part = self.invalid.get(self.file, ((), False))
        return (self.files[self.file][0] if self.files else None), reasons, is_part


class Tree:
    """The state of all files. One owner calls it; nothing here waits."""

    def __init__(self, decode: Decode, with_generation: WithGeneration) -> None:
        self._decode = decode
        self._with_generation = with_generation
        self._files: dict[str, FileState] = {}
        self._claims: dict[ObjectKey, _Claims] = {}
        self._unreadable: dict[str, Problem] = {}
        self._contested: set[ObjectKey] = set()
        self._troubled: set[str] = set()  # files with problems of their own, so that listing them visits no others

    def __repr__(self) -> str:
        return f"<Tree files={len(self._files)} objects={len(self._claims)} contested={len(self._contested)}>"

    @property
    def files(self) -> frozenset[str]:
        return frozenset(self._files)

    @property
    def known(self) -> frozenset[str]:
        """All files that something is known of, also those that were never readable."""
        return self.files | self._unreadable.keys()

    def file_of(self, key: ObjectKey) -> str | None:
        """Where the object comes from."""
        claims = self._claims.get(key)
        return claims.file if claims else None

    def stage(self, file: str, text: str) -> Iterator[Staged | None]:
        """As `file_state.staging`, for the file as it is now."""
        return staging(file, self._files.get(file, FileState()), text, self._decode)

    def commit(self, staged: Staged) -> list[Fact]:
        """Puts a staged file in force and reports what changed."""
        *_, changes = self.committing(staged)
        assert changes is not None  # the last answer
        return changes

    def committing(self, staged: Staged) -> Iterator[list[Fact] | None]:
        """`commit`, an object at a time: yields None after each, then the changes."""
        old = self._files.get(staged.file, FileState())
        new, gone, come = replaced(old, staged)
        self._unreadable.pop(staged.file, None)
        self._files[staged.file] = new
        (self._troubled.add if new.with_problems else self._troubled.discard)(staged.file)
        wrong = self._note_invalid(staged.file, old, new)
        yield (yield from self._claim(staged.file, gone, come, wrong))

    def remove(self, file: str) -> list[Fact]:
        """The file is gone: so are its objects."""
        *_, changes = self.removing(file)
        assert changes is not None  # the last answer
        return changes

    def removing(self, file: str) -> Iterator[list[Fact] | None]:
        """`remove`, an object at a time: yields None after each, then the changes."""
        self._unreadable.pop(file, None)
        self._troubled.discard(file)
        old = self._files.pop(file, None)
        if old is None:
            yield []
            return
        wrong = self._note_invalid(file, old, FileState())
        yield (yield from self._claim(file, list(old.objects()), [], wrong))

    def unreadable(self, problem: Problem) -> None:
        """The problem's file is there and cannot be read: its objects stay."""
        self._unreadable[problem.file] = problem

    def problems(self) -> list[Problem]:
        """Everything wrong now, by file and line."""
        found = list(self._unreadable.values())
        for file in self._troubled:
            found += located(file, self._files[file])
        for key in self._contested:
            found += self._duplicates(key)
        return sorted(found, key=lambda problem: (problem.file, problem.line, problem.object, problem.message))

    def _note_invalid(self, file: str, old: FileState, new: FileState) -> list[ObjectKey]:
        """Takes down what is wrong with which object of a file; which of them were or are concerned."""
        for key in old.invalid.keys() - new.invalid.keys():
            del self._claims[key].invalid[file]
        for key, reasons in new.invalid.items():
            self._claims.setdefault(key, _Claims()).invalid[file] = reasons, key in new.parts
        return [*dict.fromkeys((*old.invalid, *new.invalid))]

    def _claim(
        self, file: str, gone: Sequence[Object], come: Sequence[Object], wrong: Sequence[ObjectKey]
    ) -> Generator[None, None, list[Fact]]:
        # Only keys touched by the edit are visited. A key defined twice in one file keeps its file order: the whole
        # list of this file is rebuilt when there is more than one.
        touched = dict.fromkeys((*(item.key for item in (*gone, *come)), *wrong))
        for item in gone:
            yield
            claims = self._claims[item.key]
            claims.files[file].remove(item)
            if not claims.files[file]:
                del claims.files[file]
        for item in come:
            yield
            self._claims.setdefault(item.key, _Claims()).files.setdefault(file, []).append(item)
        changes: list[Fact] = []
        for key in touched:
            yield
            if (change := self._report(file, key)) is not None:
                changes.append(change)
        return changes

    def _report(self, file: str, key: ObjectKey) -> Fact | None:
        claims = self._claims[key]
        if len(claims.files.get(file, ())) > 1:
            state = self._files[file]
            claims.files[file] = [item for item in state.objects() if item.key == key]
        is_contested = sum(map(len, claims.files.values())) > 1
        (self._contested.add if is_contested else self._contested.discard)(key)
        if claims.file is None:
            del self._claims[key]
            return Fact(key, None, origin=Origin(SOURCE, file))
        item, reasons, is_part = claims.present()
        reported = (None if item is None else item.content, reasons, is_part)
        if claims.reported == reported:
            return None
        claims.generation += 1
        is_as_before = claims.reported is not None and item is not None and claims.reported[0] == item.content
        if not (reasons and is_as_before):  # what acts on has the generation that it had
            claims.model = None if item is None else self._with_generation(item.model, claims.generation)
        claims.reported = reported
        model = claims.model
        if reasons:
            last_good, rest = (None, model) if is_part else (model, None)
            model = Invalid(reasons, claims.generation, last_good, rest)
        return Fact(key, model, origin=Origin(SOURCE, claims.file))

    def _duplicates(self, key: ObjectKey) -> Iterator[Problem]:
        files = self._claims[key].files
        first = min(files)
        for file, items in files.items():
            extra = len(items) - (file == first)
            if extra:
                text = f"is defined in {first} and again in {file}; the first is used: delete one of them"
                yield Problem(file, 0, str(key), "", text)
