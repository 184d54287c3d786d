"""The end of an exchange: end hooks, metrics, the log line. Always runs, once, also after errors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dataplane.proxy.attempt import retries
from dataplane.proxy.request import admission
from dataplane.upstream import lease

if TYPE_CHECKING:
    from dataplane.chain.chain import Chain
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context

log = logging.getLogger("dataplane.proxy")


def finish(x: ActiveExchange, context: Context) -> float:
    """Record an exchange whose last byte went out, or that ended without one; answers the time (monotonic)."""
    x.ended = True
    if x.retries is not None:
        retries.ended(x, context)
    if x.counted is not None:
        lease.uncount(x, x.retries is not None and x.retries.is_counted)
    if x.bounds is not None:
        admission.ended(x.bounds, context)
    target, policies, listener = x.target_plan, x.policies, x.listener
    if target is not None and target.chain.end:
        _end_hooks(x, target.chain)
    if policies is not None and policies.chain.end:
        _end_hooks(x, policies.chain)
    if listener is not None and listener.chain.end:
        _end_hooks(x, listener.chain)
    now = context.clock()
    seconds = now - x.started
    for observer in context.observers:
        try:
            observer(x, seconds)
        except Exception as error:  # a bug of one must not keep the others from it, nor the exchange from its end
            log.error("observer failed in %r", x, exc_info=error)
    return now


def _end_hooks(x: ActiveExchange, chain: Chain) -> None:
    for hook in chain.end:
        try:
            hook(x)
        except Exception as error:  # a hook's bug must not keep the line from being written
            log.error("end hook failed in %r", x, exc_info=error)
