"""JSON objects of tokens and Secrets, read strictly, with the numbers that expressions know.

RFC 7515 4 and RFC 7519 4 want unique names; two readers that pick different ones of a pair would see different claims.
"""

from __future__ import annotations

import json
import re
from typing import Any


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice")
    return members


def _refused(word: str) -> Any:
    raise ValueError(f"not JSON: {word}")


def _number(text: str) -> int | float:
    """Integers of 64 bits stay integers, larger ones are doubles."""
    value = int(text) if len(text) < 24 else float(text)
    return value if -(2**63) <= value < 2**63 else float(value)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused)
_CAREFUL = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused, parse_int=_number)
"""For texts with numbers that may not fit into 64 bits: it calls back for each, and clients choose how many."""

_has_long_number = re.compile("[0-9]{19}").search


def read(data: bytes) -> dict[str, Any]:
    """The object that UTF-8 text encodes. Raises ValueError, without the text."""
    try:
        text = data.decode()
        members = (_CAREFUL if _has_long_number(text) else _DECODER).decode(text)
        if "\\u" in text:  # half of a surrogate pair is no text: it cannot be encoded
            json.dumps(members, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    return members
