"""`frontend.http`: how listeners speak HTTP."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.checks import NoneOf
from gatewright.api.schema.fields import ByteSize, HeaderName, Integer, PositiveDuration
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import each, exactly_one, where_set
from gatewright.api.schema.size_rules import at_least, at_most
from gatewright.api.schema.targets import NetworkText

FRAME_SIZES: Final = (16_384, 16_777_215)
"""RFC 9113 6.5.2, SETTINGS_MAX_FRAME_SIZE."""
MAX_WINDOW: Final = 2**31 - 1
"""RFC 9113 6.9.1."""


NOT_OWNED: Final = (
    *("host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "te", "keep-alive"),
    *("proxy-connection", "http2-settings", "x-forwarded-for", "x-request-id"),
)
"""What no `ownedHeaders` may name: headers of the connection, and those that have settings of their own."""


MAX_PARTS: Final = 1_000_000
"""The most that may be allowed of what is counted in a request."""


class TrustedHops(RuledModel):
    """Which proxies in front of this one are believed: one of these. Gatewright extension."""

    count: Annotated[Integer, Field(ge=1, le=16)] | None = None
    """How many there are on every way to this proxy, the one that connects to it included."""
    cidrs: Annotated[tuple[NetworkText, ...], Field(min_length=1, max_length=64)] | None = None
    """Their addresses, as networks such as 10.0.0.0/8 or single addresses."""

    cel_rules = (exactly_one("count", "cidrs"),)


class PathSpellings(RuledModel):
    """What becomes of spellings of a path that origins read differently. A kind that is unset passes where every
    reading of the path leads to the same rule and is allowed; otherwise the request is refused with 400. What is sent
    to the origin is always what policies have seen. Gatewright extension."""

    repeated_slashes: Literal["Keep", "Merge", "Reject"] | None = None
    """Slashes in a row: they stay, are made one slash, or the request is refused with 400. Gatewright extension."""
    escaped_slashes: Literal["Keep", "Decode", "Reject"] | None = None
    """`%2F`: it stays an escape, is made a slash, or the request is refused with 400. Gatewright extension."""
    escaped_backslashes: Literal["Keep", "Decode", "Reject"] | None = None
    """`%5C`: it stays an escape, is made a slash, or the request is refused with 400. Gatewright extension."""
    parameters: Literal["Keep", "Remove", "Reject"] | None = None
    """What follows a `;` in a segment: it stays, is removed with the `;`, or the request is refused with 400.
    Gatewright extension."""
    case: Literal["Keep", "Lower"] = "Keep"
    """Letter case of paths: it stays, or paths are made lower-case, for origins to which it means nothing. Routes and
    expressions then have to name lower-case paths. Gatewright extension."""


class FrontendHTTP(RuledModel):
    """HTTP settings of listeners."""

    max_buffer_size: ByteSize = "2mb"
    """The largest body that is held in memory for policies that need it whole, for expressions and for other tries. A
    larger limit of a policy's own holds beside the default; any other value bounds that as well."""
    http1_max_headers: Annotated[Integer, Field(ge=1, le=4096)] = 100
    """How many header fields an HTTP/1 request may have."""
    http1_idle_timeout: PositiveDuration = "10m"
    """How long an unused HTTP/1 connection is kept."""
    http1_header_case: Literal["Lowercase", "Preserve"] | None = None
    """Letter case of response header names in HTTP/1; unset, names pass as the origin wrote them. Ignored where either
    side speaks HTTP/2, which has lower case only; policies that change headers may lose the original case."""
    http2_window_size: ByteSize | None = None
    """Initial flow-control window of a stream. Unset: 64 KiB."""
    http2_connection_window_size: ByteSize | None = None
    """Initial flow-control window of a connection. Unset: 512 KiB."""
    http2_frame_size: ByteSize = "16kb"
    """The largest frame that is accepted."""
    http2_max_header_size: ByteSize = "16Ki"
    """The largest header section, decoded. More than 1 MiB counts as 1 MiB."""
    http2_keepalive_interval: PositiveDuration | None = None
    """The time between the answer to a ping and the next ping. Unset: no pings. Less than 1 s counts as 1 s."""
    http2_keepalive_timeout: PositiveDuration | None = None
    """How long a ping may stay unanswered. Unset: 20 s."""
    max_connection_duration: PositiveDuration | None = None
    """After this time a connection is closed gracefully, once the request in flight has completed."""
    trusted_hops: TrustedHops | None = None
    """Proxies in front whose `x-forwarded-for` is believed: `source.address` is then the client's. Unset: no proxy's.
    Gatewright extension."""
    owned_headers: Annotated[tuple[HeaderName, ...], Field(max_length=64)] | None = None
    """Headers that only this proxy may write: they are removed from requests, however they are spelled. A `*` at the
    end matches any rest. Unset: forwarded, x-real-ip, true-client-ip, x-original-url, x-rewrite-url and
    x-forwarded-* except x-forwarded-for. With trustedHops.cidrs the unset list holds for all others all the same.
    Gatewright extension."""
    request_id: Literal["Keep", "Replace", "KeepFromTrusted"] = "Keep"
    """Whether an `x-request-id` that a client sends stays, always or where the client is a trusted hop; otherwise it is
    replaced by a new one. Gatewright extension."""
    max_query_parameters: Annotated[Integer, Field(ge=1, le=MAX_PARTS)] = 1000
    """How many parameters a query may have that a route's match or an expression asks for; a request with more is
    answered with 400. Gatewright extension."""
    max_json_keys: Annotated[Integer, Field(ge=1, le=MAX_PARTS)] = 10_000
    """How many members of objects and elements of arrays a body may have that an expression reads as JSON; a request
    with more is answered with 400. Gatewright extension."""

    header_underscores: Literal["Drop", "Reject", "Keep"] = "Drop"
    """What becomes of a request's headers whose names have an underscore, or another character that is no letter, digit
    or hyphen: many origins give `x_user` to an application as `x-user`. They are dropped, the request is refused with
    400, or they stay. For policies both are one name in any case. Gatewright extension."""

    path: PathSpellings | None = None
    """Spellings of a path that origins read differently. Gatewright extension."""

    def over(self, outer: FrontendHTTP | None) -> FrontendHTTP:
        """These settings, and where they say nothing those of `outer`."""
        if outer is None:
            return self
        return outer.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})

    cel_rules = (
        at_least("http2FrameSize", FRAME_SIZES[0]),
        at_most("http2FrameSize", FRAME_SIZES[1]),
        at_most("http2WindowSize", MAX_WINDOW),
        at_most("http2ConnectionWindowSize", MAX_WINDOW),
        where_set(
            "requestId",
            "self.requestId != 'KeepFromTrusted' || has(self.trustedHops)",
            "KeepFromTrusted needs trustedHops: no proxy is trusted without them",
        ),
        each("ownedHeaders", NoneOf(NOT_OWNED), f"must not be one of {', '.join(NOT_OWNED)}"),
    )
