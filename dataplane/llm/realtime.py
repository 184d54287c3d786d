"""OpenAI's realtime API: what its query and its events say of models and tokens, and events of the gateway. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from secrets import token_hex
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_plus

import msgspec

from dataplane.llm import errors
from dataplane.llm.body import Malformed

Event = dict[str, Any]  # Any: JSON
MODEL: Final = "model"
_SECRETS: Final = re.compile(rb"openai-(?:insecure-api-key|organization|project)\.", re.IGNORECASE)
"""What names of protocols begin with in which clients of browsers say who they are: they can set no headers."""


# --- the query

MAX_QUERY: Final = 4_096
"""Bytes of a query that is read."""


def model_of(query: bytes) -> str | None:
    """The model that is asked for. Raises `Malformed` where readers would differ in which that is, and for a query that
    is too long to be read at once."""
    if len(query) > MAX_QUERY:
        raise Malformed(MODEL, f"the query has more than {MAX_QUERY:,} bytes")
    found = [(name, value) for name, value in _pairs(query) if name.casefold() == MODEL]
    if len(found) > 1:
        raise Malformed(MODEL, "stands in the query more than once")
    if found and found[0][0] != MODEL:
        raise Malformed(MODEL, f"is written as {found[0][0]}")
    return found[0][1] if found else None


def with_model(query: bytes, model: str) -> bytes:
    """The same query for another model."""
    kept = [pair for pair in query.split(b"&") if pair and _pair(pair)[0] != MODEL]
    named = f"{MODEL}={quote(model, safe='')}".encode()
    return b"&".join((*(pair.replace(b";", b"%3B") for pair in kept), named))  # some take ; for a separator


def _pairs(query: bytes) -> Iterator[tuple[str, str]]:
    return (_pair(pair) for pair in re.split(b"[&;]", query) if pair)


def _pair(pair: bytes) -> tuple[str, str]:
    name, _, value = pair.decode("latin-1").partition("=")
    return unquote_plus(name).strip(), unquote_plus(value)


# --- the head


def protocols(offered: bytes, has_credential: bool) -> bytes:
    """`sec-websocket-protocol` as the provider gets it: without credentials of the client, where it gets the
    gateway's."""
    names = [name.strip() for name in offered.split(b",")]
    return b", ".join(name for name in names if name and not (has_credential and _SECRETS.match(name)))


# --- events of clients


class Named(NamedTuple):
    """A model that an event names. `is_own`: that of the session itself, not of a transcription beside it."""

    holder: Event
    field: str
    is_own: bool

    @property
    def name(self) -> str:
        found = self.holder[MODEL]
        return found if type(found) is str else ""


def models(event: Event) -> list[Named]:
    """All that it names: at its top, of its session and its response, and whatever is below those."""
    found = [Named(event, MODEL, True)] if MODEL in event else []
    for name in ("session", "response"):
        part = event.get(name)
        if type(part) is dict:
            found += _models_below(part, name)
    return found


def _models_below(part: Event, path: str) -> Iterator[Named]:
    waiting: list[tuple[Any, str, bool]] = [(part, path, True)]
    while waiting:
        value, path, is_top = waiting.pop()
        if type(value) is dict:
            if MODEL in value and type(value[MODEL]) is not dict:
                yield Named(value, f"{path}.{MODEL}", is_top)
            below = [(name, each) for name, each in value.items() if not (is_top and name in _NO_MODELS)]
            waiting += [(each, f"{path}.{name}", False) for name, each in below]
        elif type(value) is list:
            waiting += [(each, path, False) for each in value]


def may_name_models(data: bytes) -> bool:
    """Whether a reader may find a model in an event, also one that takes another of two fields by one name."""
    return b"model" in data or b"\\" in data  # written out, or escaped


_NO_MODELS: Final = ("tools", "input", "metadata", "instructions")
"""Fields of a session or a response that are a client's own, in which any name may stand."""


# --- events of providers


class _Typed(msgspec.Struct):
    type: str = ""


_typed: Final = msgspec.json.Decoder(_Typed)
CREATED, DONE, SESSION = "response.created", "response.done", ("session.created", "session.updated")
DELTA: Final = ".delta"


def type_of(data: bytes) -> str:
    """Of an event; "" where it has none."""
    try:
        return _typed.decode(data).type
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def response_of(event: Event) -> str:
    """Id of the response that an event is of; "": of none."""
    whole = event.get("response")
    found = whole.get("id") if type(whole) is dict else event.get("response_id")
    return found if type(found) is str else ""


def item_of(event: Event) -> str:
    """Id of the item that an event is about; "": none."""
    whole = event.get("item")
    found = whole.get("id") if type(whole) is dict else event.get("item_id")
    return found if type(found) is str else ""


# --- events of the gateway


def error(status: int, reason: str, message: str, field: str = "", asked: Event | None = None) -> bytes:
    """`asked`: the client's event that it is about."""
    said = errors.of_openai(status, reason, message, field)
    about = None if asked is None else asked.get("event_id")
    event = {
        "type": "error",
        "event_id": new_id(),
        "error": {**said, "event_id": about if type(about) is str else None},
    }
    return msgspec.json.encode(event)


def cancel(response: str) -> bytes:
    return msgspec.json.encode({"type": "response.cancel", "event_id": new_id(), "response_id": response})


def new_id() -> str:
    return f"event_{token_hex(12)}"
