"""A stream of a server: opened for a session, read by the worker that opened it until the session is over.

Laws: the stream names its endpoint within `HELLO_SECONDS`, once, on the server's own origin. An event has a bounded
size. What is not taken stops the server: bounded (`mcp/dialogue`). When the stream ends its session is over; the next
request opens another one.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.answers import Opened, TargetFailed
from dataplane.backends.terminating.pump import EventPump
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.sse import Event, EventTooLarge
from dataplane.mcp import endpoints
from dataplane.mcp.dialogue import Dialogue, TooMuchNoise
from dataplane.mcp.endpoints import WrongEndpoint
from dataplane.mcp.hearing import Hearing, Signal
from dataplane.mcp.messages import Message
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.holder import Holder
    from dataplane.backends.mcp.visit import Visit
    from dataplane.link.pools import Key
    from dataplane.mcp.plans import TargetPlan
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import Call

log = logging.getLogger("dataplane.mcp")

_OK: Final = 200
_STREAM: Final = b"text/event-stream"


class ServerStream:
    """`call` has begun to answer; `origin`: scheme and authority that it was asked by; `number`: of the client's
    session, b"": it has none; `keys`: whose shares it draws on."""

    def __init__(
        self,
        holder: Holder[Any, Any],
        call: Call,
        target: TargetPlan,
        origin: tuple[str, str],
        number: bytes,
        keys: tuple[Key, ...],
    ) -> None:
        self.of = number, target.name
        self.keys = keys
        self.id = secrets.token_hex(16)
        self.call = call
        self.target = target
        self.endpoint = b""
        """Path and query that messages are posted to; b"": not known yet."""
        self.dialogue = Dialogue()
        self.may_read = Signal(holder.make_future)
        """Set when somebody listens, or took what it was given; and when the endpoint is known."""
        self.used = holder.clock()
        self.is_over = False
        self.why = ""
        """Why it is."""
        self._holder = holder
        self._origin = origin

    @property
    def label(self) -> str:
        """Of the endpoint that it came from."""
        return "" if self.call.endpoint is None else self.call.endpoint.label

    # --- what the server says

    async def listen(self, most: int) -> None:
        """Until it says no more. `most`: bytes of an event."""
        why = "its stream ended"
        try:
            pump = EventPump(self.call, most)
            while (event := await pump.event()) is not None:
                self._said(event)
                while self.dialogue.is_full and not self.is_over:
                    await self.may_read.wait()
        except TooMuchNoise:
            why = "it says what are no messages, or answers what was not asked"
        except (CallFailed, EventTooLarge, WrongEndpoint) as error:
            why = str(error)
        finally:
            self.end(why)

    def _said(self, event: Event) -> None:
        if event.type == endpoints.EVENT:
            found = endpoints.posted_to(event.data, *self._origin, self.target.path.decode("latin-1"))
            if self.endpoint and self.endpoint != found:
                raise WrongEndpoint("it names a second endpoint")
            self.endpoint = found
            self.may_read.set()
        elif event.data and event.type in (b"", b"message"):
            self.dialogue.say(event.data)

    async def ready(self) -> None:
        """Until the endpoint is known. Raises `TargetFailed`."""
        calls_of = self._holder.calls
        deadline = _Deadline(self)
        calls_of.wake_at(calls_of.clock() + calls.HELLO_SECONDS, deadline)
        while not self.endpoint and not self.is_over:
            await self.may_read.wait()
        deadline.is_met = True
        if self.is_over:
            raise TargetFailed(self.target.name, self.why)

    # --- who asks and listens

    def ask(self, message: Message) -> Hearing:
        """Listen for the answer to a request that is sent now. Raises `Malformed`, `Busy`."""
        hearing = Hearing(self._holder.make_future)
        self.dialogue.ask(message, hearing)
        self.touch()
        return hearing

    def open(self) -> Hearing:
        """Listen to what is said beside answers."""
        hearing = Hearing(self._holder.make_future)
        self.dialogue.open(hearing)
        self.touch()
        return hearing

    def note(self, message: Message) -> None:
        """A message that wants no answer is sent now."""
        self.touch()
        if message.method == "notifications/cancelled":
            self.dialogue.cancel(message)

    def leave(self, hearing: Hearing) -> None:
        """This is not listened to any more."""
        self.dialogue.forget(hearing)
        hearing.leave()
        self.touch()

    def touch(self) -> None:
        self.used = self._holder.clock()
        self.may_read.set()

    def end(self, why: str) -> None:
        if self.is_over:
            return
        self.is_over, self.why = True, why
        self._holder.forget(self)
        self.call.cancel()
        self.dialogue.end()
        self.may_read.set()
        log.debug("stream of MCP server %s ended: %s", self.target.name, why)

    def __repr__(self) -> str:
        return f"ServerStream({self.target.name!r}, {self.dialogue!r})"


class _Deadline:
    """Ends a stream that does not name its endpoint (`carriers.Sleeper`)."""

    def __init__(self, stream: ServerStream) -> None:
        self._stream = stream
        self.is_met = False

    def wake(self, now: float) -> None:
        if not self.is_met:
            self._stream.end(f"its stream named no endpoint within {calls.HELLO_SECONDS:g} s")


async def opened(visit: Visit, target: TargetPlan) -> ServerStream | Opened:
    """A new stream whose endpoint is known; an answer of the server that is no success, for the client. Raises
    `TargetFailed`."""
    x = visit.x
    holder = x.context.of_kind(MCP).holder
    _look_for_place(holder, visit, target)
    await holder.listening()
    try:
        plan = calls.plan_of(x, target)
        authority = calls.authority(x, plan)
        lines = visit.passing + b"accept: text/event-stream\r\ncache-control: no-store\r\n"
        limit = calls.request_timeout(x, target, plan)
        seconds = calls.HELLO_SECONDS if limit is None else limit
        call = calls.call(x, plan, CallRequest(b"GET", target.path, authority, lines), seconds)
        try:
            return await _held(visit, target, call, _origin(plan, authority))
        except BaseException:
            call.cancel()
            raise
    except CallFailed as error:
        raise TargetFailed(target.name, str(error)) from None


def _look_for_place(holder: Holder[Any, Any], visit: Visit, target: TargetPlan) -> None:
    """Raises `TargetFailed`."""
    if not holder.has_place(visit.keys):
        raise TargetFailed(target.name, "there are as many streams as there may be, and all are used")


async def _held(visit: Visit, target: TargetPlan, call: Call, origin: tuple[str, str]) -> ServerStream | Opened:
    answer = await call.head()
    if answer.status != _OK:
        return Opened(call, answer, target.name)
    kind = (answer.head.get(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind != _STREAM:
        raise TargetFailed(target.name, "its answer to GET is no stream of events")
    holder = visit.x.context.of_kind(MCP).holder
    _look_for_place(holder, visit, target)  # once more: others came while the server was waited for
    number = b"" if visit.session is None or visit.plan.stateless else visit.session.number
    stream = ServerStream(holder, call, target, origin, number, visit.keys)
    holder.hold(stream)
    visit.x.context.spawn(stream.listen(visit.plan.max_answer))
    await stream.ready()  # giving up ends the call, and so the stream
    return stream


def _origin(plan: BackendPlan, authority: bytes) -> tuple[str, str]:
    """As the server sees it."""
    is_secure = plan.transport is not None and plan.transport.tls is not None
    return "https" if is_secure else "http", (authority or plan.authority or b"localhost").decode("latin-1")
