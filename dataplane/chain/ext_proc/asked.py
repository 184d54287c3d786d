"""A server of this protocol, as filters use it: the calls to it, and what becomes of those without an answer.

One that cannot be asked, or that breaks its protocol, ends the exchange: it may be what rejects requests and takes out
of them what a backend must not see.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.ext_proc.session import Session
from dataplane.chain.filter import Env, Refused
from dataplane.chain.reach import reach_of
from dataplane.chain.replies import made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.struct_pb2 import Struct

    from dataplane.chain.calls import CallFailed, Calls
    from dataplane.chain.ext_proc.modes import Modes
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange

FAILED: Final = "ExtProcFailed"
"""Reason code: the server cannot be asked, or breaks its protocol."""


class Asked:
    """As `session.Server`: what all who are asked by this protocol have in common. Raises `Refused`."""

    failed_as = FAILED
    """Reason code of the answer where it gives none."""

    def __init__(self, name: str, what: str, backend: str, modes: Modes, env: Env) -> None:
        """`what`: as the log calls it."""
        if env.calls is None or env.spawn is None:
            raise Refused("this proxy reaches no other services")
        self.env = env
        self.modes = modes
        self.calls: Calls = env.calls
        self.spawn: Callable[[Coroutine[Any, Any, None]], Any] = env.spawn
        self.backend = backend
        self.origin = str(env.origin)
        self._reach = reach_of(name, what, backend, env)
        self._state = f"?{env.origin.key} {id(self):x}"  # items of one policy, too, have sessions of their own

    def begun(self, x: Exchange) -> Session:
        """A call for this exchange, or for this try of it."""
        before = self.session(x)
        if before is not None and before.x is x:  # of the try before; one of another exchange belongs to that
            before.close()
        session = Session(self, x)
        x.leave(self._state, session)
        return session

    def session(self, x: Exchange) -> Session | None:
        found: Any = None if x.attributes is None else x.attributes.get(self._state)
        return found if isinstance(found, Session) else None

    def end(self, x: Exchange) -> None:
        session = self.session(x)
        if session is not None:
            session.close()

    def plan(self, x: Exchange) -> Any:
        """As `session.Server`."""
        return self.calls.plan(self.backend, x)

    def attributes(self, x: Exchange) -> Mapping[str, Struct]:
        """As `session.Server`."""
        return {}

    def noted(self, x: Exchange, metadata: Mapping[str, Any]) -> None:
        """As `session.Server`."""

    def failed(self, error: CallFailed) -> Reply:
        """The answer where the server gives none."""
        self._reach.failed(self.origin, error)
        return made(self.failed_as, f"{self.origin}: {error}")

    def answers(self) -> None:
        """The server has said something."""
        if self._reach.lost:
            self._reach.answered(self.origin)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backend})"
