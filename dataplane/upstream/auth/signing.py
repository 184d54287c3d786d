"""Requests signed for AWS, each try anew: a signature counts for some minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.http.heads import plain_name
from dataplane.upstream.auth import sigv4
from dataplane.upstream.auth.aws import Clock, moment_of
from dataplane.upstream.auth.sigv4 import UNSIGNED, UNSIGNED_SERVICES, Keys, Request, Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dataplane.http.heads import Head
    from dataplane.upstream.auth.tokens import Kept
    from dataplane.upstream.outgoing import Outgoing

_SESSION: Final = b"x-amz-security-token"
_OWN: Final = (b"authorization", b"x-amz-date", _SESSION, b"x-amz-content-sha256")
"""What a client has of these never passes for the gateway's."""
_PREFIX: Final = b"x-amz-"


class Signed:
    """A signature over method, target, content, host and what AWS has headers for. `needs_body`: the content's digest
    is part of it; S3 takes requests without, over TLS, which then pass as they come."""

    __slots__ = ("_clock", "_day", "_key", "_keys", "_scope", "_token", "needs_body")

    def __init__(self, token: Kept[Keys], scope: Scope, clock: Clock, is_tls: bool) -> None:
        self._token, self._scope, self._clock = token, scope, clock
        self.needs_body = not (is_tls and scope.service in UNSIGNED_SERVICES)
        self._keys: Keys | None = None
        self._day = self._key = b""
        """The day that `_key`, which signs, counts on."""

    def finish(self, out: Outgoing) -> Awaitable[None] | None:
        keys = self._token.current()
        if keys is None:
            return self._later(out)
        self._sign(out, keys)
        return None

    async def _later(self, out: Outgoing) -> None:
        self._sign(out, await self._token.coming())

    def _sign(self, out: Outgoing, keys: Keys) -> None:
        moment, head = moment_of(self._clock.now()), out.head
        content = sigv4.digest_of(out.body or b"") if self.needs_body else UNSIGNED
        for name in _OWN:
            head.remove(name)
        head.add(b"x-amz-date", moment)
        if keys.token:
            head.add(_SESSION, keys.token)
            out.hide(_SESSION)
        if self._scope.service in UNSIGNED_SERVICES:
            head.add(b"x-amz-content-sha256", content)
        request = Request(out.method, out.target, _signed(head), content)
        value = sigv4.authorization(request, keys, self._scope, moment, self._signing_key(keys, moment[:8]))
        head.add(b"authorization", value)

    def _signing_key(self, keys: Keys, day: bytes) -> bytes:
        if self._keys is not keys or self._day != day:
            self._keys, self._day = keys, day
            self._key = sigv4.signing_key(keys.secret, day, self._scope)
        return self._key

    def __repr__(self) -> str:
        return f"Signed({self._scope.service.decode()}, {self._token})"


def _signed(head: Head) -> tuple[tuple[bytes, bytes], ...]:
    """Host, and all that only AWS reads."""
    return tuple(
        (name, value) for name, value in head.items() if name == b"host" or plain_name(name).startswith(_PREFIX)
    )
