"""What writes a credential into each try of a request (`upstream/outgoing.Finisher`). Signatures: `signing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataplane.upstream.auth.location import BASIC, BEARER, REASON, Place
from dataplane.upstream.outgoing import Unfinished

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dataplane.upstream.auth.tokens import Kept
    from dataplane.upstream.outgoing import Outgoing


class Key:
    """A credential that is known. `key`, `secretRef`."""

    __slots__ = ("_credential", "_write")
    needs_body = False

    def __init__(self, credential: bytes, place: Place) -> None:
        self._credential = credential
        self._write = place.write

    @property
    def is_at_usual_place(self) -> bool:
        """No location was given."""
        return self._write is BEARER.write

    def finish(self, out: Outgoing) -> None:
        self._write(out, self._credential)

    def __repr__(self) -> str:
        return "Key(<redacted>)"


REMOVED: Final = (
    ("jwt", "rawToken", BEARER),
    ("apiKey", "key", BEARER),
    ("basicAuthCredentials", "", BASIC),
)
"""What policies leave of a credential that they took out of the request, the first that counts: attribute, part of it,
and where it is put back where no location is given."""


class Passthrough:
    """The client's own credential, put back. `place`: None, where none is given."""

    __slots__ = ("_place",)
    needs_body = False

    def __init__(self, place: Place | None) -> None:
        self._place = place

    def finish(self, out: Outgoing) -> None:
        found = out.attributes
        if not found:  # no policy took one out
            return
        for variable, part, usual in REMOVED:
            left: Any = found.get(variable)  # a Redacted, a dict that has one, or None where that policy did not run
            secret = left.get(part) if part and left is not None else left
            if secret is not None:
                (self._place or usual).write(out, secret.unredacted().encode("utf-8", "surrogateescape"))
                return

    def __repr__(self) -> str:
        return "Passthrough()"


class Presented:
    """A token of a server, as a bearer (RFC 6750 2.1)."""

    __slots__ = ("_token",)
    needs_body = False

    def __init__(self, token: Kept[bytes]) -> None:
        self._token = token

    def finish(self, out: Outgoing) -> Awaitable[None] | None:
        known = self._token.current()
        if known is None:
            return self._later(out)
        BEARER.write(out, known)
        return None

    async def _later(self, out: Outgoing) -> None:
        BEARER.write(out, await self._token.coming())

    def __repr__(self) -> str:
        return f"Presented({self._token})"


@dataclass(frozen=True, slots=True)
class Retargeted:
    """All requests go to one path, with its own query: before their signature, which covers it."""

    target: bytes
    needs_body: bool = False

    def finish(self, out: Outgoing) -> None:
        out.target = self.target


class Refusing:
    """In place of a credential that cannot be had: nothing is sent without it."""

    __slots__ = ("_why",)
    needs_body = False

    def __init__(self, why: str) -> None:
        self._why = why

    def finish(self, out: Outgoing) -> None:
        raise Unfinished(REASON, self._why)

    def __repr__(self) -> str:
        return f"Refusing({self._why})"
