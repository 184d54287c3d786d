"""The gRPC service: a thin shell over `decision` and the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import grpc

from controlplane.ratelimit import decision
from controlplane.ratelimit.limits import Limits
from controlplane.ratelimit.numbers import Numbers
from controlplane.ratelimit.store import Store, StoreFailed
from gatewright.wire.external import rate_limit_service_pb2
from gatewright.wire.external.rate_limit_pb2 import RateLimitRequest, RateLimitResponse

log = logging.getLogger("controlplane.ratelimit")

NAME: Final = rate_limit_service_pb2.DESCRIPTOR.services_by_name["RateLimitService"].full_name
CHARGE: Final = ("x-gatewright-charge", "if-admitted")
"""Metadata of a call that costs nothing when it is refused. Without it all counters are charged, as Envoy's server
does."""


class Service:
    """`limits`: those that count now."""

    def __init__(
        self, limits: Callable[[], Limits], store: Store, numbers: Numbers, now: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._store = store
        self._numbers = numbers
        self._now = now
        self._is_failing = False

    def handler(self) -> grpc.GenericRpcHandler:
        method = grpc.unary_unary_rpc_method_handler(
            self.should_rate_limit,
            request_deserializer=RateLimitRequest.FromString,
            response_serializer=RateLimitResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(NAME, {"ShouldRateLimit": method})

    async def should_rate_limit(self, request: RateLimitRequest, call: Any) -> RateLimitResponse:  # call: grpc's
        began, now = time.perf_counter(), self._now()
        if_admitted = CHARGE in (call.invocation_metadata() or ())
        try:
            asked = decision.asked(request, self._limits(), now)
        except decision.BadRequest as error:
            self._numbers.failed("bad_request")
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        try:
            before = await self._store.take(asked.charges, if_admitted) if asked.charges else ()
        except StoreFailed as error:
            self._note(error)
            self._numbers.failed("store")
            await call.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        self._note(None)
        answer = decision.answered(asked, before, if_admitted, now)
        self._numbers.decided(asked, answer, time.perf_counter() - began)
        return answer

    def _note(self, error: StoreFailed | None) -> None:
        """A line when the store is lost, one when it is back."""
        if (error is not None) != self._is_failing:
            self._is_failing = error is not None
            log.warning("the store answers again" if error is None else f"the store: {error}")
