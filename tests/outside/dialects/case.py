"""The vocabulary of the rows: what somebody has in another proxy, how it is written here, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SERVES = "serves"
"""The verdict of a row that is accepted; the others are `not yet: <path>` (known, refused by name) and `no: <why>`
(there is nothing of the kind; `text` is the nearest thing, if any)."""

ACCEPTED = "accepted"
"""As SERVES, of what is no request in plaintext: that it serves is shown in tests/loopback."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request and what must come of it. Every server answers 200 with the body "ok", unless `Row.servers` says."""

    request: str
    """`GET /path`."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside `host: shop.example.com`."""
    body: str = ""
    gets: Mapping[str, str | None] = field(default_factory=dict)
    """Headers of the response; None: absent."""
    text: str | None = None
    """Body of the response."""
    at: str | None = None
    """The server that gets the request."""
    sees: str | None = None
    """Its request line there, `GET /path`."""
    with_headers: Mapping[str, str | None] = field(default_factory=dict)
    """Headers that it sees; None: absent."""
    also_at: str | None = None
    """A further server that gets the request (a mirror)."""
    tries: int = 1
    """How often the server at `at` gets it."""
    dice: float = 0.0
    """What chance gives, from 0 to 1."""
    after: float = 0.0
    """Seconds that pass before."""


@dataclass(frozen=True, slots=True)
class Row:
    """One input."""

    dialect: str
    theirs: str
    """Their word for it: a directive, annotation, plugin."""
    intention: str
    ours: str
    """Our word for it, as docs/migrating.md shows it."""
    text: str
    """Our YAML: a standalone file, or objects."""
    verdict: str = SERVES
    asks: tuple[Ask, ...] = ()
    servers: Mapping[str, str] = field(default_factory=dict)
    """Address to the status line and headers of its answers, in place of 200."""
    log: str = ""
    """What the last line of the access log has."""

    def __str__(self) -> str:
        return f"{self.dialect}: {self.theirs}"
