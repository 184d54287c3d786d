"""A request to LLM providers: which API it calls, whom it goes to, what becomes of its body.

The first candidate is chosen when the head is here, since its policies say what the request is. A request that is read
is taken whole, and is read anew for each candidate (`trying`); one that passes as it is goes on as it comes, to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.backends.llm import facts, guarding, heads, held, models, outcomes, shaped, stages
from dataplane.backends.llm.adapting import Adapting
from dataplane.backends.llm.detecting import Detecting
from dataplane.backends.llm.passing import Passing
from dataplane.backends.llm.reading import Reading
from dataplane.backends.llm.translating import Translating
from dataplane.backends.llm.trying import Tries
from dataplane.backends.terminating.terminator import Terminator
from dataplane.chain.calls import CallRequest
from dataplane.http.heads import Head
from dataplane.http.spellings import REFUSED as AMBIGUOUS_PATH
from dataplane.llm import cache_points, counting, dialects, texts, translation
from dataplane.llm.body import Body, Malformed
from dataplane.llm.chat import Asked
from dataplane.llm.losses import Inexpressible
from dataplane.llm.routes import Format, RouteType, Way
from dataplane.llm.shapes import SHAPES
from dataplane.llm.shapes.contract import Wanted
from dataplane.llm.shaping import MODEL, Given, shape

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.contract import Served
    from dataplane.chain.reply import Reply
    from dataplane.llm.paths import Dialect
    from dataplane.llm.pieces import Steps
    from dataplane.llm.plans import AiPlan
    from dataplane.llm.providers import Provider

STREAM_OPTIONS: Final = "stream_options"
_USAGE: Final = "include_usage"
_READ: Final = ("model", "stream")
"""Fields that decide: of two by one name, readers take different ones."""
_UNCLEAR: Final = "a provider may read the path as that of another API"


def begun(x: LlmExchange, providers: AiPlan) -> Terminator:
    tries = Tries(x, providers, _serve)
    route, plan = tries.visit.route, tries.visit.plan
    is_read = isinstance(route, Format)
    if is_read:
        tries.take_over()
    is_signed = plan is not None and any(each.needs_body for each in plan.finishers or ())
    return Terminator(x, tries.begin, takes_whole=(is_read and route is not Format.REALTIME) or is_signed)


def _serve(visit: Visit, out: Terminator) -> Served:
    """One candidate. None: it is asked."""
    if visit.policies.refused:
        return replace(visit.refused("PolicyUnusable"), detail=visit.policies.refused)
    if not visit.policies.policy.routes.is_clear(visit.x.path):
        return visit.refused(AMBIGUOUS_PATH, _UNCLEAR)
    if visit.route not in texts.JUDGED:
        guarding.pass_unjudged(visit)
    try:
        return WAYS[visit.route](visit, out)
    except Malformed as error:
        return visit.refused("LlmBadRequest", str(error), error.field)


# --- what is read


def _read(visit: Visit, out: Terminator) -> Served:
    """A request of a format: its body is shaped, and its answer is read beside."""
    form = visit.route
    assert isinstance(form, Format)  # of `WAYS`
    return _unfit(visit, out, form) or stages.served(visit, _shaping(visit, out, form))


def _shaping(visit: Visit, out: Terminator, form: Format) -> Steps[Served]:
    """Raises `Malformed`, as the other stages do."""
    x, provider = visit.x, visit.part.provider
    body = Body(visit.tries.body)
    yield
    for name in _READ:
        shaped.require_once(body, name)
    known, params = facts.of_request(form, body, provider.row.system)
    if visit.tries.text:
        known["candidates"] = visit.tries.text
    x.leave(facts.VARIABLE, known)
    x.leave(facts.PARAMS, params)
    policy = visit.policies.policy
    yield from shaped.prepared(visit, form, body, known)
    refused = shaped.denied(visit)
    if refused is not None:
        return refused
    yield
    shape(body, Given(form, policy.shape, shaped.results(visit, body), provider.model))
    model = body.text(MODEL)
    if not model and form is not Format.RERANK:
        return visit.refused("LlmBadRequest", "model: must be set", MODEL)
    known.setdefault("requestModel", model or "")
    known["sentModel"] = model or ""
    sending = _sending(visit, out, form, body, model or "", known)
    guards = guarding.of_form(policy.guards.request, form)
    if guards:
        yield from body.prepare(name for name, _ in texts.FIELDS[form])
        return guarding.judged(visit, out, form, body, known, replace(policy.guards, request=guards), sending)
    yield
    return (yield from sending)


def _sending(
    visit: Visit, out: Terminator, form: Format, body: Body, model: str, known: facts.Facts
) -> Steps[Reply | None]:
    provider = visit.part.provider.of(model)
    if model in _NO_MODELS:
        raise Malformed(MODEL, "must be the name of a model")
    if form is Format.TOKEN_COUNT and form not in provider.paths:
        yield from _counted(visit, out, body.written(), known)
        return None
    if form not in provider.paths:
        refused = _unspoken(visit, form, provider)
        return refused or (yield from _translated(visit, out, form, body.written(), known, provider))
    if visit.plan is None:
        return replace(visit.refused("NoEndpoints"), detail=visit.failed)
    path = provider.paths[form]
    if path.dialect is not None:
        return (yield from _adapted(visit, out, form, body, model, known, path.dialect))
    x, hides_usage = visit.x, _asks_usage(body, form)
    out.replace(body.written())
    head = heads.lines(Head(out.block), provider.family(form), form, bool(visit.plan.finishers))
    call = Reading(
        held.taker(guarding.taker(visit, out, form, known), visit.tries),
        visit.plan,
        CallRequest(x.method, path.of(model, x.query), headers=head),
        visit.route,
        known,
        provider.place(form),
        form,
        hides_usage,
    )
    _asked(visit, call, known)
    return None


def _adapted(
    visit: Visit, out: Terminator, form: Format, body: Body, model: str, known: facts.Facts, dialect: Dialect
) -> Steps[Reply | None]:
    """Raises `Malformed` also for what the provider's API cannot say."""
    x, provider = visit.x, visit.part.provider.of(model)
    assert visit.plan is not None  # as `_sent` has seen
    head = Head(b"\r\n" + heads.lines(Head(out.block), provider.family(form), form, bool(visit.plan.finishers)))
    dropped = dialects.with_headers(dialect, head, body)
    caching = visit.policies.policy.caching
    if caching is not None and form is Format.MESSAGES and provider.caches(model):
        yield from body.prepare(cache_points.PLACES)
        cache_points.set_in(body, caching)
    try:
        wanted = Wanted(provider, model, visit.policies.policy.drops)
        made = SHAPES[dialect.shape](body, wanted) if dialect.shape else None
    except Inexpressible:
        if form is not Format.TOKEN_COUNT:
            raise
        yield from _counted(visit, out, body.written(), known)
        return None
    yield
    out.replace(dialects.written(dialect, body, model) if made is None else made.body)
    dropped += [] if made is None else made.dropped
    if dropped:
        known["dropped"] = ",".join(dropped)
    request = CallRequest(x.method, provider.paths[form].of(model, b"", known["streaming"]), headers=head.block[2:])
    taker = held.taker(guarding.taker(visit, out, form, known), visit.tries)
    place, read = provider.place(form), None if made is None else made.read
    _asked(visit, Adapting(taker, visit.plan, request, form, known, place, dialect, read), known)
    return None


def _asked(visit: Visit, call: Reading, known: facts.Facts) -> None:
    call.go()
    if known["streaming"]:
        call.within(visit.policies.policy.first_event_timeout)


def _translated(
    visit: Visit, out: Terminator, form: Format, body: bytes, known: facts.Facts, provider: Provider
) -> Steps[Reply | None]:
    """As `_adapted`."""
    x = visit.x
    policy = visit.policies.policy
    yield
    made = yield from translation.in_pieces(form, body, provider, policy.drops, policy.caching)
    yield
    if visit.plan is None:
        return replace(visit.refused("NoEndpoints"), detail=visit.failed)
    if made.dropped:
        known["dropped"] = ",".join(made.dropped)
    path, model = provider.paths[made.target], made.talk.model
    out.replace(made.body if path.dialect is None else dialects.written(path.dialect, Body(made.body), model))
    target = path.of(model, b"", made.talk.stream)
    head = heads.lines(Head(out.block), provider.family(made.target), made.target, bool(visit.plan.finishers))
    asked = Asked(made.talk, f"{_PREFIXES[form]}{token_hex(12)}", int(x.context.wall_clock()))
    request = CallRequest(x.method, target, headers=head)
    taker = held.taker(guarding.taker(visit, out, form, known), visit.tries)
    _asked(visit, Translating(taker, visit.plan, request, made, known, provider.place(made.target), asked), known)
    return None


def _counted(visit: Visit, out: Terminator, body: bytes, known: facts.Facts) -> Steps[None]:
    """An estimate, where the provider has an API of conversations and none that counts."""
    found = yield from counting.estimated(body)
    known["countTokens"] = found
    known["usageEstimated"] = True
    outcomes.record(visit.x, visit.route, known, 0.0)
    out.whole(200, _JSON, msgspec.json.encode({"input_tokens": found}))


_NO_MODELS: Final = (".", "..")
"""A path that has the name would be another one (RFC 3986 5.2.4)."""
_JSON: Final = b"content-type: application/json\r\n"
_PREFIXES: Final = {Format.COMPLETIONS: "chatcmpl-", Format.MESSAGES: "msg_", Format.RESPONSES: "resp_"}
"""What ids of answers begin with, where the provider gives none."""


def _unfit(visit: Visit, out: Terminator, form: Format) -> Reply | None:
    """Why a request cannot be one of its format; None: it can."""
    provider = visit.part.provider
    if visit.x.method != b"POST":
        return visit.not_allowed("POST")
    if Head(out.block).is_coded:
        return visit.refused("LlmContentCoding")
    spoken_as = Format.MESSAGES if form is Format.TOKEN_COUNT else form  # whose tokens are counted
    return None if form in provider.paths else _unspoken(visit, spoken_as, provider)


def _realtime(visit: Visit, out: Terminator) -> Served:
    from dataplane.backends.llm.realtime import serving  # few ask for it

    provider = visit.part.provider
    if Format.REALTIME not in provider.paths:
        return _unspoken(visit, Format.REALTIME, provider)
    return serving.serve(visit, out)


def _unspoken(visit: Visit, form: Format, provider: Provider) -> Reply | None:
    """Why a provider cannot be asked in a format that it does not have; None: requests are translated."""
    if translation.targets(form, provider):
        return None
    spoken = ", ".join(provider.paths)
    return visit.refused("LlmFormatUnsupported", f"the provider does not speak {form}; it speaks {spoken}")


def _asks_usage(body: Body, form: Format) -> bool:
    """Ask for the usage of a stream of Completions; True: the client has not asked, so the event with it is hidden."""
    if form is not Format.COMPLETIONS or not body.is_true("stream"):
        return False
    options = body.fields(STREAM_OPTIONS)
    if bytes(options.get(_USAGE, b"")) == b"true":
        return False
    body.set(STREAM_OPTIONS, msgspec.json.encode({**options, _USAGE: True}))
    return True


# --- what is not


def _models(visit: Visit, out: Terminator) -> Served:
    if visit.x.method not in (b"GET", b"HEAD"):
        return visit.not_allowed("GET, HEAD")
    return models.answer(visit, out)


def _passed(visit: Visit, out: Terminator) -> Reply | None:
    return _as_it_is(visit, out, Passing)


def _detected(visit: Visit, out: Terminator) -> Reply | None:
    return _as_it_is(visit, out, Detecting)


def _as_it_is(visit: Visit, out: Terminator, how: type[Passing]) -> Reply | None:
    x, provider = visit.x, visit.part.provider
    if visit.plan is None:
        return replace(visit.refused("NoEndpoints"), detail=visit.failed)
    head = heads.lines(Head(out.block), provider.family(None), None, bool(visit.plan.finishers))
    known = facts.Facts({"provider": provider.row.system}, {})
    x.leave(facts.VARIABLE, known)
    how(out, visit.plan, CallRequest(x.method, x.target, headers=head), visit.route, known, provider.row.place).go()
    return None


WAYS: Final[dict[RouteType, Callable[[Visit, Terminator], Served]]] = {
    **dict.fromkeys(Format, _read),
    Format.REALTIME: _realtime,
    Way.MODELS: _models,
    Way.PASSTHROUGH: _passed,
    Way.DETECT: _detected,
}
