"""A server, as one policy asks it.

One that cannot be asked, or that breaks its protocol, ends the exchange: it may be what rejects requests and takes out
of them what a backend must not see.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.ext_proc import messages, modes
from dataplane.chain.ext_proc.asked import Asked
from dataplane.chain.ext_proc.phases import RequestHalf, ResponseHalf
from dataplane.chain.filter import Env, Refused
from dataplane.chain.replies import made
from dataplane.chain.structs import NO_STRUCT, json_of, struct
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.struct_pb2 import Struct

    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange

VARIABLE: Final = "extproc"
"""Where later expressions find what the server says (`dynamic_metadata`)."""


class Processor(Asked):
    """The server of `extProc`."""

    def __init__(self, name: str, config: traffic_pb2.ExtProc, env: Env) -> None:
        try:
            wanted = modes.of_options(config.processing_options)
        except KeyError as error:
            raise Refused(f"processingOptions: mode {error} is not known to this proxy") from None
        super().__init__(name, "the external processor", config.backend, wanted, env)
        self._attributes = [
            (name, expressions.compiled(text, "request", f"requestAttributes.{name}"))
            for name, text in sorted(config.request_attributes.items())
        ]
        if whose := expressions.reads_request_body([program for _, program in self._attributes]):
            raise Refused(f"requestAttributes: {whose} reads the body, which is not there yet")
        self._too_large = made("BodyTooLarge", f"{self.origin}: requestBodyMode Buffered takes no more")
        self._answer_too_large = made("ResponseTooLarge", f"{self.origin}: responseBodyMode Buffered takes no more")

    def request(self, x: Exchange) -> Awaitable[Reply | None]:
        return RequestHalf(self.begun(x), self.env.make_future, self._too_large).run(x)

    def response(self, x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        """Answers of our own are not shown."""
        session = self.session(x)
        if session is None or x.response is None or x.reason:
            return None
        if not session.is_open:
            return session.failure
        return ResponseHalf(session, self.env.make_future, self._answer_too_large).run(x)

    def noted(self, x: Exchange, metadata: Mapping[str, Any]) -> None:
        """For later expressions: what all servers of the exchange have said."""
        attributes: Any = x.attributes or {}
        x.leave(VARIABLE, {**(attributes.get(VARIABLE) or {}), **metadata})

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
