"""Asks the server about each request, or remembers what it said, and acts on it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.calls import CallFailed
from dataplane.chain.filter import Env, Refused
from dataplane.chain.reach import reach_of
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.cache import ENTRIES, Cache, Key, KeyOf, TimeToLive, key_of, time_to_live
from dataplane.filters.steps.ext_auth.verdict import FAILED, AuthServer, NoQuestion, ServerFailed, Verdict, carry_out
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME: Final = "ext_auth"


class Asking:
    """Asks the server about each request."""

    __slots__ = ("_fails_open", "_origin", "_reach", "_server")

    def __init__(self, config: traffic_pb2.ExtAuth, env: Env, server: AuthServer) -> None:
        self._fails_open = config.failure_mode == traffic_pb2.FAILURE_MODE_FAIL_OPEN
        self._origin = str(env.origin)
        self._server = server
        self._reach = reach_of(NAME, "the authorization server", config.backend, env)

    async def run(self, x: Exchange) -> Reply | None:
        outcome = await self.ask(x)
        return self.act(x, outcome)

    async def ask(self, x: Exchange) -> Verdict | CallFailed | NoQuestion:
        """What the server says of a request; or why it says nothing, as a value: others may wait for it too."""
        try:
            verdict = await self._server.ask(x)
        except CallFailed as error:
            self._reach.failed(self._origin, error)
            return error
        except NoQuestion as problem:
            return problem
        if self._reach.lost:
            self._reach.answered(self._origin)
        return verdict

    def act(self, x: Exchange, outcome: Verdict | CallFailed | NoQuestion) -> Reply | None:
        """Carry a verdict out, or what the policy wants where there is none."""
        if type(outcome) is Verdict:
            return carry_out(self._server, x, outcome, self._origin)
        if self._fails_open and isinstance(outcome, CallFailed):
            self._server.without(x)
            return None
        if isinstance(outcome, ServerFailed):
            return outcome.reply
        return made(FAILED, f"{self._origin}: {outcome}")


def cached(config: traffic_pb2.ExtAuthCache, env: Env, asking: Asking) -> Cached:
    if not config.key:
        raise Refused("cache.key: is empty")
    programs = [expressions.compiled(text, "request", f"cache.key[{i}]") for i, text in enumerate(config.key)]
    most = config.max_entries or ENTRIES
    cache = env.kept(env.origin.key, lambda: Cache(most))
    return Cached(asking, cache, programs, time_to_live(config.ttl, env.wall_clock), env)


class Cached:
    """Remembers what the server said. While one request asks, others with the same key wait for its answer."""

    __slots__ = ("_asking", "_cache", "_clock", "_key", "_make_future", "_ttl", "programs")

    def __init__(self, asking: Asking, cache: Cache, programs: list[Any], ttl: TimeToLive, env: Env) -> None:
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
            return self._asking.act(x, verdict)
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
        outcome_for_others: Any = None
        try:
            outcome = await self._asking.ask(x)
            reply = self._asking.act(x, outcome)
            outcome_for_others = (
                outcome if self._keep(x, key, outcome) or isinstance(outcome, CallFailed) else _NOT_KEPT
            )
        finally:
            del self._cache.flights[key]
            for future in waiting:
                if not future.done():
                    future.set_result(outcome_for_others)
        return reply

    def _keep(self, x: Exchange, key: Key, outcome: Any) -> bool:  # Any: what `ask` gives
        if type(outcome) is not Verdict or not outcome.is_decision:
            return False
        seconds = self._ttl(x)
        if not seconds > 0:
            return False
        self._cache.put(key, outcome, self._clock() + seconds)
        return True


_NOT_KEPT: Final = "not kept"
"""The result for those who wait: the answer was for one request only."""
