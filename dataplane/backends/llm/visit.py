"""One try of a request to LLM providers: whom it goes to, and what policies say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataplane.chain.replies import made
from dataplane.llm import errors
from dataplane.llm.policies import POLICY, AiPolicies

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.plans import AiPlan, ProviderPlan
    from dataplane.llm.routes import RouteType
    from dataplane.table.plans import BackendPlan


def of_route(x: LlmExchange) -> AiPolicies | None:
    """What the policies of the route say."""
    found = x.policies.of_kind.get(POLICY)
    return found if isinstance(found, AiPolicies) else None


class Tries(Protocol):
    """All tries of one request (`trying.Tries`), as one of them knows them."""

    x: LlmExchange
    body: bytes
    """Of the request, as it came."""
    visit: Visit
    """The present one."""
    is_staged: bool
    """Stages of it are being done: who is asked next begins behind them."""

    @property
    def text(self) -> str:
        """What came of those before, for the log."""

    @property
    def is_one(self) -> bool:
        """There is no other provider to ask, ever."""

    def note(self, name: str, outcome: str, seconds: float) -> None:
        """What came of one, for the log."""

    def goes_on(self, outcome: str, status: int, head: ResponseHead | None) -> bool:
        """Whether another candidate takes the place of the one that came to this. `outcome`: a cause of `CallFailed`,
        or the status as text; `status`: that, or 0."""

    def has_next(self) -> bool:
        """Whether there is somebody else to ask."""

    def proceed(self) -> None:
        """Ask who is next; one of the two before was true."""


class Visit(NamedTuple):
    """One try of one request. `plan`: of the provider's Backend, None where it has none that can be used (`failed`).
    `tries`: of which it is one."""

    x: LlmExchange
    providers: AiPlan
    part: ProviderPlan
    plan: BackendPlan | None
    failed: str
    policies: AiPolicies
    route: RouteType
    tries: Tries

    def refused(self, reason: str, message: str = "", field: str = "") -> Reply:
        """An answer in the shape of the API that was called."""
        return errors.refused(self.route, made(reason), message, field)

    def not_allowed(self, allowed: str) -> Reply:
        """Of a method that its API does not have; which ones it has stands in the answer (RFC 9110 15.5.6)."""
        text = f"method not allowed: requests to this path are {self.route}, which takes {allowed}"
        reply = made("LlmMethodNotAllowed", headers=b"allow: %b\r\n" % allowed.encode())
        return errors.refused(self.route, reply, text)
