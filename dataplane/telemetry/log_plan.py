"""What the access log of a Gateway adds, leaves out and keeps quiet about.

Built when configuration changes (`filters/frontend/access_log`), kept by each listener's plan, used by `access_log`
when it makes lines: off the request path, in batches. An exchange whose listener has none costs one look at an
attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dataplane.telemetry.log_field import Write
from dataplane.telemetry.log_values import json_of, quoted, text_of
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.collector import Collector

Evaluate = Callable[["Exchange"], Any]
"""The value of an expression on an exchange that ended. Raises CelError."""


@dataclass(frozen=True, slots=True)
class Added:
    """One added attribute. `text` and `json` are its beginning in a line of that format."""

    name: str
    text: str
    json: str
    evaluate: Evaluate

    @classmethod
    def named(cls, name: str, evaluate: Evaluate) -> Added:
        """`name` is one that `is_name` takes."""
        return cls(name, f" {name}=", f",{quoted(name)}:", evaluate)


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The access log of one Gateway."""

    wants: Callable[[Exchange], bool] | None = None
    """Whether an exchange gets a line at all; None: each does."""
    added: tuple[Added, ...] = ()
    fields: tuple[Write, Write] | None = None
    """What writes the default fields that are left, as text and as JSON; None: all are."""
    removed: frozenset[str] = frozenset()
    """Names, of either kind, of default fields that a collector does not get."""
    collector: Collector | None = None
    """The collector that gets each line as a record; None: no collector."""
    reads_headers: bool = False
    """An expression reads headers of the response: they are kept, also where no policy edits them."""
    reads_bodies: bool = False
    """An expression reads a body: bodies that policies read are kept until the line is made."""
    reads_answers: bool = False
    """An expression reads what a stream said (`Group.answers`): it is kept until then as well."""

    @property
    def without_added(self) -> LogPlan:
        """For a line that may not wait until a turn has time for expressions. Whether it is wanted at all is asked."""
        return replace(self, added=())

    def text_added(self, x: Exchange) -> str:
        """The added attributes, to stand at the end of a text line. One that fails or is null is absent."""
        parts = []
        for item in self.added:
            try:
                text = text_of(item.evaluate(x))
            except CelError:
                continue
            if text is not None:
                parts.append(item.text + text)
        return "".join(parts)

    def json_added(self, x: Exchange) -> str:
        """The same for a JSON line."""
        parts = []
        for item in self.added:
            try:
                text = json_of(item.evaluate(x))
            except CelError:
                continue
            if text is not None:
                parts.append(item.json + text)
        return "".join(parts)
