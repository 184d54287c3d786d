"""One proxy's delta ADS call: moves bytes between gRPC and the `Stream` state machine.

A thin shell. Requests are read in one task and responses written in another, so that an ACK is seen while a big state
is still being written; `write` waits for the peer's flow control, so a slow reader holds one response, not a queue. All
sessions together hold no more than `permits` allows. The server calls `check` now and then, which notices who is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

import grpc

from controlplane.answers.fleet import Fleet
from controlplane.answers.nacks import Refusal
from controlplane.answers.proxies import Proxy
from controlplane.snapshot import Snapshots
from controlplane.xds.accounts import Charge
from controlplane.xds.node import Exhausted, Peer, ProtocolError
from controlplane.xds.numbers import EXHAUSTED, Numbers
from controlplane.xds.permits import FREE_BYTES, PATIENCE, Permit, Permits
from controlplane.xds.protocol.stream import Acknowledged, Refused, Stream

LOG: Final = logging.getLogger(__name__)

MOST_LINES: Final = 5
"""Of the log for one NACK: hundreds of proxies may refuse hundreds of resources."""
COMES_BACK: Final = 5.0
"""Seconds that a proxy has to come back with a new credential."""
TOO_SLOW: Final = "this proxy took nothing that was sent to it for too long"


def code_of(error: ProtocolError) -> grpc.StatusCode:
    """How a stream ends whose peer broke the protocol."""
    return grpc.StatusCode.RESOURCE_EXHAUSTED if isinstance(error, Exhausted) else grpc.StatusCode.INVALID_ARGUMENT


class Call(Protocol):
    """What every call offers: the part of grpc.aio's context that we use (the library is not typed)."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn: ...

    def peer(self) -> str: ...

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None: ...

    def auth_context(self) -> Mapping[str, Sequence[bytes]]: ...


class DeltaCall(Call, Protocol):
    """A delta call: requests are read as bytes (or `grpc.aio.EOF`), responses written as such."""

    async def read(self) -> bytes: ...

    async def write(self, response: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Shared:
    """What all sessions of a server share. A proxy that takes no response for `send_timeout` seconds is left."""

    snapshots: Snapshots
    fleet: Fleet
    permits: Permits
    send_timeout: float
    numbers: Numbers = field(default_factory=Numbers)


class Session:
    """A connected proxy. Made when its first request was read and allowed; `run` lasts until the call ends."""

    def __init__(self, stream: Stream, shared: Shared, peer: Peer, charge: Charge) -> None:
        """`charge`: its place among what all streams make us keep; ended by its maker."""
        assert stream.identity is not None  # the first request was received
        self.stream = stream
        self.peer = peer
        self.gateway = stream.identity.gateway
        self.proxy: Proxy = shared.fleet.connect(stream.identity.node_id, self.gateway, peer.address)
        self._charge = charge
        self._snapshots = shared.snapshots
        self._fleet = shared.fleet
        self._permits = shared.permits
        self._numbers = shared.numbers
        self._send_timeout = shared.send_timeout
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None
        self._closing = ""
        self._comes_back = False
        self._ticket = 0
        self._permit: Permit | None = None
        self._slow = False
        self._waits_since = math.inf
        """When the response was written that the peer has not taken yet, or the question that it has not answered."""
        self._left = False

    def notify(self) -> None:
        """There is a newer snapshot, or another reason to look."""
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self, reason: str) -> None:
        """End the call with UNAVAILABLE, so that the proxy tries again, here or at another replica."""
        self._closing = reason
        self.notify()

    def renew(self, reason: str) -> None:
        """End the call, so that the proxy comes back with a new credential. It counts as connected for `COMES_BACK`."""
        self._comes_back = True
        self.close(reason)

    def check(self, now: float) -> None:
        """Notice a peer that does not take what is sent to it, or does not answer a question. `now`: monotonic."""
        waits = now - self._waits_since
        if waits > PATIENCE and self._permit is not None:
            self._slow = True
            self._permits.delay(self._permit)
        if waits > self._send_timeout and not self._left:
            LOG.warning("proxy %s took nothing for %.0f s: it is left", self.proxy.node_id, waits)
            self._leave()
            self.close(TOO_SLOW)

    async def run(self, call: DeltaCall) -> None:
        """Serve until the proxy ends the call, breaks the protocol or is cancelled."""
        LOG.info("proxy %s connected from %s", self.proxy.node_id, self.proxy.address)
        reader = asyncio.create_task(self._read(call))
        reader.add_done_callback(self._stopped_reading)
        try:
            await self._write(call, reader)
        except ProtocolError as error:
            LOG.warning("proxy %s: %s", self.proxy.node_id, error)
            self._numbers.streams[EXHAUSTED] += isinstance(error, Exhausted)
            self.stream.forget()
            self._charge.weigh(self.stream.weight)  # others do not have to wait until the peer has heard of it
            error.__traceback__ = None  # what was read is in its frames, which live as long as the peer lets the call
            await call.abort(code_of(error), str(error))
        finally:
            self._end_permit()
            self._leave()  # before anything that waits: a call can be cancelled twice
            LOG.info("proxy %s disconnected", self.proxy.node_id)
            reader.cancel()
            await asyncio.wait([reader])

    def _leave(self) -> None:
        """The proxy counts no longer. gRPC cannot end a call while a message is under way, so that may take longer."""
        if self._left:
            return
        self._left = True
        if self._comes_back:
            self.proxy.is_expected_back = True
            asyncio.get_running_loop().call_later(COMES_BACK, self._fleet.disconnect, self.proxy)
        else:
            self._fleet.disconnect(self.proxy)

    async def _read(self, call: DeltaCall) -> None:
        while (request := await call.read()) is not grpc.aio.EOF:
            self.stream.take(request)
            self._charge.weigh(self.stream.weight)
            if self.stream.report is not self.proxy.report:
                self._fleet.hear_report(self.proxy, self.stream.report)
            self._report()
            if self.stream.has_more(self._snapshots.newest(self.gateway)):
                self.notify()

    def _stopped_reading(self, reader: asyncio.Task[None]) -> None:
        if not reader.cancelled():
            reader.exception()  # taken note of; `_write` raises it, unless the call ended first
        self.notify()

    async def _write(self, call: DeltaCall, reader: asyncio.Task[None]) -> None:
        """Write what there is to write. A peer that only asked (no more requests follow) gets one state and the end."""
        while True:
            if self._closing:
                await call.abort(grpc.StatusCode.UNAVAILABLE, self._closing)
            if reader.done():
                reader.result()  # raises what went wrong
            if self._waits_since != math.inf and not self.stream.is_asked:
                self._end_permit()  # what was written is taken, a question is answered
            size = self.stream.prepare(self._snapshots.newest(self.gateway))
            self._charge.weigh(self.stream.weight)  # what the proxy said that it holds is used, and gone
            self._report()
            if size is None and reader.done() and self.stream.wait() is None:
                return
            if size is None or not self._may_send(size):
                await self._pause()
            else:
                await self._send(call)

    def _may_send(self, size: int) -> bool:
        """Whether this stream may send so much now; if not, it lines up and is woken."""
        if self._permit is None:
            if size <= FREE_BYTES:
                return True
            self._ticket = self._ticket or self._permits.ticket()
            self._permit = self._permits.ask(self._ticket, size, self.notify, slow=self._slow)
        return self._permit.granted

    async def _send(self, call: DeltaCall) -> None:
        response = self.stream.next_response(self._snapshots.newest(self.gateway))
        if response is None:
            return
        self._waits_since = time.monotonic()
        await call.write(response)
        self._numbers.responses += 1
        self._numbers.response_bytes += len(response)
        self._slow = time.monotonic() - self._waits_since > PATIENCE

    def _end_permit(self) -> None:
        self._waits_since = math.inf
        if self._permit is not None:
            self._permits.end(self._permit)
            self._permit = None

    async def _pause(self) -> None:
        if self._permit is None:
            self._ticket = 0  # all is said: the next state has a place of its own
        seconds = self.stream.wait()
        if seconds is None:
            await self._woken_up()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken_up()
        self._woken = False

    async def _woken_up(self) -> None:
        """Until `notify`. A future for each wait costs half of what an `asyncio.Event` does."""
        if not self._woken:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _report(self) -> None:
        """Pass on to the fleet what became known."""
        if self._left:
            return
        for outcome in self.stream.take_outcomes():
            match outcome:
                case Acknowledged(sequence, version):
                    self._fleet.acknowledge(self.proxy, sequence, version)
                case Refused(sequence, version, refusals, complete):
                    self._log(refusals)
                    self._fleet.refuse(self.proxy, sequence, version, refusals, complete=complete)

    def _log(self, refusals: Mapping[str, Refusal]) -> None:
        """A line for each of the first new refusals: a proxy repeats what it still refuses in every answer."""
        new = [refusal for refusal in refusals.values() if self.proxy.refusals.get(refusal.key) != refusal]
        for refusal in new[:MOST_LINES]:
            LOG.warning("proxy %s refuses %s: %s", self.proxy.node_id, refusal.key or "a state", refusal.error)
        if len(new) > MOST_LINES:
            LOG.warning("proxy %s refuses %d more", self.proxy.node_id, len(new) - MOST_LINES)
