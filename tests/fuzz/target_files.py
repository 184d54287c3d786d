"""Target `files`: a folder of files that are made, edited, broken, half written, renamed and deleted.

The bytes are a script. The language in the files is a toy: a line `NAME VALUE` is an object, `bad NAME` one in error,
`part NAME VALUE` one in error of which a part stands until it has a good state, `!` is too broken to name anything.
The oracle keeps dictionaries of whole files and computes everything anew. Promises: what is good applies; what is in
error stays as it was and is reported as such; the first file in order defines an object; changes are reported once, and
generations count them; problems name the line; cutting loses no character; a text that loses nothing is never held
back for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from controlplane.facts import Fact, Invalid
from controlplane.sources import file_state, tree
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require

LONGEST = 400
FILES = ("a.yaml", "b.yaml", "sub/c.yaml")
NAMES = ("one", "two", "three")
LINES = (
    *(f"{name} {value}\n" for name in NAMES for value in "123"),
    *(f"bad {name}\n" for name in NAMES),
    *(f"part {name} p{value}\n" for name in NAMES[:2] for value in "12"),
    "!\n",
    "\n",
    *("---\n",) * 5,
    "--- # comment\n",
    "---- no separator\n",
    " ---\n",
    "---",
)
BAD = frozenset(("!", "bad", "part"))

# script: file, what to do, lines
SEEDS = (
    b"",
    bytes((0, 0, 3, 0, 18, 4, 1, 0, 2, 0, 18, 0, 0, 1, 9)),
    bytes((0, 0, 2, 0, 3, 1, 0, 2, 1, 6, 0, 5, 1, 0, 0, 1, 1)),
    bytes((0, 0, 3, 0, 18, 3, 0, 0, 1, 16, 0, 0, 3, 0, 18, 3, 2, 7)),
    bytes((0, 0, 1, 12, 0, 0, 1, 16, 0, 0, 1, 0, 0, 0, 1, 13, 0, 0, 1, 16)),
    bytes((0, 0, 2, 0, 1, 0, 0, 1, 9, 0, 5)),
    bytes((0, 6, 3, 0, 18, 3, 0, 0, 1, 0)),
)


def key(name: str) -> ObjectKey:
    return ObjectKey("Toy", "default", name)


def _meaning(line: str) -> tuple[str, str, str]:
    """(kind, name, value): of an object the kind is empty; none at all for what means nothing."""
    words = line.split()
    if not words or line.startswith(("---", " ---")):
        return "nothing", "", ""
    kind = words[0] if words[0] in BAD else ""
    rest = words[1:] if kind else words
    return kind, rest[0] if rest else "", rest[1] if len(rest) > 1 else ""


def decode(text: str) -> file_state.Decoded:
    """The toy language, piece by piece."""
    found = [(number, *_meaning(line)) for number, line in enumerate(text.split("\n"), 1)]
    objects = [file_state.Object(key(name), f"{name} {value}", value) for _, kind, name, value in found if not kind]
    problems = [Problem("", n, name, "", "is bad") for n, kind, name, _ in found if kind in BAD]
    named = tuple(key(name) for _, kind, name, _ in found if kind in ("bad", "part"))
    remains = tuple(file_state.Object(key(name), f"{name} {v}", v) for _, kind, name, v in found if kind == "part")
    return file_state.Decoded(tuple(objects), tuple(problems), named, any(row[1] == "!" for row in found), remains)


@dataclass(slots=True)
class File:
    """What one file comes to. `good` are objects by name, the first of each; `parts` stand in for what never was;
    `wrong` are those that the text names and does not yield."""

    text: str = ""
    good: dict[str, list[str]] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    def objects(self) -> dict[str, list[str]]:
        return {**{name: [value] for name, value in self.parts.items()}, **self.good}

    def after(self, text: str) -> File:
        """The same file with another text, by the laws."""
        good: dict[str, list[str]] = {}
        named: set[str] = set()
        parts: dict[str, str] = {}
        broken = False
        for line in text.split("\n"):
            kind, name, value = _meaning(line)
            if not kind:
                good.setdefault(name, []).append(value)
            elif kind == "!":
                broken = True
            elif kind in BAD:
                named.add(name)
                if kind == "part":
                    parts[name] = value
        concerned = set(NAMES) | {"no"} if broken else named
        kept = {name: self.good[name][:1] for name in self.good if name in concerned and name not in good}
        stood = {name: value for name, value in self.parts.items() if name in concerned}
        stand = {name: value for name, value in (stood | parts).items() if name not in good and name not in kept}
        return File(text, good | kept, stand, frozenset(named - good.keys() | stand.keys()))


Present = tuple[str | None, bool, bool]
"""Of an object the content that acts, whether it is in error, and whether what acts is a part."""


class Run:
    def __init__(self) -> None:
        self.tree = tree.Tree(decode, lambda model, generation: (model, generation))
        self.files: dict[str, File] = {}
        self.generations: dict[str, int] = {}
        self.acts: dict[str, tuple[str, int]] = {}
        """What acts of each object, with the generation that it was reported with."""
        self.unreadable: set[str] = set()
        self.told: dict[str, tuple[str, int]] = {}

    def winners(self) -> dict[str, Present]:
        """Of each object what counts."""
        files = [self.files[file] for file in sorted(self.files)]
        found: dict[str, Present] = {}
        for file in files:
            for name, values in file.objects().items():
                found.setdefault(name, (values[0], name in file.wrong, name in file.wrong and name not in file.good))
        for name in (name for file in files for name in file.wrong):
            found.setdefault(name, (None, True, False))
        return found

    def put(self, file: str, text: str, gives_up: bool) -> None:
        before = self.files.get(file, File())
        *rest, staged = self.tree.stage(file, text)
        require(staged is not None and not any(rest), "no staged file")
        assert staged is not None
        require("".join(staged.pieces) == text, "cutting changes the text")
        require(all(each.startswith("---") for each in staged.pieces[1:]), f"cut inside a document: {staged.pieces}")
        if _loses(before.text, text):
            require(staged.loses, f"{before.text!r} to {text!r} loses something")
        if gives_up:
            return  # it did not stand, and nothing has happened
        self.unreadable.discard(file)
        old = self.winners()
        self.files[file] = before.after(text)
        self.hear(old, self.tree.commit(staged))

    def remove(self, file: str) -> None:
        old = self.winners()
        self.files.pop(file, None)
        self.unreadable.discard(file)
        self.hear(old, self.tree.remove(file))

    def hear(self, old: dict[str, Present], changes: Iterable[Fact]) -> None:
        """What is told is the difference, each object once, with its generation."""
        new = self.winners()
        wanted: dict[str, tuple[str, int] | Invalid | None] = {}
        for name in old.keys() | new.keys():
            if name not in new:
                wanted[name] = None
                self.generations.pop(name)
            elif old.get(name) != new[name]:
                self.generations[name] = self.generations.get(name, 0) + 1
                wanted[name] = self._model(name, old.get(name, (None, False, False)), new[name])
        changes = list(changes)
        told = {change.key.name: change.model for change in changes}
        require(len(told) == len(changes), "an object is told twice")
        require(told == wanted, f"told {told}, wanted {wanted}")

    def _model(self, name: str, old: Present, new: Present) -> tuple[str, int] | Invalid | None:
        """What acts keeps its generation while the object is in error."""
        content, is_wrong, is_part = new
        generation = self.generations[name]
        if content is None:
            return Invalid(("cannot be read",), generation)
        if not is_wrong or old[0] != content:
            self.acts[name] = (f"{name} {content}", generation)
        acts: Any = self.acts[name]
        if not is_wrong:
            return self.acts[name]
        return Invalid(("cannot be read",), generation, *((None, acts) if is_part else (acts, None)))

    def judge(self) -> None:
        for name in (*NAMES, "no"):
            files = sorted(self.files)
            having = [file for file in files if name in self.files[file].objects()]
            first = next(iter(having or [file for file in files if name in self.files[file].wrong]), None)
            require(self.tree.file_of(key(name)) == first, f"{name} is of {self.tree.file_of(key(name))}, not {first}")
        require(self.tree.files == self.files.keys(), "other files")
        said = sorted((problem.file, problem.line, problem.message) for problem in self.tree.problems())
        wanted = [(file, 0, "cannot be read") for file in self.unreadable]
        for file, state in self.files.items():
            lines = enumerate(state.text.split("\n"), 1)
            wanted += [(file, number, "is bad") for number, line in lines if _meaning(line)[0] in BAD]
            wanted += [(file, 0, text) for text in self._duplicates(file)]
        require(said == sorted(wanted), f"problems {said}, wanted {sorted(wanted)}")

    def _duplicates(self, file: str) -> Iterable[str]:
        for name, values in self.files[file].objects().items():
            first = min(each for each in self.files if name in self.files[each].objects())
            if len(values) - (file == first):
                yield f"is defined in {first} and again in {file}; the first is used: delete one of them"


def _loses(old: str, new: str) -> bool:
    """Whether objects are no longer there, or errors are the first ones."""
    before, after = ([_meaning(line) for line in text.split("\n")] for text in (old, new))
    gone = {name for kind, name, _ in before if not kind} - {name for kind, name, _ in after if not kind}
    wrong, was_wrong = (any(kind in BAD for kind, _, _ in each) for each in (after, before))
    return bool(gone) or (wrong and not was_wrong)


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    dice, run = Dice(data), Run()
    for _ in range(60):
        if dice.empty:
            return
        file = dice.one_of(FILES)
        action = dice.below(8)
        if action == 5:
            run.remove(file)
        elif action == 7 and file in run.files:
            run.tree.unreadable(Problem(file, 0, "", "", "cannot be read"))
            run.unreadable.add(file)
        elif action == 6 and file in run.files:  # renamed: gone here, and there with the same text
            text = run.files[file].text
            run.remove(file)
            run.put(dice.one_of(FILES), text, False)
        else:
            text = "".join(dice.one_of(LINES) for _ in range(dice.below(7)))
            run.put(file, text, gives_up=action == 4)
        run.judge()
