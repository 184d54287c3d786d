"""An exchange that was switched to another protocol (RFC 9110 section 7.8), or that opened a tunnel (9.3.6): bytes pass
both ways as they are.

It begins with a 101 that the client asked for, or with the 200 to a CONNECT, whose head passes the response steps as
any other. From then on the two carriers live as long as both sides like, without deadline; each direction ends by
itself, and when both have the exchange is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.http.connect_rules import CONNECT, IDLE_TIMEOUT
from dataplane.http.heads import Head
from dataplane.http.messages import ResponseHead
from dataplane.http.statuses import SWITCHING
from dataplane.proxy.request import admission

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange


ACCEPT = b"sec-websocket-accept"
"""What the client holds against the key that it sent (RFC 6455 4.1): no step's to change."""

OPEN, CLIENT_ENDED, ENDPOINT_ENDED = 1, 2, 4
"""Bits of `x.tunnel`."""

ESTABLISHED: Final = ResponseHead(200, b"", b"\r\n", b"\r\n", 0, False)
"""The head of the answer to a CONNECT by which its tunnel stands; nothing in it says how long content is."""


def opens(head: ResponseHead) -> bool:
    """Whether content behind this head is that of a tunnel."""
    return head is ESTABLISHED or head.status == SWITCHING


def is_wanted(x: ActiveExchange, head: ResponseHead) -> bool:
    """Whether the endpoint switches to what the client asked for; if not, the exchange is answered."""
    if x.upgrade and head.upgrade.lower() == x.upgrade.lower():
        return True
    x.reply(made("UpgradeFailed", f"upstream switched to {head.upgrade!r}"))
    return False


def is_refused(x: ActiveExchange, head: ResponseHead) -> bool:
    """Whether a step gave the answer to a CONNECT a status that says that no tunnel stands; the client has it then."""
    if head is not ESTABLISHED or x.status == head.status:
        return False
    status = x.status
    x.reply(made("UpgradeFailed", f"a response step made the status {status}"))
    return True


def switch(x: ActiveExchange, head: ResponseHead, first: bytes) -> None:
    """The response steps have run on the head that `opens` a tunnel: pass it on, and from now on bytes."""
    answer = x.response
    assert answer is not None  # a 101 always has one
    accept = Head(head.block, head.low).get(ACCEPT)
    if answer.get(ACCEPT) != accept:
        answer.remove(ACCEPT)
        if accept is not None:
            answer.add(ACCEPT, accept)
    x.replied = True
    x.deadline = float("inf")
    if x.has_body and x.inlet is not None:
        x.inlet.leave(x)
        x.inlet = None
    x.tunnel = OPEN
    x.upgrade = head.upgrade
    x.response_bytes = len(first)
    if x.method == CONNECT:
        admission.watch(x, IDLE_TIMEOUT)
    x.down.switch(head.line, answer.block, first)


def client_ended(x: ActiveExchange) -> None:
    """The client sends no more; the endpoint may."""
    x.tunnel |= CLIENT_ENDED
    if x.tunnel & ENDPOINT_ENDED and not x.ended:
        x.complete()


def endpoint_ended(x: ActiveExchange) -> None:
    """The endpoint sends no more; the client may. When neither does, nothing else would end the exchange."""
    x.tunnel |= ENDPOINT_ENDED
    if x.ended:
        return
    if x.tunnel & CLIENT_ENDED:
        x.complete()
    else:
        x.down.content(b"", True)
