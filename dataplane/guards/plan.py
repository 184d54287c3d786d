"""What guards are to do, as values: made with a policy, read with each request. Light: any worker may have one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dataplane.guards.values import BOUND, Phase

if TYPE_CHECKING:
    from dataplane.guards.patterns import Pattern
    from dataplane.guards.servers import Server
    from dataplane.guards.values import Scope


@dataclass(frozen=True, slots=True)
class Guard:
    """One of a list. `patterns` or a `server`."""

    name: str
    """Of its kind, and where it stands: `request[0].regex`."""
    message: str
    """For clients whose request, or answer, is rejected."""
    status: int = 403
    scope: frozenset[Scope] | None = None
    """None: every text."""
    patterns: tuple[Pattern, ...] = ()
    rejects: bool = False
    """What patterns match is rejected; else it is masked."""
    server: Server | None = field(default=None)

    @property
    def kind(self) -> str:
        return self.name.rpartition(".")[2]

    def judges(self, scope: Scope) -> bool:
        return self.scope is None or scope in self.scope


@dataclass(frozen=True, slots=True)
class Guards:
    """Of one policy. They act in order."""

    request: tuple[Guard, ...] = ()
    response: tuple[Guard, ...] = ()
    bound: int = BOUND
    """Bytes of a match, and of the text of a stream that waits."""

    def of(self, phase: Phase) -> tuple[Guard, ...]:
        return self.request if phase is Phase.REQUEST else self.response


NO_GUARDS: Final = Guards()


class Rejected(Exception):
    """A guard rejects, or cannot be asked (`is_unavailable`). `detail`: for the log; it never holds a text that was
    judged."""

    def __init__(
        self, guard: Guard, detail: str = "", *, is_unavailable: bool = False, message: str = "", status: int = 0
    ) -> None:
        """`message` and `status`: of the server that rejects, where it has an answer of its own."""
        super().__init__(detail)
        self.guard = guard
        self.detail = f"{guard.name}: {detail}" if detail else guard.name
        self.is_unavailable = is_unavailable
        self.message = message or guard.message
        self.status = status or guard.status
