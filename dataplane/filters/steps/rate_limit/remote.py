"""Limits that a service counts for all proxies (`rateLimit.global`): Envoy's rate limit service, version 3, over gRPC.

A request waits for its answer. What is known at the end of a request only is reported then (`usage_reports`), and no
request waits for that.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.calls import CallFailed, Calls
from dataplane.chain.filter import EndHook, Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.grpc import StatusError, blames_request, unary
from dataplane.chain.reach import reach_of
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.rate_limit import answers
from dataplane.filters.steps.rate_limit.answers import Said
from dataplane.filters.steps.rate_limit.descriptors import Descriptor, Dropped
from dataplane.filters.steps.rate_limit.local import NAME
from dataplane.filters.steps.rate_limit.usage_reports import UsageReports
from dataplane.telemetry.observer_rows.rate_limit import DROPPED
from gatewright.wire.external import rate_limit_pb2 as pb
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

SERVER: Final = "the rate limit service"
METHOD: Final = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
DEADLINE: Final = 2.0
"""Seconds for a call, unless `http.requestTimeout` of the backend says other."""
MOST: Final = 1024 * 1024
"""Bytes of an answer."""
IF_ADMITTED: Final = b"x-gatewright-charge: if-admitted\r\n"
"""To our own service: a request that is refused costs nothing. Others count it all the same, as Envoy's does."""


def build(config: traffic_pb2.GlobalRateLimit, env: Env) -> Filter:
    """Raises `Refused` for a policy without server, domain or descriptors, and for expressions that cannot be."""
    if not config.backend:
        raise Refused("global.backendRef: there is no rate limit service")
    if not config.domain:
        raise Refused("global.domain: is empty")
    if not config.descriptors:
        raise Refused("global.descriptors: is empty")
    if env.calls is None:
        raise Refused("this proxy reaches no other services")
    found = [Descriptor(each, f"global.descriptors[{i}]") for i, each in enumerate(config.descriptors)]
    programs = [program for each in found for program in each.programs]
    limit = _Limit(config, env, env.calls, found)
    hook: RequestHook = limit.ask
    whose = expressions.reads_request_body(programs)
    if whose:
        hook = buffering(hook, env.buffer_limit, made("BodyTooLarge", str(env.origin)), whose)
    reports = any(each.at_end for each in found)
    return Filter(
        NAME,
        request=hook,
        response=limit.responding(),
        end=limit.reporting() if reports else None,
        writes=expressions.headers_read(programs),
    )


_Later = list[tuple[Descriptor, pb.RateLimitDescriptor]]
"""Descriptors whose cost is known at the end, as they were asked about."""


class _Limit:
    """Of one policy and target."""

    __slots__ = (
        "_backend",
        "_calls",
        "_descriptors",
        "_domain",
        "_fails_open",
        "_origin",
        "_reach",
        "_reports",
        "_state",
    )

    def __init__(
        self, config: traffic_pb2.GlobalRateLimit, env: Env, calls: Calls, descriptors: list[Descriptor]
    ) -> None:
        self._backend, self._domain = config.backend, config.domain
        self._fails_open = config.failure_mode == traffic_pb2.FAILURE_MODE_FAIL_OPEN
        self._calls = calls
        self._descriptors = descriptors
        self._origin = str(env.origin)
        self._state = f"?{env.origin.key}"  # no other filter of the chain has it
        self._reach = reach_of(NAME, SERVER, config.backend, env)
        self._reports = env.kept(f"{NAME} reports {config.backend}", lambda: UsageReports(METHOD, calls, env))

    def ask(self, x: Exchange) -> Awaitable[Reply | None] | None:
        message = pb.RateLimitRequest(domain=self._domain)
        later: _Later = []
        for each in self._descriptors:
            try:
                asked = each.of(x)
            except Dropped:
                _count(x)
                continue
            message.descriptors.append(asked)
            if each.at_end:
                later.append((each, asked))
        return self._ask(x, message.SerializeToString(), later) if message.descriptors else None

    async def _ask(self, x: Exchange, message: bytes, later: _Later) -> Reply | None:
        try:
            said = await self._answer(x, message)
        except CallFailed as error:
            self._reach.failed(self._origin, error)
            if not self._fails_open:
                return made("RateLimitFailed", f"{self._origin}: {error}")
            said = _SILENCE
        except _Blamed as error:
            return made("RateLimitFailed", f"{self._origin}: {error}")
        if said.refusal is not None:
            return said.refusal
        for edit in said.request:
            edit.act(x.request, edit)
        if said.response or later:
            x.leave(self._state, (said.response, later))
        return None

    async def _answer(self, x: Exchange, message: bytes) -> Said:
        try:
            answer = await unary(self._calls, x, self._backend, METHOD, message, DEADLINE, MOST, IF_ADMITTED)
        except (StatusError, CallFailed) as error:
            if blames_request(error):
                raise _Blamed(str(error)) from None
            raise error if isinstance(error, CallFailed) else CallFailed("invalid", str(error)) from None
        said = answers.read(answer, self._origin)
        if self._reach.lost:
            self._reach.answered(self._origin)
        return said

    def responding(self) -> ResponseHook:
        def respond(x: Exchange) -> None:
            state: Any = None if x.attributes is None else x.attributes.get(self._state)
            if state is not None and x.response is not None:
                for edit in state[0]:
                    edit.act(x.response, edit)

        return respond

    def reporting(self) -> EndHook:
        def report(x: Exchange) -> None:
            state: Any = None if x.attributes is None else x.attributes.get(self._state)
            for descriptor, asked in () if state is None else state[1]:
                try:
                    cost = descriptor.cost(x)
                except Dropped:
                    _count(x)
                    continue
                if cost:
                    self._reports.add(self._backend, self._domain, asked, cost, x)

        return report


_SILENCE: Final = Said(None, (), ())
"""Of a service that did not answer, where the policy fails open."""


class _Blamed(Exception):
    """The service does not take what is asked about this request."""


def _count(x: Exchange) -> None:
    known: Any = None if x.attributes is None else x.attributes.get(DROPPED)
    x.leave(DROPPED, (known or 0) + 1)
    x.noted = True
