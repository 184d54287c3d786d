"""What policies say of requests to LLM providers, merged and finished (`backend.ai`).

Rules of authorization of all levels add up; the rest is that of the most specific policy, as a whole. What a provider's
own policies say is merged into what comes with it (`plans.ProviderPlan`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from dataplane.chain.expressions import reads
from dataplane.chain.rules import Rule, decision
from dataplane.guards.plan import NO_GUARDS, Guards
from dataplane.llm.routes import ALL_COMPLETIONS, Routes
from dataplane.llm.shape import NO_SHAPE, Caching, Shape

if TYPE_CHECKING:
    from dataplane.llm.model_lists import Lists
    from dataplane.variables import Variables
    from gatewright.cel.program import Program

POLICY: Final = "backend_ai"
"""Its name in the wire's Policy."""

Decide = Callable[["Variables"], "str | None"]
"""Why a model is refused, for the log; None: it is not."""


@dataclass(frozen=True, slots=True)
class AiPolicy:
    """One policy, as its builder made it."""

    shape: Shape = NO_SHAPE
    transformations: tuple[tuple[str, Program], ...] = ()
    """Fields and what computes them."""
    routes: Routes = ALL_COMPLETIONS
    rules: tuple[Rule, ...] = ()
    guards: Guards = NO_GUARDS
    names: tuple[str, ...] = ()
    """Models as clients may call them: aliases, in their order."""
    drops: bool = False
    """What a provider's API cannot carry is left out, also where that is not harmless."""
    caching: Caching | None = None
    first_event_timeout: float | None = None
    """Seconds until a stream's first content, after which another provider is asked; None: it has time."""
    lists: Lists | None = None
    """The providers' own lists of models, which are part of the gateway's; None: they are not."""


@dataclass(frozen=True, slots=True, eq=False)
class AiPolicies:
    """What the policies of a route, or of a provider, come to."""

    own: AiPolicy | None = None
    """The most specific one, without its rules; None: none says anything."""
    rules: tuple[Rule, ...] = ()
    refused: str = ""
    """Why nothing that they cover may be served."""
    _above: dict[int, tuple[AiPolicies, AiPolicies]] = field(default_factory=dict, repr=False)
    _decide: list[Decide] = field(default_factory=list, repr=False)
    _reads: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def policy(self) -> AiPolicy:
        return self.own or _NOTHING

    def over(self, less: AiPolicies | None) -> AiPolicies:
        """These of a provider with those of a route, which are less specific; made once for each."""
        if less is None or less is NO_POLICIES:
            return self
        if self is NO_POLICIES:
            return less
        found = self._above.get(id(less))
        if found is None:
            if len(self._above) >= _MANY:
                self._above.clear()
            both = replace(
                self,
                own=self.own or less.own,
                rules=(*less.rules, *self.rules),
                refused=self.refused or less.refused,
                _above={},
                _decide=[],
                _reads={},
            )
            found = self._above[id(less)] = less, both  # the key's object is kept: its id is not used again
        return found[1]

    @property
    def decide(self) -> Decide:
        if not self._decide:
            self._decide.append(decision(self.rules, str))
        return self._decide[0]

    def reads(self, path: str) -> bool:
        """Whether an expression of rules or transformations reads this variable; found out once."""
        if path not in self._reads:
            programs = chain.from_iterable(rule.programs for rule in self.rules)
            self._reads[path] = reads((*programs, *(program for _, program in self.policy.transformations)), path)
        return self._reads[path]


_NOTHING: Final = AiPolicy()
NO_POLICIES: Final = AiPolicies()
_MANY: Final = 64
