"""A server is asked: by the calls of the exchange, within ten seconds, unless its backend says other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallFailed, CallRequest, within
from dataplane.guards.plan import Guard, Rejected
from dataplane.guards.values import Action, Phase, Text, TooCostly
from dataplane.guards.verdicts import PASSED, Unreadable, Verdict

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.exchange import Exchange
    from dataplane.guards.judging import Count

SECONDS: Final = 10.0
"""For all of an answer."""
MAX_ANSWER: Final = 8 * 1024 * 1024
"""Bytes of an answer: it may hold all that was asked, escaped."""
_LEAST, _MOST = 200, 299
_OF_THE_TEXTS: Final = frozenset((400, 413, 414, 422, 431))
_LINES: Final = b"content-type: application/json\r\naccept: application/json\r\naccept-encoding: identity\r\n"
_RESERVED: Final = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"connection", b"content-type", b"accept", b"accept-encoding")
)
"""Headers that a call has of its own."""


async def ask(
    calls: Calls,
    x: Exchange | None,
    headers: Iterable[tuple[bytes, bytes]],
    count: Count,
    guard: Guard,
    phase: Phase,
    texts: Sequence[Text],
) -> Verdict:
    """`headers`: of the client's request. Raises `Rejected`: the guard rejects, or it cannot be asked and fails
    closed."""
    server = guard.server
    assert server is not None  # who asks has looked
    try:
        verdict = await _asked(calls, x, headers, guard, phase, texts)
    except (CallFailed, Unreadable, TooCostly) as error:
        opens = server.fails_open and not _blames(error)
        count(guard, phase, Action.FAIL_OPEN if opens else Action.UNAVAILABLE)
        if opens:
            return PASSED
        raise Rejected(guard, str(error), is_unavailable=True) from None
    if verdict.is_rejected:
        count(guard, phase, Action.REJECT)
        raise Rejected(guard, "it rejects", message=verdict.message, status=verdict.status)
    changed = verdict.texts is not None and [*verdict.texts] != [each.text for each in texts]
    count(guard, phase, Action.MASK if changed else Action.ALLOW)
    return verdict


async def _asked(
    calls: Calls,
    x: Exchange | None,
    headers: Iterable[tuple[bytes, bytes]],
    guard: Guard,
    phase: Phase,
    texts: Sequence[Text],
) -> Verdict:
    server = guard.server
    assert server is not None  # as above
    question = server.question(phase, texts)
    passed = b"".join(
        b"%b: %b\r\n" % (name, value)
        for name, value in headers
        if name.lower() not in _RESERVED and server.forwards(name.lower(), value)
    )
    request = CallRequest(b"POST", question.target, headers=_LINES + passed, body=question.body)
    plan = calls.plan(server.backend, x)
    seconds = within(plan, SECONDS)
    call = calls.open(plan, request, x=x, head_within=seconds, whole_within=seconds)
    answer = await call.whole(MAX_ANSWER)
    if not _LEAST <= answer.status <= _MOST:
        raise _Refused(answer.status)
    return server.verdict(phase, texts, answer.body)


class _Refused(Unreadable):
    """The server answers with this status, none of success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"it answers with {status}")
        self.status = status


def _blames(error: Exception) -> bool:
    """Whether what the client sent is why there is no verdict: the server does not take it, its answer is too large
    (it may repeat what it was shown), or a header is. A client could have that at will, so nothing opens then."""
    if isinstance(error, _Refused):
        return error.status in _OF_THE_TEXTS
    return isinstance(error, TooCostly) or (isinstance(error, CallFailed) and error.cause == "too_large")
