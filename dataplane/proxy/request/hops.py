"""TRACE and OPTIONS that may go through so many intermediaries alone (`max-forwards`, RFC 9110 7.6.2).

We are one of them: what may go no further is answered here as by its last recipient, behind the steps of its route.
Of other methods the field means nothing, and passes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dataplane.chain.reply import Reply
from dataplane.proxy.attempt import attempts

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context

METHODS: Final = frozenset((b"OPTIONS", b"TRACE"))
ALLOW: Final = b"allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"
"""What may be asked for of any route, as far as we know."""

REASON: Final = "MaxForwardsReached"
_NAME: Final = b"max-forwards"
_MOST: Final = 999_999_999
"""A larger number becomes this one."""
_NUMBER: Final = re.compile(rb"0*+([0-9]*+)").fullmatch


def forward(x: ActiveExchange, context: Context) -> None:
    """As `attempts.forward`, of a method of `METHODS`."""
    value = x.request.get(_NAME)
    found = None if value is None else _NUMBER(value)
    if found is None or not value:  # what is no number says nothing
        attempts.forward(x, context)
    elif not found[1]:
        x.reply(Reply(200 if x.method == b"OPTIONS" else 405, REASON, headers=ALLOW))
    else:
        left = int(found[1]) - 1 if len(found[1]) < len(str(_MOST)) else _MOST
        x.request.set(_NAME, b"%d" % left)
        attempts.forward(x, context)
