"""A request that passes as it is, of which is read beside what can be: what it asks, and what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import facts
from dataplane.backends.llm.reading import Reading
from dataplane.llm import routes
from dataplane.llm.body import Body, Malformed
from dataplane.llm.providers import BEARER

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallRequest
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import RouteType

MAX_ASKED: Final = 262_144
"""Bytes of a request that passes as it is, of which a copy is read."""


class Detecting(Reading):
    """Bytes pass as they are in both directions; what they say is read beside, as the end of the path has it."""

    __slots__ = ("_asked", "_asked_size")
    adds_events = False

    def __init__(
        self, out: Taker, plan: Any, request: CallRequest, route: RouteType, known: Facts, place: Place = BEARER
    ) -> None:
        x: LlmExchange = out.x  # type: ignore[assignment]  # as above
        super().__init__(out, plan, request, route, known, place, routes.detected(x.path))
        self._asked: list[bytes] | None = [self.body]
        self._asked_size = len(self.body)
        if self._is_request_here:
            self._asked_whole()

    def more(self, data: bytes, end: bool) -> None:
        if self._asked is not None:
            self._asked.append(data)
            self._asked_size += len(data)
            if self._asked_size > MAX_ASKED:
                self._asked = None
            elif end:
                self._asked_whole()
        super().more(data, end)

    def _asked_whole(self) -> None:
        asked, self._asked = b"".join(self._asked or ()), None
        try:
            found, params = facts.of_request(self._form, Body(asked), self._facts["provider"])
        except Malformed:
            return  # nothing can be said of it
        self._facts.take(found)
        self._x.leave(facts.PARAMS, params)
