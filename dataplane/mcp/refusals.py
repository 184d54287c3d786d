"""Answers of the route's policies to a message of MCP, as JSON-RPC errors (JSON-RPC 2.0, 5.1). Pure.

What reads messages is loaded with the first MCP backend of a table, and this file with the table of kinds: so it is
asked for when a message is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply

CODES: Final = {401: -32001, 403: -32003, 413: -32600, 429: -32000}
"""By HTTP status: those of guardrails for who somebody is and what they may; Invalid Request for what is too large."""
_TYPE: Final = b"application/json"


def written(reply: Reply, code: int, body: bytes) -> Reply:
    """The same answer for the message in `body`; as it is where that is none, or has no id."""
    from dataplane.mcp import messages  # loaded late

    try:
        request_id = messages.read(body).request_id
    except messages.Malformed:
        return reply
    if request_id is None:
        return reply
    text = reply.body.decode()
    return replace(reply, body=messages.error(request_id, code, text), content_type=_TYPE)
