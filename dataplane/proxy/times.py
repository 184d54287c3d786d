"""The deadlines of an exchange: of the request, of the present try, of a body that a step waits for.

They are fields; the carrier asks (`wake`) when the earliest of them is due, as `Downstream.arm` was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.proxy.attempt import attempts
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request import admission

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange


def wake(x: ActiveExchange, now: float) -> float:
    """As `carriers.Carried.wake`."""
    if now >= x.deadline:
        x.deadline = NEVER  # the answer may have to wait for response steps
        x.give_up("RequestDeadline")
    elif now >= x.attempt_deadline and not x.replied:
        attempts.timed_out(x)
    elif now >= _body_due(x):
        x.give_up("RequestTimeout")
    quiet_due = NEVER if x.bounds is None else admission.look(x, x.bounds, now)
    if x.ended:
        return NEVER
    return min(x.deadline, x.attempt_deadline, _body_due(x), quiet_due)


def _body_due(x: ActiveExchange) -> float:
    """When a body that a step waits for has to be here: a client that drips bytes must not hold memory for ever; a
    large body at an honest pace may take longer."""
    buffer = x.buffer
    if buffer is None or not buffer.is_awaited:
        return NEVER
    return buffer.due + buffer.size / x.context.limits.body_rate
