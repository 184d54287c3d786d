"""What a folder of YAML holds: per file the last good state, over all files one winner for each object. Pure.

`sources.directory` reads files and calls `stage` and `committing`; what comes out are changes of objects. Both are
generators that yield often, so that their caller can let others run; until one has ended no other may begin, and of
the tree's answers only `file_of` is to be asked for. The laws:

- A text is cut at its `---` lines and every piece is decoded on its own, unless the file's last text had it too: one
  edit in a file of 10,000 documents decodes one document.
- While a file has pieces in error, the objects that it held before and that its new text no longer yields stay as they
  were: those the broken pieces name, or all of them when a piece is too broken to name one. Good pieces always apply.
- An object that several files define comes from the first of them in sorted order; the others get a problem that
  names both.
- An object that is in error where it would come from is reported as `Invalid`, with every reason and with what stays of
  it; one that no file defines without an error as well.
- `metadata.generation` counts the contents that an object has had, as an API server would; status and formatting do not
  count, and reasons do. A change is reported only when the content, or what is wrong with it, differs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controlplane.facts import Fact, Invalid, Origin
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem, mark_join

SOURCE: Final = "directory"
"""The origin of the facts."""


@dataclass(frozen=True, slots=True)
class Object:
    """One decoded object. `content` is compared to see whether it changed: all but `status`."""

    key: ObjectKey
    model: Any  # one of the models of gatewright.api; this package only passes it on
    content: object


@dataclass(frozen=True, slots=True)
class Decoded:
    """One piece of text, decoded. `named` are objects that the piece names but whose content is in error."""

    objects: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()  # lines counted in the piece, file empty
    named: tuple[ObjectKey, ...] = ()
    is_broken: bool = False  # in error, and too broken to name what it was about
    remains: tuple[Object, ...] = ()
    """What is served for some of `named` until they had a good state."""
    is_partial: bool = False  # an object lacks a part that is in error: perhaps it is still being written

    @property
    def is_in_error(self) -> bool:
        return self.is_broken or bool(self.named)


Reasons = tuple[str, ...]

Decode = Callable[[str], Decoded]
WithGeneration = Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True)
class _File:
    """Last good state of one file. `kept` are objects of an older text, held because the new one has errors.

    The two counts are of pieces; they spare an edit in a big file a look at every piece.
    """

    pieces: tuple[str, ...] = ()
    decoded: tuple[Decoded, ...] = ()
    kept: tuple[Object, ...] = ()
    parts: frozenset[ObjectKey] = frozenset()
    """Of `kept` those that had no good state yet (`Decoded.remains`)."""
    invalid: Mapping[ObjectKey, Reasons] = field(default_factory=dict)
    """Objects that the text names and does not yield, and what is wrong with them."""
    in_error: int = 0
    with_problems: int = 0

    def objects(self) -> Iterator[Object]:
        for piece in self.decoded:
            yield from piece.objects
        yield from self.kept


@dataclass(frozen=True, slots=True)
class Staged:
    """A new text of a file, decoded but not yet in force."""

    file: str
    pieces: tuple[str, ...]
    decoded: tuple[Decoded, ...]
    unchanged_head: int
    unchanged_tail: int
    loses: bool  # objects would disappear, or pieces are in error that were not: perhaps it is still being written


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


def cut(text: str) -> tuple[str, ...]:
    """All pieces that `cutting` gives."""
    return tuple(cutting(text))


def cutting(text: str) -> Iterator[str]:
    """The text's YAML documents, with their separator lines, so that joining them gives the text again.

    YAML 1.2, 9.1.2: `---` at the beginning of a line always starts a document, also inside a scalar.
    """
    start, search = 0, 0
    while (found := text.find("\n---", search)) >= 0:
        search = found + 4
        if search == len(text) or text[search] in " \t\r\n":
            yield text[start : found + 1]
            start = found + 1
    yield text[start:]


class Tree:
    """The state of all files. One owner calls it; nothing here waits."""

    def __init__(self, decode: Decode, with_generation: WithGeneration) -> None:
        self._decode = decode
        self._with_generation = with_generation
        self._files: dict[str, _File] = {}
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
        """Decodes what is new in `text`: yields None after each piece that it cut or decoded (a good moment to let
        others run), then the staged file."""
        old = self._files.get(file, _File())
        cut_off: list[str] = []
        for piece in cutting(text):
            cut_off.append(piece)
            yield None
        pieces = tuple(cut_off)
        head, tail = _unchanged(old.pieces, pieces)
        old_tail = len(old.decoded) - tail
        replaced = old.decoded[head:old_tail]
        known = dict(zip(old.pieces[head:old_tail], replaced, strict=True))
        decoded = []
        for piece in pieces[head : len(pieces) - tail]:
            if piece not in known:
                known[piece] = self._decode(piece)
                yield None
            decoded.append(known[piece])
        whole = (*old.decoded[:head], *decoded, *old.decoded[old_tail:])
        yield Staged(file, pieces, whole, head, tail, _loses(replaced, decoded))

    def commit(self, staged: Staged) -> list[Fact]:
        """Puts a staged file in force and reports what changed."""
        *_, changes = self.committing(staged)
        assert changes is not None  # the last answer
        return changes

    def committing(self, staged: Staged) -> Iterator[list[Fact] | None]:
        """`commit`, an object at a time: yields None after each, then the changes."""
        old = self._files.get(staged.file, _File())
        head, tail = staged.unchanged_head, staged.unchanged_tail
        out, into = old.decoded[head : len(old.decoded) - tail], staged.decoded[head : len(staged.decoded) - tail]
        in_error = old.in_error + sum(piece.is_in_error for piece in into) - sum(piece.is_in_error for piece in out)
        problems = old.with_problems + _with_problems(into) - _with_problems(out)
        kept, parts = _kept(old, staged) if in_error else ((), frozenset())
        invalid = _invalid(old, staged, parts) if in_error else {}
        new = _File(staged.pieces, staged.decoded, kept, parts, invalid, in_error, problems)
        self._unreadable.pop(staged.file, None)
        self._files[staged.file] = new
        (self._troubled.add if problems else self._troubled.discard)(staged.file)
        gone, come = [*_objects(out), *old.kept], [*_objects(into), *new.kept]
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
        wrong = self._note_invalid(file, old, _File())
        yield (yield from self._claim(file, list(old.objects()), [], wrong))

    def unreadable(self, problem: Problem) -> None:
        """The problem's file is there and cannot be read: its objects stay."""
        self._unreadable[problem.file] = problem

    def problems(self) -> list[Problem]:
        """Everything wrong now, by file and line."""
        found = list(self._unreadable.values())
        for file in self._troubled:
            found += _located(file, self._files[file])
        for key in self._contested:
            found += self._duplicates(key)
        return sorted(found, key=lambda problem: (problem.file, problem.line, problem.object, problem.message))

    def _note_invalid(self, file: str, old: _File, new: _File) -> list[ObjectKey]:
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


def _unchanged(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[int, int]:
    """How many pieces are the same at the beginning and, of the others, at the end."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    left = shorter - head
    tail = next((i for i in range(left) if old[-1 - i] != new[-1 - i]), left)
    return head, tail


def _objects(decoded: Sequence[Decoded]) -> Iterator[Object]:
    for piece in decoded:
        yield from piece.objects


def _with_problems(decoded: Sequence[Decoded]) -> int:
    return sum(bool(piece.problems) for piece in decoded)


def _loses(old: Sequence[Decoded], new: Sequence[Decoded]) -> bool:
    in_error = any(piece.is_in_error or piece.is_partial for piece in new)
    was_in_error = any(piece.is_in_error or piece.is_partial for piece in old)
    before = {item.key for item in _objects(old)}
    return (in_error and not was_in_error) or not before <= {item.key for item in _objects(new)}


def _kept(old: _File, staged: Staged) -> tuple[tuple[Object, ...], frozenset[ObjectKey]]:
    """Objects of the old text that the new one does not yield, and that its pieces in error may have been about; and
    which of them are but parts. What was good once stands before any part, a newer part before an older one."""
    named = {key for piece in staged.decoded for key in piece.named}
    is_broken = any(piece.is_broken for piece in staged.decoded)
    new = {item.key for item in _objects(staged.decoded)}
    good: dict[ObjectKey, Object] = {}
    for item in old.objects():
        if item.key not in old.parts:
            good.setdefault(item.key, item)  # of an object that a file defines twice the first counts
    parts = {item.key: item for item in old.kept if item.key in old.parts}
    parts |= {item.key: item for piece in staged.decoded for item in piece.remains}
    kept = tuple(item for key, item in (parts | good).items() if key not in new and (is_broken or key in named))
    return kept, frozenset(item.key for item in kept) - good.keys()


def _invalid(old: _File, staged: Staged, parts: frozenset[ObjectKey]) -> dict[ObjectKey, Reasons]:
    """What is wrong with the objects that a text names and does not yield, and with those of which a part stays
    because the text is too broken to name them."""
    new = {item.key for item in _objects(staged.decoded)}
    found: dict[ObjectKey, dict[str, None]] = {}
    for piece in staged.decoded:
        for key in piece.named:
            if key not in new:
                its = (each for each in piece.problems if each.object == str(key) and each.severity == "error")
                found.setdefault(key, {}).update((mark_join(each.path, each.message), None) for each in its)
    invalid = {key: tuple(reasons) or ("cannot be read",) for key, reasons in found.items()}
    return {key: old.invalid[key] for key in parts if key not in invalid} | invalid


def _located(file: str, state: _File) -> Iterator[Problem]:
    """The problems of a file with lines counted from its beginning."""
    line = 0
    for piece, decoded in zip(state.pieces, state.decoded, strict=True):
        for problem in decoded.problems:
            yield replace(problem, file=file, line=line + problem.line)
        line += piece.count("\n")
