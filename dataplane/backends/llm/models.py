"""The list of models that the caller may use (`GET /v1/models` of OpenAI's API).

A model is one that a provider has in place of the request's, or an alias; others may be usable as well. Where
`listProviderModels` is set, they come of the provider's own list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.backends.llm import facts
from dataplane.backends.llm.visit import of_route
from dataplane.chain.turns import NEXT_TURN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.contract import Served
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.llm.model_lists import Kept
    from dataplane.llm.plans import ProviderPlan
    from dataplane.llm.policies import AiPolicies

MAX_LISTED: Final = 5_000
"""Names that are looked at for an answer; the rest is left out."""
AT_A_TIME: Final = 64
"""Models that are judged in one turn of the loop."""
_JSON: Final = b"content-type: application/json\r\n"

Model = dict[str, str | int]
Asked = tuple["ProviderPlan", "AiPolicies", "Kept | None"]
"""A provider, what policies say of it, and its own list."""


def answer(visit: Visit, out: Terminator) -> Served:
    asked = list(_asked(visit))
    if any(kept is not None for _, _, kept in asked):
        return _with_lists(visit, out, asked)
    _give(out, [each for each in _listed(visit, asked) if each is not None])
    return None


def _asked(visit: Visit) -> Iterator[Asked]:
    above = of_route(visit.x)
    for part in visit.providers.providers:
        policies = part.policies.over(above)
        if policies.refused:
            continue
        lists = policies.policy.lists
        if lists is None:
            yield part, policies, None
        else:
            from dataplane.backends.llm import model_lists  # few ask for it

            yield part, policies, model_lists.of_part(visit.x, lists, part)


async def _with_lists(visit: Visit, out: Terminator, asked: list[Asked]) -> None:
    from dataplane.backends.llm import model_lists  # as above

    for _, _, kept in asked:
        if kept is not None:
            await model_lists.known(visit.x.context, kept)
    found = []
    for number, each in enumerate(_listed(visit, asked)):
        if number % AT_A_TIME == AT_A_TIME - 1:
            await NEXT_TURN
        if each is not None:
            found.append(each)
    _give(out, found)


def _listed(visit: Visit, asked: list[Asked]) -> Iterator[Model | None]:
    """Each once, in the order of the providers: a provider's own, then its aliases, then its list. None in place of one
    that the caller may not use."""
    seen, looked_at, now = set[str](), 0, visit.x.context.clock()
    for part, policies, kept in asked:
        own = (part.provider.model,) if part.provider.model else ()
        names = [(name, 0) for name in (*own, *policies.policy.names)]
        system = part.provider.row.system
        for name, created in (*names, *(kept.models(now) if kept is not None else ())):
            if name in seen:
                continue
            looked_at += 1
            if looked_at > MAX_LISTED:
                return
            if not _is_allowed(visit, policies, name, system):
                yield None  # of another provider it may be
                continue
            seen.add(name)
            yield {"id": name, "object": "model", "created": created, "owned_by": system}


def _is_allowed(visit: Visit, policies: AiPolicies, model: str, provider: str) -> bool:
    if not policies.rules:
        return True
    x = visit.x
    x.leave(facts.VARIABLE, facts.Facts({"requestModel": model, "provider": provider, "streaming": False}, {}))
    return policies.decide(x) is None  # type: ignore[arg-type]  # the exchange, of which a part is known


def _give(out: Terminator, listed: list[Model]) -> None:
    out.whole(200, _JSON, msgspec.json.encode({"object": "list", "data": listed}))
