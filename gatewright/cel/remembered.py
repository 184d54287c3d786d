"""Parses a text once for all expressions that ask for it, one after the other: cookies, forms, queries and JSON that a
client sent. However many conditions a policy has, a long text costs what one of them costs.

What is remembered is pure: a function of the text alone, and never changed. It is of the last texts, whichever
request had them: expressions of one request run behind each other, so a few are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from gatewright.cel.errors import CelError
from gatewright.kept_errors import kept

SHORT: Final = 256
"""Characters up to which a text is parsed each time: that is as fast as looking it up."""
LONG: Final = 65_536
"""Characters above which a text is not remembered: no header is longer, and its value may be ten times its size."""
TEXTS: Final = 4
"""That are remembered for each kind of text; one more takes the place of the oldest."""

TextT = TypeVar("TextT", str, bytes)
ValueT = TypeVar("ValueT")


class Remembered(Generic[TextT, ValueT]):
    """`parse` of a text, for the last texts. A CelError is remembered, too, and raised as a new one each time."""

    __slots__ = ("_known", "_parse")

    def __init__(self, parse: Callable[[TextT], ValueT]) -> None:
        self._parse: Callable[[TextT], ValueT] = parse
        self._known: dict[TextT, tuple[ValueT | None, CelError | None]] = {}

    def __call__(self, text: TextT) -> ValueT:
        if not SHORT < len(text) <= LONG:
            return self._parse(text)
        found = self._known.get(text)
        if found is None:
            found = self._read(text)
            if len(self._known) >= TEXTS:
                del self._known[next(iter(self._known))]
            self._known[text] = found
        value, error = found
        if error is not None:
            raise type(error)(*error.args)
        return value  # type: ignore[return-value]  # there is an error where there is none

    def _read(self, text: TextT) -> tuple[ValueT | None, CelError | None]:
        try:
            return self._parse(text), None
        except CelError as error:
            return None, kept(error)

    def __repr__(self) -> str:  # texts are what clients sent
        return f"Remembered({self._parse.__name__}, {len(self._known)} texts)"
