"""The scalar types that fields share, each with the bound, pattern and words of Gateway API's CRDs or docs/reference.

Used by all models. Numbers and booleans are strict: the API server takes no "80" for 80 either.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, PlainValidator, Strict
from pydantic_core import PydanticCustomError

from gatewright.api.schema import byte_size, duration

Integer = Annotated[int, Strict()]
Boolean = Annotated[bool, Strict()]
Json = Any  # free JSON of the user, by definition of any type

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_PATTERN: Final = f"^{_SUBDOMAIN}$"
LABEL_PATTERN: Final = f"^{_LABEL}$"
GROUP_PATTERN: Final = f"^$|^{_SUBDOMAIN}$"
KIND_PATTERN: Final = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
HOSTNAME_PATTERN: Final = rf"^(\*\.)?{_SUBDOMAIN}$"
HEADER_NAME_PATTERN: Final = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"
PROTOCOL_PATTERN: Final = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+(/[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+)?$"
"""RFC 9110 7.8."""
PSEUDO_HEADER_NAME_PATTERN: Final = r"^:?[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"
# Not in the CRDs: a line break in a value would let one setting write other headers.
HEADER_VALUE_PATTERN: Final = r"^[^\x00-\x08\x0a-\x1f\x7f]*$"
# Not in the CRDs: a space or line break would end the request target.
PATH_TEXT_PATTERN: Final = r"^[^\x00-\x20\x7f]*$"
# The hash is checked where it is used; a line break would add users that no reader sees.
HTPASSWD_PATTERN: Final = r"^[^:\x00-\x1f\x7f]+:[^\x00-\x1f\x7f]+$"
GATEWAY_NAME_PATTERN: Final = r"^[^/]+/[^/]+$"
CORS_ORIGIN_PATTERN: Final = r"(^\*$)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)"
SESSION_KEY_PATTERN: Final = r"^[0-9a-fA-F]{64}$"

PATTERN_WORDS: Final[dict[str, str]] = {
    SUBDOMAIN_PATTERN: "must be lower-case letters, digits, - and ., and start and end with a letter or digit",
    LABEL_PATTERN: "must be lower-case letters, digits and -, and start and end with a letter or digit",
    GROUP_PATTERN: "must be empty or an API group such as gateway.networking.k8s.io",
    KIND_PATTERN: "must be a kind: letters, digits and -, starting with a letter",
    HOSTNAME_PATTERN: "must be a lower-case host name such as shop.example.com or *.example.com",
    HEADER_NAME_PATTERN: "must be a header name: letters, digits and !#$%&'*+-.^_`|~",
    PROTOCOL_PATTERN: "must be a protocol such as websocket, or spdy/3.1 with its version",
    PSEUDO_HEADER_NAME_PATTERN: "must be a header name, or one of HTTP's pseudo-headers such as :path",
    HEADER_VALUE_PATTERN: "must not contain line breaks or other control characters",
    PATH_TEXT_PATTERN: "must not contain spaces or control characters",
    HTPASSWD_PATTERN: "must be a line of an htpasswd file, USER:HASH",
    GATEWAY_NAME_PATTERN: "must be NAMESPACE/NAME",
    CORS_ORIGIN_PATTERN: "must be an origin such as https://shop.example.com or https://*.example.com, or * for any",
    SESSION_KEY_PATTERN: "must be 64 hexadecimal digits",
    duration.PATTERN: "must be a duration such as 500ms, 3s, 5m or 1h30m",
}
"""What a pattern means, for error messages; a pattern without words is shown itself."""


def _at_least_a_millisecond(text: str) -> str:
    if not duration.milliseconds(text):
        raise PydanticCustomError("positive_duration", "must be at least 1ms")
    return text


def _is_byte_size(value: Any) -> int | str:
    if isinstance(value, float) and value.is_integer():  # YAML's 2e6 without quotes, which Kubernetes makes an integer
        value = int(value)
    if isinstance(value, int | str) and not isinstance(value, bool) and byte_size.is_byte_size(value):
        return value
    raise PydanticCustomError("byte_size", "must be a size of at most 4294967295 bytes such as 16384, 16Ki, 2M or 2mb")


def _is_price(value: Any) -> str:
    """As decimal text: what was written without quotes is a float by now."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        text = format(Decimal(repr(value)), "f") if isinstance(value, float) and isfinite(value) else str(value)
        if re.fullmatch(PRICE_PATTERN, text):
            return text
    raise PydanticCustomError(
        "price", "must be a price such as 2.50: at least 0, up to 9 digits before the point and 12 behind it"
    )


PRICE_PATTERN: Final = r"[0-9]{1,9}(\.[0-9]{1,12})?"
Price = Annotated[str, PlainValidator(_is_price)]
"""USD, decimal, as a number or a text."""
Port = Annotated[int, Strict(), Field(ge=1, le=65535)]
Group = Annotated[str, Field(max_length=253, pattern=GROUP_PATTERN)]
Kind = Annotated[str, Field(min_length=1, max_length=63, pattern=KIND_PATTERN)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
NamespaceName = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
SectionName = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
Hostname = Annotated[str, Field(min_length=1, max_length=253, pattern=HOSTNAME_PATTERN)]
PreciseHostname = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
HeaderName = Annotated[str, Field(min_length=1, max_length=256, pattern=HEADER_NAME_PATTERN)]
HeaderValue = Annotated[str, Field(min_length=1, max_length=4096, pattern=HEADER_VALUE_PATTERN)]
ProtocolName = Annotated[str, Field(min_length=1, max_length=64, pattern=PROTOCOL_PATTERN)]
PseudoHeaderName = Annotated[str, Field(min_length=1, max_length=256, pattern=PSEUDO_HEADER_NAME_PATTERN)]
"""A HeaderName of Gatewright's own fields: one leading colon is allowed."""
Duration = Annotated[str, Field(pattern=duration.PATTERN)]
PositiveDuration = Annotated[str, Field(pattern=duration.PATTERN), AfterValidator(_at_least_a_millisecond)]
"""A deadline or interval, to which zero has no meaning."""
ByteSize = Annotated[int | str, PlainValidator(_is_byte_size)]
"""A size, as the user wrote it; `byte_size.byte_size` makes bytes of it."""
Sni = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
FailureMode = Literal["FailClosed", "FailOpen"]
ShortString = Annotated[str, Field(min_length=1, max_length=256)]
TinyString = Annotated[str, Field(min_length=1, max_length=64)]
LongString = Annotated[str, Field(min_length=1, max_length=1024)]
