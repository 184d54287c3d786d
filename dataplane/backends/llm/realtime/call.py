"""A realtime session on its way: the request that opens its WebSocket, which other candidates may take over, and then
messages in both directions, each by a pump of its own.

A session ends with the provider's connection, with the client's, or by an event of the gateway and a close frame. The
side that takes no more stops the other side; one in which nothing moves is ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.asking import Asking
from dataplane.backends.llm.realtime.pump import Pump
from dataplane.backends.llm.realtime.session import Ended
from dataplane.backends.terminating.forwarding import Forwarding
from dataplane.chain.calls import CallFailed
from dataplane.http import websocket
from dataplane.http.heads import Head
from dataplane.http.rules import WHOLE_BODY
from dataplane.http.upgrades import WEBSOCKET

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.realtime.session import Session
    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.contract import Taker
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallRequest
    from dataplane.chain.filter import Future
    from dataplane.exchange import Work
    from dataplane.http.messages import ResponseHead

MAX_EVENT: Final = 4_194_304
"""Bytes of a message of a provider."""
IDLE_TIME: Final = 3_600.0
"""Seconds without a byte in either direction after which a session is ended, where `frontend.limits` has no shorter
`streamIdleTimeout`."""
CLOSING_TIME: Final = 5.0
"""Seconds that a client has to close the connection, after the event that says that its session is over."""
_EXTENSIONS: Final = b"sec-websocket-extensions"


class Realtime(Asking):
    """`out` takes what the call gives; behind it is `client`, which says when it takes more."""

    __slots__ = (
        *("_client", "_closes_by", "_from_client", "_from_provider", "_is_client_paused", "_is_held"),
        *("_is_ending", "_moved", "_parting", "_session", "_waits", "_works"),
    )

    def __init__(
        self, out: Taker, client: Terminator, visit: Visit, request: CallRequest, known: Facts, session: Session
    ) -> None:
        place = visit.part.provider.row.place
        super().__init__(out, visit.plan, request, visit.route, known, place, has_body=True)
        services, most = self._x.context, self._x.may_hold(WHOLE_BODY)
        self._client = client
        self._session = session
        self._from_client = Pump(services, self._x.peer, True, most, out.hold_client)
        self._from_provider = Pump(services, self._x.peer, False, MAX_EVENT, self._hold_provider)
        self._works: list[Work] = []
        self._moved = self.started
        """When a byte came last."""
        self._is_blocked = False
        """The provider takes no more for now."""
        self._waits: Future | None = None
        """Of who waits until it takes more."""
        self._is_held = self._is_client_paused = False
        """Why the provider is to wait: what it sent is not read yet; the client takes no more."""
        self._is_ending = False
        """The client got the event that says that the session is over."""
        self._closes_by = 0.0
        self._parting: Upstream | None = None
        """Of a provider that has to close a session that we have ended."""

    # --- the beginning

    def switched(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if head.upgrade.lower() != WEBSOCKET or Head(head.block, head.low).get(_EXTENSIONS) is not None:
            self.fail(CallFailed("invalid", f"{self.where()} switched to what was not asked for"))
            return
        self.head_of_answer = head
        self._is_tunnel = self._has_token = True
        Forwarding.answered(self, head, b"", False)
        self._session.send_to_client, self._session.send_to_provider = self._send_to_client, self._send_to_provider
        self._from_provider.put(first, end)
        self._move()
        self.calls.wake_at(self._moved + IDLE_TIME, self)
        self._works = [self._work(self._serve_client()), self._work(self._serve_provider())]

    def _work(self, served: Coroutine[Any, Any, None]) -> Work:
        return self._x.work(served)

    def _move(self) -> None:
        self._moved = self.calls.clock()

    def wake(self, now: float) -> None:
        super().wake(now)
        if not self._is_tunnel:
            return
        if self._is_ending:
            if now >= self._closes_by:
                self._close()
            else:
                self.calls.wake_at(self._closes_by, self)
        elif not self.is_over:
            if now >= self._moved + IDLE_TIME:
                self._end_with(Ended(websocket.GOING_AWAY, f"nothing was said for {IDLE_TIME:g} s"))
            else:
                self.calls.wake_at(self._moved + IDLE_TIME, self)

    # --- bytes

    def more(self, data: bytes, end: bool) -> None:
        if self.is_over and not self._is_ending:
            return
        self._is_request_here = end
        self._move()
        self._from_client.put(data, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if not self._is_tunnel:
            super().upstream_content(data, end)
            return
        self._move()
        self._from_provider.put(data, end)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        if not self._is_tunnel:
            super().upstream_lost(cause, stale)
            return
        self.up = None
        self._wake_writer()
        self._from_provider.put(b"", True)

    def hold(self, held: bool) -> None:
        """The client takes no more, or does again."""
        self._is_client_paused = held
        super().hold(held or self._is_held)

    def _hold_provider(self, held: bool) -> None:
        self._is_held = held
        super().hold(held or self._is_client_paused)

    def upstream_blocked(self) -> None:
        self._is_blocked = True

    def upstream_drained(self) -> None:
        self._is_blocked = False
        self._wake_writer()

    def _wake_writer(self) -> None:
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)

    async def _provider_takes_more(self) -> None:
        while self._is_blocked and self.up is not None:
            self._waits = self._x.context.make_future()
            try:
                await self._waits
            finally:
                self._waits = None

    # --- messages

    async def _serve_client(self) -> None:
        """Until the client says no more, or has closed what we have ended."""
        try:
            while (message := await self._from_client.next()) is not None:
                if not self._is_ending:
                    await self._pass_on(message)
                elif message.kind == websocket.CLOSE:
                    break
        except websocket.Broken as broken:
            self._end_with(Ended(broken.code, str(broken)))
            return  # nothing of it can be read any more
        if self._is_ending:
            self._close()
        elif self.up is not None:
            self.up.content(b"", True)

    async def _pass_on(self, message: websocket.Message) -> None:
        try:
            data = await self._session.asked(message)
        except Ended as ended:
            self._end_with(ended)
            return
        if not data:  # it was answered by us: who does not read that is read no further
            await self._client.ready()
            return
        await self._provider_takes_more()
        if self.up is not None:
            self.up.content(data, False)

    async def _serve_provider(self) -> None:
        try:
            while (message := await self._from_provider.next()) is not None and not self._is_ending:
                await self._client.ready()
                given = await self._session.answered(message)
                if not self._is_ending:
                    self.out.give(given)
        except websocket.Broken as broken:
            self._end_with(Ended(broken.code, str(broken)))
        except Ended as ended:
            self._end_with(ended)
        else:
            if not self._is_ending:
                self._over_by_provider()

    def _send_to_client(self, event: bytes) -> None:
        self.out.give(websocket.frame(websocket.TEXT, event, False))

    def _send_to_provider(self, event: bytes) -> None:
        if self.up is not None:
            self.up.content(websocket.frame(websocket.TEXT, event, True), False)

    # --- the end

    def _over_by_provider(self) -> None:
        """It has said all."""
        self._let_provider_go(b"")
        self._close()

    def _end_with(self, ended: Ended) -> None:
        """The client reads why, and closes; the provider's connection is closed now."""
        if self._is_ending or self.is_over:
            return
        self._is_ending = True
        if not self._x.detail:
            self._x.detail = str(ended)
        if ended.event:
            self._send_to_client(ended.event)
        self.out.give(websocket.close(ended.code, str(ended), False))
        self._let_provider_go(websocket.close(websocket.GOING_AWAY, "", True))
        self._closes_by = self.calls.clock() + CLOSING_TIME
        self.calls.wake_at(self._closes_by, self)
        if self._is_request_here and self._from_client.is_over:
            self._close()

    def _let_provider_go(self, last: bytes) -> None:
        if self.up is not None:
            self.up.content(last, True)
        self._parting = self.up if last else None
        self._count()
        self._ended()

    def _close(self) -> None:
        """Nothing more comes or goes."""
        self._stop()
        self.out.lost("closed")
        self.out.finish()

    def _stop(self) -> None:
        works, self._works = self._works, []
        for work in works:
            work.cancel()
        parting, self._parting = self._parting, None
        if parting is not None:
            parting.reset()
        self._from_client.drop()
        self._from_provider.drop()

    def cancel(self) -> None:
        super().cancel()
        self._stop()

    def _count(self) -> None:
        """For the log, once: each response has counted for itself in the metrics."""
        if not self._is_counted:
            self._is_counted = True
            self._session.end()
            self._describe()
