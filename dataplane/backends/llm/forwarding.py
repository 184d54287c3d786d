"""A request on its way to a provider, and its answer: bytes pass, and what they say is read beside.

A whole answer is held until it is all here, so that response steps and the client's head can say what it cost; one that
is larger than may be held passes as it comes. A stream passes event by event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import credentials, facts, outcomes
from dataplane.backends.llm.held import Try
from dataplane.backends.terminating.forwarding import Forwarding, reply_of
from dataplane.chain.calls import FOR_EVER, CallFailed
from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN
from dataplane.llm import content, errors, estimates, prices, refusals, routes, usage
from dataplane.llm.body import Body, Malformed
from dataplane.llm.heard import Heard
from dataplane.llm.providers import BEARER
from dataplane.llm.routes import Format
from dataplane.llm.streams import Watch
from dataplane.telemetry.plan import log_of
from dataplane.upstream.calls import Call
from dataplane.upstream.health import Refused

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import RouteType
    from dataplane.upstream.outgoing import Outgoing

MAX_ANSWER: Final = 4_194_304
"""Bytes of a whole answer that is held until it is all here."""
DRAIN_TIME: Final = 1.0
"""Seconds that the rest of an answer is read that makes place for another candidate, so that its connection can be used
again."""
MAX_ASKED: Final = 262_144
"""Bytes of a request that passes as it is, of which a copy is read."""
ESTIMATED: Final = 1_000
"""Messages of a request that are looked at to estimate its tokens; others are taken to be alike."""
ERROR: Final = 400  # the status from which on an answer is one


class Passing(Forwarding):
    """As it is, in both directions."""

    __slots__ = ("_facts", "_is_counted", "_place", "_route", "_x")

    def __init__(
        self, out: Taker, plan: Any, request: CallRequest, route: RouteType, known: Facts, place: Place = BEARER
    ) -> None:
        """`plan`: a BackendPlan. `place`: of a key that has no location of its own."""
        super().__init__(out, plan, request)
        self._place = place
        self._x: LlmExchange = out.x  # type: ignore[assignment]  # the exchange, of which both are a part
        self._facts = known
        self._route = route
        self._is_counted = False

    def _finished(self, out: Outgoing) -> None:
        credentials.placed(out, self._place)
        super()._finished(out)

    def refused(self, head: ResponseHead) -> Refused | None:
        """429 says that it takes no more, and may say until when."""
        if head.status != refusals.TOO_MANY:
            return None
        return Refused(refusals.seconds(Head(head.block, head.low), self._x.context.wall_clock()))

    def broke(self, error: CallFailed) -> None:
        if self._is_passing:
            self.out.lost()
        else:
            self._x.reply(errors.refused(self._route, reply_of(error)))

    def over_whole(self) -> None:
        self._count()

    def cancel(self) -> None:
        super().cancel()
        self._count()

    def _count(self) -> None:
        """For metrics and the log, once."""
        if not self._is_counted:
            self._is_counted = True
            outcomes.record(self._x, self._route, self._facts, self.calls.clock() - self.started, self.traced)


class Reading(Passing):
    """What the answer says is read: its usage, its model, when the first token came."""

    __slots__ = (
        *("_event_by", "_form", "_has_token", "_heard", "_hides", "_inputs", "_is_left"),
        *("_kept", "_kept_head", "_kept_size", "_try", "_watch"),
    )
    adds_events = True
    """A stream that breaks off gets an event which says so."""

    def __init__(
        self,
        out: Taker,
        plan: Any,
        request: CallRequest,
        route: RouteType,
        known: Facts,
        place: Place = BEARER,
        form: Format = Format.COMPLETIONS,
        hides_usage: bool = False,
    ) -> None:
        super().__init__(out, plan, request, route, known, place)
        self._try = out if isinstance(out, Try) else None
        """None: there is nobody else to ask."""
        self._event_by = FOR_EVER
        """When the first content has to be there, if anybody else can be asked."""
        self._form = form
        self._hides = hides_usage
        self._watch: Watch | None = None
        self._kept_head: ResponseHead | None = None
        """Of an answer that is held until it is all here."""
        self._has_token = False
        self._heard: Heard | None = None
        """Of a stream: what it has said."""
        self._inputs = 0
        """Tokens of the request, estimated: of one that is not kept until the end."""
        self._is_left = False
        """The call ended before its answer."""
        self._kept: list[bytes] = []
        self._kept_size = 0

    def go(self, head_within: float = FOR_EVER) -> None:
        super().go(head_within)
        seconds = self._x.policies.timeouts.backend_request
        if seconds is not None:  # beside the backend's own, whichever is shorter
            self.head_by = min(self.head_by, self.started + seconds)
            self.calls.wake_at(self.head_by, self)

    def within(self, seconds: float | None) -> None:
        """The first content of a stream has to be there by then, where another candidate can be asked. None: it has
        time."""
        if seconds is not None and self._try is not None and not self.is_over:
            self._event_by = self.started + seconds
            self.calls.wake_at(self._event_by, self)

    def wake(self, now: float) -> None:
        super().wake(now)
        if now >= self._event_by and not self.is_over and not self._has_token and self._try is not None:
            self._event_by = FOR_EVER
            if self._try.may_give_way():
                self.calls.leases.failed(self.plan, self.endpoint)
                self.fail(CallFailed("timeout", f"{self.where()} sent no content in time"))

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if self._try is not None and self._try.gives_way(str(head.status), head.status, head):
            self._leave()
        else:
            self.accepted(head, first, end)

    def _leave(self) -> None:
        """Another candidate takes the place of this answer, which goes on for nobody for a moment."""
        assert self._try is not None  # it gives way
        up, self.up = self.up, None
        self._let_go_of_stream()
        self._end()
        sleeper = None if up is None else up.discard()
        if sleeper is not None:
            self.calls.wake_at(self.calls.clock() + DRAIN_TIME, sleeper)
        self._try.proceed()

    def _let_go_of_stream(self) -> None:
        """It is counted among the tries that failed, and nothing of it is kept."""
        self._is_counted = True
        if self.traced is not None:
            outcomes.describe(self.traced, self._route, self._facts)
        if self._heard is not None:
            self._x.context.room.free(self._heard.beyond_sample)

    def over(self) -> None:
        super().over()
        if self._try is not None:
            head = self.head_of_answer
            outcome = self.failure or ("" if head is None else str(head.status))
            self._try.tries.note(self._try.name, outcome, self.calls.clock() - self.started)
            self._facts["candidates"] = self._try.tries.text

    def streams(self) -> None:
        """The answer is a stream, nothing of which is content yet."""
        if self._try is not None:
            self._try.holds = self._try.may_give_way()

    def accepted(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The answer with this head is the one that the client gets, or the beginning of a stream that may be."""
        self._forget()
        if head.status >= ERROR:
            super().answered(head, first, end)
            return
        lines = Head(head.block, head.low)
        if lines.get(b"content-encoding") is not None:
            super().answered(head, first, end)  # it was not asked for, and cannot be read
        elif is_stream(lines):
            self.streams()
            self._watch = Watch(self._form, self._hides)
            self._hear(self._form)
            super().answered(_without_length(head) if self.adds_events else head, self._watched(first), False)
            if not self._watched_fails(False) and end:
                self.upstream_content(b"", True)
        elif head.length <= MAX_ANSWER:
            self._kept_head = head
            self._take(first, end)
        else:
            super().answered(head, first, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._kept_head is not None:
            self._take(data, end)
        elif self._watch is None:
            super().upstream_content(data, end)
        else:
            data = self._watched(data)
            if self._watched_fails(end):
                return
            if end:
                data += self._watch.end() + self._ending(self._watch)
            super().upstream_content(data, end)

    def _watched_fails(self, end: bool) -> bool:
        watch = self._watch
        assert watch is not None
        if end:
            self.up = None
        why = watch.failed or ("the stream ended before its first content" if end and not watch.is_complete else "")
        return self.fails_early(why)

    def fails_early(self, why: str) -> bool:
        """Whether a stream makes place for another candidate, which failed before its first content; "": it did not.
        If so, it does not go on."""
        if not why or self._try is None or self._has_token or self.is_over or not self._try.may_give_way():
            return False
        self.fail(CallFailed("lost", f"{self.where()}: {why}"))
        return True

    def upstream_trailers(self, lines: bytes) -> None:
        if self._kept_head is not None:
            self._take(b"", True)
        else:
            if self._watch is not None:
                self.out.give(self._watch.end() + self._ending(self._watch))
            super().upstream_trailers(lines)

    # --- an answer that is held

    def _take(self, data: bytes, end: bool) -> None:
        head = self._kept_head
        assert head is not None
        self._kept.append(data)
        has_room = end or self._x.context.room.take(len(data))
        if not end and has_room:
            self._kept_size += len(data)
            if self._kept_size <= MAX_ANSWER:
                return
        self._kept_head = None
        data = b"".join(self._kept)
        self._let_go()
        if end:
            self.up = None
            self._kept_whole(head, data)
        else:
            self._kept_part(head, data)

    def _kept_whole(self, head: ResponseHead, data: bytes) -> None:
        """An answer is all here."""
        self._read_whole(data)
        super().answered(head, data, True)

    def _kept_part(self, head: ResponseHead, data: bytes) -> None:
        """It is larger than may be held; more of it comes."""
        super().answered(head, data, False)

    def _let_go(self) -> None:
        """Nothing is held any more."""
        self._kept.clear()
        if self._kept_size:
            self._x.context.room.free(self._kept_size)
            self._kept_size = 0

    def _read_whole(self, data: bytes) -> None:
        answer = usage.parsed(data)
        report = usage.of_answer(self._form, answer)
        self._note(report.usage, report.model, report.tier)
        self._said(self._form, answer)
        self._price()

    def _said(self, form: Format, answer: Any) -> None:  # Any: JSON of a provider
        """For who asks what the answer says. Where guards judge it, they leave what is left of it."""
        if not self.out.is_judged:
            facts.add_answer(self._facts, form, answer)

    # --- a call that ends early

    def _forget(self) -> None:
        """Of a large request, what is not asked for until its answer comes."""
        if len(self.body) > facts.KEPT:
            if self._facts.get("streaming"):
                self._inputs = self._estimated()
            self._facts.forget()

    def _estimated(self) -> int:
        if self._inputs:
            return self._inputs
        prompt = self._facts.get("prompt") or ()
        few = prompt[:ESTIMATED]
        return round(estimates.of_texts(content.texts(few)) * len(prompt) / len(few)) if few else 0

    def _hear(self, form: Format) -> None:
        """A stream begins that the client gets in this format."""
        log = log_of(self._x)  # type: ignore[arg-type]  # the exchange, of which a part is known
        self._heard = Heard(form, log is not None and log.reads_answers)

    def _listen(self, data: bytes, has_token: bool) -> None:
        heard, room = self._heard, self._x.context.room
        assert heard is not None
        before = heard.beyond_sample
        heard.add(data, has_token)
        more = heard.beyond_sample - before
        if more and not room.take(more):
            room.free(before)
            heard.cut()

    def _count(self) -> None:
        if self._is_counted:
            return
        if self._is_left and not self._has_usage():
            facts.add_estimate(self._facts, self._estimated, self._heard.tokens() if self._heard else 0)
        if self._heard is not None:
            if not self.out.is_judged:  # as `_said`
                facts.add_stream(self._facts, self._heard)
            self._x.context.room.free(self._heard.beyond_sample)
        self._price()
        super()._count()

    def _price(self) -> None:
        """What is known of the tokens by now has a cost."""
        models = tuple(filter(None, (self._facts.get("responseModel"), self._facts.get("sentModel"))))
        cost, rates = facts.money(self._facts, self._x.table.prices or prices.catalogue(), models)
        self._facts["cost"] = cost
        self._x.leave(facts.COST, cost)
        self._x.leave(facts.RATES, rates)

    def _has_usage(self) -> bool:
        """The provider has reported all that it will."""
        return self._watch is not None and self._watch.is_complete and self._watch.usage.output_tokens is not None

    # --- a stream

    def _watched(self, data: bytes) -> bytes:
        watch = self._watch
        assert watch is not None
        given = watch.feed(data) if data else b""
        self._listen(data, watch.has_token)
        if watch.has_token:
            self._first_token()
        return given

    def _first_token(self) -> None:
        """Something of the answer itself has come."""
        if not self._has_token:
            self._has_token = True
            seconds = self.calls.clock() - self.started
            self._facts["timeToFirstToken"] = facts.seconds(seconds)
            outcomes.first_token(self._x, self._route, self._facts, seconds)
            if self._try is not None:
                self._try.open()

    def _ending(self, watch: Watch) -> bytes:
        """What the client gets behind a stream that ended before its format's end."""
        self._note(watch.usage, watch.model, watch.tier)
        if watch.is_complete or watch.failed or not self.adds_events:
            return b""
        return self._broken(watch)

    def _broken(self, watch: Watch) -> bytes:
        row = made("LlmStreamBroken")
        return errors.event(self._route, row.status, row.reason, row.body.decode(), watch.next_number)

    def broke(self, error: CallFailed) -> None:
        watch = self._watch
        if watch is None or not self._is_passing:
            super().broke(error)
            return
        self._note(watch.usage, watch.model, watch.tier)
        self._x.detail = str(error)
        self._is_left = True
        self._count()
        if self.adds_events and watch.is_between_events and not watch.is_complete:
            self.out.give(self._broken(watch))
            self.out.end()
        else:
            self.out.lost()

    def fail(self, error: CallFailed) -> None:
        if not self.is_over and self._try is not None and self._try.gives_way(error.cause):
            self._kept_head = None
            self._let_go()
            self._let_go_of_stream()
            Call.fail(self, error)
            self._try.proceed()
            return
        is_held, self._kept_head = self._kept_head is not None, None
        self._let_go()
        super().fail(error)
        if is_held:  # the client has nothing of the answer yet
            self.out.take_back()
            self.broke(error)

    def cancel(self) -> None:
        self._let_go()
        if not self.is_over:
            self._is_left = self.up is not None
            if self._watch is not None:
                self._note(self._watch.usage, self._watch.model, self._watch.tier)
        super().cancel()

    def _note(self, found: usage.Usage, model: str, tier: str) -> None:
        facts.add_usage(self._facts, found)
        if model:
            self._facts["responseModel"] = model
        if tier:
            self._facts["serviceTier"] = tier


class Detecting(Reading):
    """Bytes pass as they are in both directions; what they say is read beside, as the end of the path has it."""

    __slots__ = ("_asked", "_asked_size")
    adds_events = False

    def __init__(
        self, out: Taker, plan: Any, request: CallRequest, route: RouteType, known: Facts, place: Place = BEARER
    ) -> None:
        x: LlmExchange = out.x  # type: ignore[assignment]  # as above
        super().__init__(out, plan, request, route, known, place, routes.detected(x.path))
        self._asked: list[bytes] | None = [self.body]
        self._asked_size = len(self.body)
        if self._is_request_here:
            self._asked_whole()

    def more(self, data: bytes, end: bool) -> None:
        if self._asked is not None:
            self._asked.append(data)
            self._asked_size += len(data)
            if self._asked_size > MAX_ASKED:
                self._asked = None
            elif end:
                self._asked_whole()
        super().more(data, end)

    def _asked_whole(self) -> None:
        asked, self._asked = b"".join(self._asked or ()), None
        try:
            found, params = facts.of_request(self._form, Body(asked), self._facts["provider"])
        except Malformed:
            return  # nothing can be said of it
        self._facts.take(found)
        self._x.leave(facts.PARAMS, params)


def _without_length(head: ResponseHead) -> ResponseHead:
    """An event may be taken out, or added: nobody knows how long it is."""
    if head.length == UNKNOWN:
        return head
    found = Head(head.block, head.low)
    found.remove(b"content-length")
    return replace(head, block=found.block, low=found.low, length=UNKNOWN)
