"""The list of models: those that are configured, as far as the caller may use them (`GET /v1/models` of OpenAI's API).

A model is one that a provider has in place of the request's, or an alias. Others may be usable as well: a provider's
own list is not asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.backends.llm import facts
from dataplane.backends.llm.visit import of_route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.terminator import Terminator

_JSON: Final = b"content-type: application/json\r\n"


def answer(visit: Visit, out: Terminator) -> None:
    listed = [each for each in _listed(visit) if _is_allowed(visit, each["id"], each["owned_by"])]
    out.whole(200, _JSON, msgspec.json.encode({"object": "list", "data": listed}))


def _listed(visit: Visit) -> Iterator[dict[str, str | int]]:
    """Each once, in the order of the providers: a provider's own, then its aliases."""
    seen, above = set[str](), of_route(visit.x)
    for part in visit.providers.providers:
        provider = part.provider
        names = [provider.model] if provider.model else []
        for name in (*names, *part.policies.over(above).policy.names):
            if name not in seen:
                seen.add(name)
                yield {"id": name, "object": "model", "created": 0, "owned_by": provider.row.system}


def _is_allowed(visit: Visit, model: object, provider: object) -> bool:
    if not visit.policies.rules:
        return True
    x = visit.x
    x.leave(facts.VARIABLE, facts.Facts({"requestModel": model, "provider": provider, "streaming": False}, {}))
    return visit.policies.decide(x) is None  # type: ignore[arg-type]  # the exchange, of which a part is known
