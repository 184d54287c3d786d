"""Sessions with the servers of targets, for one request: found in the session's id, renewed where a server has
forgotten them, opened where there are none yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.backends.mcp import arranging, calls
from dataplane.backends.mcp.answers import Answers, Congested, Opened, TargetFailed, unreadable
from dataplane.backends.mcp.visit import Visit
from dataplane.chain.calls import FOR_EVER, CallFailed, CallRequest
from dataplane.link.sources import shown, source_of
from dataplane.mcp import introduction, messages
from dataplane.mcp.asked import SESSION
from dataplane.mcp.messages import METHOD_NOT_FOUND, Malformed, Message
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import MAX_UPSTREAM_ID, Session, UpstreamSession
from gatewright.kept_errors import kept

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from dataplane.mcp.plans import TargetPlan
    from dataplane.table.plans import BackendPlan

START_SECONDS: Final = 60.0
"""The same, of a server that is started for it."""
LIST_SECONDS: Final = 30.0
"""For its answer to a list, and to what all servers are asked; of one that passes as it is, for the head."""
GOODBYE_SECONDS: Final = 5.0
"""For its answer to the end of a session."""
NOT_FOUND: Final = 404

_PING: Final = "gw-ping"
TAKES_JSON: Final = b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"


class Upstreams:
    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self._answers: Answers | None = None
        """Made with the first that is read."""
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
        return self.visit.memory.renewed(session.number, target) or session.of(target)

    async def post(self, target: TargetPlan, body: bytes, seconds: float = FOR_EVER) -> Opened:
        """Send a message within the session. Raises `TargetFailed`."""
        return await self._within(target, b"POST", body, TAKES_JSON, seconds)

    async def get(self, target: TargetPlan, last_event: bytes | None = None) -> Opened:
        """Ask for the stream of what the server has to say. Raises `TargetFailed`."""
        lines = b"accept: text/event-stream\r\n"
        if last_event:
            lines += b"last-event-id: %b\r\n" % last_event
        return await self._within(target, b"GET", b"", lines, FOR_EVER)

    async def answer(self, target: TargetPlan, known: UpstreamSession, body: bytes) -> Opened:
        """Send an answer of the client to a request of a server, within the session that the server asked in. Raises
        `TargetFailed`."""
        return await self._ask(target, known, b"POST", body, TAKES_JSON, LIST_SECONDS, True)

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
        now = await self._instead(target, known, opened)
        return opened if now is None else await self._ask(target, now, method, body, lines, seconds, is_idempotent)

    async def posted(self, target: TargetPlan, known: UpstreamSession, body: bytes, opened: Opened) -> Opened:
        """As `post`, which was sent by somebody else: the answer to it, or to another try in a session that took the
        place of one. Raises `TargetFailed`."""
        if opened.answer.status != NOT_FOUND or not known.session_id:
            return opened
        now = await self._instead(target, known, opened)
        if now is None:
            return opened
        return await self._ask(target, now, b"POST", body, TAKES_JSON, FOR_EVER, self.visit.is_idempotent)

    async def _instead(self, target: TargetPlan, known: UpstreamSession, opened: Opened) -> UpstreamSession | None:
        """A server has answered 404 within a session: which one takes its place; None: it is there still. Raises
        `TargetFailed`."""
        is_passed = False
        try:
            is_passed = self.of(target.name) == known and await self._lives(target, known)
        finally:
            if not is_passed:
                opened.call.cancel()
        if is_passed:
            return None
        now = self.of(target.name)
        if now is None or now == known:  # it was not renewed meanwhile
            now = await self.renew(target)
        return now

    async def _lives(self, target: TargetPlan, known: UpstreamSession) -> bool:
        """Whether a server that has answered 404 still has the session: a server without a route for a method, or one
        that answers so to what it does not know, says nothing of it. Those of our own say it of nothing else. Raises
        `TargetFailed`."""
        if target.is_stdio or target.is_sse:
            return False
        ping = messages.request("ping", _PING, msgspec.Raw(b"{}"))
        opened = await self._ask(target, known, b"POST", ping, TAKES_JSON, calls.HELLO_SECONDS, True)
        try:
            return opened.answer.status != NOT_FOUND or (await self._error_of(opened, target)) == METHOD_NOT_FOUND
        finally:
            opened.call.cancel()

    async def _error_of(self, opened: Opened, target: TargetPlan) -> Any:  # Any: JSON
        """The code with which a server refuses our ping; None: it says something else."""
        try:
            return messages.code_of(await self.read(opened, _PING, target.name))
        except (TargetFailed, Malformed):
            return None

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
        if self.visit.asking is not None:
            self.visit.asking()
        clock = x.context.calls.clock
        limit = None
        try:
            plan = calls.plan_of(x, target, known.endpoint)
            limit = calls.request_timeout(x, target, plan)
            within = seconds if limit is None else limit
            until = clock() + max(within, seconds)
            if target.is_sse:
                from dataplane.backends.mcp.legacy import requests  # only where there are some

                opened = await requests.asked(self.visit, target, known, method, body, within)
                return opened._replace(until=clock() + seconds)
            request = self.request(target, known, plan, method, lines, body)
            call = calls.call(x, plan, request, within, is_idempotent)
            try:
                return Opened(call, await call.head(), target.name, until)
            except BaseException:
                call.cancel()
                raise
        except CallFailed as error:
            is_late = error.cause == "timeout" and limit is not None
            raise TargetFailed(target.name, str(error), is_late) from None

    def request(
        self, target: TargetPlan, known: UpstreamSession, plan: BackendPlan, method: bytes, lines: bytes, body: bytes
    ) -> CallRequest:
        """What is sent to a server within a session."""
        lines = self.visit.passing + self.visit.name_line + lines
        if known.session_id:
            lines += b"%b: %b\r\n" % (SESSION, known.session_id.encode("latin-1"))
        return CallRequest(method, target.path, calls.authority(self.visit.x, plan), lines, body)

    # --- sessions

    async def hello(self, target: TargetPlan, body: bytes) -> Opened:
        """Send `initialize` outside any session. Raises `TargetFailed`."""
        seconds = START_SECONDS if target.is_stdio else calls.HELLO_SECONDS
        lines = TAKES_JSON
        if target.is_stdio:
            lines += b"gatewright-client: %b\r\n" % shown(source_of(self.visit.x.peer)).encode()
        return await self._ask(target, UpstreamSession(target.name), b"POST", body, lines, seconds, True)

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
            from dataplane.backends.mcp.legacy import requests  # only where there are some

            found = await requests.found(self.visit, target)
            if found is not None:
                return self._remembered(session, found)
        before = self.of(target.name)
        said = b"" if session is None else session.hello
        hello = msgspec.Raw(said or introduction.anonymous(self.visit.version()))
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
        (await self._ask(target, made, b"POST", notice, TAKES_JSON, calls.HELLO_SECONDS, True)).call.cancel()
        if session is None:
            return made
        await self._as_before(session, target, made, answer.result, before is not None and not before.lost)
        return self._remembered(session, made)

    async def _as_before(
        self, session: Session, target: TargetPlan, made: UpstreamSession, hello: msgspec.Raw, was_there: bool
    ) -> None:
        """Make a new session like the one before. Raises `TargetFailed`: it is not used then, and where it cannot be
        done the client's own session is over."""
        try:
            await arranging.again(self, target, made, hello, was_there)
        except TargetFailed as failed:
            if isinstance(failed, arranging.SessionLost):
                self.visit.x.context.of_kind(MCP).memory.end(session.number)
                self.part()
            else:
                self._leave_later([self._fresh.pop(target.name)])
            raise

    def _remembered(self, session: Session, made: UpstreamSession) -> UpstreamSession:
        """A session of a server that takes the place of one before."""
        context = self.visit.x.context
        context.of_kind(MCP).memory.renew(session.number, made, context.clock())
        self._fresh[made.target] = made
        return made

    async def read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message:
        """As `Answers.read`."""
        if self._answers is None:
            self._answers = Answers(self.visit.x.context.calls, self.visit.claim, self.visit.plan.max_answer)
        return await self._answers.read(opened, request_id, target)

    def leave(self) -> None:
        """End what was opened for this request alone, in the background."""
        fresh, self._fresh = self._fresh, {}
        self._leave_later(fresh.values())

    def part(self) -> None:
        """End what the session has at all servers, in the background."""
        self._leave_later([self.of(target.name) for target in self.visit.plan.targets])

    def _leave_later(self, sessions: Iterable[UpstreamSession | None]) -> None:
        known = [each for each in sessions if each is not None and each.session_id]
        if known:
            self.visit.x.context.spawn(self._leave(known))

    async def _leave(self, known: Sequence[UpstreamSession]) -> None:
        for each in known:
            await self.end(self.visit.plan.by_name[each.target], each)


_OK: Final = 200


async def together(visit: Visit, works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run them beside each other; a `TargetFailed` is a result. `Congested` ends the waiting, so that others get what
    memory this request has; what is not there then is None, and ends with the exchange."""
    if not works:
        return []
    x = visit.x
    results: list[Any] = [None] * len(works)
    left, done = len(works), x.context.make_future()

    async def one(index: int, work: Coroutine[Any, Any, Any]) -> None:
        nonlocal left
        try:
            results[index] = await work
        except TargetFailed as error:
            results[index] = kept(error)
        except Malformed as error:  # in what it answered: what the client sent was read before
            results[index] = unreadable("one of them", error)
        finally:
            left -= 1
            is_over = not left or isinstance(results[index], Congested)
            if is_over and not done.done():
                done.set_result(None)

    for index, work in enumerate(works):
        x.work(one(index, work))
    await done
    return results
