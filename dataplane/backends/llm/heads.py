"""The header lines of a request on its way to a provider: none of the client's that are of another API, of its browser,
or about content that we write anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.http.heads import lines_without
from dataplane.llm.providers import FAMILIES, VERSION_OF_MESSAGES, is_foreign
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.providers import Family

_FRAMING: Final = frozenset((b"host", b"content-length", b"transfer-encoding"))
"""Written anew for the call."""
_OF_CONTENT: Final = frozenset((b"trailer", b"expect", b"accept-encoding"))
"""Of a request that is read whole, and whose answer is to be read."""
_OF_BROWSERS: Final = frozenset(
    (b"cookie", b"origin", b"referer", b"access-control-request-method", b"access-control-request-headers")
)
"""They are about this gateway's name, which is not the provider's."""
_CREDENTIALS: Final = frozenset(name for family in FAMILIES for name in family.credentials)
_VERSIONED: Final = frozenset((Format.MESSAGES, Format.TOKEN_COUNT))


def lines(head: Head, family: Family, form: Format | None, has_credential: bool) -> bytes:
    """`form`: of what is read, None where bytes pass as they are. `has_credential`: the provider gets one of ours, so
    that none of the client's goes there."""
    dropped = {*_FRAMING, *_OF_BROWSERS, *(() if form is None else _OF_CONTENT)}
    names = set()
    for written, value in head.items():
        name = written.lower()
        names.add(name)
        is_ours = has_credential and name in _CREDENTIALS
        if is_ours or is_foreign(family, name, value) or name.startswith(b"sec-fetch-"):
            dropped.add(name)
    found = lines_without(head.block, head.low, dropped)
    if form is not None:
        found += b"accept-encoding: identity\r\n"
        if form in _VERSIONED and VERSION_OF_MESSAGES[0] not in names:
            found += b"%b: %b\r\n" % VERSION_OF_MESSAGES
    return found
