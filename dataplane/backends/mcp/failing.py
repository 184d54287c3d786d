"""What a client reads when a server that was needed gave no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.backends.mcp.answers import AnswerRefused, Congested
from dataplane.backends.mcp.arranging import SessionLost
from dataplane.mcp import errors, messages
from dataplane.mcp.messages import INTERNAL_ERROR

if TYPE_CHECKING:
    from dataplane.backends.mcp.answers import TargetFailed
    from dataplane.backends.mcp.upstreams import Upstreams
    from dataplane.backends.mcp.visit import Visit
    from dataplane.chain.reply import Reply
    from dataplane.mcp.messages import Malformed, Message


def answered(visit: Visit, upstreams: Upstreams, message: Message, failed: TargetFailed) -> Reply | None:
    """A target that was needed gave no answer; with failureMode FailClosed the session ends with it, at all servers,
    unless it is a setting that ended the wait: that is about one request. So is an answer that is not passed on, and
    one that found no memory while it waited: the request fails and nothing else."""
    if isinstance(failed, Congested) and not visit.out.has_begun:
        text = f"MCP server {failed}"
        reply = errors.error("TooManyResponses", INTERNAL_ERROR, text, message.request_id, str(failed))
        return replace(reply, headers=b"retry-after: 1\r\n")
    if isinstance(failed, AnswerRefused) and message.method != "initialize":
        visit.x.reason, visit.x.detail = "McpAnswerRefused", str(failed)
        visit.give_last(messages.error(message.request_id, INTERNAL_ERROR, f"MCP server {failed}"))
        return None
    if visit.out.has_begun:
        visit.out.lost()
        return None
    if isinstance(failed, SessionLost):
        return errors.refused("McpSessionUnknown", str(failed))
    session = visit.session
    if session is not None and visit.plan.several and not visit.plan.fail_open and not failed.is_late:
        visit.memory.end(session.number)
        upstreams.part()
    text = f"MCP server {failed.target} is not available"
    return errors.error(failed.reason, INTERNAL_ERROR, text, message.request_id, str(failed))


def malformed(error: Malformed, message: Message | None) -> Reply:
    """What a client reads of a message that is none, or none that may be sent so."""
    if error.request_id is None and message is not None and message.is_request:
        error.request_id = message.request_id
    return errors.malformed(error)
