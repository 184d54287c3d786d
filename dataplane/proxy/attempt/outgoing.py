"""How a try of a request is sent: to which plan of its backend, with which lines (`upstream/outgoing` makes them), and
finished by that backend's finishers. The request stays as the steps left it, for expressions and the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.http.body import BodyMemoryFull, TooLarge
from dataplane.http.rules import WHOLE_BODY
from dataplane.proxy.layers import registry as layers
from dataplane.proxy.steps.waiting import Steps
from dataplane.upstream.calls import levels
from dataplane.upstream.outgoing import KEPT, Edits, Outgoing, Unfinished, edited
from dataplane.upstream.outgoing import finish as finish_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dataplane.chain.reply import Reply
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.plans import BackendPlan


def backend_of(x: ActiveExchange, key: str) -> BackendPlan | None:
    """The backend of this key, as the policies of the route want it spoken to; None: it is not known."""
    found: BackendPlan | None = levels.plan_of(x.table.backends, key, x.policies, x.plan.http_version)
    return found


def authority(x: ActiveExchange, backend: BackendPlan) -> bytes:
    """What the Host header becomes on the way to `backend`; b"": it stays (hostRewrite).

    `Auto` is the default of backends that are named by a host name. A host that a step chose stays in any case.
    """
    mode = x.policies.host_rewrite
    return backend.authority if (backend.renames if mode is None else mode) and not x.host_set else b""


def lines(x: ActiveExchange, backend: BackendPlan, tries: int = 0) -> bytes:
    """The header lines of a try that begins, for `backend`; `tries`: how many there were before."""
    trace = b"" if x.trace is None else x.trace.try_begins(x.method, x.context.clock(), tries, backend.key)
    return edited(x.request.block, Edits(authority(x, backend), KEPT, tries, trace))


def copied_lines(x: ActiveExchange, backend: BackendPlan) -> bytes:
    """The header lines of a copy of the request."""
    trace = b"" if x.trace is None else x.trace.context.header_lines()
    return edited(x.request.block, Edits(authority(x, backend), KEPT, 0, trace))


def finish(x: ActiveExchange, context: Context, then: Callable[[ActiveExchange, Context], None]) -> None:
    """Make `x.outgoing` of the try that begins, and have it finished; then `then`, or the answer that says why not. Its
    time is the request's: the try's own begins behind it."""
    backend, tries = x.backend_plan, 0 if x.retries is None else x.retries.tries
    out = x.outgoing = Outgoing(
        x.method, x.target, lines(x, backend, tries), None if x.has_body else b"", backend, x, tries
    )
    waits: Awaitable[None] | None
    if out.body is None and any(each.needs_body for each in backend.finishers or ()):
        if layers.may_change_content(x):
            x.reply(made("BackendAuthenticationFailed", "content that may be sent as other content cannot be signed"))
            return
        waits = _with_body(x, out)
    else:
        try:
            waits = finish_all(out)
        except Unfinished as error:
            x.reply(made(error.reason, str(error)))
            return
    if waits is None:
        then(x, context)
    else:
        Steps(x, _outcome(waits), then).begin()


async def _with_body(x: ActiveExchange, out: Outgoing) -> None:
    """The body is read whole by the first try; another one has it from the copy that was kept."""
    copy = x.body_copy
    if x.buffer is not None:
        out.body = await x.buffer.whole(x.may_hold(WHOLE_BODY))
    elif copy is not None and x.request_done and not copy.too_large:
        out.body = copy.whole()
    waits = finish_all(out)
    if waits is not None:
        await waits


async def _outcome(waits: Awaitable[None]) -> Reply | None:
    try:
        await waits
    except Unfinished as error:
        return made(error.reason, str(error))
    except TooLarge:
        return made("BodyTooLarge")
    except BodyMemoryFull:
        return made("TooManyBodies")
    return None
