"""Where an object stands in a text, and the problems that are said of it.

Called by documents and standalone. The positions of a text are looked up when the first problem asks for one, and
forgotten with the Place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gatewright.api.schema import names
from gatewright.api.text import yaml_text
from gatewright.api.text.problem import Problem, Severity, path_text
from gatewright.api.text.yaml_text import Position

Path = tuple[str | int, ...]

_CONTENT = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)


class Place:
    """Where a document stands; finds the line of a path when somebody asks."""

    def __init__(self, text: str | None, file: str, first_line: int) -> None:
        self._text = text
        self.file = file
        self._first_line = first_line
        content = _CONTENT.search(text or "")
        self.line = first_line + (content.string[: content.start()].count("\n") if content else 0)
        self._root: Position | None = None

    def of(self, path: Path) -> tuple[int, int]:
        """Line and column of the nearest field on `path` that stands in the text, else of the document."""
        if self._text is None:
            return 0, 0
        if self._root is None:
            self._root = yaml_text.positions(self._text) or Position(1, 0)
        here = self._root
        for part in path:
            below = here.parts.get(part) or next(
                (here.parts[name] for name in names.NEUTRAL_OF.get(str(part), ()) if name in here.parts), None
            )
            if below is None:
                break
            here = below
        return self._first_line + here.line - 1, here.column


@dataclass(frozen=True, slots=True)
class Subject:
    """The object under examination: where it stands in the document, and how problems call it."""

    place: Place
    path: Path
    name: str

    def problem(
        self,
        path: Path,
        message: str,
        severity: Severity = "error",
        *,
        unsupported: bool = False,
        refused: bool = False,
        code: str = "invalid",
    ) -> Problem:
        """`unsupported` and `refused` have codes of their own."""
        line, column = self.place.of((*self.path, *path))
        code = "unsupported" if unsupported else "refused" if refused else code
        return Problem(
            self.place.file, line, self.name, path_text(path), message, severity, column, unsupported, refused, code
        )
