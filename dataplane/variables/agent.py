"""What expressions read of the call of an A2A agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.variables.facts import Unread
from dataplane.variables.request import RequestVariables
from gatewright.cel.errors import TooMany

if TYPE_CHECKING:
    from dataplane.a2a import Call as AgentCall


class AgentVariables(RequestVariables):
    """`a2a.*`: a call is read from the request."""

    __slots__ = ()

    def _agent_call(self) -> AgentCall | None:
        """What is known of the call; while the request is judged it is read strictly, once for each path and body.
        Raises Unread."""
        if self.replied or self.backend_plan is not None or not self.is_for_agent:
            return self.agent_call
        body = self.request_body
        known = getattr(self, "known_agent_call", None)
        if known is None or known[0] is not self.path or known[1] is not body:
            known = self.known_agent_call = self.path, body, self._read_agent_call(body)
        self.agent_call, self.noted = known[2], True
        return known[2]

    def _read_agent_call(self, body: bytes | None) -> AgentCall:
        from dataplane.a2a import Unreadable  # not before an expression asks for it
        from dataplane.a2a.call import facts
        from dataplane.a2a.calls import read
        from gatewright.cel.functions import json_text

        asked = facts(self.method, self.path, self.query, self.request, body or b"")
        try:
            if body and body[0] > 1:  # no frame of gRPC
                json_text.limit(body, self._rules().max_json_keys)
            return read(asked)
        except TooMany as error:
            raise self._unread("JsonTooLarge", error) from None
        except Unreadable as error:
            raise Unread("AgentCallUnreadable", str(error)) from None

    @property
    def a2a(self) -> dict[str, Any] | None:
        return (self.whole("a2a") or None) if self._agent_call() is not None else None

    @property
    def a2a_method(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.method

    @property
    def a2a_binding(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.binding or None

    @property
    def a2a_skill(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.skill

    @property
    def a2a_context_id(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.context

    @property
    def a2a_task(self) -> dict[str, Any] | None:
        return (self.whole("a2a.task") or None) if self._agent_call() is not None else None

    @property
    def a2a_task_id(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.task

    @property
    def a2a_task_state(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.state

    @property
    def a2a_error_code(self) -> int | None:
        call = self._agent_call()
        return None if call is None else call.error
