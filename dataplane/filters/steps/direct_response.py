"""Direct response: the gateway answers itself, with a status, a body and headers of its configuration.

A body expression without a value is answered with 500; a header whose expression has none is absent. An answer that no
expression takes part in is made when the filter is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.chain import expressions, header_edits
from dataplane.chain.buffering import buffering
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import Env, Filter, Refused, RequestHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.statuses import BODILESS, RESET_CONTENT
from gatewright.cel.errors import CelError
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

NAME = "direct_response"

REASON: Final = "DirectResponse"

TEXT, JSON, BYTES = b"text/plain", b"application/json", b"application/octet-stream"
TYPES: Final[dict[type, bytes]] = {str: TEXT, Redacted: TEXT, bytes: BYTES}
"""Content types of values that are written as they are, for answers without a `content-type` of their own."""

CONTENT_TYPE: Final = b"content-type"

WITHOUT_CONTENT: Final = (*BODILESS, RESET_CONTENT)
"""Whatever body such an answer is given stays here (lint says so)."""


def build(config: traffic_pb2.DirectResponse, env: Env) -> Filter | None:
    """Raises `Refused` for a status that no answer has, two bodies, headers that cannot be written and expressions that
    cannot work."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    if not 200 <= config.status <= 599:
        raise Refused(f"status: {config.status} is not between 200 and 599")
    if config.body and config.body_expression:
        raise Refused("bodyExpression: must be absent when body is set")
    headers = [_header(header) for header in config.headers]
    body = expressions.compiled(config.body_expression, "request", "bodyExpression") if config.body_expression else None
    text = config.body.encode()
    if config.status in WITHOUT_CONTENT:
        text, body = b"", None
    answer = Answer(config.status, text, body, headers, str(env.origin))
    programs = [*(() if body is None else (body,)), *(header.program for header in headers)]
    reads_body = expressions.reads_request_body(programs)
    hook = answer.hook()
    if reads_body:
        needs_it = body is not None and expressions.reads_request_body((body,))
        too_large = made("BodyTooLarge", str(env.origin)) if needs_it else None
        hook = buffering(hook, env.buffer_limit, too_large, reads_body)
    return Filter(NAME, request=hook)


class Header(NamedTuple):
    name: bytes
    low: bytes
    program: Program


def _header(config: traffic_pb2.HeaderExpression) -> Header:
    program = expressions.compiled(config.value, "request", f"headers[{config.name}]")
    return Header(config.name.encode(), header_edits.header_name(config.name, "headers"), program)


class Answer:
    """What is answered; `text` is a literal body, b"" beside an expression (`body`)."""

    def __init__(self, status: int, text: bytes, body: Program | None, headers: list[Header], origin: str) -> None:
        self.status = status
        self.text = text
        self.body = body
        self.headers = headers
        self.typed = any(header.low == CONTENT_TYPE for header in headers)
        """The configuration sets the content type."""
        self.origin = origin
        self.failed = made("DirectResponseFailed", origin)

    def hook(self) -> RequestHook:
        if self.body is not None or any(header_edits.constant(header.program) is None for header in self.headers):
            return self._made
        lines = self._lines([header_edits.constant(header.program) for header in self.headers])
        answer = Reply(self.status, REASON, self.text, lines, b"" if self.typed else TEXT, detail=self.origin)
        return lambda x: answer

    def _made(self, x: Exchange) -> Reply:
        content, content_type = self.text, TEXT
        if self.body is not None:
            try:
                value = self.body.evaluate(x)
                content, content_type = expressions.body_value(value), TYPES.get(type(value), JSON)
            except CelError:
                return self.failed
        lines = self._lines([header_edits.value_of(header.program.evaluate, x) for header in self.headers])
        return Reply(self.status, REASON, content, lines, b"" if self.typed else content_type, detail=self.origin)

    def _lines(self, values: list[bytes | None]) -> bytes:
        """Finished lines of the headers that have a value."""
        pairs = zip(self.headers, values, strict=True)
        return b"".join([b"%b: %b\r\n" % (header.name, value) for header, value in pairs if value is not None])
