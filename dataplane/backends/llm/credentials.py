"""Where a provider looks for a key that `backend.auth` has no location for: Anthropic's API and Azure's have headers of
their own. Tokens of an identity provider stay bearers everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.llm.providers import BEARER, TOKEN_OF_ANTHROPIC
from dataplane.upstream.auth.finishers import Key

if TYPE_CHECKING:
    from dataplane.llm.providers import Place
    from dataplane.upstream.outgoing import Outgoing

_OAUTH: Final = TOKEN_OF_ANTHROPIC + b"oat"
"""What a token of OAuth of Anthropic begins with, which is a bearer there."""
_SCHEME: Final = b"Bearer "


def placed(out: Outgoing, place: Place) -> None:
    """Move a key that stands where keys usually do."""
    if place is BEARER or not any(
        isinstance(each, Key) and each.is_at_usual_place for each in out.plan.finishers or ()
    ):
        return
    value = out.head.get(BEARER.header) or b""
    if value.startswith(_SCHEME) and not value.startswith(_SCHEME + _OAUTH):
        out.head.remove(BEARER.header)
        out.head.set(place.header, value.removeprefix(_SCHEME))
        out.hide(place.header)
