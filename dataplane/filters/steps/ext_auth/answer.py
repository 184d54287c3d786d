"""What the authorization server has said, and what becomes of the request.

200 allows, anything else denies (spec 2). What is kept of an answer is a `Verdict`: a value that can be carried out on
any request with the same cache key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.filter import Refused
from dataplane.chain.header_edits import header_name
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.question import lines, location
from dataplane.http.heads import twin_of_lines
from dataplane.variables import Variables
from gatewright.cel.errors import CelError
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.chain.calls import CallAnswer
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from gatewright.cel.program import Program

ALLOWED: Final = 200
VARIABLE: Final = "extauthz"
DENIED, REDIRECTED, FAILED = "ExtAuthDenied", "ExtAuthRedirect", "ExtAuthFailed"
"""Reason codes: the server said no; it said no, and there is a place to go to; nobody said anything."""


class Answered(Variables):
    """What expressions read when the answer is there: `response` is the answer, all else is the exchange's."""

    __slots__ = ("_exchange", "response", "status")

    def __init__(self, exchange: Exchange, answer: CallAnswer) -> None:
        self._exchange = exchange
        self.status: int = answer.status
        self.response: Head | None = answer.head
        self.response_body: bytes | None = answer.body

    def __getattr__(self, name: str) -> Any:  # whatever an exchange has
        return getattr(self._exchange, name)

    def evaluations_end(self, now: float, seconds: float) -> float:
        """The exchange's own: what is asked of it costs the same turn."""
        return self._exchange.evaluations_end(now, seconds)

    def cut_off(self, error: CelError) -> Exception:
        return self._exchange.cut_off(error)


@dataclass(slots=True)
class Verdict:
    """A value. `lines`: headers of the answer for the backend, and `low` the same in lower case; `metadata`: what
    expressions made of it, or None; `size`: bytes of what it was made of."""

    status: int
    lines: bytes = field(repr=False)
    low: bytes = field(repr=False)
    metadata: dict[str, Any] | None = field(repr=False)
    size: int = 0


class Reading:
    """Reads answers and carries verdicts out. Raises `Refused` for names that no header can have."""

    __slots__ = ("_denials", "_metadata", "_needles", "_origin", "_redirect", "names", "programs")

    def __init__(self, config: traffic_pb2.ExtAuthHttp, origin: str) -> None:
        self.programs: list[Program] = []
        """All that is evaluated."""
        self._origin = origin
        self._redirect: Callable[[Exchange], Any] | None = None
        if config.redirect:
            program = expressions.compiled(config.redirect, "request", "http.redirect")
            self.programs.append(program)
            self._redirect = program.evaluate
        self._metadata: list[tuple[str, Callable[[Any], Any]]] = []
        for name, text in sorted(config.response_metadata.items()):
            program = expressions.compiled(text, "response", f"http.responseMetadata.{name}")
            self.programs.append(program)
            self._metadata.append((name, program.evaluate))
        where = "http.allowedResponseHeaders"
        self.names = dict.fromkeys(_settable(name, where) for name in config.allowed_response_headers)
        """Headers that only the server may give."""
        self._needles = tuple(b"\r\n" + name + b":" for name in self.names)
        self._denials: dict[int, Reply] = {}

    def verdict(self, x: Exchange, answer: CallAnswer) -> Verdict:
        """What counts of an answer."""
        metadata, size = None, 0
        if self._metadata:
            metadata, size = {}, len(answer.head.block) + len(answer.body)
            context: Any = Answered(x, answer)
            for name, evaluate in self._metadata:
                try:
                    metadata[name] = evaluate(context)
                except CelError:
                    continue  # no value: the key is absent, and whatever reads it fails in turn
        if answer.status != ALLOWED or not self._needles:
            return Verdict(answer.status, b"", b"", metadata, size)
        given = lines(answer.head, self._needles)
        return Verdict(ALLOWED, given, twin_of_lines(given), metadata, size + 2 * len(given))

    def carry_out(self, x: Exchange, verdict: Verdict) -> Reply | None:
        """Let the request go on, with what the server gave it, or end it."""
        metadata = verdict.metadata
        if metadata is not None:
            known: Any = None if x.attributes is None else x.attributes.get(VARIABLE)
            x.leave(VARIABLE, {**known, **metadata} if known else metadata)
        if verdict.status != ALLOWED:
            return self._denial(x, verdict.status)
        if self._needles:
            self.without(x)
            x.request.block += verdict.lines
            x.request.low += verdict.low
        return None

    def without(self, x: Exchange) -> None:
        """Take out what only the server may say: a client's value must not pass for it."""
        head = x.request
        for needle in self._needles:
            if needle in head.low:
                head.remove(needle[2:-1])

    def _denial(self, x: Exchange, status: int) -> Reply:
        if self._redirect is not None:
            place = location(self._redirect, x)
            if place is not None:
                return Reply(302, REDIRECTED, headers=b"location: %b\r\n" % place, detail=self._said(status))
        known = self._denials.get(status)
        if known is None:
            known = self._denials[status] = made(DENIED, self._said(status))
        return known

    def _said(self, status: int) -> str:
        return f"{self._origin}: the authorization server answered {status}"


def _settable(name: str, where: str) -> bytes:
    low = header_name(name, where)
    if low == b"host":
        raise Refused(f"{where}: the host of a request is not the authorization server's to set")
    return low
