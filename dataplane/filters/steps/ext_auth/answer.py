"""What an answer over HTTP comes to: 200 allows, anything else denies (AgentExtAuthHTTP)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.filter import EVERY_HEADER, Refused
from dataplane.chain.header_edits import FRAMING, header_name
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.question import lines, location
from dataplane.filters.steps.ext_auth.verdict import DENIED, REDIRECTED, Verdict
from dataplane.http.heads import plain_name, twin_of_lines
from dataplane.variables import Variables
from gatewright.cel.errors import CelError
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.chain.calls import CallAnswer
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from gatewright.cel.program import Program

ALLOWED: Final = 200
KEEPABLE: Final = frozenset((ALLOWED, 401, 403))
"""Answers that are decisions. Others, 404 and 5xx among them, may be an accident of the moment."""


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
class _Given:
    """Headers of the answer for the backend; `low`: the same in lower case; `names`: those that it gives beside the
    policy's own."""

    reading: Reading
    lines: bytes = field(repr=False)
    low: bytes = field(repr=False)
    names: frozenset[bytes] = frozenset()

    def apply(self, x: Exchange) -> bool:
        self.reading.without(x)
        for name in self.names:
            x.request.remove(name)
        x.request.block += self.lines
        x.request.low += self.low
        return True


class Reading:
    """Reads answers. Raises `Refused` for names that no header can have."""

    __slots__ = ("_denials", "_metadata", "_needles", "_origin", "_redirect", "_takes_all", "names", "programs")

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
        self._takes_all = config.all_response_headers
        if self._takes_all:
            self.names = {EVERY_HEADER: None}
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
        status = answer.status
        if status != ALLOWED:
            return Verdict(self._denial(status), None, metadata, status in KEEPABLE, size)
        if self._takes_all:
            return Verdict(None, _all_of(self, answer.head), metadata, True, size + 2 * len(answer.head.block))
        if not self._needles:
            return Verdict(None, None, metadata, True, size)
        given = lines(answer.head, self._needles)
        return Verdict(None, _Given(self, given, twin_of_lines(given)), metadata, True, size + 2 * len(given))

    def without(self, x: Exchange) -> None:
        """Take out what only the server may say: a client's value must not pass for it."""
        head = x.request
        for needle in self._needles:
            if needle in head.low:
                head.remove(needle[2:-1])

    def _denial(self, status: int) -> Reply:
        known = self._denials.get(status)
        if known is None:
            known = self._denials[status] = made(DENIED, self._said(status))
        return known

    def denied(self, x: Exchange, denial: Reply) -> Reply:
        """`denial`, or where `redirect` leads to."""
        place = None if self._redirect is None else location(self._redirect, x)
        if place is None:
            return denial
        return Reply(302, REDIRECTED, headers=b"location: %b\r\n" % place, detail=denial.detail)

    def _said(self, status: int) -> str:
        return f"{self._origin}: the authorization server answered {status}"


def _all_of(reading: Reading, head: Head) -> _Given:
    """All headers but those of the connection and those about the answer's own content: the request has its own."""
    block, names = b"", set()
    for name, value in head.items():
        low = plain_name(name)
        if low not in _ITS_OWN and low not in FRAMING:
            block += b"%b: %b\r\n" % (name, value)
            names.add(low)
    return _Given(reading, block, twin_of_lines(block), frozenset(names))


_ITS_OWN: Final = frozenset(
    (b"host", b"date", b"server", b"content-type", b"content-encoding", b"content-language", b"content-location")
)


def _settable(name: str, where: str) -> bytes:
    low = header_name(name, where)
    if low == b"host":
        raise Refused(f"{where}: the host of a request is not the authorization server's to set")
    return low
