"""What a request head of HTTP/2 comes to for an exchange: the same as an HTTP/1 head of that meaning. Pure.

Policies, routes and the log must not depend on the protocol of a client, so the block gets `host` back and loses what a
client may not say of itself, and an extended CONNECT (RFC 8441) is the GET that it replaces. A plain one (RFC 9113
8.5) has no path. How fields have to look was judged by the codec (`http/h2/rules`); what is left to judge is the same
as in `http/h1/request_head`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from dataplane.http import forwarding, grpc, upgrades, uri
from dataplane.http.connect_rules import CONNECT
from dataplane.http.h2.events import RequestHead
from dataplane.http.heads import SEPARATOR, Head, has_unusual_name, lines_of, unusual_lines, without
from dataplane.http.methods import METHODS
from dataplane.http.rules import DROP, REJECT, UNUSUAL_NAME, Finder, HttpRules, by_default

if TYPE_CHECKING:
    from dataplane.http.messages import Peer


@lru_cache(maxsize=64)
def _claims(owned: bytes) -> Finder:
    """Finds what only we say of a client, in each spelling that an origin might read so. `owned`: of `HttpRules`."""
    names = rb"x/forwarded/for|x/request/id|content/length|transfer/encoding".replace(b"/", SEPARATOR)
    if owned:
        names += b"|" + owned
    return re.compile(rb"\r\n(" + names + rb"): ([^\r]*)").finditer


_PLAIN_TARGET = re.compile(rb"(" + uri.PLAIN_PATH + rb")(\?[\x21\x22\x24-\x7e]*+)?").fullmatch
"""(path, "?query" or None) of a target that needs no normalising, as in `http/h1/request_line`."""

KEY = b"sec-websocket-key"
"""RFC 8441 5: has no use in HTTP/2; an endpoint of HTTP/1 gets a generated one."""


class Meaning:
    """A head and what it says. Constant; requests with equal heads share one. The repr has nothing that may be secret.

    Fields as in `dataplane.exchange`; `block` and `low` as in `heads.Head`. `client`: the client's address. `dropped`:
    headers left out for their names. `scheme`: of the URI that is asked for. `has_id`: the client sent an
    x-request-id that stays.
    `grpc`: what its content type is (`http/grpc`).
    `length` of content that follows: 0 none, or `messages.UNKNOWN`. `expects`: as `Exchange.expects`. `upgrade`: the
    `:protocol` of an extended CONNECT, or b"". `opens_tunnel`: a CONNECT, extended or not; its length and what it
    expects mean nothing.
    """

    __slots__ = (
        "authority",
        "block",
        "client",
        "dropped",
        "expects",
        "grpc",
        "has_id",
        "head",
        "host",
        "length",
        "low",
        "method",
        "opens_tunnel",
        "path",
        "query",
        "readings",
        "scheme",
        "target",
        "upgrade",
    )

    def __init__(self, head: RequestHead) -> None:
        self.head = head
        self.method = head.method
        self.authority = self.host = self.block = self.low = self.path = self.query = self.target = b""
        self.readings: tuple[bytes, ...] | None = None
        self.upgrade = head.protocol
        self.opens_tunnel = head.method == CONNECT
        self.length = head.length
        self.expects = bool(head.expect)
        self.client = ""
        self.scheme = b"http"
        self.has_id = False
        self.dropped = 0
        self.grpc = grpc.NOT_GRPC

    def __repr__(self) -> str:
        return f"Meaning({self.head})"


NO_REQUEST = Meaning(RequestHead(b"", b"", b"", b"", b"", b"", b"", 0, b"", False, frozenset()))


def read(
    head: RequestHead, peer: Peer, max_target: int, known: Meaning, rules_of: Callable[[bytes], HttpRules] = by_default
) -> Meaning | str:
    """Understand a head, or answer the reason code of a refusal. `known`: of the request before, of which the block may
    be the same; `rules_of`: those of the listener for a host."""
    refusal = _refusal(head, max_target)
    if refusal:
        return refusal
    found = Meaning(head)
    if found.opens_tunnel and not found.upgrade:
        found.target, found.path, found.readings = head.authority, uri.NO_PATH, ()
    elif not _aim(found, head.path):
        return "BadRequest"
    is_known = head.block is known.head.block and (head.authority, head.scheme) == (known.authority, known.head.scheme)
    if is_known and not head.protocol and not known.upgrade:
        found.block, found.low = known.block, known.low
        found.authority, found.host, found.has_id = known.authority, known.host, known.has_id
        found.grpc, found.client, found.dropped, found.scheme = known.grpc, known.client, known.dropped, known.scheme
        return found
    host = uri.canonical_host(head.authority)
    if host is None:
        return "BadRequest"
    found.authority, found.host = head.authority, host
    rules = rules_of(host)
    found.scheme = rules.scheme(head.scheme, peer) if head.scheme else peer.scheme
    if not found.scheme:
        return "BadRequest"
    refusal = _fill(found, head, peer, rules)
    if refusal:
        return refusal
    if head.protocol:
        found.method = b"GET"
    return found


def _refusal(head: RequestHead, max_target: int) -> str:
    """The reason code that a head is refused with whatever its target is, or ""."""
    if head.method not in METHODS or (head.protocol and not upgrades.is_allowed(head.protocol.lower())):
        return "MethodNotImplemented"
    if head.method == CONNECT and not head.protocol:
        return "BadRequest" if uri.split_authority(head.authority) is None else ""
    if len(head.path) > max_target:
        return "TargetTooLong"
    if head.expect and head.expect.lower() != b"100-continue":
        return "ExpectationFailed"
    return ""


def _aim(found: Meaning, target: bytes) -> bool:
    """Set path, query and target, made canonical; False: refuse it."""
    match = _PLAIN_TARGET(target)
    if match is not None:
        path, query = match.groups()
        found.target, found.path, found.query = target, path, b"" if query is None else query[1:]
        found.readings = ()
        return True
    if target == uri.NO_PATH:  # of OPTIONS: the codec has seen to it
        found.target = found.path = target
        return True
    split = uri.split_target(target)
    if split is None:
        return False
    found.path, found.query = split
    found.target = found.path + b"?" + found.query if b"?" in target else found.path
    return True


def _fill(found: Meaning, head: RequestHead, peer: Peer, rules: HttpRules) -> str:
    """Set the block: `host` in, claims of the client's out, forwarding headers in. The reason code of a refusal, or
    ""."""
    spans: list[tuple[int, int]] = []
    sent: list[bytes] = []
    keeps_id = rules.keeps_id(peer)
    for match in _claims(rules.names(peer))(head.block):  # names are in lower case here, and as they came
        name = match[1]
        if name == b"content-length":
            continue
        if name == b"x-request-id" and keeps_id:
            found.has_id = True
            continue
        spans.append(match.span())
        if name == b"x-forwarded-for":
            sent.append(head.block[slice(*match.span(2))])
    if head.protocol:
        spans = sorted([*spans, *lines_of(head.low, KEY)])
    block, low = without(head.block, head.low, spans)
    forwarded = forwarding.chain(sent, peer.address.encode())
    if forwarding.goes_round(forwarded):
        return "LoopDetected"
    found.client = rules.client(sent, peer)
    if has_unusual_name(block) is not None:
        if rules.underscores == REJECT:
            return UNUSUAL_NAME
        if rules.underscores == DROP:
            unusual = unusual_lines(block)
            block, low = without(block, low, unusual)
            found.dropped = len(unusual)
    added = forwarding.lines(head.authority, forwarded, found.scheme, low)
    host = b"\r\nhost: " + head.authority
    found.block = host + block + added
    found.low = host.lower() + low + added.lower()
    if b"application/grpc" in found.low:
        found.grpc = grpc.kind(Head(found.block, found.low).get(b"content-type") or b"")
    return ""
