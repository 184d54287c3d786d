"""A request to a provider whose answer is read beside: its usage, its model, when the first token came.

A whole answer is held until it is all here, so that response steps and the client's head can say what it cost; one that
is larger than may be held passes as it comes. A stream passes event by event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import costs, facts, outcomes
from dataplane.backends.llm.passing import Passing
from dataplane.backends.llm.slices import InTurns
from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN
from dataplane.llm import content, errors, estimates, prices, usage, whole_answers
from dataplane.llm.heard import Heard
from dataplane.llm.pieces import PIECE as PIECE_OF_JSON
from dataplane.llm.providers import BEARER
from dataplane.llm.routes import Format
from dataplane.llm.streams import Watch
from dataplane.telemetry.plan import log_of

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallFailed, CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.pieces import Steps
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import RouteType

MAX_ANSWER: Final = 4_194_304
"""Bytes of a whole answer that is held until it is all here."""
PIECE: Final = 262_144
"""Bytes of a stream that are read at a time: of so many only a few events are (`streams.EDGE`)."""
ERROR: Final = 400  # the status from which on an answer is one


class Reading(InTurns):
    """What the answer says is read: its usage, its model, when the first token came."""

    __slots__ = (
        *("_form", "_heard", "_hides", "_inputs", "_is_left"),
        *("_kept", "_kept_head", "_kept_size", "_trailers", "_watch"),
    )
    slice_size = PIECE
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
        self._form = form
        self._hides = hides_usage
        self._watch: Watch | None = None
        self._kept_head: ResponseHead | None = None
        """Of an answer that is held until it is all here."""
        self._heard: Heard | None = None
        """Of a stream: what it has said."""
        self._inputs = 0
        """Tokens of the request, estimated: of one that is not kept until the end."""
        self._is_left = False
        """The call ended before its answer."""
        self._kept: list[bytes] = []
        self._kept_size = 0
        """Bytes of it that take memory of the worker."""
        self._trailers = b""
        """Of a stream."""

    def _let_go_of_stream(self) -> None:
        super()._let_go_of_stream()
        if self._heard is not None:
            self._x.context.body_memory.free(self._heard.beyond_sample, self._x.peer)

    def streams(self) -> None:
        """The answer is a stream, nothing of which is content yet."""
        if self._try is not None:
            self._try.holds = self._try.may_give_way()

    def accepted(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._forget()
        if head.status >= ERROR:
            super().accepted(head, first, end)
            return
        lines = Head(head.block, head.low)
        if lines.is_coded:
            super().accepted(head, first, end)  # it was not asked for, and cannot be read
        elif is_stream(lines):
            self.streams()
            self._watch = Watch(self._form, self._hides)
            self._hear(self._form)
            super().accepted(_without_length(head) if self.adds_events else head, b"", False)
            self.stream_content(first, end)
        elif head.length <= MAX_ANSWER:
            self._kept_head = head
            self._take(first, end)
        else:
            super().accepted(head, first, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._kept_head is not None:
            self._take(data, end)
        elif self._watch is None:
            super().upstream_content(data, end)
        else:
            self.stream_content(data, end)

    def read_slice(self, data: bytes, end: bool) -> None:
        watch = self._watch
        assert watch is not None  # whose it is
        data = self._watched(data)
        if self._watched_fails(end):
            return
        if end:
            data += watch.end() + self._ending(watch)
        if end and self._trailers:
            self.out.give(data)
            super().upstream_trailers(self._trailers)
        elif data or end:
            super().upstream_content(data, end)

    def _watched_fails(self, end: bool) -> bool:
        watch = self._watch
        assert watch is not None
        why = watch.failed or ("the stream ended before its first content" if end and not watch.is_complete else "")
        return self.fails_early(why)

    def upstream_trailers(self, lines: bytes) -> None:
        if self._kept_head is not None:
            self._take(b"", True)
        elif self._watch is None:
            super().upstream_trailers(lines)
        else:
            self._trailers = lines
            self.stream_content(b"", True)

    # --- an answer that is held

    def _take(self, data: bytes, end: bool) -> None:
        self._kept.append(data)
        if end:
            self.kept_whole()
        elif not self.may_wait() or self._kept_size > MAX_ANSWER:
            self._kept_part(*self._taken())

    def may_wait(self) -> bool:
        size = len(self._kept[-1])
        if not self._x.context.body_memory.take(size, self._x.peer):
            return False
        self._kept_size += size
        return True

    def is_small(self) -> bool:
        return self._kept_size + len(self._kept[-1]) <= PIECE_OF_JSON

    def read_kept(self) -> Steps[None]:
        head = self._kept_head
        assert head is not None  # it is held
        self._kept[:] = [b"".join(self._kept)]
        yield from self._kept_whole(head, self._kept[0])

    def _kept_whole(self, head: ResponseHead, data: bytes) -> Steps[None]:
        """An answer is all here; it is held until the client gets it."""
        yield from self._read_whole(data)
        self._taken()
        super().accepted(head, data, True)

    def _taken(self) -> tuple[ResponseHead, bytes]:
        """What was held is not any more."""
        head, self._kept_head = self._kept_head, None
        assert head is not None  # it is held
        data = b"".join(self._kept)
        self._let_go()
        return head, data

    def _kept_part(self, head: ResponseHead, data: bytes) -> None:
        """It is larger than may be held; more of it comes."""
        super().accepted(head, data, False)

    def _let_go(self) -> None:
        """Nothing is held any more."""
        self._kept.clear()
        if self._kept_size:
            self._x.context.body_memory.free(self._kept_size, self._x.peer)
            self._kept_size = 0

    def _read_whole(self, data: bytes) -> Steps[None]:
        answer = yield from whole_answers.read(data)
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
        if not self._inputs:
            few, number = self._facts.sample()
            self._inputs = round(estimates.of_texts(content.texts(few)) * number / len(few)) if few else 0
        return self._inputs

    def _hear(self, form: Format) -> None:
        """A stream begins that the client gets in this format."""
        log = log_of(self._x)  # type: ignore[arg-type]  # the exchange, of which a part is known
        self._heard = Heard(form, log is not None and log.reads_answers)

    def _listen(self, data: bytes, has_token: bool) -> None:
        heard, memory = self._heard, self._x.context.body_memory
        assert heard is not None
        before = heard.beyond_sample
        heard.add(data, has_token)
        more = heard.beyond_sample - before
        if more and not memory.take(more, self._x.peer):
            memory.free(before, self._x.peer)
            heard.cut()

    def _count(self) -> None:
        if self._is_counted:
            return
        if self._is_left and not self._has_usage():
            facts.add_estimate(self._facts, self._estimated, self._heard.tokens() if self._heard else 0)
        if self._heard is not None:
            if not self.out.is_judged:  # as `_said`
                facts.add_stream(self._facts, self._heard)
            self._x.context.body_memory.free(self._heard.beyond_sample, self._x.peer)
        self._price()
        super()._count()

    def _price(self) -> None:
        """What is known of the tokens by now has a cost."""
        models = tuple(filter(None, (self._facts.get("responseModel"), self._facts.get("sentModel"))))
        cost, rates = costs.money(self._facts, self._x.table.prices or prices.catalogue(), models)
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
        is_held, self._kept_head = self._kept_head is not None, None
        self._let_go()
        if self._has_given_way(error):
            return
        Passing.fail(self, error)
        if is_held:  # the client has nothing of the answer yet
            self.out.take_back()
            self.broke(error)

    def cancel(self) -> None:
        self._let_go()
        if not self.is_over:
            self._is_left = self.has_more()
            if self._watch is not None:
                self._note(self._watch.usage, self._watch.model, self._watch.tier)
        super().cancel()

    def _note(self, found: usage.Usage, model: str, tier: str) -> None:
        facts.add_usage(self._facts, found)
        if model:
            self._facts["responseModel"] = model
        if tier:
            self._facts["serviceTier"] = tier


def _without_length(head: ResponseHead) -> ResponseHead:
    """An event may be taken out, or added: its length is unknown."""
    if head.length == UNKNOWN:
        return head
    found = Head(head.block, head.low)
    found.remove(b"content-length")
    return replace(head, block=found.block, low=found.low, length=UNKNOWN)
