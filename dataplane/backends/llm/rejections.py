"""What clients get of what a guard rejects: an answer, or the last event of a stream, in the shape of the API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.guards.values import Phase
from dataplane.llm import errors

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.guards.plan import Rejected
    from dataplane.llm.routes import RouteType

REASONS: Final = {Phase.REQUEST: "PromptRejected", Phase.RESPONSE: "AnswerRejected"}
UNAVAILABLE: Final = "GuardUnavailable"


def reason(rejected: Rejected, phase: Phase = Phase.RESPONSE) -> str:
    return UNAVAILABLE if rejected.is_unavailable else REASONS[phase]


def refused(route: RouteType, phase: Phase, rejected: Rejected) -> Reply:
    """In the shape of the API that was called, with the guard's own status and its message, verbatim."""
    row = made(reason(rejected, phase), rejected.detail)
    return errors.refused(route, replace(row, status=rejected.status), rejected.message)


def event(route: RouteType, rejected: Rejected, number: int) -> bytes:
    """The last event of a stream whose answer is rejected. `number`: of it, where the format counts them."""
    return errors.event(route, rejected.status, reason(rejected), rejected.message, number)
