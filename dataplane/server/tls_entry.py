"""TLS as a phase of a connection: from its first bytes to a listener and a handshake.

What is no ClientHello, and what asks for a server that no listener has, is closed without an alert: who knocks at
random learns nothing. What goes wrong later gets OpenSSL's alert, a log line with its reason, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from dataplane.link.sources import source_of
from dataplane.server.phases import MORE, NEXT
from dataplane.table.binds import choose
from dataplane.tls.client_hello import NotTls, read

if TYPE_CHECKING:
    from OpenSSL import SSL

    from dataplane.server.phases import Arrival
    from dataplane.tls.transport import TlsTransport

TIMED_OUT: Final = "the handshake timed out"
NOT_TLS: Final = "no ClientHello"
NO_LISTENER: Final = "no listener for the server name"
UNUSABLE: Final = "frontend.tls cannot be applied"
NO_CERTIFICATE: Final = "no certificate of the listener can be used"


def step(entry: Arrival) -> int:
    """As `phases.Phase.step`."""
    if not entry.phases.tls or entry.peer.tls is not None:
        return NEXT
    if entry.secure is not None or not entry.data:
        return MORE  # the handshake, or its first bytes
    try:
        name = read(entry.data)
    except NotTls:
        return _refuse(entry, NOT_TLS)
    if isinstance(name, int):
        entry.wanted = name
        return MORE
    entry.server_name = name
    bind = entry.context.bind_of(entry.bind)  # as it is now: a client may take its time for a ClientHello
    listener = None if bind is None else choose(bind, name)
    if listener is None or listener.tls is None:
        return _refuse(entry, NO_LISTENER, name)
    entry.listener = listener
    if listener.tls.is_passthrough:
        entry.peer = replace(entry.peer, listener=listener.key)
        return NEXT
    context = listener.tls.context()
    if context is None:
        return _refuse(entry, UNUSABLE if listener.tls_settings.refused else NO_CERTIFICATE, name)
    accepting, transport = _openssl()
    shared, source = entry.context, str(source_of(entry.peer.address))
    owner = _Owner(entry)
    secure = transport(accepting(context), owner, shared.handshakes, shared.writes.turns, source, is_server=True)
    entry.secure = secure
    secure.sni = name
    data, entry.data = entry.data, b""
    secure.start(entry.transport, data)
    return MORE


@cache
def _openssl() -> tuple[Callable[[SSL.Context], SSL.Connection], type[TlsTransport]]:
    """What is loaded by the first handshake: most workers do without OpenSSL."""
    from dataplane.tls.contexts import accepting
    from dataplane.tls.transport import TlsTransport

    return accepting, TlsTransport


class _Owner:
    """As `tls.transport.Owner`."""

    __slots__ = ("entry",)

    def __init__(self, entry: Arrival) -> None:
        self.entry = entry

    def secured(self, transport: TlsTransport) -> None:
        entry = self.entry
        listener, info = entry.listener, transport.info
        assert listener is not None and listener.tls is not None and info is not None  # its handshake is done
        entry.context.recorder.handshake(info.resumed)
        entry.transport = transport
        entry.secure = None
        entry.peer = entry.peer.secured(info, listener.key, listener.tls.asks)
        transport.set_protocol(entry)
        entry.go_on()

    def failed(self, transport: TlsTransport, reason: str) -> None:
        entry = self.entry
        listener = "" if entry.listener is None else entry.listener.key
        if not entry.is_over:  # else it was closed for another
            entry.context.handshake_log.failed(reason, entry.peer.address, transport.sni, listener)
        entry.secure = None
        entry.connection_lost(None)


def _refuse(entry: Arrival, reason: str, name: bytes = b"") -> int:
    entry.context.handshake_log.failed(reason, entry.peer.address, name, "")
    return entry.hang_up()
