"""The header lines of a request on its way to a provider: none of the client's that are of another API, of its browser,
or about content that we write anew. What is left out is one pattern for each kind of request, made once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Final

from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN
from dataplane.llm.providers import ANTHROPIC, FAMILIES, VERSION_OF_MESSAGES, foreign_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.http.messages import ResponseHead
    from dataplane.llm.providers import Family
    from dataplane.llm.routes import Format

_FRAMING: Final = (b"host", b"content-length", b"transfer-encoding")
"""Written anew for the call."""
_OF_CONTENT: Final = (b"trailer", b"expect", b"accept-encoding")
"""Of a request that is read whole, and whose answer is to be read."""
_OF_BROWSERS: Final = (
    *(b"cookie", b"origin", b"referer", b"access-control-request-method", b"access-control-request-headers"),
    b"sec-fetch-[^:]*",
)
"""They are about this gateway's name, which is not the provider's."""
_CREDENTIALS: Final = tuple(sorted({name for family in FAMILIES for name in family.credentials}))
_VERSION: Final = b"\r\n%b:" % VERSION_OF_MESSAGES[0]


@lru_cache(maxsize=64)
def _dropped(family: Family, is_read: bool, has_credential: bool) -> Callable[[bytes], object]:
    """Whether a line, in lower case, is left out."""
    names = (*_FRAMING, *_OF_BROWSERS, *(_OF_CONTENT if is_read else ()), *(_CREDENTIALS if has_credential else ()))
    return re.compile(b"(?:%b):|%b" % (b"|".join(names), foreign_lines(family))).match


def lines(head: Head, family: Family, form: Format | None, has_credential: bool) -> bytes:
    """`form`: of what is read, None where bytes pass as they are. `has_credential`: the provider gets one of the
    gateway's, so that none of the client's goes there."""
    is_dropped, low = _dropped(family, form is not None, has_credential), head.low
    kept = [is_dropped(line) is None for line in low.split(b"\r\n")]
    found = b"\r\n".join(compress(head.block.split(b"\r\n"), kept))[2:]
    if form is not None:
        found += b"accept-encoding: identity\r\n"
        if family.prefixes == ANTHROPIC.prefixes and _VERSION not in low:
            found += b"%b: %b\r\n" % VERSION_OF_MESSAGES
    return found


def about(head: ResponseHead, content_type: bytes, length: int) -> ResponseHead:
    """The head of an answer, about other content."""
    found = Head(head.block, head.low)
    for name in (b"content-length", b"content-type", b"trailer"):
        found.remove(name)
    found.set(b"content-type", content_type)
    if length != UNKNOWN:
        found.set(b"content-length", b"%d" % length)
    return replace(head, block=found.block, low=found.low, length=length)
