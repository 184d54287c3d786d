"""An authorization server that is asked over gRPC: Envoy's `envoy.service.auth.v3.Authorization`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallFailed
from dataplane.chain.filter import EVERY_HEADER
from dataplane.chain.grpc import StatusError, blames_request, unary
from dataplane.filters.steps.ext_auth.grpc import check_response
from dataplane.filters.steps.ext_auth.grpc.check_request import CheckRequests
from dataplane.filters.steps.ext_auth.verdict import DEADLINE, NoQuestion, Verdict

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.chain.filter import Env
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from gatewright.wire.v1 import traffic_pb2

METHOD: Final = "/envoy.service.auth.v3.Authorization/Check"
MOST: Final = 1024 * 1024
"""Bytes of an answer."""


class GrpcServer:
    """As `verdict.AuthServer`. Raises `Refused` for expressions that cannot be."""

    responds = True
    writes = frozenset((EVERY_HEADER,))
    """It is shown all headers, and may set any."""

    def __init__(self, config: traffic_pb2.ExtAuth, env: Env, calls: Calls) -> None:
        self._backend = config.backend
        self._calls = calls
        self._requests = CheckRequests(config.grpc, config.HasField("forward_body"), env.wall_clock)
        self._origin = str(env.origin)
        self._state = f"?{env.origin.key}"  # no other filter of the chain has it, and verdicts outlive this object
        self.programs = self._requests.programs

    async def ask(self, x: Exchange) -> Verdict:
        message = self._requests.of(x)
        try:
            answer = await unary(self._calls, x, self._backend, METHOD, message, DEADLINE, MOST)
        except (StatusError, CallFailed) as error:
            if blames_request(error):
                raise NoQuestion(str(error)) from None
            raise CallFailed(getattr(error, "cause", "invalid"), str(error)) from None
        return check_response.read(answer, self._origin, self._state)

    def denied(self, x: Exchange, denial: Reply) -> Reply:
        return denial

    def without(self, x: Exchange) -> None:
        """Which headers are the server's is known from its answers alone."""

    def respond(self, x: Exchange) -> None:
        edits: Any = None if x.attributes is None else x.attributes.pop(self._state, None)
        if edits is not None and x.response is not None:
            for edit in edits:
                edit.act(x.response, edit)
