"""Reports what requests came to, after their end, to the service that counts it.

Costs of one descriptor are added up while a call is under way, so that one call at a time is enough, and there is at
most one entry for each descriptor. What the service cannot be reached for is kept and sent again; what it may have
heard is not, for it must not count twice.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataplane.chain.calls import CallFailed
from dataplane.chain.grpc import StatusError, unary_of
from gatewright.wire.external import rate_limit_pb2 as pb

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.chain.filter import Env
    from dataplane.exchange import Exchange

log = logging.getLogger("dataplane.rate_limit")

MOST: Final = 65_536
"""Descriptors that wait to be reported; what comes beyond is not counted, and logged."""
TOGETHER: Final = 64
"""Descriptors of one call."""
DEADLINE: Final = 5.0
AGAIN: Final = 1.0
"""Seconds until another try."""
MOST_ANSWER: Final = 1024 * 1024
_UNSENT: Final = frozenset(("connect", "unresolved"))
"""Causes with which the service has not heard of a call."""


class _Key(NamedTuple):
    domain: str
    descriptor: bytes


class UsageReports:
    """Those for one service."""

    __slots__ = ("__weakref__", "_calls", "_env", "_is_running", "_method", "_waiting", "lost")

    def __init__(self, method: str, calls: Calls, env: Env) -> None:
        self._method = method
        self._calls = calls
        self._env = env
        self._waiting: dict[_Key, tuple[int, Any]] = {}  # the cost, and the plan of the service's backend
        self._is_running = False
        self.lost = 0
        """Descriptors that were never reported."""

    def add(self, backend: str, domain: str, descriptor: pb.RateLimitDescriptor, cost: int, x: Exchange) -> None:
        """`x`: for whose sake: policies of its route say how the service is connected to."""
        asked = pb.RateLimitDescriptor()
        asked.CopyFrom(descriptor)
        asked.ClearField("hits_addend")
        key = _Key(domain, asked.SerializeToString(deterministic=True))
        known = self._waiting.get(key)
        if known is None and len(self._waiting) >= MOST:
            self._lose(1, "too many wait to be reported")
            return
        try:
            plan = self._calls.plan(backend, x)
        except CallFailed as error:
            self._lose(1, str(error))
            return
        self._waiting[key] = (cost + (0 if known is None else known[0]), plan)
        if not self._is_running and self._env.spawn is not None:
            self._is_running = True
            self._env.spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, plan = self._batch()
                if not await self._sent(batch, plan):
                    self._put_back(batch, plan)
                    await self._env.sleep(AGAIN)
        finally:
            self._is_running = False

    def _batch(self) -> tuple[dict[_Key, int], Any]:
        """Of one domain and plan, the oldest first."""
        first, (_, plan) = next(iter(self._waiting.items()))
        keys = []
        for key, (_, its) in self._waiting.items():
            if its is plan and key.domain == first.domain:
                keys.append(key)
                if len(keys) == TOGETHER:
                    break
        return {key: self._waiting.pop(key)[0] for key in keys}, plan

    def _put_back(self, batch: dict[_Key, int], plan: Any) -> None:
        for key, cost in batch.items():
            known = self._waiting.get(key)
            self._waiting[key] = (cost + (0 if known is None else known[0]), plan)

    async def _sent(self, batch: dict[_Key, int], plan: Any) -> bool:
        """False: the service has not heard of it."""
        message = pb.RateLimitRequest(domain=next(iter(batch)).domain)
        for key, cost in batch.items():
            descriptor = pb.RateLimitDescriptor.FromString(key.descriptor)
            descriptor.hits_addend.value = cost
            message.descriptors.append(descriptor)
        try:
            await unary_of(self._calls, plan, self._method, message.SerializeToString(), DEADLINE, MOST_ANSWER)
        except CallFailed as error:
            if error.cause in _UNSENT:
                return False
            self._lose(len(batch), str(error))
        except StatusError as error:
            self._lose(len(batch), str(error))
        return True

    def _lose(self, count: int, why: str) -> None:
        if not self.lost:
            log.warning("the cost of requests was not reported to the rate limit service: %s (logged once)", why)
        self.lost += count

    def __repr__(self) -> str:
        return f"UsageReports({len(self._waiting)} waiting, {self.lost} lost)"
