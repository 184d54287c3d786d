"""An authorization server that is asked over HTTP (AgentExtAuthHTTP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.filters.steps.ext_auth.answer import Reading
from dataplane.filters.steps.ext_auth.question import Question
from dataplane.filters.steps.ext_auth.verdict import DEADLINE, Verdict

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
        answer = await self._calls.http(self._backend, self._question.of(x), DEADLINE, x=x)
        return self._reading.verdict(x, answer)

    def denied(self, x: Exchange, denial: Reply) -> Reply:
        return self._reading.denied(x, denial)

    def without(self, x: Exchange) -> None:
        self._reading.without(x)

    def respond(self, x: Exchange) -> None:
        """Nothing of an answer over HTTP is for the client."""
