"""Verdicts on the common types of the specification (1-resources, Common types), and on the references.

Shapes here are used by the other modules, at the places that they name.
"""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.table import Nested, Rows, shape
from tests.rules.verdicts.words import (
    alone,
    duration,
    exactly_one,
    expression,
    given,
    integer,
    invalid,
    items,
    required,
    text,
    unknown,
    valid,
)

R: Final = "1-resources.md: "
P: Final = "2-policies.md: "
N: Final = "0-names.md: "
D: Final = "decisions.md: "
K: Final = "Kubernetes: "
X: Final = "Gatewright extension: "

GROUP: Final = R + "Group: up to 253 chars, empty means core group"
KIND: Final = R + "Kind: 1 to 63 chars, letters, digits, hyphens, starting with a letter"
NAME: Final = R + "names as defined for Gateway API targets"
HEADER: Final = R + "string, length 1 to 256, HTTP token characters only"
PSEUDO: Final = R + "same as HTTPHeaderName but one leading `:` is allowed"
BYTE_SIZE: Final = R + "a decimal quantity with optional binary suffix"
SNI: Final = R + "string, length 1 to 253, lowercase DNS-1123 subdomain"
SHORT: Final = R + "| ShortString | string, length 1 to 256 |"
LIMITS: Final = P + "| ShortString / TinyString / LongString | 256 / 64 / 1024 characters |"

# Characters.

LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOKEN_CHARACTERS: Final = LETTERS + "0123456789" + "!#$%&'*+-.^_`|~"
OTHER_CHARACTERS: Final = '"(),/:;<=>?@[\\]{} \t\n\r\x00\x7fäß€'


def header_name(path: str, spec: str) -> Rows:
    """An HTTPHeaderName, in short."""
    yield from text(path, 1, 256, spec)
    yield from (invalid(path, bad, HEADER) for bad in ("a b", "a:b", ":path", "ä", "a\n"))


def pseudo_header_name(path: str, spec: str) -> Rows:
    """A HeaderName, in short."""
    yield from text(path, 1, 256, spec)
    yield from (valid(path, good, PSEUDO) for good in (":path", "x-a"))
    yield from (invalid(path, bad, PSEUDO) for bad in ("a b", "::path", "a:b", "a:", ":", "a\n"))


def header_name_in_full(path: str) -> Rows:
    """Every character that a header name may have, and those that it may not."""
    yield from (valid(path, f"x{character}y", HEADER) for character in TOKEN_CHARACTERS)
    yield from (invalid(path, f"x{character}y", HEADER) for character in OTHER_CHARACTERS)


def pseudo_header_name_in_full(path: str) -> Rows:
    """As header_name_in_full(), and one leading colon."""
    yield from (valid(path, f"{character}y", PSEUDO) for character in TOKEN_CHARACTERS + ":")
    yield from (invalid(path, f"x{character}y", PSEUDO) for character in OTHER_CHARACTERS)


SIZES_AT_THE_LIMIT: Final = (
    *("4194303Ki", "4095Mi", "3Gi", "0.003Ti", "0.000003Pi", "0.000000003Ei"),
    *("4294967k", "4294M", "4G", "0.004T", "0.000004P", "0.000000004E"),
    *("4294967295000m", "4294967295000000u", "4294967295000000000n", "4294967295", "42e8", "4E9", "429496729.5e1"),
)
SIZES_ABOVE: Final = (
    *("4194304Ki", "4096Mi", "4Gi", "1Ti", "1Pi", "1Ei", "4294968k", "4295M", "5G", "1T", "1P", "1E"),
    *("4294967295001m", "4294967295000001u", "4294967295000000001n", "4294967296", "43e8", "5E9", "1e400"),
)
SMALL_SIZES: Final = (
    *(0, 1, 4294967295, "0", "1m", "1u", "1n", "0.5", ".5", "5.", "1e-3", "0E"),
    *("2mb", "8KB", "7b", "3GB", "0tb"),
)
NO_SIZES: Final[tuple[Any, ...]] = (
    *("", " ", "Ki", "1K", "1ki", "1KI", "1g5", "1 Ki", "1Ki ", "1Ki\n", "-1", "-1Ki", "1,5", "1.5.5", "0x10", "1_000"),
    *("1e", "1e1.5", "ten", "1Zi", "1Kib", "١", -1, 4294967296, 1.5, True, [], {}),
)


def byte_size_in_full(path: str) -> Rows:
    """Each suffix at the data plane's limit of 32 bits and just above it, what a size cannot be, and lengths."""
    spec = D + "**ByteSize**: Kubernetes quantity, integers too, fits uint32"
    yield from (valid(path, good, spec) for good in (*SIZES_AT_THE_LIMIT, *SMALL_SIZES))
    yield from (invalid(path, bad, spec) for bad in (*SIZES_ABOVE, *NO_SIZES))
    yield valid(path, "1".zfill(32), BYTE_SIZE)
    yield invalid(path, "1".zfill(33), BYTE_SIZE)


def short_string(path: str, spec: str, *, least: bool = True) -> Rows:
    """A ShortString; characters are counted, not bytes."""
    yield from text(path, 1 if least else None, 256, spec)
    yield valid(path, "ä" * 256, SHORT)
    yield invalid(path, "ä" * 257, SHORT)


def tiny_string(path: str, spec: str) -> Rows:
    """A TinyString."""
    yield from text(path, 1, 64, spec)
    yield valid(path, "ä" * 64, R + "| TinyString | string, length 1 to 64 |")


def long_string(path: str, spec: str, *, of: str = "x") -> Rows:
    """A LongString."""
    yield from text(path, 1, 1024, spec, of=of)
    yield valid(path, "/ä", R + "| LongString | string, length 1 to 1024 |")


def section_name(path: str, spec: str) -> Rows:
    """A SectionName of Gateway API: a lower-case subdomain."""
    yield from text(path, 1, 253, spec)
    yield from (valid(path, good, NAME) for good in ("a", "a.b-c", "0"))
    yield from (invalid(path, bad, NAME) for bad in ("A", "a_b", "-a", "a-", "a..b", "a\n"))


def group(path: str, spec: str) -> Rows:
    """A Group; most places ask for more, so that only what is refused everywhere is here."""
    yield from (invalid(path, bad, GROUP) for bad in (1, "Not_A_Group", "a" * 254, "a..b", "-a"))


def kind(path: str, spec: str) -> Rows:
    """A Kind; most places ask for more, so that only what is refused everywhere is here."""
    yield from (invalid(path, bad, KIND) for bad in (1, "", "0Kind", "K" * 64, "K_k", "K-"))


def port(path: str, spec: str) -> Rows:
    """A port."""
    yield from integer(path, 1, 65535, spec)


PORTS: Final = P + "| Ports | 1 to 65535 |"

# TCP keepalive, of clients and of backends.

_KEEPALIVE = P + "Keepalive: `retries` (integer 1 to 64, default 9)"
KEEPALIVE: Final = shape(
    {},
    integer("retries", 1, 64, P + "| TCP keepalive | retries 1 to 64 default 9"),
    duration("time", _KEEPALIVE),
    duration("interval", _KEEPALIVE),
    unknown("probes", 1, _KEEPALIVE),
)

# Headers.

CONNECTION_HEADERS: Final = (
    *("Connection", "Content-Length", "Expect", "HTTP2-Settings", "Keep-Alive", "Proxy-Connection", "TE"),
    *("Trailer", "Transfer-Encoding", "Upgrade"),
)
"""They frame the message or belong to one hop (RFC 9110 7.6.1, RFC 9112 6)."""
CONNECTION: Final = K + "headers of the connection are the gateway's own (RFC 9110 7.6.1)"


_FILTER = D + "HTTPHeaderFilter = `set, add, remove`"


def _headers(path: str) -> Rows:
    yield from items(path, 0, 16, _FILTER, lambda n: {"name": f"h{n}", "value": "v"})
    yield invalid(path, [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}], _FILTER)


def _header(list_name: str) -> Nested:
    least = {"name": "x-a", "value": "v"}
    rows = shape(
        least,
        required("name", _FILTER),
        header_name("name", _FILTER),
        required("value", _FILTER),
        text("value", 1, 4096, _FILTER),
        invalid("value", "a\nb", K + "a header value has no line breaks"),
    )
    return Nested(f"{list_name}[0]", rows, _FILTER, {list_name: [least]})


HEADER_FILTER: Final = shape(
    {},
    _headers("set"),
    _header("set"),
    _headers("add"),
    _header("add"),
    items("remove", 0, 16, _FILTER, lambda n: f"h{n}"),
    invalid("remove", ["a", "a"], _FILTER),
    invalid("remove", [""], _FILTER),
    invalid("remove", ["a b"], _FILTER),
    invalid("remove", [1], _FILTER),
    *(invalid("set", [{"name": name, "value": "v"}], CONNECTION) for name in CONNECTION_HEADERS),
    *(invalid("add", [{"name": name, "value": "v"}], CONNECTION) for name in CONNECTION_HEADERS),
    *(invalid("remove", [name], CONNECTION) for name in CONNECTION_HEADERS),
    invalid("add", [{"name": "Host", "value": "v"}], K + "a request has one host"),
    valid("set", [{"name": "Host", "value": "v"}], K + "a request has one host"),
    invalid("remove", ["host"], K + "a request has one host"),
)

# Where credentials stand.

_LOCATION = P + "AuthorizationExtractionLocation: exactly one of `header` `{name: HTTPHeaderName required"
_WRITTEN = P + "where credentials are written: exactly one of `header`, `queryParameter`, `cookie`"
_HEADER_LOCATION = shape(
    {"name": "authorization"},
    required("name", _LOCATION),
    header_name("name", _LOCATION),
    text("prefix", 1, 256, _LOCATION),
)
_NAMED = shape({"name": "n"}, required("name", _LOCATION), text("name", 1, 256, _LOCATION))
_COOKIE = shape({"name": "n"}, required("name", _LOCATION), text("name", 1, 256, _LOCATION))
_ONE: Final[dict[str, Any]] = {"header": {"name": "a"}, "queryParameter": {"name": "a"}, "cookie": {"name": "a"}}

LOCATION: Final = shape(
    {"header": {"name": "authorization"}},
    exactly_one(_WRITTEN, _ONE),
    alone("header", _HEADER_LOCATION, _WRITTEN),
    alone("queryParameter", _NAMED, _WRITTEN),
    alone("cookie", _COOKIE, _WRITTEN),
    unknown("expression", "true", _WRITTEN),
)


EXTRACTION: Final = shape(
    {"header": {"name": "authorization"}},
    exactly_one(_LOCATION, {**_ONE, "expression": 'request.headers["x"]'}),
    alone("header", _HEADER_LOCATION, _LOCATION),
    alone("queryParameter", _NAMED, _LOCATION),
    alone("cookie", _COOKIE, _LOCATION),
    given({}, expression("expression", _LOCATION, 'request.headers["x"]')),
)
