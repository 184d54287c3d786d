"""Candidates one after the other, until one of them answers (docs/llm/failover.md).

`Tries` are those of one request: who is asked next, and what came of those before. Each candidate is served from the
request as it came (`serving`): with its own effective `ai`, format and credentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dataplane.backends.llm.visit import Visit, of_route
from dataplane.chain.calls import CallFailed
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from dataplane.llm import refusals, translation
from dataplane.llm.candidates import Candidates, Standing
from dataplane.llm.routes import Format
from dataplane.telemetry.metric_rows.llm import FAILED_TRIES
from dataplane.upstream.parts import plan_of

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.terminating.contract import Served
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.plans import AiPlan, ProviderPlan
    from dataplane.table.plans import BackendPlan

SERVERS: Final = 500
MAX_BACKOFF: Final = 10.0
"""Seconds between two rounds at most, however often the backoff was doubled."""
_WAITING: Final = "llm.waiting"
"""Where the exchange has those whose next try begins later."""
SKIPPED: Final = "skipped"
_NEVER: Final = float("inf")

Serve = Callable[[Visit, "Terminator"], "Served"]


class Tries:
    """Of one request. `serve` sends it to the candidate of a visit, or answers why that cannot be."""

    __slots__ = (
        *("__weakref__", "_bound", "_candidates", "_found", "_is_new_round", "_problems", "_providers", "_rounds"),
        *("_serve", "_upcoming", "body", "is_staged", "out", "outcomes", "visit", "x"),
    )

    def __init__(self, x: LlmExchange, providers: AiPlan, serve: Serve) -> None:
        self.x = x
        self.body = b""
        """Of the request, as it came."""
        self.is_staged = False
        """Stages of a try are being done (`stages`)."""
        self.outcomes: list[str] = []
        """`<provider>:<outcome>:<milliseconds>ms`, for the log."""
        self.out: Terminator | None = None
        self._providers, self._serve = providers, serve
        self._bound = _NEVER
        """How many tries there may still be."""
        self._problems: list[str] = []
        self._found: dict[str, BackendPlan] = {}
        self._upcoming: Visit | None = None
        self._is_new_round = False
        self._rounds = 0
        self._candidates = Candidates(providers.groups, self._look, x.context.random)
        self.visit = self._first()

    def begin(self, out: Terminator) -> Served:
        """The request is here: ask the first candidate."""
        self.out = out
        self.body = out.whole_body or b""
        return self._serve(self.visit, out)

    def take_over(self) -> None:
        """Tries of this request are counted here, not by the exchange: those two would multiply."""
        x = self.x
        if x.policies.retry is not None:
            self._bound = 0 if x.retries is None else x.policies.retry.attempts
            x.retries = None
            if x.body_copy is not None:
                x.body_copy.no_more_tries()
        x.attempt_deadline = _NEVER  # each try has its own (`Reading.go`)

    @property
    def is_one(self) -> bool:
        """There is no other provider to ask, ever."""
        return len(self._providers.providers) == 1 and (self.x.policies.retry is None or not self._bound)

    @property
    def text(self) -> str:
        return ",".join(self.outcomes)

    def note(self, name: str, outcome: str, seconds: float) -> None:
        self.outcomes.append(f"{name}:{outcome}:{seconds * 1000:.0f}ms")

    # --- who is next

    def goes_on(self, outcome: str, status: int, head: ResponseHead | None) -> bool:
        """As `visit.Tries.goes_on`."""
        asks_same = self._asks_same(outcome, status, head)
        if not asks_same and status and status != refusals.TOO_MANY and status < SERVERS:
            return False
        if not self.has_next(asks_same):
            return False
        self.x.context.recorder.add(FAILED_TRIES, 1, self.visit.part.name, outcome)
        return True

    def has_next(self, also_again: bool = False) -> bool:
        """Whether there is somebody else to ask. `also_again`: or, when all were asked, one of them once more."""
        if self._bound <= 0 or self.out is None or not self.out.is_open:
            return False
        if self._upcoming is None:
            self._upcoming = self._next()
        if self._upcoming is None and also_again:
            self._candidates.again()
            self._is_new_round = True
            self._upcoming = self._next()
        return self._upcoming is not None

    def proceed(self) -> None:
        """As `visit.Tries.proceed`."""
        self._bound -= 1
        retry = self.x.policies.retry
        if self._is_new_round and retry is not None:
            self._is_new_round = False
            seconds = min(retry.backoff * 2.0**self._rounds, max(MAX_BACKOFF, retry.backoff))
            self._rounds += 1
            self._wait(seconds * (1 + self.x.context.random() / 2))
        elif self.is_staged or (self._upcoming is not None and self._upcoming.policies.policy.guards.request):
            self._wait(0.0)  # in a turn of its own: guards wait, and so may the caller
        else:
            self.wake(0.0)

    def _wait(self, seconds: float) -> None:
        self.x.leave(
            _WAITING, self
        )  # nothing else knows of it meanwhile: who wakes it keeps it no longer than others do
        calls = self.x.context.calls
        calls.wake_at(calls.clock() + seconds, self)

    def wake(self, now: float) -> None:
        """The backoff is over."""
        if self.x.attributes is not None:
            self.x.attributes.pop(_WAITING, None)
        visit, self._upcoming = self._upcoming, None
        out = self.out
        if visit is None or out is None or not out.is_open:
            return
        self.visit = visit
        try:
            served = self._serve(visit, out)
        except Exception as error:  # a bug in Gatewright must end in an answer
            self.x.failed(error)
            return
        if served is None:
            return
        if not isinstance(served, Reply):
            out.run(served)
            return
        self.note(visit.part.name, served.reason, 0.0)
        if self.has_next():
            self.proceed()
        else:
            out.finish()
            self.x.reply(replace(visit.refused("LlmProvidersFailed"), detail=f"{self.text}: {served.detail}"))

    def _asks_same(self, outcome: str, status: int, head: ResponseHead | None) -> bool:
        """Whether a provider that came to this is asked once more, as the policy for retries has it. A request whose
        answer was lost may have been paid for: it is sent there again only where the policy lists that status."""
        retry = self.x.policies.retry
        if retry is None:
            return False
        if not status:
            return outcome in _UNSENT or _STATUSES.get(outcome, 0) in retry.codes
        if status in retry.codes:
            return True
        if retry.condition is None or head is None:
            return False
        x = self.x
        x.status, x.response = status, Head(head.block, head.low)
        holds = retry.condition(x)  # type: ignore[arg-type]  # the exchange, of which a part is known
        x.status, x.response = 0, None
        return holds

    def _first(self) -> Visit:
        """The first candidate, of those whose provider has the API that is called; where none has, the first of all:
        what is wrong with it is the answer."""
        part = self._candidates.take()
        if part is None:
            return self._visit(self._providers.providers[0], "; ".join(self._problems))
        first = self.visit = self._visit(part)
        if not isinstance(first.route, Format) or _fits(first):
            return first
        return self._next() or first

    def _next(self) -> Visit | None:
        """One to which the same may be sent: it has the API, and its own `ai` says the same of what the request is."""
        while (part := self._candidates.take()) is not None:
            visit = self._visit(part)
            if visit.route is self.visit.route and not visit.policies.refused and _fits(visit):
                return visit
            self.note(part.name, SKIPPED, 0.0)
        return None

    def _visit(self, part: ProviderPlan, failed: str = "") -> Visit:
        x = self.x
        policies = part.policies.over(of_route(x))
        route = policies.policy.routes.of(x.path)
        return Visit(x, self._providers, part, self._found.get(part.name), failed, policies, route, self)

    def _look(self, part: ProviderPlan) -> Standing | None:
        x = self.x
        try:
            plan: BackendPlan = plan_of(x.table, part, x.policies, x.context.calls.leases)
        except CallFailed as error:
            self._problems.append(str(error))
            return None
        if plan.refused or not (plan.host or plan.endpoints):
            self._problems.append(f"{plan.key}: {plan.refused or 'it has no endpoints'}")
            return None
        self._found[part.name] = plan
        return _standing(x, plan, len(self._providers.providers) > 1)

    def __repr__(self) -> str:
        return f"Tries({self.text})"


_UNSENT: Final = frozenset(("unresolved", "connect", "unfinished"))
"""Nothing was sent."""
_STATUSES: Final = {"lost": 502, "invalid": 502, "timeout": 504}
"""Of what we would answer."""


def _fits(visit: Visit) -> bool:
    form, provider = visit.route, visit.part.provider
    return isinstance(form, Format) and (form in provider.paths or bool(translation.targets(form, provider)))


def _standing(x: LlmExchange, plan: BackendPlan, is_compared: bool) -> Standing:
    """How the provider's endpoints are, as far as they are known. `is_compared`: there are others."""
    if plan.rules is None and not is_compared:
        return Standing()
    leases = x.context.calls.leases
    found = plan.endpoints or leases.resolve(plan, _nothing) or ()
    if not found:
        return Standing()
    is_evicted = plan.rules is not None and not leases.rule_state(plan, plan.rules).has_usable(found)
    return Standing(max(found, key=attrgetter("health")), is_evicted)


def _nothing() -> None:
    """The name is not waited for here: the call resolves it."""
