"""A provider is asked for its list of models (`backend.ai.listProviderModels`): once for all who wait, with the
backend's own credential and nothing of a client's, since all clients read what comes of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dataplane.backends.llm import credentials
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.llm.model_lists import Unreadable, read
from dataplane.llm.providers import VERSION_OF_MESSAGES
from dataplane.llm.routes import Format
from dataplane.upstream.calls import Call
from dataplane.upstream.parts import plan_of

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange, LlmServices
    from dataplane.llm.model_lists import Kept, Lists
    from dataplane.llm.plans import ProviderPlan
    from dataplane.llm.providers import Place, Provider
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.outgoing import Outgoing

log = logging.getLogger("dataplane.llm")

SECONDS: Final = 5.0
"""For all of an answer: a client may wait for the first one."""
MAX_ANSWER: Final = 1024 * 1024
"""Bytes of it."""
_OK: Final = 200
_LINES: Final = b"accept: application/json\r\naccept-encoding: identity\r\n"
_OF_ANTHROPIC: Final = _LINES + b"%b: %b\r\n" % VERSION_OF_MESSAGES
_ALL: Final = b"?limit=1000"
"""Anthropic's API gives 20 unless it is asked for more."""


class _Call(Call):
    """One that writes keys where the provider looks for them."""

    __slots__ = ("place",)
    place: Place

    def _finished(self, out: Outgoing) -> None:
        credentials.placed(out, self.place)
        super()._finished(out)


def of_part(x: LlmExchange, lists: Lists, part: ProviderPlan) -> Kept | None:
    """What is known of a provider's list, which is asked for where that is due. None: it has none, or cannot be
    asked."""
    form = part.provider.list_format
    if form is None:
        return None
    try:
        plan: BackendPlan = plan_of(x.table, part, x.policies, x.context.calls.leases)
    except CallFailed:
        return None
    # a finisher is made anew with its credential: what another key was answered is not taken for this one's
    kept = lists.of((plan.key, part.provider.list_path(form), *(plan.finishers or ())))
    if kept.is_due(x.context.clock()):
        kept.is_asked = True
        x.context.spawn(_fetch(x.context, kept, plan, part.provider, form))
    return kept


async def known(services: LlmServices, kept: Kept) -> None:
    """Wait for the first list of a provider; of others what is known counts."""
    if kept.is_asked and kept.is_unknown(services.clock()):
        future = services.make_future()
        kept.waiting.append(future)
        await future


async def _fetch(services: LlmServices, kept: Kept, plan: BackendPlan, provider: Provider, form: Format) -> None:
    try:
        models = read(await _asked(services, plan, provider, form))
    except (CallFailed, Unreadable) as error:
        if kept.failed(services.clock(), str(error)):
            log.warning("%s: its models cannot be listed: %s", plan.key, error)
    else:
        kept.came(services.clock(), models)
    finally:
        kept.is_asked = False
        waiting, kept.waiting = kept.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


async def _asked(services: LlmServices, plan: BackendPlan, provider: Provider, form: Format) -> bytes:
    """Raises `CallFailed`, `Unreadable`."""
    is_anthropic = form is Format.MESSAGES
    target = provider.list_path(form) + (_ALL if is_anthropic else b"")
    request = CallRequest(b"GET", target, headers=_OF_ANTHROPIC if is_anthropic else _LINES)
    call = _Call(services.calls, plan, request, idempotent=True)
    call.place = provider.row.place
    call.begin(SECONDS, SECONDS, None)
    answer = await call.whole(MAX_ANSWER)
    if answer.status != _OK:
        raise Unreadable(f"the provider answered {answer.status}")
    return answer.body
