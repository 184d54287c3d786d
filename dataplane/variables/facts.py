"""What every family of variables stands on: the facts of an exchange, bodies as JSON, and how much may be computed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from dataplane.http import rules
from gatewright.cel.errors import CelError, Fault, TooMany
from gatewright.cel.values import HeaderMap, Timestamp
from gatewright.variables.table import BY_PATH, CHILDREN
from gatewright.variables.variable import OPEN

if TYPE_CHECKING:
    from dataplane.a2a import Call as AgentCall
    from dataplane.http.body import BodyBuffer
    from dataplane.http.grpc import Call
    from dataplane.http.heads import Head
    from dataplane.http.messages import Peer
    from dataplane.http.rules import HttpRules
    from dataplane.variables.contracts import BackendFacts, EndpointFacts, ListenerFacts, RouteFacts, Services
    from gatewright.cel.functions import json_text

NANOSECONDS: Final = 1_000_000_000

KEPT: Final = 16_384
"""Bytes of JSON whose value is kept while a response comes. That of more is parsed again, once, when the response's
steps or the log ask for it."""


class Unread(Exception):
    """What a client sent has more parts than may be read, and a route or a step asked for it: the request ends with the
    reply `reason` (`chain/replies`). It is no CelError: no expression is to go on without what it asked for."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class ExchangeFacts:
    """What `Exchange` has, and what the variables of all families need of it."""

    __slots__ = (
        "agent_call",
        "attributes",
        "evaluations",
        "known_agent_call",
        "known_headers",
        "known_query",
        "known_request",
        "known_response",
        "matching",
        "noted",
        "response_body",
    )

    agent_call: AgentCall | None
    known_headers: tuple[bytes, HeaderMap]
    """The header block that was read last as a map, and that map; unset until somebody asks."""
    known_query: tuple[bytes, dict[bytes, bytes]]
    """The query that was read last, and its parameters; unset until somebody asks."""
    known_agent_call: tuple[bytes, bytes | None, AgentCall]
    """The path and the body that were read last as a call of an agent, and that call; unset until somebody asks."""
    noted: bool
    """Something was noted of it that few exchanges have, for observers of such (`Context.more_observers`)."""
    known_request: json_text.Read
    known_response: json_text.Read
    """The same of bodies as JSON."""
    matching: int
    """Nanoseconds that the regular expressions of routes may have taken since somebody looked at the clock; unset until
    one was not light."""
    evaluations: tuple[int, float]
    """The turn of the loop in which an expression took long, and the thread's time at which all of that turn have to be
    over; unset until one did."""

    if TYPE_CHECKING:  # what `Exchange` has
        authority: bytes
        backend_plan: BackendFacts | None
        bind: str
        client: Peer
        context: Services
        endpoint: EndpointFacts | None
        body: bytes | None
        buffer: BodyBuffer | None
        ended: bool
        has_body: bool
        grpc: Call | None
        listener: ListenerFacts | None
        method: bytes
        path: bytes
        peer: str
        plan: RouteFacts | None
        query: bytes
        replied: bool
        request: Head
        response: Head | None
        scheme: bytes
        started: float
        status: int
        target: bytes
        took: float
        version: bytes

        @property
        def is_for_agent(self) -> bool: ...

    attributes: dict[str, object] | None
    response_body: bytes | None

    def _rules(self) -> HttpRules:
        return rules.DEFAULT if self.listener is None else self.listener.http

    def _unread(self, reason: str, error: TooMany) -> Exception:
        """The request is refused while it can be; to expressions of the response and the log there is no value."""
        return error if self._is_answered else Unread(reason, str(error))

    @property
    def _is_answered(self) -> bool:
        return self.replied or self.ended or self.response is not None

    def timestamp(self, moment: float) -> Timestamp:
        """A moment of the monotonic clock as a time of day."""
        return Timestamp(int((time.time() - self.context.clock() + moment) * NANOSECONDS))

    def _json(self, slot: str, body: bytes | None, path: str) -> Any:
        """A body as JSON, parsed once for each body. Raises Unread, or a CelError."""
        if body is None:
            raise Fault(f"no such value: {path}")
        known: json_text.Read | None = getattr(self, slot, None)
        if known is None or known.text != body:
            from gatewright.cel.functions import json_text  # with the language: not before an expression asks for it

            known = json_text.read(body, self._rules().max_json_keys)
            setattr(self, slot, known)
        try:
            return known.result()
        except TooMany as error:
            raise self._unread("JsonTooLarge", error) from None

    def evaluations_end(self, now: float, seconds: float) -> float:
        """As `cel.budget.Shares`: all expressions that are evaluated in one turn of the loop have the time of one. The
        steps of a request and of its response wait where the same peers have filled the turn; what is asked beside them
        (the log, conditions of retries and of health) has no value then."""
        turns = self.context.turns
        known = getattr(self, "evaluations", None)
        if known is None or known[0] != turns.number:
            makers = self.makers()
            if self._is_answered and turns.is_full(*makers):
                return now
            known = self.evaluations = turns.compute(*makers), now + seconds
            if not self.ended:
                self.took_long()
        return known[1]

    def took_long(self) -> None:
        """Expressions of its steps are about to take long: hear that."""

    def makers(self) -> tuple[str, ...]:
        """The peers whose input expressions read now."""
        if self.response is None or self.endpoint is None:
            return (self.client.address,)
        return self.client.address, self.endpoint.label

    def cut_off(self, error: CelError) -> Exception:
        """As `cel.budget.Shares`. A request whose expressions take too long is refused, whatever they decide about:
        a client that sends what takes long to evaluate must not choose which of them fail."""
        return error if self._is_answered else Unread("ExpressionsTooCostly", str(error))

    def forget_json(self) -> None:
        """Let go of what was parsed of large bodies: responses may take long, and it is larger than its text."""
        for slot in ("known_request", "known_response"):
            known: json_text.Read | None = getattr(self, slot, None)
            if known is not None and len(known.text) > KEPT:
                delattr(self, slot)

    def whole(self, path: str) -> dict[str, Any]:
        """An object as a map of what is there of it."""
        found: dict[str, Any] = {}
        for row in CHILDREN[path]:
            value = getattr(self, row.attribute) if row.attribute else self.whole(row.path)
            if value is not None and value != {}:
                found[row.name] = value
        if BY_PATH[path].type is OPEN and self.attributes is not None:
            left: Any = self.attributes.get(path, {})
            found |= left
        return found

    def variables(self) -> dict[str, Any]:
        """All variables that are there."""
        return {
            row.name: value
            for row in CHILDREN[""]
            if (value := getattr(self, row.attribute) if row.attribute else self.whole(row.path)) not in (None, {})
        }

    def leave(self, path: str, value: object) -> None:
        """Leave a value for later expressions, under the path of its variable."""
        values = self.attributes
        if values is None:
            values = self.attributes = {}
        values[path] = value
