"""The filter of external authorization: ask the server, or remember what it said, and act on it.

Built once per policy and target. An answer that is known is given at once; a call makes the request wait.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.calls import CallFailed, Calls
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import Env, Filter, Refused, RequestHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.answer import FAILED, Reading, Verdict
from dataplane.filters.steps.ext_auth.cache import (
    ENTRIES,
    KEEPABLE,
    Cache,
    Key,
    KeyOf,
    TimeToLive,
    key_of,
    time_to_live,
)
from dataplane.filters.steps.ext_auth.question import NoQuestion, Question
from dataplane.filters.steps.ext_auth.reach import Reach
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME: Final = "ext_auth"
DEADLINE: Final = 2.0
"""Seconds for a call (decisions, Callouts)."""


def build(config: traffic_pb2.ExtAuth, env: Env) -> Filter | None:
    """Raises `Refused` for a policy without server or protocol, and for names and expressions that cannot be."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    if not config.backend:
        raise Refused("backendRef: there is no authorization server")
    if not config.HasField("http"):
        raise Refused("the protocol is not one that this proxy speaks: http")
    if env.calls is None:
        raise Refused("this proxy reaches no other services")
    with_body = config.HasField("forward_body")
    question, reading = Question(config.http, with_body), Reading(config.http, str(env.origin))
    asking = _Asking(config, env, env.calls, question, reading)
    programs = [*question.programs, *reading.programs]
    hook: RequestHook = asking.run
    if config.HasField("cache"):
        cached = _cached(config.cache, env, asking)
        hook = cached.run
        programs += cached.programs
    reads_body = expressions.reads_request_body(programs)
    if with_body:
        hook = _bounded(hook, config.forward_body.max_size, _too_large(env))
    elif reads_body:
        hook = buffering(hook, env.buffer_limit, whose=reads_body)
    judged = expressions.headers_read(programs).union(question.copied)
    return Filter(NAME, request=hook, writes=judged.union(reading.names))


def _too_large(env: Env) -> Reply:
    return made("BodyTooLarge", f"{env.origin}: forwardBody.maxSize is exceeded")


def _bounded(hook: RequestHook, limit: int, too_large: Reply) -> RequestHook:
    """`hook` with the whole body of at most `limit` bytes in `x.body`; an earlier step may have read a larger one."""

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        return too_large if x.body is not None and len(x.body) > limit else hook(x)

    return buffering(run, limit, too_large)


def _reach(backend: str, env: Env) -> Reach:
    return Reach(backend, env.clock, None if env.buckets is None else env.buckets.sign(f"{NAME} lost {backend}"))


class _Asking:
    """Asks the server about each request."""

    __slots__ = ("_backend", "_calls", "_fails_open", "_origin", "_question", "_reach", "reading")

    def __init__(
        self, config: traffic_pb2.ExtAuth, env: Env, calls: Calls, question: Question, reading: Reading
    ) -> None:
        self._backend = config.backend
        self._calls = calls
        self._fails_open = config.failure_mode == traffic_pb2.FAILURE_MODE_FAIL_OPEN
        self._origin = str(env.origin)
        self._question = question
        self.reading = reading
        self._reach = env.kept(f"{NAME} reach {config.backend}", lambda: _reach(config.backend, env))

    async def run(self, x: Exchange) -> Reply | None:
        outcome = await self.ask(x)
        return self.act(x, outcome)

    async def ask(self, x: Exchange) -> Verdict | CallFailed | NoQuestion:
        """What the server says of a request; or why it says nothing, as a value: others may wait for it too."""
        try:
            answer = await self._calls.http(self._backend, self._question.of(x), DEADLINE, x=x)
        except CallFailed as error:
            self._reach.failed(self._origin, error)
            return error
        except NoQuestion as problem:
            return problem
        if self._reach.lost:
            self._reach.answered(self._origin)
        return self.reading.verdict(x, answer)

    def act(self, x: Exchange, outcome: Verdict | CallFailed | NoQuestion) -> Reply | None:
        """Carry a verdict out, or what the policy wants where there is none."""
        if type(outcome) is Verdict:
            return self.reading.carry_out(x, outcome)
        if self._fails_open and isinstance(outcome, CallFailed):
            self.reading.without(x)
            return None
        return made(FAILED, f"{self._origin}: {outcome}")


def _cached(config: traffic_pb2.ExtAuthCache, env: Env, asking: _Asking) -> _Cached:
    if not config.key:
        raise Refused("cache.key: is empty")
    programs = [expressions.compiled(text, "request", f"cache.key[{i}]") for i, text in enumerate(config.key)]
    most = config.max_entries or ENTRIES
    cache = env.kept(env.origin.key, lambda: Cache(most))
    return _Cached(asking, cache, programs, time_to_live(config.ttl, env.wall_clock), env)


class _Cached:
    """Remembers what the server said. While one request asks, others with the same key wait for its answer."""

    __slots__ = ("_asking", "_cache", "_clock", "_key", "_make_future", "_ttl", "programs")

    def __init__(self, asking: _Asking, cache: Cache, programs: list[Any], ttl: TimeToLive, env: Env) -> None:
        self._asking = asking
        self._cache = cache
        self._key: KeyOf = key_of(programs)
        self._ttl = ttl
        self._clock = env.clock
        self._make_future = env.make_future
        self.programs = programs

    def run(self, x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        key = self._key(x)
        if key is None:
            return self._asking.run(x)
        verdict = self._cache.get(key, self._clock())
        if verdict is not None:
            return self._asking.reading.carry_out(x, verdict)
        return self._ask(x, key)

    async def _ask(self, x: Exchange, key: Key) -> Reply | None:
        cache, asking = self._cache, self._asking
        while key in cache.flights:
            future = self._make_future()
            cache.flights[key].append(future)
            outcome = await future
            if outcome is _NOT_KEPT:
                return await asking.run(x)
            if outcome is not None:
                return asking.act(x, outcome)
            known = cache.get(key, self._clock())  # who asked is gone without an answer
            if known is not None:
                return asking.act(x, known)
        return await self._lead(x, key)

    async def _lead(self, x: Exchange, key: Key) -> Reply | None:
        """Ask, for all who wait."""
        waiting = self._cache.flights[key] = []
        told: Any = None
        try:
            outcome = await self._asking.ask(x)
            reply = self._asking.act(x, outcome)
            told = outcome if self._keep(x, key, outcome) or isinstance(outcome, CallFailed) else _NOT_KEPT
        finally:
            del self._cache.flights[key]
            for future in waiting:
                if not future.done():
                    future.set_result(told)
        return reply

    def _keep(self, x: Exchange, key: Key, outcome: Any) -> bool:  # Any: what `ask` gives
        if type(outcome) is not Verdict or outcome.status not in KEEPABLE:
            return False
        seconds = self._ttl(x)
        if not seconds > 0:
            return False
        self._cache.put(key, outcome, self._clock() + seconds)
        return True


_NOT_KEPT: Final = "not kept"
"""Told to those who wait: the answer was for one request only."""
