"""A2A toward an agent.

The layer rewrites cards, and notes for expressions and the log which call this is and what came of it, from a bounded
part of the content that passes; everything else passes as it is. What is read and written is `dataplane/a2a`'s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dataplane.a2a import BadCard, Call, Way, calls, cards, methods, results
from dataplane.a2a.call import GRPC, REST, facts
from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.http.messages import ResponseHead
from dataplane.proxy.layers.reading import ReadingLayer
from dataplane.streams import DESCRIBED

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Consumer, Upstream
    from dataplane.chain.reply import Reply
    from dataplane.proxy.active import ActiveExchange

APPLICATION: Final = "a2a"
"""As `BackendPlan.application`."""
MAX_LOOK: Final = 65_536
"""Bytes of a request that are looked at for the log, where no policy read more."""
OK: Final = 200
PART: Final = 206
_WITHOUT_CONTENT: Final = frozenset((204, 205))
_NO_SUCCESS: Final = 300

_is_authority = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?").fullmatch


class AgentCall(ReadingLayer):
    """One try of one call."""

    __slots__ = ("_call", "_head", "_held", "_rewrite", "_sent", "_trailers", "_unsent_head", "_watcher")

    def __init__(self, x: ActiveExchange, up: Upstream) -> None:
        super().__init__(x, up)
        self._call: Call | None = None
        self._sent = bytearray()
        """Content of the request, until it is known which call it is."""
        self._rewrite: Callable[[bytes, Way], bytes] | None = None
        """What the response passes whole, where it contains a card."""
        self._head: ResponseHead | None = None
        """That of a response with a card, which waits for its content."""
        self._held = bytearray()
        self._watcher: results.Watcher | None = None
        self._unsent_head: ResponseHead | None = None
        """That of a response that is watched, until its first content is."""
        self._trailers = b""

    # --- from the exchange

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self._consumer = consumer
        self.length = consumer.length
        head = Head(block)
        head.remove(b"accept-encoding")  # what is compressed can be neither rewritten nor read
        known = methods.of_rest(self.method.decode(), self._path())
        if known is not None and known[0] == methods.CARD:
            for name in (b"range", b"if-range"):
                head.remove(name)
        self._look(first, end)
        self._up.begin(self, head.block, first, end)

    def content(self, data: bytes, end: bool) -> None:
        self._look(data, end)
        self._up.content(data, end)

    def trailers(self, lines: bytes) -> None:
        self._look(b"", True)
        self._up.trailers(lines)

    def _path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin-1")

    def _look(self, data: bytes, end: bool) -> None:
        """More of the request: note which call it is as soon as that is known."""
        if self._call is not None:
            return
        x = self._x
        known = getattr(x, "known_agent_call", None)
        if x.agent_call is not None and (known is None or (known[1] is x.body and known[2].method)):
            self._understood(x.agent_call)  # of an earlier try, or read by a policy
            return
        self._sent += data
        if end or len(self._sent) >= MAX_LOOK:
            self._understand()

    def _understand(self) -> None:
        path, _, query = self.target.partition(b"?")
        asked = facts(self.method, path, query, self._x.request, bytes(self._sent))
        self._sent.clear()
        self._understood(calls.glance(asked))

    def _understood(self, call: Call) -> None:
        call.state = call.error = None  # what came of an earlier try says nothing of this one
        self._call = self._x.agent_call = call
        self._x.noted = True
        if call.method == methods.CARD and call.binding == REST:
            self._rewrite = cards.rewritten
        elif call.method == methods.EXTENDED_CARD and call.binding != GRPC:
            self._rewrite = cards.rewritten_answer

    # --- from the carrier

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._is_over = end
        if self._call is None:  # it answers before it has the whole request
            self._understand()
        assert self._call is not None  # it is understood by now
        block = Head(head.block, head.low)
        content_type = block.get(b"content-type") or b""
        if self._rewrite is not None and _may_have_card(head.status):
            self._begin_card(head, block, first, end)
            return
        if not block.is_coded:
            self._watcher = results.watcher(self._call, content_type)
        if self._watcher is None or not (first or end):  # there is nothing to read yet
            self._consumer.upstream_head(head, first, end)
            return
        self._unsent_head = head
        self.take(first, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._watcher is not None or self._head is not None:
            self.take(data, end)
            return
        self._is_over = end
        self._consumer.upstream_content(data, end)

    def upstream_trailers(self, lines: bytes) -> None:
        if self._watcher is not None or self._head is not None:
            self._trailers = lines
            self.take(b"", True)
            return
        self._is_over = True
        self._consumer.upstream_trailers(lines)

    def broke_off(self, cause: str, stale: bool) -> None:
        self._head = None
        super().broke_off(cause, stale)

    def read_slice(self, data: bytes, end: bool) -> None:
        if self._head is not None:
            self._keep(data, end)
        elif self._watcher is not None:
            self._watcher.content(data)
            if end:
                self._watcher.end()
            self._pass(data, end)

    def _pass(self, data: bytes, end: bool) -> None:
        head, self._unsent_head = self._unsent_head, None
        lines = self._trailers if end else b""
        if head is not None:
            self._consumer.upstream_head(head, data, end and not lines)
        elif data or not lines:
            self._consumer.upstream_content(data, end and not lines)
        if lines:
            self._consumer.upstream_trailers(lines)

    # --- cards

    def _begin_card(self, head: ResponseHead, block: Head, first: bytes, end: bool) -> None:
        is_coded = block.is_coded
        for name in DESCRIBED:
            block.remove(name)
        self._head = ResponseHead(head.status, head.line, block.block, block.low, 0, head.is_dated)
        if self.method == b"HEAD":
            self._send(b"")
        elif is_coded:
            self._refuse("compressed, although that was not asked for")
        elif head.status == PART or (block.get(b"content-type") or b"").lower().startswith(b"text/event-stream"):
            self._refuse("a part of it, or a stream of events")
        elif head.length > cards.MAX_CARD:
            self._refuse(f"more than {cards.MAX_CARD} bytes")
        else:
            self.take(first, end)

    def _keep(self, data: bytes, end: bool) -> None:
        self._held += data
        if len(self._held) > cards.MAX_CARD:
            self._refuse(f"more than {cards.MAX_CARD} bytes")
        elif end:
            assert self._rewrite is not None  # else nothing is kept
            try:
                content = self._rewrite(bytes(self._held), self._way())
            except BadCard as error:
                self._refuse(str(error))
            else:
                self._send(content)

    def _send(self, content: bytes) -> None:
        head, self._head = self._head, None
        assert head is not None  # it waited for this
        self._held.clear()
        if self.method != b"HEAD":
            head.block += b"content-length: %d\r\n" % len(content)
            head.low, head.length = None, len(content)
        self._consumer.upstream_head(head, content, True)

    def _refuse(self, why: str) -> None:
        self._head = None
        self._held.clear()
        self._x.reply(made("AgentCardInvalid", f"the agent's card: {why}"))

    def _way(self) -> Way:
        """How the client reaches the agent: as it asked, or as the proxies before us say that it did."""
        x = self._x
        head = x.request
        authority = head.get(b"x-forwarded-host") or b""
        if not _is_authority(authority):
            authority = x.authority if not x.host_set else x.asked_authority
        scheme = (head.get(b"x-forwarded-proto") or x.scheme).strip().lower()
        return Way(
            "https" if scheme == b"https" else "http",
            authority.decode("latin-1"),
            x.asked_target.partition(b"?")[0].decode("latin-1"),
            self._path(),
        )


def refuses(x: ActiveExchange) -> Reply | None:
    """An answer where a policy has judged the call, and the path that is sent, which a step wrote since, may be read as
    another method."""
    if x.backend_plan.application != APPLICATION:
        return None
    known = getattr(x, "known_agent_call", None)
    if known is None:
        return None
    sent = calls.by_path(x.method, x.target.partition(b"?")[0])
    if all(method == known[2].method for method in sent):
        return None
    return made("AgentCallUnreadable", "a step wrote the path of another method than the one that was judged")


def _may_have_card(status: int) -> bool:
    """Whether clients take the content of such an answer for what they asked: all successes."""
    return OK <= status < _NO_SUCCESS and status not in _WITHOUT_CONTENT
