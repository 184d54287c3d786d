"""What a proxy refuses, read from its NACK.

Pure. Our proxies write `error_detail.message` as a JSON array of {"key": resource key, "error": reason}, and name in
every answer all that they still refuse. Any other client's message is one refusal without a key. The text comes from
the network: it is cut, cleaned of control characters and never trusted to be well-formed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

MOST_REFUSALS: Final = 1000
LONGEST_MESSAGE: Final = 1 << 20
LONGEST_KEY: Final = 1024
LONGEST_REASON: Final = 2000

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One resource that a proxy refuses, and why. An empty key: the proxy did not say which."""

    key: str
    error: str


def parse(message: str) -> tuple[Refusal, ...]:
    """The refusals of a NACK: at least one, the first one of each key."""
    if not message.lstrip().startswith("["):
        return (Refusal("", _clean(message, LONGEST_REASON) or "refused without a reason"),)
    try:
        entries = json.loads(message) if len(message) <= LONGEST_MESSAGE else None
    except (ValueError, RecursionError):
        entries = None
    refusals: dict[str, Refusal] = {}
    for entry in entries[:MOST_REFUSALS] if isinstance(entries, list) else ():
        refusal = _refusal(entry)
        if refusal is not None:
            refusals.setdefault(refusal.key, refusal)
    return tuple(refusals.values()) or (Refusal("", _clean(message, LONGEST_REASON)),)


def note(known: dict[str, Refusal], message: str) -> None:
    """Add the refusals of a NACK to those that are known; however many NACKs come, at most `MOST_REFUSALS` are kept."""
    for refusal in parse(message):
        if refusal.key in known or len(known) < MOST_REFUSALS:
            known[refusal.key] = refusal


def _refusal(entry: object) -> Refusal | None:
    if not isinstance(entry, dict):
        return None
    key, error = entry.get("key"), entry.get("error")
    if not isinstance(key, str) or not isinstance(error, str) or len(key) > LONGEST_KEY:
        return None
    return Refusal(_clean(key, LONGEST_KEY), _clean(error, LONGEST_REASON) or "refused without a reason")


def _clean(text: str, longest: int) -> str:
    return _UNPRINTABLE.sub(" ", text[:longest]).strip()
