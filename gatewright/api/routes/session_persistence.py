"""`sessionPersistence` of a rule of an HTTPRoute or GRPCRoute (Gateway API 1.7, experimental), and in the standalone
file of a route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.routes.http_filters import CONNECTION_HEADERS
from gatewright.api.schema import duration
from gatewright.api.schema.fields import Duration, HeaderName
from gatewright.api.schema.model import Broken, RuledModel

_PATH: Final = re.compile(r"/[!-:<-~]*").fullmatch
"""RFC 6265 4.1.1, path-value: no control character and no ";"; one that has no "/" at its begin is none (5.2.4)."""
_TAKEN: Final = CONNECTION_HEADERS | {"cookie", "host", "set-cookie"}
"""Headers that mean something else."""


class CookieConfig(RuledModel):
    """Gateway API CookieConfig."""

    name: HeaderName | None = None
    """Name of the cookie; unset: one that is made of the route's name."""
    path: Annotated[str, Field(max_length=1024)] = "/"
    """Paths that the client sends it for."""
    lifetime_type: Literal["Permanent", "Session"] = "Session"
    """How long the client keeps it: `Session` as long as its own session, `Permanent` as long as `absoluteTimeout`."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.path and not _PATH(self.path):
            yield Broken(("path",), 'must begin with "/" and have no space, control character or ";" in it')


class HeaderConfig(RuledModel):
    """Gateway API HeaderConfig."""

    name: HeaderName
    """Name of the header, of responses and of the requests that follow."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.name.lower() in _TAKEN:
            yield Broken(("name",), f"must not be {self.name}, which means something else")


class SessionPersistence(RuledModel):
    """Gateway API SessionPersistence."""

    type: Literal["Cookie", "Header"] = "Cookie"
    """What the client keeps the session in."""
    absolute_timeout: Duration | None = None
    """How long a session lasts."""
    cookie: CookieConfig | None = None
    """Of type Cookie: which cookie."""
    header: HeaderConfig | None = None
    """Of type Header: which header."""

    def broken_rules(self) -> Iterator[Broken]:
        for kind, name, value in (("Cookie", "cookie", self.cookie), ("Header", "header", self.header)):
            if self.type == kind and value is None:
                yield Broken((name,), f"is required when type is {kind}")
            if self.type != kind and value is not None:
                yield Broken((name,), f"must be absent when type is {self.type}")
        if self.absolute_timeout is not None and not duration.milliseconds(self.absolute_timeout):
            yield Broken(("absoluteTimeout",), "must be longer than 0s")
        if self.cookie and self.cookie.lifetime_type == "Permanent" and self.absolute_timeout is None:
            yield Broken(("absoluteTimeout",), "is required when cookie.lifetimeType is Permanent")
