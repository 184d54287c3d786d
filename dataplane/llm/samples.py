"""Some messages of a request, for an estimate of how many tokens it has. Pure.

However many there are, few are decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.llm import content
from dataplane.llm.body import Malformed
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.llm.body import Body

PROMPT: Final = ("system", "instructions", "input", "messages")
"""Fields of a body that its prompt is made of."""
MOST: Final = 1_000
"""Messages that are looked at; others are taken to be alike."""
NAMES: Final = 10_000
"""Names of fields within them: those behind are not looked at. A message that alone has more counts as one text."""
_COLON: Final = b'":'
_array: Final = msgspec.json.Decoder(list[msgspec.Raw])
_anything: Final = msgspec.json.Decoder()

Sample = tuple[list[dict[str, Any]], int]
"""Messages (`content.prompt`), and how many there are in all."""


def of_prompt(form: Format, body: Body) -> Sample:
    """As far as it can be read."""
    fields: dict[str, Any] = {}
    beyond, items = 0, "input" if form is Format.RESPONSES else "messages"
    try:
        for name in PROMPT:
            raw = body.raw(name)
            if raw is None or name not in body.names:
                continue
            if raw[:1] == b"[":
                fields[name], left = _first(_array.decode(raw))
                beyond += left if name == items else 0
            elif raw[:1] != b"{":
                fields[name] = body.value(name)
    except (Malformed, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [], 0
    few = content.prompt(form, fields)
    return few, len(few) + beyond


def _first(raws: list[msgspec.Raw]) -> tuple[list[Any], int]:
    """The first ones, and how many follow them."""
    found: list[Any] = []
    names = 0
    for raw in raws[:MOST]:
        data = bytes(raw)
        names += data.count(_COLON)
        if names > NAMES:
            if not found:
                found.append({"role": "user", "content": data.decode("utf-8", "replace")})
            break
        found.append(_anything.decode(data))
    return found, len(raws) - len(found)
