"""Asks processors of MCP messages over gRPC: `guardrails.Asks`. Made with a policy; its processors are built here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.calls import CallFailed
from dataplane.chain.filter import Env, Refused
from dataplane.chain.grpc import StatusError, blames_request, unary
from dataplane.http import grpc
from dataplane.mcp import guardrails
from dataplane.mcp.guardrails import REQUEST, Processor
from dataplane.mcp.verdicts import Failed
from gatewright.cel.budget import START
from gatewright.cel.errors import CelError
from gatewright.wire.v1 import mcp_pb2, traffic_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

SECONDS: Final = 10.0
"""Decisions, Callouts: guardrails."""
MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of a verdict: it may hold a whole message."""

SERVICES: Final = ("gatewright.mcp.v1.ExtMcp", "agentgateway.dev.ext_mcp.ExtMcp")
"""Names of the service: Gatewright's, and one that servers know that were written for another gateway."""
_METHODS: Final = {REQUEST: "CheckRequest", guardrails.RESPONSE: "CheckResponse"}

_PHASES: Final = {
    mcp_pb2.MCP_PHASE_UNSPECIFIED: 0,
    mcp_pb2.MCP_PHASE_OFF: 0,
    mcp_pb2.MCP_PHASE_REQUEST: guardrails.REQUEST,
    mcp_pb2.MCP_PHASE_RESPONSE: guardrails.RESPONSE,
    mcp_pb2.MCP_PHASE_FULL: guardrails.REQUEST | guardrails.RESPONSE,
}


class Guardrails:
    """The processors of one policy, and who asks them."""

    __slots__ = ("_calls", "_names", "processors")

    def __init__(self, config: mcp_pb2.McpGuardrails, env: Env) -> None:
        """Raises `Refused`."""
        if env.calls is None:
            raise Refused("guardrails: this proxy reaches no other services")
        if not config.processors:
            raise Refused("guardrails.processors: none")
        self.processors = tuple(_processor(index, each) for index, each in enumerate(config.processors))
        self._calls = env.calls
        self._names: dict[str, str] = {}
        """By key of a backend: the name that its server knows the service by."""

    async def __call__(self, processor: Processor, phase: int, message: bytes, x: Exchange) -> bytes:
        """As `guardrails.Asks`."""
        known = self._names.get(processor.backend)
        for name in (known,) if known is not None else SERVICES:
            try:
                answer = await unary(
                    self._calls, x, processor.backend, f"/{name}/{_METHODS[phase]}", message, SECONDS, MAX_ANSWER
                )
            except StatusError as error:
                if error.status == grpc.UNIMPLEMENTED and known is None and name == SERVICES[0]:
                    continue
                raise Failed(str(error), blames_request(error)) from None
            except CallFailed as error:
                raise Failed(str(error), blames_request(error)) from None
            self._names[processor.backend] = name
            return answer
        raise Failed("it knows the service by no name")


def _processor(index: int, config: mcp_pb2.McpProcessor) -> Processor:
    where = f"guardrails.processors[{index}]"
    methods = {}
    for key, phase in config.methods.items():
        if phase not in _PHASES:
            raise Refused(f"{where}.methods[{key}]: phase {phase} is not known to this proxy")
        methods[key] = _PHASES[phase]
    if not methods:
        raise Refused(f"{where}.methods: none")
    return Processor(
        config.backend,
        guardrails.sorted_methods(methods),
        config.failure_mode == traffic_pb2.FAILURE_MODE_FAIL_OPEN,
        _metadata(where, config.metadata),
        frozenset(name.lower() for name in config.allowed_request_headers),
        frozenset(name.lower() for name in config.disallowed_request_headers),
    )


def _metadata(where: str, texts: Mapping[str, str]) -> guardrails.Metadata:
    programs: list[tuple[str, Program]] = [
        (name, expressions.compiled(text, "request", f"{where}.metadata[{name}]")) for name, text in texts.items()
    ]
    return (lambda context: _values(programs, context)) if programs else guardrails.no_metadata


def _values(programs: list[tuple[str, Program]], context: Any) -> dict[str, Any]:
    """As JSON has them; one that fails, or has no JSON, is absent."""
    import json

    from gatewright.cel.functions import json_text

    found = {}
    for name, program in programs:
        try:
            found[name] = json.loads(json_text.write(list(START), program.evaluate(context)))
        except CelError:
            continue
    return found
