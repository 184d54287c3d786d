"""The trace of one exchange, while it lives: its own span, those of its tries, and those of calls made for it.

Kept in `Exchange.trace` where a listener traces it; else that is None. Times are the worker's monotonic seconds until
the end, when all of them become points in time at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.collector import Collector
    from dataplane.tracing.context import SpanContext

NO_TRY: Final = -1

MOST_SPANS: Final = 128
"""Spans of one exchange; a stream of calls may go on for days. Further ones are counted in an attribute."""


Evaluate = Callable[["Exchange"], Any]
"""The value of an expression (Any: whatever it gives). Raises CelError."""


class Wanted(Protocol):
    """What is wanted of spans (`plan.TracingPlan`)."""

    @property
    def collector(self) -> Collector: ...

    @property
    def added(self) -> tuple[tuple[str, Evaluate], ...]: ...

    @property
    def removed(self) -> frozenset[str]: ...

    @property
    def resources(self) -> tuple[tuple[str, Evaluate], ...]: ...


@dataclass(slots=True)
class Part:
    """A span below that of the exchange: a try, or a call. `backend`: key of who is asked; `resend`: tries before this
    one, NO_TRY for a call."""

    context: SpanContext
    backend: str
    method: str
    began: float
    ended: float = 0.0
    endpoint: str = ""
    status: int = 0
    failure: str = ""
    resend: int = NO_TRY
    name: str = ""
    """What it is about, where a protocol above HTTP says so."""
    attributes: tuple[tuple[str, Any], ...] = ()
    """By the conventions of that protocol."""

    def describe(self, name: str, attributes: tuple[tuple[str, Any], ...]) -> None:
        """It is about something that a protocol above HTTP names."""
        self.name, self.attributes = name, attributes

    def end(self, now: float, endpoint: str, status: int, failure: str) -> None:
        """`status`: of the answer, 0 for none; `failure`: the cause, in one word."""
        self.ended, self.endpoint, self.status, self.failure = now, endpoint, status, failure


class Trace:
    """Of an exchange that is recorded."""

    is_recorded: Final = True
    __slots__ = ("_new_id", "attempt", "context", "left_out", "parent", "parts", "plan")

    def __init__(self, plan: Wanted, context: SpanContext, parent: str, new_id: Callable[[], str]) -> None:
        self.plan = plan
        self.context = context
        self.parent = parent
        """Id of the caller's span, "" for none."""
        self.parts: list[Part] = []
        self.attempt: Part | None = None
        """The try that is under way."""
        self.left_out = 0
        self._new_id = new_id

    def try_begins(self, method: bytes, now: float, tries: int, backend: str) -> bytes:
        """The lines that a try sends. `tries`: how many there were before; `backend`: key of who is asked. Asked again
        by the same try (another connection takes the place of one that was closed) it answers the same."""
        if self.attempt is not None and self.attempt.resend == tries:
            return self.attempt.context.header_lines()
        self.attempt = part = self._part(backend, method, now)
        part.resend = tries
        return part.context.header_lines()

    def try_ends(self, now: float, endpoint: str, status: int, failure: str) -> None:
        """As `Part.end`; no error where none is under way."""
        if self.attempt is not None:
            self.attempt.end(now, endpoint, status, failure)
            self.attempt = None

    def call_begins(self, backend: str, method: bytes, now: float) -> Part:
        """A call made for the sake of the exchange; its caller ends it."""
        return self._part(backend, method, now)

    def _part(self, backend: str, method: bytes, now: float) -> Part:
        part = Part(self.context.child(self._new_id(), True), backend, method.decode("latin-1"), now)
        if len(self.parts) < MOST_SPANS:
            self.parts.append(part)
        else:
            self.left_out += 1
        return part


class Muted:
    """Of an exchange that is not recorded, although its caller records the trace: what goes on says so."""

    is_recorded: Final = False
    __slots__ = ("_lines", "context")

    def __init__(self, context: SpanContext) -> None:
        self.context = context
        self._lines = context.header_lines()

    def try_begins(self, method: bytes, now: float, tries: int, backend: str) -> bytes:
        """As `Trace.try_begins`."""
        return self._lines

    def try_ends(self, now: float, endpoint: str, status: int, failure: str) -> None:
        """It is not kept."""

    def call_begins(self, backend: str, method: bytes, now: float) -> Part:
        """As `Trace.call_begins`; the part is not exported."""
        return Part(self.context, backend, "", now)
