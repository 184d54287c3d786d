"""The leader's end of the call by which controllers report what their proxies answered; `reporter` is the other one.

Each end is known by a certificate of the common authority (`issuer`). The laws of reports are those of `answers`:
while a controller that should be there has not reported yet, or was lost, it is unknown what its proxies have.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn, Protocol

import grpc

from controlplane.answers.fleet import Fleet
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change
from controlplane.xds import answer_messages, listeners
from controlplane.xds.answer_messages import MOST, ORIGIN, SERVICE, Unreadable
from controlplane.xds.trust.issuer import Issuer

log = logging.getLogger("controlplane.xds")

LOST: Final = 10.0
"""Seconds that a controller which is known, or was lost, has to report: then it counts as gone, with its proxies."""
KEEPALIVE: Final = (5.0, 3.0)
"""Seconds between pings, and for an answer: half-open connections must not pass for silence."""
MOST_ORIGINS: Final = 64
"""Controllers that are listened to."""

_NAME: Final = re.compile(r"[!-+\--~]{1,128}")

NOT_LEADING: Final = "this controller does not lead"


class Call(Protocol):
    """The part of grpc.aio's context that we use."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn: ...

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None: ...

    async def read(self) -> Any: ...  # Any: bytes, or grpc's mark of the end


class Hub:
    """The end of the leader. `fleet` gets the reports; `name` is this controller's own."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.is_leading = False
        self.messages = 0
        """That were read."""
        self._fleet = fleet
        self._name = name
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Of controllers that have to report."""
        self._calls: dict[str, object] = {}
        """The newest call of each that is connected."""
        self._gone: dict[str, None] = {}
        """Controllers that were waited for and did not report: names are of one process, so they stay gone."""
        self._server: grpc.aio.Server | None = None
        self._ended = asyncio.Event()

    @property
    def origins(self) -> set[str]:
        """The controllers that are there, as far as is known."""
        return self._calls.keys() | self._timers.keys()

    @property
    def reporting(self) -> int:
        """How many controllers are connected."""
        return len(self._calls)

    @property
    def awaited(self) -> int:
        """How many have something to report before what is known is relied on."""
        return len(self._timers)

    async def start(self, host: str, port: int, issuer: Issuer) -> int:
        """Listens; the port. Raises SocketError."""
        options = [*listeners.options(*KEEPALIVE), ("grpc.max_receive_message_length", MOST)]
        self._server = grpc.aio.server(options=list(dict(options).items()))
        method = grpc.stream_unary_rpc_method_handler(self._receive)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Report": method}),))
        shown = f"[{host}]" if ":" in host else host
        found = listeners.bind(self._server, f"{shown}:{port}", issuer.mutual_credentials())
        await self._server.start()
        return found

    async def stop(self) -> None:
        self.follow()
        if self._server is not None:
            await self._server.stop(0)

    def lead(self, expected: Iterable[str]) -> None:
        """From now on others report; those that are `expected` are waited for."""
        self.is_leading = True
        self._ended = asyncio.Event()
        for origin in expected:
            self.expect(origin)

    def follow(self) -> None:
        """Somebody else leads: what others reported is of no use, and they report to somebody else."""
        self.is_leading = False
        self._gone.clear()
        self._ended.set()
        for origin in [*self.origins]:
            self._forget(origin)

    def expect(self, origin: str) -> None:
        """There is another controller, which has not reported yet."""
        is_known = origin == self._name or origin in self.origins or origin in self._gone
        if self.is_leading and not is_known and self._has_capacity():
            self._wait_for(origin)

    def _has_capacity(self) -> bool:
        return len(self.origins) < MOST_ORIGINS

    def _wait_for(self, origin: str) -> None:
        self._fleet.expect(origin)
        self._timers[origin] = asyncio.get_running_loop().call_later(LOST, self._give_up, origin)

    def _give_up(self, origin: str) -> None:
        self._gone[origin] = None
        while len(self._gone) > MOST_ORIGINS:
            del self._gone[next(iter(self._gone))]
        self._forget(origin)

    def _forget(self, origin: str) -> None:
        self._stop_waiting(origin)
        self._calls.pop(origin, None)
        self._fleet.forget(origin)

    def _stop_waiting(self, origin: str) -> None:
        timer = self._timers.pop(origin, None)
        if timer is not None:
            timer.cancel()

    async def _receive(self, requests: object, call: Call) -> bytes:
        origin = _origin(call)
        if not self.is_leading:
            await call.abort(grpc.StatusCode.FAILED_PRECONDITION, NOT_LEADING)
        if not _NAME.fullmatch(origin) or origin == self._name:
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call names no controller")
        if origin not in self.origins and not self._has_capacity():
            await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "there are too many controllers")
        mark = object()
        self._calls[origin] = mark
        self._gone.pop(origin, None)
        self._fleet.expect(origin)
        log.info("controller %s reports what its proxies answer", origin)
        try:
            await self._hear(origin, mark, call)
        finally:
            if self._calls.get(origin) is mark:  # else it has called again, or is forgotten
                del self._calls[origin]
                self._stop_waiting(origin)
                self._wait_for(origin)
                log.info("controller %s no longer reports its proxies", origin)
        return b""

    async def _hear(self, origin: str, mark: object, call: Call) -> None:
        """Until the other end leaves, we do not lead any more, or it calls anew."""
        batch: list[Change[AnswerKey, Answer]] = []
        ended = asyncio.ensure_future(self._ended.wait())
        reading = asyncio.ensure_future(call.read())
        try:
            while True:
                await asyncio.wait((reading, ended), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done() or self._calls.get(origin) is not mark:
                    await call.abort(grpc.StatusCode.UNAVAILABLE, NOT_LEADING)
                message = reading.result()
                if message is grpc.aio.EOF:
                    return
                changes, has_more = await self._read(message, origin, call)
                self.messages += 1
                batch += changes
                if not has_more:
                    self._stop_waiting(origin)
                    self._fleet.hear(origin, batch)
                    batch = []
                reading = asyncio.ensure_future(call.read())
        finally:
            ended.cancel()
            reading.cancel()

    async def _read(self, message: bytes, origin: str, call: Call) -> tuple[list[Change[AnswerKey, Answer]], bool]:
        try:
            return answer_messages.read(message, origin)
        except Unreadable as error:
            log.warning("%s", error)
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def _origin(call: Call) -> str:
    found = [value for name, value in call.invocation_metadata() or () if name == ORIGIN]
    return str(found[0]) if len(found) == 1 else ""
