"""TLS handshakes with endpoints: what is offered, what is spoken then, and why one failed.

Used by the connector. A handshake verifies the server before anything of a request is sent; its failure has the name
that was asked for and OpenSSL's reason, for log and answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from dataplane.upstream.opening import NotOpened
from dataplane.upstream.versions import HTTP1, HTTP2, NAMES

if TYPE_CHECKING:
    from dataplane.net.turns import Turns
    from dataplane.tls.transport import Queue, TlsTransport
    from dataplane.upstream.endpoint import Pool
    from dataplane.upstream.settings import Transport

SHOWN: Final = {HTTP1: "HTTP/1.1", HTTP2: "HTTP/2"}


class HandshakeFailed(NotOpened):
    """Why no request may be sent."""

    outcome = "tls"


class Handshake:
    """One with the server of `pool`, over the connection that `transport` is the protocol of. `versions`: of HTTP, that
    may be spoken."""

    __slots__ = ("_done", "_pool", "_tls", "_versions", "check", "transport")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        made: Transport,
        versions: Collection[int],
        queue: Queue,
        turns: Turns,
    ) -> None:
        from dataplane.tls.client import Check
        from dataplane.tls.transport import TlsTransport

        settings = made.tls
        assert settings is not None and settings.security is not None  # the plan would be refused
        self._pool, self._versions = pool, versions
        self._done: asyncio.Future[str] = loop.create_future()
        self.check = Check(made.names)
        offered = [name for name in settings.alpn if NAMES.get(name) in versions]
        session = None if pool.last is None else pool.last.get_session()
        self._tls = settings.security.connection(made.server_name, offered, self.check, session)
        self.transport = TlsTransport(self._tls, self, queue, turns, pool.label)

    async def ended(self) -> int:
        """The version of HTTP that the server chose. Raises `HandshakeFailed`."""
        reason = await self._done
        name = self._pool.transport.server_name if self._pool.transport is not None else ""
        whom = f"TLS handshake with {name or 'it'}"
        if reason:
            why = self.check.problem or reason
            raise HandshakeFailed(f"{whom} failed: {why}", why)
        version = NAMES.get(self._tls.get_alpn_proto_negotiated().decode("latin-1"), HTTP1)
        if version not in self._versions:
            spoken = " and ".join(SHOWN[each] for each in self._versions)
            raise HandshakeFailed(f"{whom}: it does not speak {spoken} (ALPN)", f"does not speak {spoken} (ALPN)")
        self._pool.last = self._tls
        return version

    def hand_over(self, protocol: Any) -> None:  # Any: asyncio's Protocol, by shape
        """From now on the connection is this protocol's."""
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        self.transport.resume_reading()

    # --- as `tls.transport.Owner`

    def secured(self, transport: TlsTransport) -> None:
        transport.pause_reading()  # until somebody is there to read
        self._finish("")

    def failed(self, transport: TlsTransport, reason: str) -> None:
        self._finish(reason)

    def _finish(self, reason: str) -> None:
        if not self._done.done():
            self._done.set_result(reason)
