"""The request that opens a realtime session: its model stands in the query, and is shaped and judged as in a body."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.backends.llm import facts, guarding, heads, held, shaped
from dataplane.backends.llm.realtime.call import Realtime
from dataplane.backends.llm.realtime.session import Session
from dataplane.chain.calls import CallRequest
from dataplane.chain.replies import made
from dataplane.guards.values import Phase
from dataplane.http.heads import Head
from dataplane.http.upgrades import WEBSOCKET
from dataplane.llm import errors, realtime
from dataplane.llm.body import Body
from dataplane.llm.routes import Format
from dataplane.llm.shaping import MODEL, Given, shape

if TYPE_CHECKING:
    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.chain.reply import Reply
    from dataplane.guards.judging import Judge

FORM: Final = Format.REALTIME
_OFFERS: Final = b"upgrade: websocket\r\n"
_PROTOCOLS, _EXTENSIONS = b"sec-websocket-protocol", b"sec-websocket-extensions"


def serve(visit: Visit, out: Terminator) -> Reply | None:
    """Raises `Malformed`."""
    x, provider, policy = visit.x, visit.part.provider, visit.policies.policy
    refused = _unfit(visit)
    if refused is not None:
        return refused
    asked = realtime.model_of(x.query)
    body = Body(b"{}" if asked is None else msgspec.json.encode({MODEL: asked}))
    known, params = facts.of_request(FORM, body, provider.row.system)
    known["streaming"] = True
    if visit.tries.text:
        known["candidates"] = visit.tries.text
    x.leave(facts.VARIABLE, known)
    x.leave(facts.PARAMS, params)
    refused = shaped.denied(visit)
    if refused is not None:
        return refused
    shape(body, Given(FORM, policy.shape, shaped.results(visit, body), provider.model))
    model = body.text(MODEL)
    if not model:
        return visit.refused("LlmBadRequest", "model: must stand in the query", MODEL)
    known.setdefault("requestModel", model)
    known["sentModel"] = model
    if visit.plan is None:
        return replace(visit.refused("NoEndpoints"), detail=visit.failed)
    target = provider.paths[FORM].of(model, realtime.with_model(x.query, model))
    request = CallRequest(x.method, target, headers=_lines(visit, out))
    session = Session(visit, known, x.context.calls.clock, *_judges(visit, out))
    x.upgrade = WEBSOCKET
    Realtime(held.taker(out, visit.tries), out, visit, request, known, session).go()
    return None


def _unfit(visit: Visit) -> Reply | None:
    x = visit.x
    if x.method != b"GET":
        return visit.not_allowed("GET")
    if WEBSOCKET not in [name.strip() for name in x.upgrade.lower().split(b",")]:
        return errors.refused(visit.route, made("LlmNeedsWebSocket", headers=_OFFERS))
    return None


def _lines(visit: Visit, out: Terminator) -> bytes:
    """Without what the provider must not have of the client's, and without extensions: messages are read."""
    assert visit.plan is not None  # it is asked for before
    has_credential = bool(visit.plan.finishers)
    lines = heads.lines(Head(out.block), visit.part.provider.family(FORM), FORM, has_credential)
    head = Head(b"\r\n" + lines)
    head.remove(_EXTENSIONS)
    offered = b",".join(head.get_all(_PROTOCOLS))
    if offered:
        kept = realtime.protocols(offered, has_credential)
        head.remove(_PROTOCOLS)
        if kept:
            head.set(_PROTOCOLS, kept)
    return head.block[2:]


def _judges(visit: Visit, out: Terminator) -> tuple[Judge | None, Judge | None]:
    """Of what clients ask, and of what is answered."""
    found = visit.policies.policy.guards
    guards = replace(
        found, request=guarding.of_form(found.request, FORM), response=guarding.of_form(found.response, FORM)
    )
    x = visit.x
    asking = guarding.judge(x, guards, Phase.REQUEST, out.block) if guards.request else None
    return asking, guarding.judge(x, guards, Phase.RESPONSE, out.block) if guards.response else None
