"""What the headers of a request mean for this hop, read once per distinct header block. Pure.

The connection keeps what it learned from its last block: clients that keep a connection often send the same headers
again, and then nothing of this runs; where only values differ that mean nothing here, little of it (`again`). One regex
search finds the headers that need a decision; all others pass unseen.
Reading is strict (RFC 9112): a block that two readers could understand differently is refused, and llhttp has to agree
with us on where the message ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import httptools

from dataplane.http import forwarding, upgrades, uri
from dataplane.http.connect_rules import CONNECT
from dataplane.http.h1 import values
from dataplane.http.h1.request_line import Named
from dataplane.http.heads import SEPARATOR, folded, has_unusual_name, plain_name, unusual_lines, without, without_named
from dataplane.http.messages import Peer
from dataplane.http.methods import UNKNOWN_TO_LLHTTP
from dataplane.http.rules import DEFAULT, DROP, MAX_HEADERS, REJECT, UNUSUAL_NAME, Finder, HttpRules, by_default

_NAMES = (
    rb"host|connection|content/length|transfer/encoding|expect|upgrade|te|keep-alive|proxy-connection"
    rb"|http2-settings|x/forwarded/for|x/request/id"
).replace(b"/", SEPARATOR)


@lru_cache(maxsize=64)
def _special(owned: bytes) -> Finder:
    """Finds what means something to this hop, and what no client may write (`owned`: of `HttpRules`)."""
    names = _NAMES + b"|" + owned if owned else _NAMES
    ahead = rb"(?=[cefhkptux])" if owned == DEFAULT.pattern else b""  # of all these names; saves most lines
    return re.compile(rb"\r\n" + ahead + b"(" + names + rb")[ \t]*:[ \t]*([^\r]*)").finditer


_special(DEFAULT.pattern)  # here, once for all workers, instead of in the first request of each

_MEANT = re.compile(_NAMES).fullmatch

_STAYS = frozenset((b"host", b"content-length", b"x-request-id"))
"""Of these, what goes on; the rest ends at this hop (RFC 9110 7.6.1), or says who the client is, which only we say
(an origin may read `x_forwarded_for` as `x-forwarded-for`, and `content_length` as what it is not)."""

_NOT_REMOVABLE = frozenset((*_STAYS, b"transfer-encoding", b"close", b"keep-alive", b"upgrade", b"te"))
"""Options of `Connection` that are no header to take out, or not the client's to take out."""

_LENGTH = re.compile(rb"[0-9]{1,18}").fullmatch
_SHORTEST_LINE = 4
"""Bytes of `a:` and CRLF."""


@dataclass(slots=True)
class Framing:
    """How a request's body is delimited, and what the request asks of this hop. Constant once it is made."""

    length: int = 0
    chunked: bool = False
    expects: bool = False
    upgrade: bytes = b""

    @property
    def has_body(self) -> bool:
        return self.chunked or self.length > 0


@dataclass(slots=True, eq=False)
class Meaning:
    """What a header block says to this hop: one for all heads of a connection that differ in values alone."""

    host: bytes = b""
    authority: bytes = b""
    keep: bool = False
    """The client wants to keep the connection."""
    client: str = ""
    """The client's address, as the listener believes it."""
    scheme: bytes = b"http"
    """Of the URI that is asked for (RFC 9110 7.1)."""
    framing: Framing = field(default_factory=Framing)
    has_body: bool = False
    has_id: bool = False
    """The client sent an `x-request-id`."""
    added: bytes = b""
    """What was added behind the client's headers, and its twin."""
    low_added: bytes = b""
    folds: bool = False
    """A name that stayed has another character than letters, digits and hyphens."""
    dropped: int = 0
    """How many headers with such a name were left out."""
    like: values.Like | None = None
    """How another head looks that means the same; made when the connection brings a second one."""


@dataclass(slots=True, eq=False)
class RequestHead:
    """A header block and what it says. The repr has nothing that may hold credentials."""

    block: bytes = field(repr=False)
    """As received."""
    headers: bytes = field(repr=False)
    """As it goes on: hop-by-hop headers out, forwarding headers in."""
    low: bytes = field(repr=False)
    """The twin of `headers`."""
    meaning: Meaning


_NO_BODY = Framing()
NO_REQUEST = RequestHead(b"", b"", b"", Meaning())


def read(
    line: bytes,
    block: bytes,
    version: bytes,
    named: Named,
    peer: Peer,
    max_headers: int,
    rules_of: Callable[[bytes], HttpRules] = by_default,
) -> RequestHead | str:
    """Understand a header block, or answer the reason code of a refusal.

    `line`: the request line (for llhttp); `named`: whom it names; `max_headers`: fields where the listener has no
    limit of its own; `rules_of`: those of the listener for a host.
    """
    low = block.lower()
    fields = low.count(b"\r\n") - 1 if len(low) > max_headers * _SHORTEST_LINE else 0
    if fields > MAX_HEADERS:
        return "HeadersTooLarge"
    hosts, options, spans, rare, has_id = _scan(low, _special(DEFAULT.pattern))
    meant = _authority(hosts, version, named.authority.lower(), line.startswith(CONNECT))
    if meant is None:
        return "HeadersTooLarge" if fields > max_headers else "BadRequest"
    authority, host = meant
    rules = rules_of(host)
    scheme = rules.scheme(named.scheme, peer) if named.scheme else peer.scheme
    if not scheme:
        return "BadRequest"
    if rules.max_headers is not None:
        fields, max_headers = low.count(b"\r\n") - 1, rules.max_headers
    if fields > max_headers:
        return "HeadersTooLarge"
    if rules is not DEFAULT:
        hosts, options, spans, rare, has_id = _scan(low, _special(rules.names(peer)), rules.keeps_id(peer))
    framing, forwarded, client = _NO_BODY, peer.address.encode(), peer.address
    if rare:
        weighed = _weigh(rare, options, version)
        if isinstance(weighed, str):
            return weighed
        framing = weighed
        sent = [block[slice(*match.span(2))].strip(b" \t") for match in rare if match[1] == b"x-forwarded-for"]
        forwarded = forwarding.chain(sent, forwarded)
        if forwarding.goes_round(forwarded):
            return "LoopDetected"
        client = rules.client(sent, peer)
    if not _agreed(line, block, framing):
        return "BadRequest"
    keep = (version == b"HTTP/1.1" or b"keep-alive" in options) and b"close" not in options
    headers, low_headers = without(block, low, spans)
    folds, dropped = has_unusual_name(low_headers) is not None, 0
    if folds:
        if rules.underscores == REJECT:
            return UNUSUAL_NAME
        if rules.underscores == DROP:
            unusual = unusual_lines(low_headers)
            headers, low_headers = without(headers, low_headers, unusual)
            folds, dropped = False, len(unusual)
        else:
            low_headers = folded(low_headers)
    named_options = {*options} - _NOT_REMOVABLE
    if named_options:
        named_options = {plain_name(option) for option in named_options} - _NOT_REMOVABLE
        headers, low_headers = without_named(headers, low_headers, named_options)
    added = _added(authority, forwarded, scheme, low_headers, b"" if hosts else authority or peer.local)
    low_added = added.lower()
    named_by, has_body = authority or peer.local, framing.has_body
    meaning = Meaning(host, named_by, keep, client, scheme, framing, has_body, has_id, added, low_added, folds, dropped)
    return RequestHead(block, headers + added, low_headers + low_added, meaning)


_Scanned = tuple[list[bytes], list[bytes], list[tuple[int, int]], list[re.Match[bytes]], bool]
"""Values of `host`; options of `connection`; what does not go on; headers that are to be weighed; whether an
`x-request-id` goes on."""


def _scan(low: bytes, special: Finder, keeps_id: bool = True) -> _Scanned:
    """What almost every request has is handled here, the rest by `_weigh`."""
    hosts: list[bytes] = []
    options: list[bytes] = []
    spans: list[tuple[int, int]] = []
    rare: list[re.Match[bytes]] = []
    has_id = False
    for match in special(low):
        name, value = match.groups()
        if name == b"host":
            hosts.append(value.rstrip(b" \t"))
        elif name == b"connection":
            spans.append(match.span())
            options += [value] if value == b"keep-alive" else [option.strip(b" \t") for option in value.split(b",")]
        elif name == b"x-request-id" and keeps_id:
            has_id = True
        else:
            rare.append(match)
            if name not in _STAYS or name == b"x-request-id":
                spans.append(match.span())
    return hosts, options, spans, rare, has_id


def again(known: RequestHead, block: bytes) -> RequestHead | None:
    """What `read` would answer for a block that differs from a known one in values that mean nothing to this hop, or in
    its `content-length`; None when it differs in more, and has to be read.

    `known`: a head that this connection sent with HTTP/1.1 and without an absolute target.
    """
    meaning = known.meaning
    like = meaning.like
    if like is None:
        if not values.is_worth_learning(known.block, block, _means):
            return None
        like = _like(known)
    length = like.compare(known.block, block)
    if length != values.ALIKE:
        if length == values.UNLIKE:
            return None
        meaning = _with_length(meaning, length)
    kept = block if like.kept is None else like.onward(block)
    low = folded(kept.lower()) if meaning.folds else kept.lower()
    return RequestHead(block, kept + meaning.added, low + meaning.low_added, meaning)


def _like(known: RequestHead) -> values.Like:
    meaning = known.meaning
    upgrades = b"\r\nupgrade:" in known.block.lower()  # for llhttp such a request has no body
    own = known.headers[: len(known.headers) - len(meaning.added)]
    meaning.like = values.Like(known.block, own, _means, not upgrades)
    return meaning.like


def _with_length(known: Meaning, length: int) -> Meaning:
    framing = Framing(length, False, known.framing.expects, known.framing.upgrade)
    return replace(known, framing=framing, has_body=framing.has_body)


def _means(name: bytes) -> bool:
    """Whether the value of the field of this name means something to this hop; an id is only there or not."""
    return name != b"x-request-id" and _MEANT(name) is not None


def _authority(
    hosts: list[bytes], version: bytes, absolute: bytes, is_connect: bool = False
) -> tuple[bytes, bytes] | None:
    """(authority, canonical host), or None: RFC 9112 3.2 wants exactly one good Host, 3.2.2 the absolute form to win;
    we want the two to agree. Of a CONNECT clients (Java's) leave the port out of Host."""
    if not hosts:
        if version == b"HTTP/1.1":
            return None
        return absolute, (uri.canonical_host(absolute) if absolute else None) or b""
    authority = absolute if is_connect and hosts[0] == absolute.rpartition(b":")[0] else hosts[0]
    host = uri.canonical_host(authority)
    if host is None or len(hosts) > 1 or (absolute and absolute != authority):
        return None
    return authority, host


def _weigh(rare: list[re.Match[bytes]], options: list[bytes], version: bytes) -> Framing | str:
    """The framing, or the reason of a refusal: RFC 9112 section 6.3 without any of its leniency."""
    framing = Framing()
    lengths: list[bytes] = []
    codings: list[bytes] = []
    for match in rare:
        name, value = match.groups()
        value = value.rstrip(b" \t")
        if name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings += [coding.strip(b" \t") for coding in value.split(b",")]
        elif name == b"expect":
            if value != b"100-continue":
                return "ExpectationFailed"
            framing.expects = version == b"HTTP/1.1"
        elif name == b"upgrade" and b"upgrade" in options and version == b"HTTP/1.1":
            framing.upgrade = value if upgrades.is_allowed(value) else b""
    if codings:
        if lengths or version != b"HTTP/1.1":
            return "BadRequest"
        if codings[-1] != b"chunked" or b"chunked" in codings[:-1] or b"" in codings:
            return "BadRequest"  # 6.3: where the body ends would be ambiguous; that goes before the 501 of 6.1
        if len(codings) > 1:
            return "CodingNotImplemented"
        framing.chunked = True
    elif lengths:
        if len(lengths) > 1 or _LENGTH(lengths[0]) is None:
            return "BadRequest"
        framing.length = int(lengths[0])
    return framing


def _added(authority: bytes, forwarded: bytes, scheme: bytes, low: bytes, host: bytes) -> bytes:
    """Forwarding headers, and a host where none came. `low`: what goes on of the client's headers."""
    lines = forwarding.lines(authority, forwarded, scheme, low)
    if host:  # HTTP/1.0: upstream speaks HTTP/1.1 and wants one (RFC 9112 3.3)
        lines += b"host: %b\r\n" % host
    return lines


class _Judge:
    """What llhttp says of a head: whether the message ends with it."""

    __slots__ = ("complete",)

    def __init__(self) -> None:
        self.complete = False

    def on_message_complete(self) -> None:
        self.complete = True


def _agreed(line: bytes, block: bytes, framing: Framing) -> bool:
    """Whether llhttp takes the head for one and sees the same framing."""
    judge = _Judge()
    method, _, rest = line.partition(b" ")
    if method in UNKNOWN_TO_LLHTTP:
        line = b"POST " + rest
    try:
        httptools.HttpRequestParser(judge).feed_data(b"%b%b\r\n" % (line, block))
    except httptools.HttpParserUpgrade:
        return not framing.chunked and not framing.length
    except httptools.HttpParserError:
        return False
    return judge.complete == (not framing.chunked and not framing.length)
