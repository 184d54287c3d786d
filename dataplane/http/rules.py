"""What a listener's `frontend.http` makes of the heads of requests: whom to trust, which headers only the gateway
writes, and how much of a request is read.

Made when the configuration changes, asked when a head is read (`http/h1/request_head`, `server/h2/requests`). A head
that a connection repeats is not read again, so nothing of this costs such a request anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final

from dataplane.http import connection_rules
from dataplane.http.connection_rules import ConnectionRules
from dataplane.http.heads import SEPARATOR
from dataplane.http.spellings import ALL_OPEN, PathRules
from dataplane.http.uri import SCHEME_PORTS
from gatewright.cel.parameters import MAX_PARAMETERS

if TYPE_CHECKING:
    from dataplane.http.messages import Peer

OWNED: Final = (
    *(b"forwarded", b"x-real-ip", b"true-client-ip", b"x-original-url", b"x-rewrite-url", b"x-forwarded-*"),
)
"""Headers that only we may write where nothing else is set: what origins believe about a
client. `x-forwarded-for` is no such header, for its values are added to."""

DROP, REJECT, KEEP_NAMES = "Drop", "Reject", "Keep"
"""What becomes of a header whose name has another character than letters, digits and hyphens: a server that makes
variables of headers (WSGI, CGI, PHP) gives it to the application under the name of another one."""

UNUSUAL_NAME: Final = "UnusualHeaderName"
"""Reason code of a refusal for such a name."""

WHOLE_BODY: Final = -1
"""Of `HttpRules.may_hold`: who holds a body names no limit of its own."""

MAX_BUFFER: Final = 2_097_152
"""Bytes of a body that is held at most, where nothing is configured (FrontendHTTP.maxBufferSize)."""

MAX_HEADERS: Final = 4096
"""Header fields of an HTTP/1 request that any listener may allow (FrontendHTTP.http1MaxHeaders)."""

MAX_HOPS: Final = 32
"""Entries of `x-forwarded-for` that are looked at, from its end: a client may send thousands."""

KEEP, REPLACE, KEEP_FROM_TRUSTED = "Keep", "Replace", "KeepFromTrusted"
"""What becomes of a client's `x-request-id`."""

Finder = Callable[[bytes], Iterator[re.Match[bytes]]]
_Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Hops:
    """Which proxies in front are believed. `count`: how many there are, 0: those in `networks`."""

    count: int = 0
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def trusts(self, peer: str) -> bool:
        """Whether what connects to us is one of them; with a count it always is."""
        return bool(self.count) or self._has(_address(peer.encode()))

    def client(self, sent: Iterable[bytes], peer: str) -> str:
        """The address of the client behind them, in its usual form (RFC 5952; IPv4 plainly).

        `sent`: the values of `x-forwarded-for` in order; `peer`: the address of what connects to us. Where the values
        do not lead to an address, the last one that is known to be true.
        """
        entries = b",".join(sent).rsplit(b",", MAX_HOPS)[-MAX_HOPS:]
        if self.count:
            found = _address(entries[-self.count]) if len(entries) >= self.count else None
            return peer if found is None else str(found)
        address = _address(peer.encode())
        for entry in reversed(entries):
            if not self._has(address):
                break
            before = _address(entry)
            if before is None:
                break
            address = before
        return peer if address is None else str(address)

    def _has(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self.networks)


def _address(text: bytes) -> _Address | None:
    """Of an entry: an IP address, perhaps with a port, as some proxies write it."""
    text = text.strip(b" \t")
    if text.startswith(b"["):
        text = text[1:].partition(b"]")[0]
    elif text.count(b":") == 1:
        text = text.partition(b":")[0]
    try:
        address = ip_address(text.decode("latin-1"))
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address


@dataclass(frozen=True)
class HttpRules:
    """Of one listener. The defaults hold where nothing is configured."""

    hops: Hops | None = None
    """None: no hop in front is trusted."""
    owned: tuple[bytes, ...] = OWNED
    """Headers that only we may write, in lower case; "*" at the end of one matches any rest."""
    request_id: str = KEEP
    max_query_parameters: int = MAX_PARAMETERS
    """More than these of a query are not read: who asks for them refuses the request."""
    underscores: str = DROP
    """What becomes of headers with unusual names: `DROP`, `REJECT` or `KEEP_NAMES`."""
    paths: PathRules = ALL_OPEN
    max_json_keys: int = 10_000
    """More keys than these of a body are not parsed as JSON: the same."""
    max_headers: int | None = None
    """Header fields of an HTTP/1 request; None: the proxy's own (`proxy/context.Limits`)."""
    max_buffer: int = MAX_BUFFER
    """Bytes of a body that is held (`may_hold`)."""
    connection: ConnectionRules = connection_rules.DEFAULT
    """What has to be known before a request."""
    refused: str = ""
    """Why no request is served."""

    def may_hold(self, wanted: int) -> int:
        """Bytes of a body that may be held by who wants so many; `WHOLE_BODY`: as many as there may be.

        A limit of a policy's own holds; where `max_buffer` is other than by default it is the most of that too. (Of an
        object that an API server has completed it is unknown whether its author wrote the default.)
        """
        if wanted == WHOLE_BODY:
            return self.max_buffer
        return wanted if self.max_buffer == MAX_BUFFER else min(wanted, self.max_buffer)

    @cached_property
    def pattern(self) -> bytes:
        """An expression for the names of `owned` in lower case, each in each spelling that an origin may read as it."""
        return _pattern(self.owned)

    def believes(self, peer: Peer) -> bool:
        """Whether a client is one of the trusted hops. Where none are set no client is."""
        return self.hops is not None and self.hops.trusts(peer.address)

    def scheme(self, named: bytes, peer: Peer) -> bytes:
        """The scheme of the URI that a request asks for, of which it `named` one; b"": it has to be refused.

        RFC 9110 7.4: only a trusted gateway may ask for what this connection is none for, as a proxy does that ends TLS
        and passes `https` on in plain text."""
        scheme = named.lower()
        if scheme == peer.scheme:
            return scheme
        return scheme if scheme in SCHEME_PORTS and (peer.is_gateway or self.believes(peer)) else b""

    def names(self, peer: Peer) -> bytes:
        """The expression for what a client may not write. A shorter list than the default is for whom we believe, if
        trusted networks are set."""
        if self.hops is None or self.hops.trusts(peer.address):
            return self.pattern
        return self.pattern + b"|" + DEFAULT.pattern if self.pattern else DEFAULT.pattern

    def keeps_id(self, peer: Peer) -> bool:
        """Whether an `x-request-id` of this client stays."""
        return self.request_id == KEEP or (self.request_id == KEEP_FROM_TRUSTED and self.believes(peer))

    def client(self, sent: Iterable[bytes], peer: Peer) -> str:
        """The client's address. `sent`: values of `x-forwarded-for`."""
        return peer.address if self.hops is None else self.hops.client(sent, peer.address)


def _pattern(names: Iterable[bytes]) -> bytes:
    return b"|".join(_spellings(name) for name in names)


_parts = re.compile(SEPARATOR).split


def _spellings(name: bytes) -> bytes:
    stem = SEPARATOR.join(map(re.escape, _parts(name.removesuffix(b"*"))))
    return stem + rb"[^:\r\n]*" if name.endswith(b"*") else stem


DEFAULT: Final = HttpRules()


def by_default(_host: bytes) -> HttpRules:
    """Rules for any host, where none are configured."""
    return DEFAULT
