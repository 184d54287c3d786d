"""What a regular expression of RE2 is made of, as far as bounds of its work and its beginnings need it. Pure.

Assertions are taken for true, and letters of either case for the same where any part of the pattern ignores case. What
this does not understand, though RE2 takes it, has no tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Protocol

FOR_EVER: Final = -1
MOST: Final = 16_384
"""Characters of the form of all beginnings."""
_repeat: Final = re.compile(r"\{(\d+)(,(\d*))?\}").match
_flags: Final = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])").match
_named: Final = re.compile(r"\?P?<\w+>").match
_escape: Final = re.compile(
    r"\\(?:[pP](?:\{\^?\w+\}|\w)|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|[^a-zA-Z0-9]|[dDsSwWafnrtv])", re.DOTALL
).match
_class: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.[^\]\\]*?|[^\]\\])*\]", re.DOTALL).match
_ASSERTIONS: Final = ("\\b", "\\B", "\\A", "\\z", "^", "$")


class Unknown(Exception):
    """It is not understood."""


class Node(Protocol):
    def whole(self) -> str: ...

    def prefixes(self) -> str:
        """Of all beginnings, the empty one and the whole among them."""
        ...


@dataclass
class One:
    """One character. `text`: as it is written."""

    text: str

    def whole(self) -> str:
        return self.text

    def prefixes(self) -> str:
        return f"{self.text}?"


@dataclass
class Row:
    """One after the other."""

    parts: list[Node] = field(default_factory=list)

    def whole(self) -> str:
        return "".join(part.whole() for part in self.parts)

    def prefixes(self) -> str:
        found = ""
        for part in reversed(self.parts):
            if isinstance(part, One):
                found = f"(?:{part.text}{found})?"
            else:
                found = f"(?:{part.whole()}{found}|{part.prefixes()})" if found else part.prefixes()
            if len(found) > MOST:
                raise Unknown
        return found


@dataclass
class Choice:
    rows: list[Node]

    def whole(self) -> str:
        return f"(?:{'|'.join(row.whole() for row in self.rows)})"

    def prefixes(self) -> str:
        return f"(?:{'|'.join(row.prefixes() for row in self.rows)})"


@dataclass
class Repeat:
    part: Node
    least: int
    most: int

    def whole(self) -> str:
        upper = "" if self.most == FOR_EVER else str(self.most)
        return f"(?:{self.part.whole()}){{{self.least},{upper}}}"

    def prefixes(self) -> str:
        if self.most == 0:
            return ""
        before = "*" if self.most == FOR_EVER else f"{{0,{self.most - 1}}}"
        return f"(?:(?:{self.part.whole()}){before}{self.part.prefixes()})"


@dataclass(frozen=True, slots=True)
class Tree:
    """A pattern that was understood as a whole."""

    root: Node
    ignores_case: bool


def read(pattern: str) -> Tree | None:
    """`pattern`: one that RE2 takes. None: it is not understood."""
    reader = _Reader(pattern)
    try:
        root = reader.choice()
    except (Unknown, RecursionError):
        return None
    return Tree(root, reader.ignores_case) if reader.at == len(pattern) else None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0
        self.ignores_case = False

    def choice(self) -> Node:
        rows = [self._row()]
        while self._takes("|"):
            rows.append(self._row())
        return rows[0] if len(rows) == 1 else Choice(rows)

    def _takes(self, text: str) -> bool:
        is_there = self._pattern.startswith(text, self.at)
        self.at += len(text) * is_there
        return is_there

    def _row(self) -> Node:
        row = Row()
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            if self._takes("\\Q"):
                text, _, _ = self._pattern[self.at :].partition("\\E")
                self.at += len(text)
                self._takes("\\E")
                row.parts += [One(re.escape(each)) for each in text]
            elif any(self._takes(each) for each in _ASSERTIONS):
                self._repeated(Row())
            else:
                row.parts.append(self._repeated(self._atom()))
        return row

    def _repeated(self, part: Node) -> Node:
        while True:
            if self._takes("*"):
                part = Repeat(part, 0, FOR_EVER)
            elif self._takes("+"):
                part = Repeat(part, 1, FOR_EVER)
            elif self._takes("?"):
                part = Repeat(part, 0, 1)
            elif (found := _repeat(self._pattern, self.at)) is not None:
                self.at = found.end()
                least = int(found[1])
                most = least if found[2] is None else int(found[3]) if found[3] else FOR_EVER
                part = Repeat(part, least, most)
            else:
                return part
            self._takes("?")  # which of them is preferred does not matter

    def _atom(self) -> Node:
        if self._takes("("):
            return self._group()
        if self._takes("."):
            return One("(?s:.)")
        for known in (_class, _escape):
            found = known(self._pattern, self.at)
            if found is not None:
                self.at = found.end()
                return One(found[0])
        letter = self._pattern[self.at]
        if letter in "\\[*+?":
            raise Unknown
        self.at += 1
        return One(re.escape(letter))

    def _group(self) -> Node:
        named = _named(self._pattern, self.at)
        flags = _flags(self._pattern, self.at)
        if named is not None:
            self.at = named.end()
        elif flags is not None:
            self.at = flags.end()
            self.ignores_case = self.ignores_case or "i" in flags[1]
            if flags[3] == ")":
                return Row()
        elif self._takes("?"):
            raise Unknown
        found = self.choice()
        if not self._takes(")"):
            raise Unknown
        return found
