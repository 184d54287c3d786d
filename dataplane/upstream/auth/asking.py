"""Questions to servers that give credentials, and what their answers say: values. Pure; who asks is given (`Ask`).

An answer is bounded (`MAX_ANSWER`), and nothing of one is repeated: it may hold a credential, also where it is no good.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import nan
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from dataplane.http.heads import is_value
from dataplane.upstream.auth.tokens import Unobtainable

SECONDS: Final = 5.0
"""For all that one credential takes."""
MAX_ANSWER: Final = 65_536
USUAL_LIFE: Final = 300.0
"""Seconds of a token whose server does not say (RFC 6749 5.1)."""
LATEST: Final = 32_503_680_000.0
"""The year 3000. A clock that goes on from a later time could come to one that cannot be written."""
OK: Final = 200
PORTS: Final = {"http": 80, "https": 443}

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Question:
    method: str
    url: str
    headers: Headers = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def host(self) -> str:
        """For messages: the rest of a URL may be secret."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    """By names in lower case."""
    body: bytes = field(repr=False)

    @property
    def moment(self) -> float | None:
        """When it was made, by its server's clock: seconds since the epoch. None: it does not say, or says what
        cannot be (`LATEST`)."""
        try:
            made = parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except (ValueError, OverflowError):
            return None
        return made if 0 <= made < LATEST else None


Ask = Callable[[Question], Awaitable[Answer]]
"""Raises `Unobtainable`: it cannot be asked, or does not answer in time."""


class World(NamedTuple):
    """What sources of credentials need beside their settings."""

    ask: Ask
    wall: Callable[[], float]
    """Seconds since the epoch."""
    environment: Mapping[str, str]
    read: Callable[[str], Awaitable[bytes]]
    """A small file, by its path. Raises `Unobtainable`."""

    def __repr__(self) -> str:
        return "World()"  # the environment has secrets


def form(url: str, fields: Mapping[str, str], headers: Headers = ()) -> Question:
    """A form, as OAuth and the query API of AWS want it."""
    sent = ("content-type", "application/x-www-form-urlencoded")
    return Question("POST", url, (sent, ("accept", "application/json"), *headers), urlencode(fields).encode())


async def answered(ask: Ask, question: Question) -> Answer:
    """One of success. Raises `Unobtainable`."""
    answer = await ask(question)
    if answer.status != OK:
        raise Unobtainable(f"{question.host} answered {answer.status}{_code_of(answer)}")
    return answer


def object_of(answer: Answer, host: str) -> dict[str, Any]:
    """Of a JSON object. Raises `Unobtainable`."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unobtainable(f"{host} answered what is no JSON object")
    return found


def text_of(members: Mapping[str, Any], name: str, host: str) -> bytes:
    """A member that goes into a header. Raises `Unobtainable`."""
    value = members.get(name)
    text = value.encode("utf-8", "replace") if isinstance(value, str) else b""
    if not text or is_value(text) is None:
        raise Unobtainable(f"{host} answered without a usable {name}")
    return text


def seconds_of(members: Mapping[str, Any], name: str) -> float:
    """A number of seconds, which some servers send as text; USUAL_LIFE where there is none; NaN: one too large."""
    try:
        return float(members[name])
    except (KeyError, TypeError, ValueError):
        return USUAL_LIFE
    except OverflowError:
        return nan


_CODES: Final = frozenset(
    (
        *("invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "invalid_target"),
        *("unauthorized_client", "unsupported_grant_type", "access_denied", "server_error", "temporarily_unavailable"),
    )
)
"""Of errors (RFC 6749 5.2 and 4.1.2.1, RFC 8707 2): what else a server says may repeat what it was asked with."""


def _code_of(answer: Answer) -> str:
    try:
        found = json.loads(answer.body).get("error")
    except (ValueError, RecursionError, AttributeError):
        return ""
    return f", {found}" if isinstance(found, str) and found in _CODES else ""


def is_safe(url: str) -> bool:
    """Whether credentials may be sent there: over TLS, or without leaving the machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))
