"""One proxy's delta ADS call: moves bytes between gRPC and the `Stream` state machine.

A thin shell. Requests are read in one task and responses written in another, so that an ACK is seen while a big state
is still being written; `write` waits for the peer's flow control, so a slow reader holds one response, not a queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

import grpc

from controlplane.snapshot import Snapshots
from controlplane.xds.fleet import Fleet, Proxy
from controlplane.xds.nacks import Refusal
from controlplane.xds.node import Peer, ProtocolError
from controlplane.xds.stream import Acknowledged, Refused, Stream
from gatewright.wire.external import discovery_pb2

LOG: Final = logging.getLogger(__name__)


class Call(Protocol):
    """What every call offers: the part of grpc.aio's context that we use (the library is not typed)."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn: ...

    def peer(self) -> str: ...

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None: ...


class DeltaCall(Call, Protocol):
    """A delta call: requests are read as messages (or `grpc.aio.EOF`), responses written as bytes."""

    async def read(self) -> discovery_pb2.DeltaDiscoveryRequest: ...

    async def write(self, response: bytes) -> None: ...


class Session:
    """A connected proxy. Made when its first request was read and allowed; `run` lasts until the call ends."""

    def __init__(self, stream: Stream, snapshots: Snapshots, fleet: Fleet, peer: Peer) -> None:
        assert stream.identity is not None  # the first request was received
        self.stream = stream
        self.gateway = stream.identity.gateway
        self.proxy: Proxy = fleet.connect(stream.identity.node_id, self.gateway, peer.address)
        self._snapshots = snapshots
        self._fleet = fleet
        self._wake = asyncio.Event()
        self._closing = ""

    def notify(self) -> None:
        """There is a newer snapshot."""
        self._wake.set()

    def close(self, reason: str) -> None:
        """End the call with UNAVAILABLE, so that the proxy tries again, here or at another replica."""
        self._closing = reason
        self._wake.set()

    async def run(self, call: DeltaCall) -> None:
        """Serve until the proxy ends the call, breaks the protocol or is cancelled."""
        LOG.info("proxy %s connected from %s", self.proxy.node_id, self.proxy.address)
        reader = asyncio.create_task(self._read(call))
        reader.add_done_callback(self._stopped_reading)
        try:
            await self._write(call, reader)
        except ProtocolError as error:
            LOG.warning("proxy %s: %s", self.proxy.node_id, error)
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        finally:
            self._fleet.disconnect(self.proxy)  # before anything that waits: a call can be cancelled twice
            LOG.info("proxy %s disconnected", self.proxy.node_id)
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, call: DeltaCall) -> None:
        while (request := await call.read()) is not grpc.aio.EOF:
            self.stream.receive(request)
            self._report()
            if self.stream.has_more(self._snapshots.newest(self.gateway)):
                self._wake.set()

    def _stopped_reading(self, reader: asyncio.Task[None]) -> None:
        if not reader.cancelled():
            reader.exception()  # taken note of; `_write` raises it, unless the call ended first
        self._wake.set()

    async def _write(self, call: DeltaCall, reader: asyncio.Task[None]) -> None:
        """Write what there is to write. A peer that only asked (no more requests follow) gets one state and the end."""
        while True:
            if self._closing:
                await call.abort(grpc.StatusCode.UNAVAILABLE, self._closing)
            if reader.done():
                reader.result()  # raises what went wrong
            response = self.stream.next_response(self._snapshots.newest(self.gateway))
            self._report()
            if response is not None:
                await call.write(response)
            elif reader.done() and self.stream.wait() is None:
                return
            else:
                await self._pause()

    async def _pause(self) -> None:
        seconds = self.stream.wait()
        if seconds is None:
            await self._wake.wait()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
        self._wake.clear()

    def _report(self) -> None:
        """Pass on to the fleet what became known."""
        for outcome in self.stream.take_outcomes():
            match outcome:
                case Acknowledged(sequence, version):
                    self._fleet.acknowledge(self.proxy, sequence, version)
                case Refused(sequence, version, refusals, complete):
                    self._log(refusals)
                    self._fleet.refuse(self.proxy, sequence, version, refusals, complete=complete)

    def _log(self, refusals: tuple[Refusal, ...]) -> None:
        """One line for each new refusal: a proxy repeats what it still refuses in every answer."""
        for refusal in refusals:
            if self.proxy.refusals.get(refusal.key) != refusal:
                LOG.warning("proxy %s refuses %s: %s", self.proxy.node_id, refusal.key or "a state", refusal.error)
