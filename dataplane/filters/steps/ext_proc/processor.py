"""A server, as one policy asks it.

One that cannot be asked, or that breaks its protocol, ends the exchange: it may be what rejects requests and takes out
of them what a backend must not see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.filter import Env, Refused
from dataplane.chain.reach import reach_of
from dataplane.chain.replies import made
from dataplane.chain.structs import NO_STRUCT, json_of, struct
from dataplane.filters.steps.ext_proc import messages, modes
from dataplane.filters.steps.ext_proc.phases import RequestHalf, ResponseHalf
from dataplane.filters.steps.ext_proc.session import Session
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.struct_pb2 import Struct

    from dataplane.chain.calls import CallFailed, Calls
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange

FAILED: Final = "ExtProcFailed"
"""Reason code: the server cannot be asked, or breaks its protocol."""


class Processor:
    """As `session.Server`."""

    def __init__(
        self,
        name: str,
        config: traffic_pb2.ExtProc,
        env: Env,
        calls: Calls,
        spawn: Callable[[Coroutine[Any, Any, None]], Any],
    ) -> None:
        try:
            self.modes = modes.of_options(config.processing_options)
        except KeyError as error:
            raise Refused(f"processingOptions: mode {error} is not known to this proxy") from None
        self.env = env
        self.calls = calls
        self.spawn = spawn
        self.backend = config.backend
        self.origin = str(env.origin)
        self._attributes = [
            (name, expressions.compiled(text, "request", f"requestAttributes.{name}"))
            for name, text in sorted(config.request_attributes.items())
        ]
        if whose := expressions.reads_request_body([program for _, program in self._attributes]):
            raise Refused(f"requestAttributes: {whose} reads the body, which is not there yet")
        self._reach = reach_of(name, "the external processor", config.backend, env)
        self._state = f"?{env.origin.key}"  # no other filter of the chain has it
        self._too_large = made("BodyTooLarge", f"{self.origin}: requestBodyMode Buffered takes no more")
        self._answer_too_large = made("ResponseTooLarge", f"{self.origin}: responseBodyMode Buffered takes no more")

    def request(self, x: Exchange) -> Awaitable[Reply | None]:
        session = Session(self, x)
        x.leave(self._state, session)
        return RequestHalf(session, self.env.make_future, self._too_large).run(x)

    def response(self, x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        """Answers of our own are not shown."""
        session = self._session(x)
        if session is None or x.response is None or x.reason:
            return None
        if not session.is_open:
            return session.failure
        return ResponseHalf(session, self.env.make_future, self._answer_too_large).run(x)

    def end(self, x: Exchange) -> None:
        session = self._session(x)
        if session is not None:
            session.close()

    def _session(self, x: Exchange) -> Session | None:
        found: Any = None if x.attributes is None else x.attributes.get(self._state)
        return found if isinstance(found, Session) else None

    def attributes(self, x: Exchange) -> Mapping[str, Struct]:
        """What the first message has; a value that fails, or that no message can hold, is absent."""
        if not self._attributes:
            return {}
        found = {}
        for name, program in self._attributes:
            try:
                found[name] = json_of(program.evaluate(x))
            except NO_STRUCT:
                continue
        try:
            return {messages.ATTRIBUTES: struct(found)}
        except NO_STRUCT:
            return {}

    def failed(self, error: CallFailed) -> Reply:
        """The answer where the server gives none."""
        self._reach.failed(self.origin, error)
        return made(FAILED, f"{self.origin}: {error}")

    def answers(self) -> None:
        """The server has said something."""
        if self._reach.lost:
            self._reach.answered(self.origin)

    def __repr__(self) -> str:
        return f"Processor({self.backend})"
