"""What becomes of each message of a realtime session: what clients ask is judged, and names models that they may use;
what the provider answers is counted and judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dataplane.backends.llm import facts, rejections
from dataplane.backends.llm.guarded_streams import MAX_TRACKS
from dataplane.backends.llm.realtime.guarded import GuardedMessages
from dataplane.backends.llm.realtime.turns import Turns
from dataplane.chain import limits
from dataplane.chain.replies import made
from dataplane.guards.plan import Rejected
from dataplane.guards.values import Phase
from dataplane.http.websocket import BINARY, NOT_ALLOWED, TEXT, UNSUPPORTED, frame
from dataplane.llm import errors, realtime, texts, usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.visit import Visit
    from dataplane.chain.reply import Reply
    from dataplane.guards.judging import Judge
    from dataplane.http.websocket import Message
    from dataplane.llm.realtime import Event, Named


class Ended(Exception):
    """The session cannot go on. `code`: of the close frame; `event`: the last one that its client gets."""

    def __init__(self, code: int, why: str, event: bytes = b"") -> None:
        super().__init__(why)
        self.code, self.event = code, event


class Session:
    """`send_to_client`, `send_to_provider`: send a message of the gateway. `asking`, `answering`: guards, None for
    none."""

    def __init__(
        self,
        visit: Visit,
        known: Facts,
        clock: Callable[[], float],
        asking: Judge | None,
        answering: Judge | None,
    ) -> None:
        self._visit, self._x, self._known = visit, visit.x, known
        self._asking = asking
        self._guarded = None if answering is None else GuardedMessages(answering)
        self.send_to_client: Callable[[bytes], None] = _ignored
        self.send_to_provider: Callable[[bytes], None] = _ignored
        self.turns = Turns(visit.x, known, clock)
        self._rejected: set[str] = set()
        """Ids of responses, and of their items, of which the client gets nothing more."""

    # --- from the client

    async def asked(self, message: Message) -> bytes:
        """What goes on to the provider. Raises `Ended`."""
        if message.kind != TEXT:
            if message.kind == BINARY:
                raise Ended(UNSUPPORTED, "events are text")
            return frame(message.kind, message.data, True)
        refused = limits.refusal(self._x)
        if refused is not None:
            raise self._over_limit(refused)
        event = usage.parsed(message.data)
        if type(event) is not dict:
            return self._refuse(made("LlmBadRequest"), "an event must be a JSON object", "", {})
        return await self._asked(event, message.data)

    async def _asked(self, event: Event, data: bytes) -> bytes:
        is_changed = self._asking is not None or realtime.may_name_models(data)
        for named in realtime.models(event):
            why = self._unusable(named)
            if why is not None:
                return self._refuse(why, "", named.field, event)
            if named.is_own and named.name != self._known["sentModel"]:
                named.holder[realtime.MODEL] = self._known["sentModel"]
                is_changed = True
        if self._asking is not None:
            try:
                await self._judge(self._asking, event)
            except Rejected as rejected:
                return self._rejected_event(rejected, event)
        # what was looked at is what is sent, whichever of two fields by one name another reader would take
        return frame(TEXT, msgspec.json.encode(event) if is_changed else data, True)

    async def _judge(self, judge: Judge, event: Event) -> None:
        slots = texts.of_event(event)
        for slot, text in zip(slots, await judge.texts([slot.text for slot in slots]), strict=True):
            slot.put(text)

    def _unusable(self, named: Named) -> Reply | None:
        """Why an event may not name this model: a session keeps the one that it began with, and what transcribes beside
        it needs the same rights."""
        known = self._known
        if named.is_own:
            if named.name in (known["requestModel"], known["sentModel"]):
                return None
            return made("LlmModelDenied", f"the session is one with {known['requestModel']}")
        rules, x = self._visit.policies, self._x
        if not rules.rules:
            return None
        x.leave(facts.VARIABLE, facts.Facts({**known, "requestModel": named.name}, {}))
        try:
            why = rules.decide(x)  # type: ignore[arg-type]  # the exchange, of which a part is known
        finally:
            x.leave(facts.VARIABLE, known)
        return None if why is None else made("LlmModelDenied", why)

    def _refuse(self, reply: Reply, message: str, field: str, event: Event) -> bytes:
        """The client reads why an event is not sent; nothing is."""
        text = message or reply.detail or reply.body.decode("utf-8", "replace")
        self.send_to_client(realtime.error(reply.status, reply.reason, text, field, event))
        return b""

    def _rejected_event(self, rejected: Rejected, event: Event) -> bytes:
        self._log(rejected, Phase.REQUEST)
        reason = rejections.reason(rejected, Phase.REQUEST)
        self.send_to_client(realtime.error(rejected.status, reason, rejected.message, "", event))
        return b""

    def _log(self, rejected: Rejected, phase: Phase) -> None:
        self._x.reason, self._x.detail = rejections.reason(rejected, phase), rejected.detail

    def _over_limit(self, reply: Reply) -> Ended:
        self._x.reason, self._x.detail = reply.reason, reply.detail
        message = errors.text_of(reply)
        return Ended(NOT_ALLOWED, message, realtime.error(reply.status, reply.reason, message))

    # --- from the provider

    async def answered(self, message: Message) -> bytes:
        """What goes on to the client. Raises `Ended`."""
        if message.kind != TEXT:
            if message.kind == BINARY and self._guarded is not None:
                raise Ended(NOT_ALLOWED, "a binary message cannot be judged")
            return frame(message.kind, message.data, False)
        kind = realtime.type_of(message.data)
        is_wanted = self.turns.wants(kind)
        event = usage.parsed(message.data) if is_wanted or self._guarded is not None else None
        if is_wanted and type(event) is dict:
            self.turns.note(kind, event)
        raw = frame(TEXT, message.data, False)
        if self._guarded is None:
            return raw
        if type(event) is not dict:
            raise Ended(NOT_ALLOWED, "an event of the answer is not a JSON object")
        return await self._judged(self._guarded, kind, event, raw)

    async def _judged(self, guarded: GuardedMessages, kind: str, event: Event, raw: bytes) -> bytes:
        response, item = realtime.response_of(event), realtime.item_of(event)
        if response in self._rejected or item in self._rejected:
            self._leave_out(item)
            return self._emptied(event) if kind == realtime.DONE else b""
        try:
            given = await guarded.go_on(event, raw)
        except Rejected as rejected:
            return self._reject(guarded, rejected, kind, event)
        if kind == realtime.DONE:
            guarded.forget()
        return given

    def _reject(self, guarded: GuardedMessages, rejected: Rejected, kind: str, event: Event) -> bytes:
        """The client gets nothing more of this response, which the provider is to end."""
        self._log(rejected, Phase.RESPONSE)
        response = realtime.response_of(event)
        self._leave_out(response)
        self._leave_out(realtime.item_of(event))
        guarded.drop(response)
        answer = frame(TEXT, realtime.error(rejected.status, rejections.reason(rejected), rejected.message), False)
        if kind == realtime.DONE:
            return answer + self._emptied(event)
        if response:
            self.send_to_provider(realtime.cancel(response))
        return answer

    def _leave_out(self, name: str) -> None:
        if name:
            self._rejected.add(name)
        if len(self._rejected) > MAX_TRACKS:
            raise Ended(NOT_ALLOWED, "too many answers were rejected")

    def _emptied(self, event: Event) -> bytes:
        """The end of a response of which nothing may be said: its client waits for it."""
        response = event.get("response")
        whole = response if type(response) is dict else {}
        return frame(TEXT, msgspec.json.encode({**event, "response": {**whole, "output": []}}), False)

    def end(self) -> None:
        """It is over: what it came to is for the log."""
        self.turns.end()

    def __repr__(self) -> str:
        return f"Session({self._known.get('requestModel')})"


def _ignored(event: bytes) -> None:
    """Before the WebSocket is open."""
