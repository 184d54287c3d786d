"""What a policy becomes on the request path: a filter with up to five hooks, and the builder that makes it.

Laws of a hook
- It may touch the exchange that it is given and nothing else of the request's life; it opens no sockets (`Env.calls`).
- A request hook answers None (go on), a `Reply` (the request ends here), or an awaitable of one of these. Answering an
  awaitable costs two turns of the loop, so a hook that knows the answer gives it at once.
- What it awaits comes from `Env`: futures (`Env.make_future`), time (`Env.sleep`), calls, threads. Anything else fails
  the exchange with an error that says so, because there is no current Task. A hook that needs one (`asyncio.timeout`, a
  TaskGroup) says so in its row of the registry (`Row.task`), and its awaitables run in Tasks of their own.
- A client that leaves cancels what waits: CancelledError is raised there, and cleanup runs to its end. The end hooks
  and the log line follow it, or come after a second.
- A response hook may change the response head; it answers as a request hook does: a `Reply` takes the place of the
  response. Response hooks run in reverse order, beginning outside the step that ended the descent or answered a
  `Reply`, also for replies that we make.
- `request_stream` and `response_stream` change content while it passes (`dataplane/streams`).
- An end hook runs once, after the last byte, whatever happened; it answers nothing and never raises.
- Everything that can be computed from configuration was computed by the builder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from dataplane.chain.reply import Reply
from dataplane.http.rules import MAX_BUFFER, WHOLE_BODY

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.exchange import Exchange, StreamHook
    from dataplane.link.buckets import Buckets
    from dataplane.link.pools import Full

StateT = TypeVar("StateT")

RequestHook = Callable[["Exchange"], "Reply | Awaitable[Reply | None] | None"]
ResponseHook = Callable[["Exchange"], "Reply | Awaitable[Reply | None] | None"]
EndHook = Callable[["Exchange"], None]

WHOLE = WHOLE_BODY
"""`Filter.response_body`, `Env.buffer_limit`: the whole body is read, as far as its listener lets bodies be held
(`http/rules.HttpRules.may_hold`)."""

BUFFER_LIMIT = MAX_BUFFER
"""Bytes of a body that are buffered for a policy at most, unless configured otherwise (`maxBufferSize`)."""


EVERY_HEADER: Final = b":"
"""In `Filter.writes`: any name may be among them. No header has this name."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A built policy. `name` is the policy's name as in proto and API; hooks that are None cost nothing."""

    name: str
    request: RequestHook | None = None
    response: ResponseHook | None = None
    end: EndHook | None = None
    request_stream: StreamHook | None = None
    """Changes the content of the request while it passes. Its stage begins before the request hook of this filter runs,
    and takes content also while that waits; it and the steps behind it that read the body see what comes out."""
    response_stream: StreamHook | None = None
    """The same for the response; the response hook and the steps outside it see what comes out."""
    makes_stages: bool = False
    """The hooks themselves make stages (`chain/conditional`)."""
    writes: frozenset[bytes] = frozenset()
    """Names of request headers (`heads.plain_name`) that the policy sets, takes out or judges by: where none is in the
    head, a client's trailer of that name must not pass for one either (RFC 9110 6.5.1). `EVERY_HEADER`: any of them."""
    takes_body: bool = False
    """The request hook reads the content of the request, or makes other content."""
    silent: bool = False
    """The hooks answer None, always and at once, so that they need not be called for it."""
    response_body: int = 0
    """What the response hook reads of the response body: 0 nothing, WHOLE all of it, n > 0 all of it with n bytes as
    the most that are buffered (of several steps the largest counts; `maxBufferSize` of the listener bounds it). The
    proxy buffers the body and runs the response steps when it has come (`Exchange.response_body`)."""
    publishes: bool = False
    """It answers requests to well-known paths of OAuth about the paths of its route, for any client
    (`http/well_known`)."""
    parts: Any = None
    """What `Row.combine` makes one filter of, of those of several policies."""


def as_written(name: str) -> str:
    """The name of a policy as its author writes it: `jwtAuthentication` of `jwt_authentication`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose policy is being built: for what is counted per policy and target, and for the words of the log."""

    policy: str = ""
    """`kind namespace/name` of the object that has the policy."""
    field: str = ""
    """The policy's name, as in proto."""
    target: str = ""
    """The place that it is attached to, as text: one for each target."""
    digest: str = ""
    """Of the policy's content: state of an edited policy begins anew, that of one sent again does not."""
    item: str = ""
    """Of a conditional policy, which item: `conditional[0]`."""

    @property
    def key(self) -> str:
        """Carry-over key of what is kept per policy and target."""
        return f"{self.policy}|{self.field}|{self.target}|{self.digest}"

    def __str__(self) -> str:
        field = f"{as_written(self.field)}.{self.item}" if self.item else as_written(self.field)
        return f"{self.policy} {field}".strip()


class Future(Protocol):
    """Something that will be known: steps may await it, any number of them."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...  # Any: each future has a type of its own

    def __await__(self) -> Generator[Any, Any, Any]: ...


class Timer(Protocol):
    def cancel(self) -> None: ...


def _no_future() -> Future:
    raise RuntimeError("there is no loop that would wait")


def _no_timer(moment: float, call: Callable[[], None]) -> Timer:
    raise RuntimeError("there is no loop that would keep time")


def _no_secret(key: str) -> Mapping[str, bytes]:
    raise Refused(f"{key} is not known to this proxy")


class Keeps(Protocol):
    def kept(self, key: str, make: Callable[[], StateT]) -> StateT: ...


@dataclass(frozen=True, slots=True)
class Env:
    """What a builder is given beside its configuration."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    random: Callable[[], float]
    """Uniform in [0, 1)."""
    calls: Calls | None = None
    """Capability to reach other services; None where there is none (a builder that needs it raises `Refused`)."""
    carryover: Keeps | None = None
    """State that outlives a swap (`table/carryover.Carryover`). None: there is no table (tests)."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since the epoch: for tokens and cookies, which are dated."""
    offload: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None
    """Run a function that holds the processor for long in a thread, and await its result. None: there are no threads
    (tests): call it."""
    secret: Callable[[str], Mapping[str, bytes]] = _no_secret
    """Entries of a Secret, by its key. Raises `Refused` when it is not there; a policy is built anew when one of the
    Secrets that `Row.secrets` names changes."""
    buckets: Buckets | None = None
    """Token buckets shared by the workers of a proxy."""
    spawn: Callable[[Coroutine[Any, Any, None]], Any] | None = None
    """Run a coroutine in the background, ended with the worker. None: there is no loop (tests)."""
    buffer_limit: int = WHOLE
    """Bytes of a body that are buffered for a policy at most; WHOLE: as many as its listener allows."""
    origin: Origin = Origin()
    """Whose policy is being built."""
    make_future: Callable[[], Future] = _no_future
    """What a step may wait for."""
    password_checks: Callable[[], tuple[int | None, int | None]] = lambda: (None, None)
    """How many checks of passwords may wait now: of one client address, of all (`frontend.limits`). None: as many as a
    policy has by default."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of the process: what SDKs of clouds read of credentials."""
    session_key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    """Seals what clients keep for us (`credentials/sealing`)."""
    full: Full | None = None
    """Called for each client that finds no place in a pool."""
    call_at: Callable[[float, Callable[[], None]], Timer] = _no_timer
    """Call a function at a moment of `clock`, unless what this answers is cancelled before."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long; for steps."""
        future = self.make_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        timer = self.call_at(self.clock() + seconds, wake)
        try:
            await future
        finally:
            timer.cancel()

    def kept(self, key: str, make: Callable[[], StateT]) -> StateT:
        """What a policy remembers over swaps: what is known by this key (`origin.key`, or one of the builder's own),
        else what `make` gives."""
        return make() if self.carryover is None else self.carryover.kept(key, make)


class Refused(ValueError):
    """A builder's verdict: this policy cannot be built. The text goes into the NACK and the object's status."""


class Builder(Protocol):
    """Make a filter of one policy message. Raises `Refused` with what is wrong and where."""

    def __call__(self, config: Any, env: Env, /) -> Filter | None: ...  # config: the message of the row's policy


class Setting(Protocol):
    """Make a value for the plan of a route, for a policy that the proxy itself carries out. Raises `Refused`."""

    def __call__(self, config: Any, env: Env, /) -> Any: ...  # config as above; the answer's type is the plan's field's


STEP, SETTING, FRONTEND, OF_KIND = "step", "setting", "frontend", "of_kind"
"""What a row makes: a step of a chain; a value for `plans.RoutePolicies`; one for `binds.ListenerPlan`; one that a kind
of backends acts on (`upstream/kinds`)."""


def no_secrets(config: Any) -> Iterable[str]:
    """No Secret."""
    return ()


def no_hook(config: Any) -> EndHook | None:
    """No hook."""
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """One policy of a registry. The place of a step in a chain is the place of its row in the registry.

    `name` is the field of the wire's Policy message; `plan_field`, for a setting, the field of `plans.RoutePolicies`
    that takes its value (of a frontend policy: of `binds.ListenerPlan`, `telemetry.<part>` for a part of that).
    `reason`: why this place, or who carries the setting out.
    """

    name: str
    build: Builder | Setting
    kind: str
    reason: str
    plan_field: str = ""
    many: bool = False
    """A setting, or a frontend policy, of which several hold at once: the field takes a tuple of them. Of others the
    last written holds."""
    refuses: bool = False
    """A policy of this kind that cannot be built refuses what it covers; others keep their last good version
    (architecture, A bad resource)."""
    task: bool = False
    """What its hooks await needs a current Task: each awaitable that they answer gets one (`chain/tasks`)."""
    per_target: bool = False
    """Counts or remembers for each target: never shared by equal policies of different targets or objects."""
    combine: Callable[[Sequence[Filter]], Filter] | None = None
    """Makes one step of several policies that act together, the least specific first. None: each is its own step."""
    secrets: Callable[[Any], Iterable[str]] = no_secrets
    """Keys of the Secrets that a policy (its message) reads when it is built."""
    closed: Callable[[str], Any] | None = None
    """Of a frontend policy that `refuses`, and of each that a kind of backends acts on: the value in place of one that
    cannot be built, of the reason."""
    merged: Callable[[Sequence[Any], Any], object] | None = None
    """Of a policy that a kind of backends acts on: what several come to, the least specific first, and the one that
    wins."""
    hides: Callable[[Any], EndHook | None] = no_hook
    """What keeps credentials out of the log of requests that meet a policy that could not be built."""
