"""Errors that we make, in the shape and media type of the API that was called, whole and as an event of a stream. Pure.

Official clients raise typed errors by status and read `error.message`; of a stream they raise what an error event says.
An upstream's own errors are not rewritten: their clients know them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.llm.routes import Format, RouteType

if TYPE_CHECKING:
    from dataplane.reply import Reply

JSON: Final = b"application/json"

OPENAI_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
"""`error.type` of OpenAI's APIs by status; others below 500 are `invalid_request_error`, above it `server_error`."""

ANTHROPIC_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""`error.type` of Anthropic's API by status; others below 500 are `invalid_request_error`, above it `api_error`."""


def _type(types: dict[int, str], status: int, fallback: str) -> str:
    return types.get(status) or ("invalid_request_error" if status < _SERVERS else fallback)


_SERVERS: Final = 500


def of_openai(status: int, reason: str, message: str, field: str = "") -> dict[str, object]:
    """`error` of OpenAI's APIs."""
    kind = _type(OPENAI_TYPES, status, "server_error")
    return {"message": message, "type": kind, "param": field or None, "code": reason}


def _openai(status: int, reason: str, message: str, field: str) -> dict[str, object]:
    return {"error": of_openai(status, reason, message, field)}


def _anthropic(status: int, reason: str, message: str, field: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": _type(ANTHROPIC_TYPES, status, "api_error"), "message": message}}


def _cohere(status: int, reason: str, message: str, field: str) -> dict[str, object]:
    return {"message": message}


_Shape = Callable[[int, str, str, str], dict[str, object]]
SHAPES: Final[dict[RouteType, _Shape]] = {
    Format.MESSAGES: _anthropic,
    Format.TOKEN_COUNT: _anthropic,
    Format.RERANK: _cohere,
}
"""By what was called; others have the shape of OpenAI's."""


MESSAGES: Final = {
    "BodyTooLarge": "the request body is larger than may be held: frontend.http.maxBufferSize, or a limit of a policy"
}
"""By reason, in place of the text of its row: clients show no documentation, and images as data URLs are large."""


def body(route: RouteType, status: int, reason: str, message: str, field: str = "") -> bytes:
    """The body of an answer. `reason`: a code of `chain/replies`; `field`: what of the request it is about."""
    return _written(SHAPES.get(route, _openai)(status, reason, message, field))


def refused(route: RouteType, reply: Reply, message: str = "", field: str = "") -> Reply:
    """The same answer, as clients of the API read it. `message`: in place of the text of its row."""
    text = message or text_of(reply)
    written = body(route, reply.status, reply.reason, text, field)
    return replace(reply, body=written, content_type=JSON, detail=reply.detail or message)


def text_of(reply: Reply) -> str:
    """Its text, with what its client can do."""
    text = MESSAGES.get(reply.reason) or reply.body.decode("utf-8", "replace")
    return f"{text}: {reply.hint}" if reply.hint else text


def event(route: RouteType, status: int, reason: str, message: str, sequence: int = 0) -> bytes:
    """The last event of a stream that cannot go on. `sequence`: of the next event, where the format counts them."""
    if route is Format.RESPONSES:
        said: dict[str, object] = {
            "type": "error",
            "code": reason,
            "message": message,
            "param": None,
            "sequence_number": sequence,
        }
        return b"event: error\ndata: %b\n\n" % _written(said)
    name = b"event: error\n" if route is Format.MESSAGES else b""
    return b"%bdata: %b\n\n" % (name, body(route, status, reason, message))


def _written(value: dict[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
