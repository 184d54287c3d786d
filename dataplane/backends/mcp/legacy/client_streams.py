"""The stream of a client that speaks the older transport: `GET` of a path that ends in `/sse`, without a session. Its
first event says where the client posts its messages (`client_posts`), sealed for this caller.

Laws: what the stream gives is messages and nothing that a server calls otherwise: an `endpoint` of its own would lead
the client elsewhere. The session ends with its stream, and so does whatever still works for it.
"""

from __future__ import annotations

import secrets
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.mcp import following
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.following import Pauses
from dataplane.backends.mcp.relay import Seen
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.backends.mcp.visit import EVENTS
from dataplane.http.sse import Event, EventReader, EventTooLarge, comment, write
from dataplane.mcp import endpoints, errors, sessions
from dataplane.mcp.dialogue import MAX_WAITING
from dataplane.mcp.hearing import Signal
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.holder import Holder
    from dataplane.backends.mcp.visit import Visit
    from dataplane.backends.terminating.contract import Answer
    from dataplane.chain.reply import Reply
    from dataplane.link.pools import Key
    from dataplane.mcp.plans import TargetPlan

PURPOSE: Final = b"mcp client stream\0"
"""Of what is sealed, before backend and caller."""
PING: Final = 15.0
"""Seconds between two comments: clients give a stream up on which nothing comes."""

_OK: Final = 200


class ClientStream:
    """Held by the worker that the client's `GET` came to."""

    def __init__(self, holder: Holder[Any, Any], out: Answer, keys: tuple[Key, ...]) -> None:
        self.id = secrets.token_hex(16)
        self.keys = keys
        """Whose shares it draws on."""
        self.session = ""
        """The id of its session, as clients of streamable HTTP have it; "": it has not begun."""
        self.is_ready = False
        """The client is: servers may say what they want."""
        self.is_over = False
        self.changed = Signal(holder.make_future)
        """Set with each of these."""
        self.at_work = 0
        """Messages of the client that are not answered yet."""
        self._holder, self._out = holder, out

    @property
    def is_busy(self) -> bool:
        return self.at_work >= MAX_WAITING

    async def give(self, text: bytes) -> None:
        """A message for the client; waits while that takes no more."""
        self._out.give(write(Event(text, b"message")))
        await self._out.ready()

    def begin_session(self, text: str) -> None:
        self.session = text
        self.changed.set()

    def client_is_ready(self) -> None:
        self.is_ready = True
        self.changed.set()

    def wake(self, now: float) -> None:
        """As `carriers.Sleeper`: say that the stream is alive."""
        if not self.is_over:
            self._out.give(comment(b"ping") + b"\n")
            self.ping_later()

    def ping_later(self) -> None:
        calls = self._holder.calls
        calls.wake_at(calls.clock() + PING, self)

    def end(self) -> None:
        self.is_over = True
        self._holder.forget_client(self)
        self.changed.set()

    def __repr__(self) -> str:
        return f"ClientStream({self.at_work} messages at work{', over' if self.is_over else ''})"


async def serve(visit: Visit) -> Reply | None:
    """Until the client leaves."""
    holder, out = visit.x.context.of_kind(MCP).holder, visit.out
    keys = visit.keys
    if not holder.has_place_for_client(keys):
        return errors.refused("McpBusy", "as many streams of this client as there may be")
    stream = ClientStream(holder, out, keys)
    holder.hold_client(stream)
    try:
        await holder.listening()
        text = visit.x.context.of_kind(MCP).sealer.seal(f"{holder.name}/{stream.id}".encode(), PURPOSE + visit.owner)
        visit.describe("stream")
        out.head(_OK, EVENTS)
        out.give(write(Event(endpoints.endpoint_of(visit.x.asked_target, text), endpoints.EVENT)))
        stream.ping_later()
        while not (stream.session and stream.is_ready):
            await stream.changed.wait()
        visit.session = _session(visit, stream.session)
        visit.enter()  # as long as the stream is open, its session is used
        await _listen(visit, stream)
        while True:
            await stream.changed.wait()
    finally:
        stream.end()
        if stream.session:
            visit.x.context.spawn(_leave(visit, stream.session))


# --- what servers say beside answers


async def _listen(visit: Visit, stream: ClientStream) -> None:
    if visit.plan.stateless:
        return
    hearing = copy(visit)
    hearing.out = Messages(visit, stream)  # type: ignore[assignment]  # of an `Answer`, what events are given to
    for target in visit.plan.targets:
        visit.x.work(heed(hearing, target))


def _session(visit: Visit, text: str) -> sessions.Session | None:
    return sessions.opened(text, visit.x.context.of_kind(MCP).sealer, visit.owner, visit.now)


async def heed(visit: Visit, target: TargetPlan) -> None:
    """Ask for what one server says beside answers, again when its stream ends, until it has none."""
    seen = Seen()
    pauses = Pauses(visit, seen)
    while True:
        try:
            if await following.once(visit, target, seen, _nothing) == following.NONE:
                return
        except TargetFailed:
            pass  # its answers show what is wrong; it may come back
        await pauses.wait()


def _nothing() -> None:
    """The client's stream has begun."""


class Messages:
    """Of a server's stream the messages, for a client's: of an `Answer` what events are given to."""

    has_begun = True

    def __init__(self, visit: Visit, stream: ClientStream) -> None:
        self._out, self._stream = visit.out, stream
        self._reader = EventReader(visit.plan.max_answer)

    @property
    def is_paused(self) -> bool:
        return self._out.is_paused

    def give(self, data: bytes) -> None:
        for text in texts(self._reader, data):
            self._out.give(write(Event(text, b"message")))

    def hold(self, size: int) -> bool:
        return self._out.hold(size)

    async def ready(self) -> None:
        await self._out.ready()


def texts(reader: EventReader, data: bytes) -> list[bytes]:
    """The messages that end in `data`. Raises `TargetFailed`."""
    try:
        return [each.data for each in reader.feed(data) if each.data and each.type in (b"", b"message")]
    except EventTooLarge as error:
        raise TargetFailed("one of them", str(error)) from None


# --- the end


async def _leave(visit: Visit, text: str) -> None:
    """End the session: its client is gone."""
    visit.session = _session(visit, text)
    if visit.session is None:
        return
    visit.x.context.of_kind(MCP).memory.end(visit.session.number)
    upstreams = Upstreams(visit)
    for target in visit.plan.targets:
        await upstreams.delete(target)
    if any(target.is_sse for target in visit.plan.targets):
        from dataplane.backends.mcp.legacy import requests  # only where there are some

        await requests.end_session(visit)
