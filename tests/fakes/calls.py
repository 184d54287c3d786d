"""A network for policies, played by a test: `Env.calls` that answers from a table and checks what it is given.

    calls = FakeCalls({"backend/auth": answered(200, b'{"user": "ann"}', x_user="ann")})
    calls.on("backend/keys", lambda request: failed("timeout"))
    ...
    assert calls.targets == [b"/check"]

Works in a Task and without an event loop (`MemoryProxy`). With `hold` set, calls wait for `release`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dataplane.chain.calls import FOR_EVER, MAX_ANSWER, CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head, is_name, is_value
from dataplane.proxy.steps.waiting import StepFuture
from tests.fakes.memory_proxy import Pending

Outcome = CallAnswer | CallFailed
Handler = Callable[[CallRequest], Outcome]

CAUSES = frozenset(("unresolved", "connect", "timeout", "lost", "invalid", "too_large", "unfinished"))
OURS = frozenset((b"host", b"content-length", b"transfer-encoding", b"connection"))
"""What only `Calls` itself writes."""


def answered(status: int = 200, body: bytes = b"", **headers: str) -> CallAnswer:
    """An answer; `x_user="ann"` is the header `x-user: ann`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return CallAnswer(status, Head(b"\r\n" + lines.encode()), body)


def failed(cause: str, text: str = "") -> CallFailed:
    """A call without an answer."""
    assert cause in CAUSES
    return CallFailed(cause, text or f"the test's {cause}")


@dataclass(frozen=True)
class Received:
    """One call as it was asked for."""

    backend: str
    request: CallRequest
    seconds: float
    max_body: int


class FakeCalls:
    """`table`: outcomes or handlers by key of a backend. For a backend that is not there, `otherwise` counts; without
    one it is `unresolved`."""

    def __init__(
        self, table: Mapping[str, Outcome | Handler] | None = None, otherwise: Outcome | Handler | None = None
    ) -> None:
        self.otherwise = otherwise
        self.received: list[Received] = []
        self.hold = False
        """Whoever calls waits, until `release`."""
        self.given_up = 0
        """Calls that were cancelled while they waited."""
        self._table: dict[str, Outcome | Handler] = dict(table or {})
        self._waiting: list[Any] = []  # futures of a loop, or what stands for one

    def on(self, backend: str, outcome: Outcome | Handler) -> None:
        """From now on this backend answers so."""
        self._table[backend] = outcome

    @property
    def targets(self) -> list[bytes]:
        """Of the calls so far."""
        return [each.request.target for each in self.received]

    @property
    def last(self) -> CallRequest:
        return self.received[-1].request

    @property
    def waiting(self) -> int:
        """Calls that wait for `release` now."""
        return len(self._waiting)

    def release(self) -> None:
        """Answer everybody who waits; those who ask from now on wait if `hold` is still set."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def http(
        self, backend: str, request: CallRequest, seconds: float, max_body: int = 1024 * 1024, x: Any = None
    ) -> CallAnswer:
        check(request)
        assert seconds > 0 and max_body > 0
        self.received.append(Received(backend, request, seconds, max_body))
        if self.hold:
            await self._held()
        outcome = self._table.get(backend, self.otherwise)
        if outcome is None:
            outcome = failed("unresolved", f"{backend} is not known")
        if callable(outcome):
            outcome = outcome(request)
        if isinstance(outcome, CallFailed):
            raise CallFailed(outcome.cause, str(outcome))
        if len(outcome.body) > max_body:
            raise CallFailed("too_large", "the answer is too large")
        return CallAnswer(outcome.status, Head(outcome.head.block), outcome.body)

    def plan(self, backend: str, x: Any = None) -> FakePlan:
        return FakePlan(backend)

    def open(
        self,
        plan: FakePlan,
        request: CallRequest,
        *,
        x: Any,
        head_within: float,
        whole_within: float = FOR_EVER,
        idempotent: bool = False,
        sends_more: bool = False,
    ) -> FakeCall:
        """A call whose answer is the outcome's, asked for with all that was sent by its end."""
        return FakeCall(self, plan.key, request, min(head_within, whole_within), sends_more)

    async def _held(self) -> None:
        future = _future()
        self._waiting.append(future)
        try:
            await future
        except BaseException:  # whatever ends the wait from outside: a cancelled Task, a closed coroutine
            self.given_up += 1
            if future in self._waiting:
                self._waiting.remove(future)
            raise


@dataclass(frozen=True)
class FakePlan:
    key: str
    request_timeout: float | None = None


class FakeCall:
    """A call: its answer comes when the request has ended."""

    endpoint = None

    def __init__(
        self, calls: FakeCalls, backend: str, request: CallRequest, seconds: float, sends_more: bool = False
    ) -> None:
        self.trailers = b""
        self._calls, self._backend, self._request, self._seconds = calls, backend, request, seconds
        self._sent = [request.body]
        self._answer: CallAnswer | None = None
        self._is_read, self._is_ended = False, not sends_more

    async def send(self, data: bytes, end: bool = False) -> None:
        assert not self._is_ended, "sent behind the end"
        self._sent.append(data)
        self._is_ended = end

    async def end(self, trailers: bytes = b"") -> None:
        await self.send(b"", True)

    async def head(self) -> CallAnswer:
        await self._ask(MAX_ANSWER)
        assert self._answer is not None
        return CallAnswer(self._answer.status, self._answer.head, b"")

    async def receive(self) -> bytes:
        await self._ask(MAX_ANSWER)
        assert self._answer is not None
        body, self._is_read = b"" if self._is_read else self._answer.body, True
        return body

    async def whole(self, most: int) -> CallAnswer:
        await self._ask(most)
        assert self._answer is not None
        return self._answer

    async def pour(self, taker: Callable[[bytes], None]) -> None:
        taker(await self.receive())

    async def _ask(self, most: int) -> None:
        assert self._is_ended, "asked for an answer before the end: nobody would give it"
        if self._answer is None:
            asked = self._request
            whole = CallRequest(asked.method, asked.target, asked.authority, asked.headers, b"".join(self._sent))
            self._answer = await self._calls.http(self._backend, whole, self._seconds, most)

    def hold(self, held: bool) -> None:
        """Nothing comes by itself."""

    def cancel(self) -> None:
        self._is_ended = True


def _future() -> Any:  # a future of the loop, or what stands for one
    try:
        return StepFuture(loop=asyncio.get_running_loop())
    except RuntimeError:
        return Pending()


_TARGET = re.compile(rb"/[\x21\x22\x24-\x7e]*").fullmatch
_AUTHORITY = re.compile(rb"[A-Za-z0-9._~\-:\[\]%!$&'()*+,;=]*").fullmatch


def check(request: CallRequest) -> None:
    """Assert that a request can be sent as it is: one message to one reader, whatever its parts came from."""
    assert is_name(request.method), request.method
    assert _TARGET(request.target), request.target
    assert _AUTHORITY(request.authority), request.authority
    assert request.headers == b"" or request.headers.endswith(b"\r\n"), request.headers
    for line in request.headers.split(b"\r\n")[:-1]:
        name, colon, value = line.partition(b":")
        assert is_name(name) and colon and is_value(value.strip(b" \t")), line
        assert name.lower() not in OURS, line


class Parts:
    """What a call answers, part by part; an exception is raised."""

    endpoint = None

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)
        self.is_given_up = False

    async def receive(self) -> bytes:
        part = self.parts.pop(0) if self.parts else b""
        if isinstance(part, Exception):
            raise part
        return part

    def cancel(self) -> None:
        self.is_given_up = True
