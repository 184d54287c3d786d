"""What one file of YAML holds: its last good state, and what a new text makes of it. Pure; called by `tree`.

- A text is cut at its `---` lines and every piece is decoded on its own, unless the file's last text had it too: one
  edit in a file of 10,000 documents decodes one document.
- While a file has pieces in error, the objects that it held before and that its new text no longer yields stay as they
  were: those the broken pieces name, or all of them when a piece is too broken to name one. Good pieces always apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem, mark_join


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


@dataclass(frozen=True, slots=True)
class FileState:
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


def staging(file: str, old: FileState, text: str, decode: Decode) -> Iterator[Staged | None]:
    """Decodes what is new in `text`: yields None after each piece that it cut or decoded (a good moment to let others
    run), then the staged file."""
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
            known[piece] = decode(piece)
            yield None
        decoded.append(known[piece])
    whole = (*old.decoded[:head], *decoded, *old.decoded[old_tail:])
    yield Staged(file, pieces, whole, head, tail, _loses(replaced, decoded))


def replaced(old: FileState, staged: Staged) -> tuple[FileState, list[Object], list[Object]]:
    """The state with the staged text in force; the objects that go, and those that come."""
    head, tail = staged.unchanged_head, staged.unchanged_tail
    out, into = old.decoded[head : len(old.decoded) - tail], staged.decoded[head : len(staged.decoded) - tail]
    in_error = old.in_error + sum(piece.is_in_error for piece in into) - sum(piece.is_in_error for piece in out)
    problems = old.with_problems + _with_problems(into) - _with_problems(out)
    kept, parts = _kept(old, staged) if in_error else ((), frozenset())
    invalid = _invalid(old, staged, parts) if in_error else {}
    new = FileState(staged.pieces, staged.decoded, kept, parts, invalid, in_error, problems)
    return new, [*_objects(out), *old.kept], [*_objects(into), *new.kept]


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


def _kept(old: FileState, staged: Staged) -> tuple[tuple[Object, ...], frozenset[ObjectKey]]:
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


def _invalid(old: FileState, staged: Staged, parts: frozenset[ObjectKey]) -> dict[ObjectKey, Reasons]:
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


def located(file: str, state: FileState) -> Iterator[Problem]:
    """The problems of a file with lines counted from its beginning."""
    line = 0
    for piece, decoded in zip(state.pieces, state.decoded, strict=True):
        for problem in decoded.problems:
            yield replace(problem, file=file, line=line + problem.line)
        line += piece.count("\n")
