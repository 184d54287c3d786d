"""A row of the tables of log fields: its name, where it comes from, its value; and how both formats write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_values import bare, quoted

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Value = Callable[["Exchange", float], "str | int | float | None"]
"""Of an exchange that ended, that many seconds after its head was read. None: it has none."""
Write = Callable[["Exchange", float], str]
"""What writes fields of one, with a separator before each."""


HEAD, ROUTE, TRY, RESPONSE, END = "head", "route", "try", "response", "end"
"""When a value is known: with the request's head, the route, the try, the response's head, or at the end."""

NUMBER, WORD, TEXT = "number", "word", "text"
"""Values by how they are written: numbers; text that needs no quotes anywhere; other text."""

OWN: Final = "gatewright."
"""Namespace of attributes for which OpenTelemetry's conventions have no name."""

NO_ATTRIBUTE: Final = "-"
"""As the name of an attribute: OTLP has a field of its own for it."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the default line, which is compiled (`log_writer`), has of a field that most requests have. `value`: Python
    over the exchange `x` and the seconds that it `took`."""

    value: str
    shape: str = WORD
    when: str = ""
    """Whether it has one; "": always."""
    in_text: str = ""
    """Its text in a text line, where a shorter way is known to be right."""


@dataclass(frozen=True, slots=True)
class Field:
    """A row. `what`: where the value comes from, for people."""

    name: str
    what: str
    value: Value
    is_prose: bool = False
    """Text for people: quoted in text lines whatever it is."""
    absent: str = ""
    """What stands in a text line for an empty text."""
    attribute: str = ""
    """Its name in OTLP, where OpenTelemetry's conventions have another; or NO_ATTRIBUTE."""
    otlp: Value | None = None
    """Its value in OTLP, where that is another."""
    moment: str = END
    source: Source | None = None
    """How the default line has it; None: few requests have it, and it is asked for where there may be some."""
    fact: str = ""
    """Of a field of a group with `facts`: which one it is asked of; it has no value where that is not known."""

    @property
    def otlp_name(self) -> str:
        """Names with a namespace keep it; others get that of this product."""
        return self.attribute or (self.name if "." in self.name else f"{OWN}{self.name}")

    def text(self, x: Exchange, took: float) -> str:
        """Its part of a text line."""
        value = self.value(x, took)
        if value is None:
            return ""
        if isinstance(value, int | float):
            return f" {self.name}={value}"
        return f" {self.name}={quoted(value) if self.is_prose else bare(value) if value else self.absent}"

    def json(self, x: Exchange, took: float) -> str:
        """Its part of a JSON line."""
        value = self.value(x, took)
        if value is None:
            return ""
        return f',"{self.name}":{value if isinstance(value, int | float) else quoted(value)}'


@dataclass(frozen=True, slots=True)
class Group:
    """Fields about one protocol, in the order of a line. `applies`: whether an exchange has some of them."""

    applies: Callable[[Exchange], bool]
    fields: tuple[Field, ...]
    facts: str = ""
    """The attribute of an exchange that has what is known, by the fields' `fact`; "": each field is asked."""
    answers: tuple[str, ...] = ()
    """Variables of what a stream said: it is kept until the end where an expression reads one."""

    def text(self, x: Exchange) -> str:
        return "".join([field.text(x, 0.0) for field in self._known(x)])

    def json(self, x: Exchange) -> str:
        return "".join([field.json(x, 0.0) for field in self._known(x)])

    def _known(self, x: Exchange) -> Iterable[Field]:
        """Fields that may have a value: most calls have few of many."""
        if not self.facts:
            return self.fields
        known: Any = (x.attributes or {}).get(self.facts, ())  # Any: a mapping by names
        return [field for field in self.fields if field.fact in known]
