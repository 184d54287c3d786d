"""The row of MCP servers: it ends the request itself. A table with one has loaded what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dataplane.exchange import Exchange
from dataplane.mcp import plans, refusals
from dataplane.mcp.policies import MCP, POLICY
from dataplane.upstream.kinds import Row, Services

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.backends.mcp.typing import McpExchange, McpWorker
    from dataplane.carriers import Upstream
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan
    from dataplane.mcp.policies import McpPolicies
    from dataplane.upstream.lease import BackendPlan, Lease, Leases
    from dataplane.upstream.parts import Part
    from gatewright.wire.v1 import backend_pb2


class Mcp(Row):
    """`kinds.Kind`."""

    name = type = protocol = MCP
    policy = POLICY
    modules: tuple[str, ...] = (
        "msgspec",
        "cryptography.hazmat.primitives.ciphers.aead",
        "dataplane.mcp.spellings",
        "dataplane.backends.mcp.visit",
        "dataplane.backends.mcp.upstreams",
        "dataplane.backends.mcp.relay",
        "dataplane.backends.mcp.processing",
        "dataplane.backends.mcp.sending",
        "dataplane.backends.mcp.forwarding",
        "dataplane.backends.mcp.posts",
        "dataplane.backends.mcp.serving",
        "dataplane.backends.mcp.legacy.requests",
        "dataplane.backends.mcp.legacy.client_posts",
        "dataplane.backends.mcp.legacy.peers",
        "dataplane.backends.mcp.services",
    )

    def __init__(self) -> None:
        self._terminator: Callable[[Any], Upstream] | None = None

    def check(self, message: backend_pb2.McpBackend) -> None:
        plans.check(message)

    def parts(self, message: backend_pb2.McpBackend) -> Sequence[TargetPlan]:
        return plans.targets(message)

    def plan(self, message: backend_pb2.McpBackend, parts: Sequence[Part], policies: object) -> plans.McpPlan:
        targets = cast("Sequence[TargetPlan]", parts)  # those of `parts`, with settings
        most = message.max_answer or plans.MAX_ANSWER
        own = cast("McpPolicies | None", policies)
        return plans.McpPlan(tuple(targets), message.stateless, message.fail_open, own, most)

    def refusal(self, x: Exchange, reply: Reply) -> Reply:
        """What a message that was read is refused with by the route: a JSON-RPC error with its id."""
        code = refusals.CODES.get(reply.status)
        if code is None or x.method != b"POST" or not x.body:
            return reply
        return refusals.written(reply, code, x.body)

    def services(self, worker: McpWorker) -> Services:
        from dataplane.backends.mcp.services import Services as Made  # loaded late

        return Made(worker)

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        if not isinstance(holder, Exchange):
            holder.lease_failed("refused", f"{plan.key}: MCP servers answer requests of clients, no calls of policies")
            return
        x = cast("McpExchange", holder)
        x.up = (self._terminator or self._loaded())(x)
        x.lease_ready(x.up)

    def _loaded(self) -> Callable[[Any], Upstream]:
        """Makes what ends a request; loaded late. Any: the exchange is `contract.Routed` and `McpExchange` in one."""
        from dataplane.backends.mcp import serving
        from dataplane.backends.terminating.terminator import Terminator

        self._terminator = lambda x: Terminator(x, serving.serve)
        return self._terminator
