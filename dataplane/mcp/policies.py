"""What policies say of MCP calls, merged and finished: authorization of items, guardrails.

Rules are asked for an item at a time: a tool, prompt, resource or task that is called, or is in question for a list.
Rules that read `mcp.tool.arguments` have nothing to read while a list is made: they may match then, which is to say
that they hide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.chain import expressions
from dataplane.chain.rules import ALLOW, DENY, Rule, decision

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from dataplane.variables import Variables

MCP: Final = "mcp"
"""Name of the kind (`kinds.Kind.name`)."""
POLICY: Final = "backend_mcp"
"""Its name in the wire's Policy."""
ARGUMENTS: Final = "mcp.tool.arguments"

Decide = Callable[["Variables"], "str | None"]
"""Why an item is refused, for the log; None: it is not."""


class Tokens(Protocol):
    """What checks tokens of clients (`credentials/mcp_authentication`)."""

    async def judge(self, x: Exchange, body: bytes) -> Reply | None: ...


@dataclass(frozen=True, slots=True)
class McpPolicy:
    """One policy, as its builder made it."""

    rules: tuple[Rule, ...] = ()
    guardrails: Any = None
    """`guardrail_calls.Guardrails`; None: there are none."""
    authentication: Tokens | None = None
    keep_alive: float | None = None
    """Seconds of silence on a stream to a client after which we say that it is alive; None: we do not."""


@dataclass(frozen=True, slots=True)
class McpPolicies:
    """What the policies of a route, or of a backend, come to."""

    rules: tuple[Rule, ...] = ()
    guardrails: Any = None
    authentication: Tokens | None = None
    """Who clients have to be, beside what the steps of the request have asked."""
    refused: str = ""
    """Why nothing that they cover may be served."""
    keep_alive: float | None = None
    _above: dict[int, tuple[McpPolicies, McpPolicies]] = field(default_factory=dict, compare=False, repr=False)
    _decisions: list[Decide] = field(default_factory=list, compare=False, repr=False)
    _reads: list[bool] = field(default_factory=list, compare=False, repr=False)

    def over(self, less: McpPolicies | None) -> McpPolicies:
        """These of a backend with those of a route, which are less specific; made once for each."""
        if less is None:
            return self
        if self is NO_POLICIES:
            return less
        found = self._above.get(id(less))
        if found is None:
            if len(self._above) >= _MANY:
                self._above.clear()
            both = replace(
                self,
                rules=(*less.rules, *self.rules),
                guardrails=self.guardrails,
                authentication=self.authentication,
                refused=self.refused or less.refused,
                keep_alive=self.keep_alive,
                _above={},
                _decisions=[],
                _reads=[],
            )
            found = self._above[id(less)] = less, both  # the key's object is kept: its id is not used again
        return found[1]

    @property
    def for_calls(self) -> Decide:
        return self._decided()[0]

    @property
    def for_lists(self) -> Decide:
        return self._decided()[1]

    @property
    def for_lenient(self) -> Decide:
        """What is denied or required, whatever is allowed (`spellings.Spelling`)."""
        return self._decided()[2]

    @property
    def reads_arguments(self) -> bool:
        if not self._reads:
            self._reads.append(any(expressions.reads(rule.programs, ARGUMENTS) for rule in self.rules))
        return self._reads[0]

    def _decided(self) -> list[Decide]:
        if not self._decisions:
            self._decisions.append(decision(self.rules, str))
            self._decisions.append(decision(tuple(for_lists(self.rules)), str))
            self._decisions.append(decision([rule for rule in self.rules if rule.action != ALLOW], str))
        return self._decisions


NO_POLICIES: Final = McpPolicies()
_MANY: Final = 64


def for_lists(rules: Sequence[Rule]) -> list[Rule]:
    """The rules for lists: what reads arguments counts as true where that shows an item, and not where it hides one."""
    found = []
    for rule in rules:
        programs = tuple(each for each in rule.programs if ARGUMENTS not in each.references.attributes)
        if len(programs) == len(rule.programs):
            found.append(rule)
        elif rule.action != DENY:
            found.append(replace(rule, programs=programs))
    return found
