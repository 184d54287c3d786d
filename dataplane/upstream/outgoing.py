"""The last mile: the header lines that are sent, made here alone, for requests, calls of policies and copies for
mirrors.

Two tables, in this order. `EDITS` changes bytes and knows the destination: most requests need none of it. Then the
backend's own finishers (`BackendPlan.finishers`, None for most): they see all that is sent, may wait, and go last
because a signature covers what is before it. The request itself stays as the steps left it, for expressions, the log
and another try: each try is finished anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dataplane.http.heads import Head, without_named
from dataplane.http.messages import NO_NAMES

if TYPE_CHECKING:
    from dataplane.chain.calls import CallRequest
    from dataplane.exchange import Exchange
    from dataplane.reply import Reply

RETRY_HEADER: Final = b"x-retry-attempt"
TRACE_HEADERS: Final = frozenset((b"traceparent", b"tracestate"))
KEPT: Final = -1
"""The length that is announced stays, or there is none."""
BODILESS: Final = frozenset((b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE"))
"""Methods whose empty body need not be announced (RFC 9110 8.6)."""


class Plan(Protocol):
    """What is read of a backend here, and by finishers (`lease.BackendPlan`)."""

    key: str
    authority: bytes

    @property
    def finishers(self) -> Sequence[Finisher] | None: ...


class Edits(NamedTuple):
    """What differs from the lines of the request."""

    host: bytes = b""
    """b"": it stays."""
    length: int = KEPT
    """Bytes of content."""
    tries: int = 0
    """How many there were before this one."""
    trace: bytes = b""
    """Lines of the trace context; b"": the request's own pass."""


class Edit(NamedTuple):
    name: str
    why: str
    """Of its place in the order."""
    lines: Callable[[bytes, Edits], bytes]


def _length(lines: bytes, edits: Edits) -> bytes:
    return lines if edits.length < 0 else _with(lines, b"content-length", b"%d" % edits.length)


def _host(lines: bytes, edits: Edits) -> bytes:
    return _with(lines, b"host", edits.host) if edits.host else lines


def _tries(lines: bytes, edits: Edits) -> bytes:
    return lines + b"%b: %d\r\n" % (RETRY_HEADER, edits.tries) if edits.tries else lines


def _trace(lines: bytes, edits: Edits) -> bytes:
    return in_trace(lines, edits.trace) if edits.trace else lines


def in_trace(block: bytes, trace: bytes) -> bytes:
    """A block of header lines with this trace context in place of what it had (W3C Trace Context 3.2, 3.3)."""
    return without_named(block, block.lower(), TRACE_HEADERS)[0] + trace


EDITS: Final = (
    Edit("length", "before the host, which is to be the first line (RFC 9110 7.2)", _length),
    Edit("host", "the name that requests are signed for", _host),
    Edit("attempt", "written here alone: no step and no client writes it", _tries),
    Edit("trace context", "each try is a span of its own; before credentials, which may sign it", _trace),
)
"""The backendRef's header filters ran before, as steps of the request: what they write is in its lines."""


def edited(lines: bytes, edits: Edits) -> bytes:
    for edit in EDITS:
        lines = edit.lines(lines, edits)
    return lines


def _with(lines: bytes, name: bytes, value: bytes) -> bytes:
    """Lines with this value of a header of which there is one or none (RFC 9112 3.2, 6.2). The first line, if it is
    new."""
    low = lines.lower()
    start = low.find(b"\r\n%b:" % name)
    if start < 0:
        return b"\r\n%b: %b%b" % (name, value, lines)
    return b"%b\r\n%b: %b%b" % (lines[:start], name, value, lines[low.find(b"\r\n", start + 2) :])


def of_call(request: CallRequest, plan: Plan, length: int) -> bytes:
    """The lines of a call, for content of `length` bytes (`messages.UNKNOWN`: not known). Host is the backend's own
    (RFC 9110 7.2) unless the caller has another; a socket has none."""
    is_said = length > 0 or (length == 0 and request.method not in BODILESS)
    host = request.authority or plan.authority or b"localhost"
    line = b"content-length: %d\r\n" % length if is_said else b""  # as `edited`: a call's own lines have neither
    return b"\r\nhost: %b\r\n%b%b" % (host, line, request.headers)


# --- finishers


class Unfinished(Exception):
    """What is to be sent cannot be finished: it is not sent. `reason`: a code of `chain/replies`. The text is for the
    log and names no secret. `reply`: the answer of a step of the backend, where one has refused it."""

    def __init__(self, reason: str, text: str = "", reply: Reply | None = None) -> None:
        super().__init__(text or reason)
        self.reason = reason
        self.reply = reply


class Outgoing:
    """What one try sends. Finishers change `head` and `target`. `body`: the whole of it, None where it is not kept;
    `x`: whose request it is, or for whose sake a call, None of a copy for a mirror; `attempt`: how many there were
    before; `attributes`: what policies have found out about the request (`Exchange.attributes`), of a copy as well.

    A signature may cover the target, the body, host and headers that only a backend's own protocol has: layers around
    the carrier (`proxy/layers`) edit others behind it."""

    __slots__ = ("attempt", "attributes", "body", "head", "method", "plan", "secrets", "target", "x")

    def __init__(
        self,
        method: bytes,
        target: bytes,
        lines: bytes,
        body: bytes | None,
        plan: Plan,
        x: Exchange | None,
        attempt: int,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.head = Head(lines)
        self.body = body
        self.plan = plan
        self.x = x
        self.attempt = attempt
        self.attributes = attributes if x is None else x.attributes
        self.secrets = NO_NAMES
        """Names of headers that are in no table of any hop (RFC 7541 7.1.3), in lower case."""

    def hide(self, name: bytes) -> None:
        """A finisher has written a credential into the header of this name (in lower case)."""
        self.secrets |= {name}

    def __repr__(self) -> str:
        return f"Outgoing({self.plan.key}, try {self.attempt})"  # the rest may be secret


class Finisher(Protocol):
    @property
    def needs_body(self) -> bool:
        """`Outgoing.body` must not be None: it waits for the whole of the request's content."""

    def finish(self, out: Outgoing) -> Awaitable[None] | None:
        """Finish `out`; None: done at once. It awaits futures of `Env` alone, as steps do, and bounds its own time.
        Raises `Unfinished`, at once or later: nothing is sent then."""


def finish(out: Outgoing) -> Awaitable[None] | None:
    """All finishers of the backend, in their order; None: done at once. Raises `Unfinished`, at once or later; any
    other error is a bug of a finisher."""
    rest = iter(out.plan.finishers or ())
    for each in rest:
        waits = _one(each, out)
        if waits is not None:
            return _rest(out, waits, rest)
    return None


async def _rest(out: Outgoing, waits: Awaitable[None], rest: Iterator[Finisher]) -> None:
    await waits
    for each in rest:
        more = _one(each, out)
        if more is not None:
            await more


def _one(each: Finisher, out: Outgoing) -> Awaitable[None] | None:
    if each.needs_body and out.body is None:
        raise Unfinished("BackendAuthenticationFailed", "a finisher needs the whole body, which is not kept")
    return each.finish(out)


class Finishing:
    """What has to be done before something is sent for which no steps wait: a call, a copy. What it waits for runs it
    on; no Task. `make`: does it at once, or gives what is to be awaited; raises `Unfinished`, at once or later."""

    __slots__ = ("_done", "_make", "_work")

    def __init__(self, make: Callable[[], Awaitable[None] | None], done: Callable[[Unfinished | None], None]) -> None:
        self._make = make
        self._done = done
        self._work: Generator[Any, None, None] | None = None

    def begin(self) -> None:
        """`done` may be called before this returns."""
        try:
            waits = self._make()
        except Exception as error:  # as in `_go_on`
            self._done(_unfinished(error))
            return
        if waits is None:
            self._done(None)
        else:
            self._work = waits.__await__()
            self._go_on(None)

    def cancel(self) -> None:
        """`done` is not called any more; a coroutine that waits gets GeneratorExit."""
        work, self._work = self._work, None
        if work is not None:
            work.close()

    def _go_on(self, _: object) -> None:
        work = self._work
        if work is None:  # cancelled
            return
        try:
            future = next(work)
        except StopIteration:
            self._end(None)
        except BaseException as error:  # it may be a bug of a finisher, or cancelled: never sent without
            self._end(_unfinished(error))
            if not isinstance(error, Exception):
                raise
        else:
            future._asyncio_future_blocking = False  # as a Task says that it has understood
            future.add_done_callback(self._go_on)

    def _end(self, error: Unfinished | None) -> None:
        self._work = None
        self._done(error)


def _unfinished(error: BaseException) -> Unfinished:
    return error if isinstance(error, Unfinished) else Unfinished("InternalError", repr(error))
