"""What a policy becomes on the request path: a filter with up to three hooks, and the builder that makes it.

Laws of a hook
- It may touch the exchange that it is given and nothing else of the request's life; it opens no sockets (`Env.calls`).
- A request hook answers None (go on), a `Reply` (the request ends here), or an awaitable of one of these. Answering an
  awaitable costs a Task, so a hook that knows the answer gives it at once.
- A response hook may change the response head; it answers None or an awaitable of None. Response hooks run in reverse
  order, beginning outside the step that ended the descent, also for replies that we make.
- An end hook runs once, after the last byte, whatever happened; it answers nothing and never raises.
- Everything that can be computed from configuration was computed by the builder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

RequestHook = Callable[["Exchange"], "Reply | Awaitable[Reply | None] | None"]
ResponseHook = Callable[["Exchange"], "Awaitable[None] | None"]
EndHook = Callable[["Exchange"], None]

WHOLE = -1
"""`Filter.body`: the hook reads the whole body."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A built policy. `name` is the policy's name as in proto and API; hooks that are None cost nothing."""

    name: str
    request: RequestHook | None = None
    response: ResponseHook | None = None
    end: EndHook | None = None
    may_wait: bool = False
    silent: bool = False
    """The hooks answer None, always and at once: nobody has to look."""
    body: int = 0
    """What the request hook reads of the request body: 0 nothing, n > 0 the first n bytes, WHOLE all of it. Declared
    for whoever inspects a chain; the hook itself awaits `exchange.body` (`http/body`)."""


@dataclass(frozen=True, slots=True)
class Env:
    """What a builder is given beside its configuration."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    random: Callable[[], float]
    """Uniform in [0, 1)."""
    calls: Any = None
    """Capability to reach other services. None until there is a policy that calls one."""
    carryover: Any = None
    """State that outlives a swap, keyed by policy identity (`table/carryover`)."""


class Refused(ValueError):
    """A builder's verdict: this policy cannot be built. The text goes into the NACK and the object's status."""


class Builder(Protocol):
    """Make a filter of one policy message. Raises `Refused` with what is wrong and where."""

    def __call__(self, config: Any, env: Env, /) -> Filter | None: ...  # config: the message of the row's policy


class Setting(Protocol):
    """Make a value for the plan of a route, for a policy that the proxy itself carries out. Raises `Refused`."""

    def __call__(self, config: Any, env: Env, /) -> Any: ...  # config as above; the answer's type is the plan's field's


STEP, SETTING = "step", "setting"


@dataclass(frozen=True, slots=True)
class Row:
    """One policy of a registry. The place of a step in a chain is the place of its row in the registry.

    `name` is the field of the wire's Policy message; `plan_field`, for a setting, the field of the RoutePlan that takes
    its value. `reason`: why this place, or who carries the setting out.
    """

    name: str
    build: Builder | Setting
    kind: str
    reason: str
    plan_field: str = ""
