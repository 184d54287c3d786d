"""One try of a request to LLM providers: whom it goes to, and what policies say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.chain.replies import made
from dataplane.llm import errors
from dataplane.llm.policies import POLICY, AiPolicies

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.chain.reply import Reply
    from dataplane.llm.plans import AiPlan, ProviderPlan
    from dataplane.llm.routes import RouteType
    from dataplane.table.plans import BackendPlan


def of_route(x: LlmExchange) -> AiPolicies | None:
    """What the policies of the route say."""
    found = x.policies.of_kind.get(POLICY)
    return found if isinstance(found, AiPolicies) else None


class Visit(NamedTuple):
    """One try of one request. `plan`: of the provider's Backend, None where it has none that can be used (`failed`)."""

    x: LlmExchange
    providers: AiPlan
    part: ProviderPlan
    plan: BackendPlan | None
    failed: str
    policies: AiPolicies
    route: RouteType

    def refused(self, reason: str, message: str = "", field: str = "") -> Reply:
        """An answer in the shape of the API that was called."""
        return errors.refused(self.route, made(reason), message, field)
