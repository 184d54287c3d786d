"""A whole answer of a provider, as far as it is read beside passing it: piece by piece where it is large. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dataplane.llm.pieces import PIECE, Steps, decoded
from dataplane.llm.usage import parsed

MAX_READ: Final = 65_536
"""Bytes of the usage of an answer, and of its model: what is longer is not read."""
_SAID: Final = ("choices", "content", "output")
"""Fields with what the answer says (`content.of_answer`)."""
_REPORTED: Final = (
    *("usage", "model", "service_tier", "meta", "input_tokens"),
    *("usageMetadata", "modelVersion", "serviceTier"),
)
"""Fields with what it says of itself (`usage.of_answer`)."""
_Fields: Final = msgspec.defstruct("_Fields", [(name, msgspec.Raw, msgspec.Raw(b"")) for name in (*_SAID, *_REPORTED)])
_fields: Final = msgspec.json.Decoder(_Fields)
_anything: Final = msgspec.json.Decoder()


def read(data: bytes) -> Steps[Any]:  # Any: JSON of a provider
    """The answer; of a large one the fields that are read. None where it is no JSON, or none that can be read."""
    if len(data) <= PIECE:
        return parsed(data)
    found: dict[str, Any] = {}
    try:
        fields = _fields.decode(data)
        yield
        for name in (*_SAID, *_REPORTED):
            raw = bytes(getattr(fields, name))
            if raw and name in _SAID:
                found[name] = yield from decoded(raw)
            elif raw and len(raw) <= MAX_READ:
                found[name] = _anything.decode(raw)
            yield
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return found
