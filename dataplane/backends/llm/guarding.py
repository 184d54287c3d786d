"""Guards of requests to LLM providers: texts of a body are judged before it is sent; and what passes unjudged is
counted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dataplane.backends.llm import facts, rejections, stages
from dataplane.backends.llm.guarded_answers import GuardedTaker
from dataplane.chain.turns import with_pauses
from dataplane.guards.judging import Judge
from dataplane.guards.plan import Guard, Guards, Rejected
from dataplane.guards.values import Action, Phase
from dataplane.http.heads import Head
from dataplane.llm.body import Malformed
from dataplane.llm.routes import CHATS, Format
from dataplane.llm.texts import JUDGED, Asked
from dataplane.telemetry.metric_rows.llm import GUARDS, UNGUARDED
from dataplane.telemetry.plan import log_of

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.contract import Taker
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.chain.reply import Reply
    from dataplane.llm.body import Body
    from dataplane.llm.pieces import Steps


def judge(x: LlmExchange, guards: Guards, phase: Phase, block: bytes) -> Judge:
    """`block`: header lines of the client's request, as its steps left them."""
    count = partial(_count, x)

    async def ask(guard: Guard, phase: Phase, texts: Any) -> Any:  # Any: as `judging.Ask`
        from dataplane.guards.servers import asking  # loaded by the first guard that asks somebody

        headers = Head(block).items()
        return await asking.ask(x.context.calls, cast("Any", x), headers, count, guard, phase, texts)

    return Judge(guards, phase, ask, count)


def _count(x: LlmExchange, guard: Guard, phase: Phase, action: Action) -> None:
    x.context.recorder.add(GUARDS, 1, guard.kind, phase, action)


def of_form(guards: tuple[Guard, ...], form: Format) -> tuple[Guard, ...]:
    """Those that judge bodies of this format: servers judge conversations."""
    if form not in JUDGED:
        return ()
    return (
        guards if form in CHATS or form is Format.REALTIME else tuple(guard for guard in guards if guard.server is None)
    )


def pass_unjudged(visit: Visit) -> None:
    """A request of a kind that no guard judges, on a route that has some."""
    guards = visit.policies.policy.guards
    if guards.request or guards.response:
        visit.x.context.recorder.add(UNGUARDED, 1, visit.route)


async def judged(
    visit: Visit,
    out: Terminator,
    form: Format,
    body: Body,
    known: Facts,
    guards: Guards,
    sending: Steps[Reply | None],
) -> Reply | None:
    """Judge the texts of the body, then go on with `sending`. Answers what the client gets where it is rejected."""
    try:
        asked = Asked(form, body)
        await with_pauses(asked.read())
        said = await judge(visit.x, guards, Phase.REQUEST, out.block).texts(asked.found.texts)
    except Malformed as error:
        return visit.refused("LlmBadRequest", str(error), error.field)
    except Rejected as rejected:
        return rejections.refused(visit.route, Phase.REQUEST, rejected)
    asked.found.put(said)
    asked.write(msgspec.json.encode)
    facts.read_anew(known, form, body)
    return await stages.staged(visit, sending)


def taker(visit: Visit, out: Terminator, form: Format, known: Facts) -> Taker:
    """Who takes the answer: guards, where there are some, and behind them the client."""
    all_guards = visit.policies.policy.guards
    guards = of_form(all_guards.response, form)
    if not guards or form is Format.EMBEDDINGS:  # of embeddings there is no text
        return out
    log = log_of(visit.x)  # type: ignore[arg-type]  # the exchange, of which a part is known
    judge_ = judge(visit.x, replace(all_guards, response=guards), Phase.RESPONSE, out.block)
    return GuardedTaker(out, judge_, form, known, log is not None and log.reads_answers)
