"""What is answered to requests that cannot be served: status and reason are rows of `chain/replies`; messages that
have an id, and mistakes of JSON-RPC, get a JSON-RPC error as their body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.mcp import messages, modern, versions

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.messages import Id, Malformed

JSON: Final = b"application/json"
UNSUPPORTED_VERSION: Final = -32022


def refused(reason: str, detail: str = "", headers: bytes = b"") -> Reply:
    """With the text of its row."""
    return made(reason, detail, headers)


def error(
    reason: str, code: int, text: str, request_id: Id | None = None, detail: str = "", data: object = None
) -> Reply:
    """With a JSON-RPC error."""
    body = messages.error(request_id, code, text, data)
    return replace(made(reason, detail), body=body, content_type=JSON)


def malformed(found: Malformed) -> Reply:
    reason = "McpMethodUnknown" if found.code == messages.METHOD_NOT_FOUND else "McpBadMessage"
    return error(reason, found.code, str(found), found.request_id)


def wrong_version(asked: str, request_id: Id | None, is_modern: bool = False) -> Reply:
    """`is_modern`: the client asks as only the revision without sessions does, so no other would help it."""
    if is_modern:
        supported = [modern.REVISION]
    else:
        supported = [*versions.LEGACY] if asked == modern.REVISION else [*versions.LEGACY, modern.REVISION]
    data = {"supported": supported, "requested": asked[:64]}
    return error("McpBadVersion", UNSUPPORTED_VERSION, "unsupported protocol version", request_id, data=data)
