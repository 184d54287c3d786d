"""The row of LLM providers: it ends the request itself. A table with one has loaded what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dataplane.exchange import Exchange
from dataplane.upstream.kinds import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.chain.reply import Reply
    from dataplane.llm import plans
    from dataplane.upstream.lease import BackendPlan, Lease, Leases
    from dataplane.upstream.parts import Part
    from gatewright.wire.v1 import ai_pb2


class Llm(Row):
    """`kinds.Kind`."""

    name = "ai"
    policy = "backend_ai"
    modules: tuple[str, ...] = (
        "msgspec",
        "dataplane.llm.body",
        "dataplane.llm.shaping",
        "dataplane.llm.usage",
        "dataplane.llm.streams",
        "dataplane.llm.translation",
        "dataplane.backends.terminating.terminator",
        "dataplane.backends.terminating.forwarding",
        "dataplane.llm.candidates",
        "dataplane.llm.refusals",
        "dataplane.backends.llm.reading",
        "dataplane.backends.llm.serving",
    )

    def check(self, message: ai_pb2.AiBackend) -> None:
        from dataplane.llm import plans  # by the first backend of this kind, as below

        plans.check(message)

    def parts(self, message: ai_pb2.AiBackend) -> Sequence[plans.ProviderPlan]:
        from dataplane.llm import plans

        return plans.providers(message)

    def plan(self, message: ai_pb2.AiBackend, parts: Sequence[Part], policies: object) -> plans.AiPlan:
        from dataplane.llm import plans

        return plans.plan(tuple(plans.with_policies(parts)))

    def refusal(self, x: Exchange, reply: Reply) -> Reply:
        """In the shape of the API that the request's path is of, as the route's policies have it."""
        from dataplane.backends.llm.visit import of_route
        from dataplane.llm import errors
        from dataplane.llm.policies import NO_POLICIES

        policies = of_route(cast("LlmExchange", x)) or NO_POLICIES
        return errors.refused(policies.policy.routes.of(x.path), reply)

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        if not isinstance(holder, Exchange):
            holder.lease_failed("refused", f"{plan.key}: LLM providers answer clients, no calls of policies")
            return
        from dataplane.backends.llm import serving  # loaded late, and what it stands on

        x = cast("LlmExchange", holder)
        x.up = serving.begun(x, cast("plans.AiPlan", plan.of_kind))  # which `plan` above has made
        x.lease_ready(x.up)
