"""Bodies and answers of a format where a provider has them a little differently (`paths.Dialect`). Pure.

`written` makes of a body in the format what the provider gets; `Events` is a stream that the provider has in messages
of AWS's event stream, as the format has it.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.llm import errors, usage
from dataplane.llm.aws_events import Frame, Frames, NoFrame
from dataplane.llm.formats.converse.stream import failure
from dataplane.llm.formats.registry import PROVIDERS
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.body import Body
    from dataplane.llm.paths import Dialect

BETA: Final = b"anthropic-beta"
_MODEL: Final = "model"
_BAD_GATEWAY: Final = 502
_encode: Final = msgspec.json.Encoder().encode


def written(dialect: Dialect, body: Body, model: str) -> bytes:
    """Raises `Malformed`, also for what cannot be said."""
    if dialect.renamed is not None:
        body.set(_MODEL, _encode(dialect.renamed(model)))
    for name in dialect.without:
        body.remove(name)
    for name, value in dialect.fields:
        body.set(name, value)
    return body.written()


def with_headers(dialect: Dialect, head: Head, body: Body) -> list[str]:
    """Set the headers of a request, and in the body what other providers have in one. What is left out is answered."""
    for name, value in dialect.headers:
        head.set(name, value)
    if dialect.betas is None:
        return []
    asked = [each.strip() for line in head.get_all(BETA) for each in line.decode("latin-1").split(",")]
    head.remove(BETA)
    known = [each for each in asked if each in dialect.betas]
    if known:
        body.set("anthropic_beta", _encode(known))
    return [f"{BETA.decode()}:{each}" for each in asked if each and each not in dialect.betas]


def error(dialect: Dialect, form: Format, status: int, data: bytes) -> bytes:
    """An error answer, as clients of the format read it."""
    found = usage.parsed(data)
    if form in _OF_ANTHROPIC and type(found) is dict and found.get("type") == "error":
        return data
    failure = PROVIDERS[dialect.errors].read_error(status, data)
    return errors.body(form, status, failure.kind, failure.message, failure.field)


_OF_ANTHROPIC: Final = (Format.MESSAGES, Format.TOKEN_COUNT)


class _Chunk(msgspec.Struct):
    bytes: str = ""


class _Event(msgspec.Struct):
    type: str = ""


_chunk: Final = msgspec.json.Decoder(_Chunk)
_event: Final = msgspec.json.Decoder(_Event)


class Events:
    """A stream of InvokeModelWithResponseStream: each chunk is an event of Messages. What cannot be read, and what the
    provider says has failed, becomes that API's error event, after which nothing comes."""

    __slots__ = ("_form", "_frames", "_is_over")

    def __init__(self, form: Format) -> None:
        self._form = form
        self._frames = Frames()
        self._is_over = False

    def feed(self, data: bytes) -> bytes:
        if self._is_over:
            return b""
        given = []
        try:
            for frame in self._frames.feed(data):
                given.append(self._given(frame))
                if self._is_over:
                    break
        except NoFrame as error:
            given.append(self._failed(_BAD_GATEWAY, str(error)))
        return b"".join(given)

    def _given(self, frame: Frame) -> bytes:
        if frame.kind != "event":
            status, message = failure(frame)
            return self._failed(status or _BAD_GATEWAY, message or "the provider reported an error")
        if frame.name != "chunk":
            return b""
        try:
            event = b64decode(_chunk.decode(frame.payload).bytes, validate=True)
            name = _event.decode(event).type
        except (msgspec.DecodeError, ValueError, RecursionError):
            return self._failed(_BAD_GATEWAY, "an event cannot be read")
        return b"event: %b\ndata: %b\n\n" % (_line(name.encode()), _line(event))

    def _failed(self, status: int, message: str) -> bytes:
        self._is_over = True
        return errors.event(self._form, status, "", message)


def _line(text: bytes) -> bytes:
    """JSON has line ends between its values alone."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ")
