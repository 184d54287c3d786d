"""An authorization server that is asked over HTTP (AgentExtAuthHTTP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.calls import CallAnswer, CallFailed
from dataplane.filters.steps.ext_auth.answer import ALLOWED, Reading
from dataplane.filters.steps.ext_auth.question import Question
from dataplane.filters.steps.ext_auth.verdict import DEADLINE, Verdict
from dataplane.http.heads import Head

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.chain.filter import Env
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from gatewright.wire.v1 import traffic_pb2


class HttpServer:
    """As `verdict.AuthServer`. Raises `Refused` for names that no header can have."""

    responds = False

    def __init__(self, config: traffic_pb2.ExtAuth, env: Env, calls: Calls) -> None:
        self._backend = config.backend
        self._calls = calls
        self._question = Question(config.http, config.HasField("forward_body"))
        self._reading = Reading(config.http, str(env.origin))
        self.programs = [*self._question.programs, *self._reading.programs]
        self.writes = frozenset(self._question.copied).union(self._reading.names)

    async def ask(self, x: Exchange) -> Verdict:
        try:
            answer = await self._calls.http(self._backend, self._question.of(x), DEADLINE, x=x)
        except CallFailed as error:
            if error.status in (0, ALLOWED):
                raise
            # It has denied. That its content is too large or breaks off may be the client's doing, which opens nothing.
            answer = CallAnswer(error.status, Head(b"\r\n"), b"")
        return self._reading.verdict(x, answer)

    def denied(self, x: Exchange, denial: Reply) -> Reply:
        return self._reading.denied(x, denial)

    def without(self, x: Exchange) -> None:
        self._reading.without(x)

    def respond(self, x: Exchange) -> None:
        """Nothing of an answer over HTTP is for the client."""
