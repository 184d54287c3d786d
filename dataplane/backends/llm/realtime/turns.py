"""The responses of a realtime session: what each cost, when its first token came, and what they come to together.

Each counts by itself in the metrics, as a call does elsewhere, and against limits of tokens as soon as it is known; the
session's line in the log has their sums. A response that its session does not outlive is estimated.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import costs, facts, outcomes
from dataplane.chain import limits
from dataplane.llm import estimates, prices, realtime, usage
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.llm.realtime import Event

MAX_TURNS: Final = 64
"""Responses under way at a time that are known; of more the first are forgotten."""
SAMPLE: Final = 4_096
"""Characters of what a response says that are kept to estimate it."""
_TEXTS: Final = ("response.output_text.delta", "response.output_audio_transcript.delta", "response.text.delta")
_ARGUMENTS: Final = "response.function_call_arguments.delta"
AUDIO: Final = ("response.output_audio.delta", "response.audio.delta")


class Turn:
    """A response that is under way."""

    __slots__ = ("has_token", "passed", "said", "started")

    def __init__(self, started: float) -> None:
        self.started = started
        self.has_token = False
        self.said = ""
        self.passed = 0
        """Characters that it has said."""

    def add(self, text: str) -> None:
        self.passed += len(text)
        self.said += text[: SAMPLE - len(self.said)]

    def tokens(self) -> int:
        """An estimate."""
        return round(estimates.of_texts((self.said,)) * self.passed / len(self.said)) if self.said else 0


class Turns:
    """Of one session. `known`: what is known of it (`llm`)."""

    def __init__(self, x: LlmExchange, known: Facts, clock: Any) -> None:
        self._x, self._known, self._clock = x, known, clock
        self._open: dict[str, Turn] = {}
        self._cost: dict[str, Decimal] = {}
        self._is_unpriced = False
        self._context = 0
        """Tokens that the last response had before and behind it: the next one begins with them."""

    def wants(self, kind: str) -> bool:
        """Whether an event of this type says something."""
        if kind in AUDIO:
            return any(not turn.has_token for turn in self._open.values())
        return kind.endswith(realtime.DELTA) or kind in (realtime.CREATED, realtime.DONE, *realtime.SESSION)

    def note(self, kind: str, event: Event) -> None:
        if kind in realtime.SESSION:
            session = event.get("session")
            model = session.get("model") if type(session) is dict else None
            if type(model) is str and model:
                self._known["responseModel"] = model
        elif kind == realtime.CREATED:
            if len(self._open) >= MAX_TURNS:
                del self._open[next(iter(self._open))]
            self._open[realtime.response_of(event)] = Turn(self._clock())
        elif kind == realtime.DONE:
            self._done(event)
        else:
            self._goes_on(kind, event)

    def _goes_on(self, kind: str, event: Event) -> None:
        turn = self._open.get(realtime.response_of(event))
        if turn is None:
            return
        if not turn.has_token:
            turn.has_token = True
            seconds = self._clock() - turn.started
            self._known.setdefault("timeToFirstToken", facts.seconds(seconds))
            outcomes.first_token(self._x, Format.REALTIME, self._known, seconds)
        said = event.get("delta")
        if type(said) is str and (kind in _TEXTS or kind == _ARGUMENTS):
            turn.add(said)

    def _done(self, event: Event) -> None:
        turn = self._open.pop(realtime.response_of(event), None)
        report = usage.of_realtime(event)
        own = self._own()
        facts.add_usage(own, report.usage)
        self._record(own, report.usage, turn, usage.cached_audio(event))

    def _own(self) -> Facts:
        """What is known of one response."""
        names = ("provider", "requestModel", "responseModel", "sentModel")
        return facts.Facts({name: self._known[name] for name in names if name in self._known}, {})

    def _record(self, own: Facts, found: usage.Usage, turn: Turn | None, cached_audio: int = 0) -> None:
        self._price(own, cached_audio)
        facts.sum_usage(self._known, found)
        self._context = found.total_tokens or self._context
        began = self._clock() if turn is None else turn.started
        outcomes.record(self._x, Format.REALTIME, own, self._clock() - began)
        limits.used(self._x, found.total_tokens or 0)

    def _price(self, own: Facts, cached_audio: int) -> None:
        x = self._x
        models = tuple(filter(None, (own.get("responseModel"), own.get("sentModel"))))
        counts = facts.Facts(own, {})
        if cached_audio and counts.get("inputAudioTokens"):
            counts["inputAudioTokens"] -= min(cached_audio, counts["inputAudioTokens"])  # priced as cached
        cost, rates = costs.money(counts, x.table.prices or prices.catalogue(), models)
        own["cost"] = cost
        x.leave(facts.RATES, rates)
        if cost.get("total") is None:
            self._is_unpriced = self._is_unpriced or bool(own.get("totalTokens"))
        for name, amount in cost.items():
            self._cost[name] = self._cost.get(name, Decimal()) + Decimal(repr(amount))

    def end(self) -> None:
        """The session is over: what is known of it, for the log."""
        for turn in self._open.values():
            self._estimate(turn)
        self._open.clear()
        self._known["operation"] = outcomes.operation(Format.REALTIME)
        found = {} if self._is_unpriced else {name: float(amount) for name, amount in self._cost.items()}
        cost = costs.Money(lambda: found)
        self._known["cost"] = cost
        self._x.leave(facts.COST, cost)

    def _estimate(self, turn: Turn) -> None:
        outputs = turn.tokens()
        if not outputs:
            return
        found = usage.Usage(input_tokens=self._context, output_tokens=outputs)
        own = self._own()
        facts.add_usage(own, found)
        own["usageEstimated"] = self._known["usageEstimated"] = True
        self._record(own, found, turn)

    def __repr__(self) -> str:
        return f"Turns({len(self._open)} open)"
