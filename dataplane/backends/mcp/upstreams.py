"""Sessions with the servers of targets, for one request: found in the session's id, renewed where a server has
forgotten them, opened where there are none yet.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.visit import SESSION, Visit
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.sse import Event, EventReader, EventTooLarge
from dataplane.mcp import messages, versions
from dataplane.mcp.messages import Malformed, Message
from dataplane.mcp.sessions import MAX_UPSTREAM_ID, Session, UpstreamSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from dataplane.chain.calls import CallAnswer
    from dataplane.mcp.plans import TargetPlan

HELLO_SECONDS: Final = 15.0
"""For the head of a server's answer to `initialize`."""
START_SECONDS: Final = 60.0
"""The same, of a server that is started for it."""
LIST_SECONDS: Final = 30.0
"""For the head of its answer to a list, and to what all servers are asked."""
GOODBYE_SECONDS: Final = 5.0
MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer that is read whole."""
MAX_ANSWERS: Final = 16 * 1024 * 1024
"""Bytes of all answers that are read for one request."""
NOT_FOUND: Final = 404

_TAKES: Final = b"accept: application/json, text/event-stream\r\n"
_JSON: Final = b"content-type: application/json\r\n"


class TargetFailed(Exception):
    """A target gave no answer. The text is for the log."""

    def __init__(self, target: str, text: str) -> None:
        super().__init__(f"{target}: {text}")
        self.target = target


class Labelled(Protocol):
    """An endpoint."""

    @property
    def label(self) -> str: ...


class Answering(Protocol):
    """A call whose answer has begun."""

    @property
    def endpoint(self) -> Labelled | None:
        """Who answers; None: nobody that a session could be pinned to."""
        ...

    async def receive(self) -> bytes:
        """As `chain.calls.CallStream`."""
        ...

    def cancel(self) -> None: ...


class Opened(NamedTuple):
    """Whoever has it cancels the call in the end."""

    call: Answering
    answer: CallAnswer
    target: str
    """Its name."""


SLICE: Final = 16_384
"""Bytes of events that are looked at in one turn of the loop: thousands of them may be there at once."""
MANY: Final = 64
"""Events of them: rules may be asked about each."""


async def events(reader: EventReader, data: bytes) -> AsyncIterator[Event]:
    """Events that end in `data`, in slices. Raises `EventTooLarge`."""
    for start in range(0, len(data), SLICE):
        for count, event in enumerate(reader.feed(data[start : start + SLICE]), 1):
            yield event
            if not count % MANY:
                await asyncio.sleep(0)
        if len(data) > SLICE:
            await asyncio.sleep(0)


class Upstreams:
    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self._bytes_left = MAX_ANSWERS
        self._fresh: dict[str, UpstreamSession] = {}
        """Opened by this request."""

    def of(self, target: str) -> UpstreamSession | None:
        """The session that counts now."""
        if self.visit.is_modern:
            return UpstreamSession(target)
        fresh = self._fresh.get(target)
        session = self.visit.session
        if fresh is not None or session is None:
            return fresh
        return self.visit.x.context.mcp_memory.renewed(session.number, target) or session.of(target)

    async def post(self, target: TargetPlan, body: bytes, seconds: float = calls.FOR_EVER) -> Opened:
        """Send a message within the session. Raises `TargetFailed`."""
        return await self._within(target, b"POST", body, _TAKES + _JSON, seconds)

    async def get(self, target: TargetPlan, last_event: bytes | None = None) -> Opened:
        """Ask for the stream of what the server has to say. Raises `TargetFailed`."""
        lines = b"accept: text/event-stream\r\n"
        if last_event:
            lines += b"last-event-id: %b\r\n" % last_event
        return await self._within(target, b"GET", b"", lines, calls.FOR_EVER)

    async def answer(self, target: TargetPlan, known: UpstreamSession, body: bytes) -> Opened:
        """Send an answer of the client to a request of a server, within the session that the server asked in. Raises
        `TargetFailed`."""
        return await self._ask(target, known, b"POST", body, _TAKES + _JSON, LIST_SECONDS, True)

    async def delete(self, target: TargetPlan) -> None:
        """End the session there, if there is one. Whether that worked does not matter to the client."""
        known = self.of(target.name)
        if known is not None and known.session_id:
            await self.end(target, known)

    async def end(self, target: TargetPlan, known: UpstreamSession) -> None:
        """The same of a session that is known. Never raises."""
        try:
            opened = await self._ask(target, known, b"DELETE", b"", b"", GOODBYE_SECONDS)
            opened.call.cancel()
        except TargetFailed:
            pass  # it ends there by itself, in time

    async def _within(self, target: TargetPlan, method: bytes, body: bytes, lines: bytes, seconds: float) -> Opened:
        known = self.of(target.name)
        if known is None or known.lost:
            known = await self.renew(target)
        is_idempotent = self.visit.is_idempotent
        opened = await self._ask(target, known, method, body, lines, seconds, is_idempotent)
        if opened.answer.status != NOT_FOUND or not known.session_id:
            return opened
        opened.call.cancel()
        now = self.of(target.name)
        if now is None or now == known:  # nobody else has renewed it meanwhile
            now = await self.renew(target)
        return await self._ask(target, now, method, body, lines, seconds, is_idempotent)

    async def _ask(
        self,
        target: TargetPlan,
        known: UpstreamSession,
        method: bytes,
        body: bytes,
        lines: bytes,
        seconds: float,
        is_idempotent: bool = False,
    ) -> Opened:
        x = self.visit.x
        self.visit.out.taken()
        if target.is_sse:
            from dataplane.backends.mcp.legacy import requests  # it is above this file

            return await requests.asked(self.visit, target, known, method, body, seconds)
        lines = self.visit.passing + self.visit.name_line + lines
        if known.session_id:
            lines += b"%b: %b\r\n" % (SESSION, known.session_id.encode("latin-1"))
        try:
            plan = calls.plan_of(x, self.visit.plan, target, known.endpoint)
            request = CallRequest(method, target.path, calls.authority(x, plan), lines, body)
            call = calls.call(x, plan, request, seconds, is_idempotent)
            try:
                return Opened(call, await call.head(), target.name)
            except BaseException:
                call.cancel()
                raise
        except CallFailed as error:
            raise TargetFailed(target.name, str(error)) from None

    # --- sessions

    async def hello(self, target: TargetPlan, body: bytes) -> Opened:
        """Send `initialize` outside any session. Raises `TargetFailed`."""
        seconds = START_SECONDS if target.is_stdio else HELLO_SECONDS
        return await self._ask(target, UpstreamSession(target.name), b"POST", body, _TAKES + _JSON, seconds, True)

    def begun(self, target: TargetPlan, opened: Opened) -> UpstreamSession:
        """The session that an answer to `initialize` begins. Raises `TargetFailed` for an id that cannot be kept."""
        text = (opened.answer.head.get(SESSION) or b"").decode("latin-1")
        if len(text) > MAX_UPSTREAM_ID or not text.isprintable():
            raise TargetFailed(target.name, "its session id is too long, or not printable")
        endpoint = opened.call.endpoint
        made = UpstreamSession(target.name, text, "" if endpoint is None else endpoint.label)
        self._fresh[target.name] = made
        return made

    async def renew(self, target: TargetPlan) -> UpstreamSession:
        """Open a session as the client did, which does not notice. Raises `TargetFailed`."""
        session = self.visit.session
        if target.is_sse and session is not None and not self.visit.plan.stateless:
            from dataplane.backends.mcp.legacy import requests  # it is above this file

            found = await requests.found(self.visit, target)
            if found is not None:
                return self._remembered(session, found)
        said = b"" if session is None else session.hello
        hello = msgspec.Raw(said or _anonymous(self.visit.version(), self.visit.plan.stateless))
        opened = await self.hello(target, messages.request("initialize", "gw-initialize", hello))
        try:
            if opened.answer.status != _OK:
                raise TargetFailed(target.name, f"it answered initialize with {opened.answer.status}")
            answer = await self.read(opened, "gw-initialize", target.name)
            if answer.result is msgspec.UNSET:
                raise TargetFailed(target.name, "it answered initialize with an error")
            made = self.begun(target, opened)
        finally:
            opened.call.cancel()
        notice = messages.notification("notifications/initialized")
        (await self._ask(target, made, b"POST", notice, _TAKES + _JSON, HELLO_SECONDS, True)).call.cancel()
        return made if session is None or self.visit.plan.stateless else self._remembered(session, made)

    def _remembered(self, session: Session, made: UpstreamSession) -> UpstreamSession:
        """A session of a server that takes the place of one before."""
        context = self.visit.x.context
        context.mcp_memory.renew(session.number, made, context.clock())
        self._fresh[made.target] = made
        return made

    async def read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message:
        """The response to a request, read whole, from JSON or a stream of events. Other messages of the stream are left
        out. Raises `TargetFailed`, also for more bytes than are read of one answer, or of all of them."""
        content_type = (opened.answer.head.get(b"content-type") or b"").lower()
        is_stream = content_type.startswith(b"text/event-stream")
        reader, parts, size = EventReader(MAX_ANSWER), [], 0
        try:
            while data := await opened.call.receive():
                size += len(data)
                self._bytes_left -= len(data)
                if size > MAX_ANSWER or self._bytes_left < 0:
                    raise TargetFailed(target, f"its answer has more than {MAX_ANSWER} bytes, or all have too many")
                if not is_stream:
                    parts.append(data)
                    continue
                async for event in events(reader, data):
                    if not event.data:
                        continue  # the first event of a stream that can be resumed is an id alone (MCP 2025-11-25)
                    message = messages.read(event.data)
                    if message.is_response and message.request_id == request_id:
                        return message
            if is_stream:
                raise TargetFailed(target, "its stream ended without an answer")
            return messages.read(b"".join(parts))
        except CallFailed as error:
            raise TargetFailed(target, str(error)) from None
        except (Malformed, EventTooLarge) as error:
            raise TargetFailed(target, f"its answer is not readable: {error}") from None

    def leave(self) -> None:
        """End what was opened for this request alone, in the background."""
        fresh, self._fresh = self._fresh, {}
        known = [each for each in fresh.values() if each.session_id]
        if known:
            self.visit.x.context.spawn(self._leave(known))

    async def _leave(self, known: Sequence[UpstreamSession]) -> None:
        for each in known:
            await self.end(self.visit.plan.by_name[each.target], each)


_OK: Final = 200


def _anonymous(version: str, is_stateless: bool) -> bytes:
    """The `initialize` parameters for a client that has not sent its own in this session: see `_introduction`."""
    return _introduction(version if version in versions.KNOWN else versions.UNSPOKEN, is_stateless)


@cache
def _introduction(version: str, is_stateless: bool) -> bytes:
    """Of a client of which only the revision is known. Without a session its capabilities are not, so servers may ask
    for what clients answer by themselves, with an error where they cannot. Roots are asked for beside requests, where
    such a client receives nothing. One for each revision that is known."""
    able: dict[str, object] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
    return messages.encode(
        {
            "protocolVersion": version,
            "capabilities": able if is_stateless else {},
            "clientInfo": {"name": "gatewright", "version": "1"},
        }
    )


async def together(visit: Visit, works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run them beside each other; a `TargetFailed` is a result."""
    x = visit.x
    results: list[Any] = [None] * len(works)
    left, done = len(works), x.context.make_future()

    async def one(index: int, work: Coroutine[Any, Any, Any]) -> None:
        nonlocal left
        try:
            results[index] = await work
        except TargetFailed as error:
            results[index] = error
        except Malformed as error:  # in what it answered: what the client sent was read before
            results[index] = TargetFailed("one of them", f"its answer is not readable: {error}")
        finally:
            left -= 1
            if not left and not done.done():
                done.set_result(None)

    for index, work in enumerate(works):
        x.work(one(index, work))
    await done
    return results
