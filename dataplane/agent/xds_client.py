"""The stream from the control plane: a thin shell of grpc.aio around `agent/xds_stream`.

Called by `agent/agent`, which applies the states. The next response is read when the state before is applied, so a
slow proxy delays no other. Whatever ends the stream, the proxy goes on with its last good state and tries
again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # why a handshake failed is in our own line, once

import grpc
from google.protobuf.message import DecodeError

from dataplane.agent import xds_access
from dataplane.agent.backoff import Backoff, Gathering
from dataplane.agent.xds_stream import METHOD, Request, Response, State, XdsStream
from dataplane.link.messages import Record
from dataplane.settings import LOCAL, Address, XdsAccess
from dataplane.telemetry.metrics import Metrics

log = logging.getLogger("xds")

FIRST_PAUSE = 0.010
LONGEST_PAUSE = 15.0
"""Seconds before a stream that ended is opened again: twice as many each time, up to the longest."""
STEADY = 1.0
"""Seconds after which a stream that brought a response was a good one: the pauses begin anew."""

REPORT_AFTER = 1.0
"""Seconds in which news of endpoints are gathered for one report: twice as many each time while news go on."""
LONGEST_GATHERING = 16.0
"""Seconds in which they are at most, so that a fleet whose endpoints come and go costs its control plane little."""
NOTHING_REPORTED = "[]"

MAX_MESSAGE = 32 * 1024 * 1024

OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # A control plane that is gone without a word is noticed within 20 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # the library takes this one, 60 s unless set, not the one above
    ("grpc.http2.max_pings_without_data", 0),
    # Pauses between tries are made here: each try is a channel of its own that shares no connection and no backoff.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)

UNEXPLAINED = "INTERNAL: Internal error from Core"
"""The library's words when the other end refused the stream while a request was being written: why is lost."""
MOST_UNEXPLAINED = 3
"""In succession: then it is a reason of its own. Before that a further try shows the real one."""

Apply = Callable[[Sequence[Record]], Awaitable[Mapping[str, str]]]
"""Apply a state; answers name -> reason of everything from the control plane that is refused."""


class XdsClient:
    """Runs until it is cancelled."""

    def __init__(
        self, address: Address, stream: XdsStream, apply: Apply, metrics: Metrics, access: XdsAccess = LOCAL
    ) -> None:
        self._address, self._stream, self._apply, self._access = address, stream, apply, access
        self._metrics = metrics
        self._woken = asyncio.Event()
        """There is something to do beside the next response."""
        self._starts_over = self._has_news = False
        self.endpoints: Callable[[], str] = _nothing_to_report
        """What is to be reported of endpoints (`agent/troubles.report`)."""
        self._reported = NOTHING_REPORTED
        """On this stream."""
        self._gathering = Gathering(REPORT_AFTER, LONGEST_GATHERING, random.random)
        self._report_due: asyncio.TimerHandle | None = None
        self._logged = ""
        self._unexplained = 0
        self.is_connected = False
        self.version = ""
        """Of the last state that was applied."""

    async def run(self) -> None:
        """Converse; try again; for ever."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random.random)
        clock = asyncio.get_running_loop().time
        while True:
            started, reason = clock(), await self._talk()
            was_good = self.is_connected and clock() - started > STEADY
            self._disconnected(reason)
            if was_good:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    def start_over(self) -> None:
        """End the stream and open a new one: what was refused comes again. For causes that vanished on our side."""
        self._starts_over = True
        self._woken.set()

    def report(self) -> None:
        """There is something new of endpoints."""
        if self._report_due is None:
            loop = asyncio.get_running_loop()
            self._report_due = loop.call_later(self._gathering.seconds(loop.time()), self._gathered)

    def _gathered(self) -> None:
        self._report_due, self._has_news = None, True
        self._woken.set()

    async def _talk(self) -> str:
        """One stream; answers why it ended."""
        self._starts_over, self._reported, self._has_news = False, NOTHING_REPORTED, True
        try:
            opened, extra = xds_access.channel(self._address, self._access, OPTIONS), xds_access.metadata(self._access)
        except xds_access.Unusable as unusable:
            return f"UNUSABLE_FILE: {unusable}"
        async with opened as channel:
            call = channel.stream_stream(METHOD, request_serializer=Request.SerializeToString)(**extra)
            try:
                if not await self._converse(call):
                    return "STARTED_OVER: for the resources that were refused before"
            except grpc.aio.AioRpcError as error:
                return f"{error.code().name}: {error.details()}"
            except asyncio.InvalidStateError:
                return f"{(await call.code()).name}: {await call.details()}"
            except DecodeError as error:
                return f"a response cannot be read: {error}"
            return f"{(await call.code()).name}: ended by the control plane"

    async def _converse(self, call: grpc.aio.StreamStreamCall) -> bool:
        """Until the other end has said all: true; or until a new stream is wanted: false."""
        for request in self._stream.open():
            await self._write(call, request)
        read: asyncio.Future[Any] | None = None
        try:
            while True:
                read = read or asyncio.ensure_future(call.read())
                if read.done():
                    data, read = read.result(), None
                    if data is grpc.aio.EOF:
                        return True
                    await self._heard(call, data)
                elif self._starts_over:
                    return False
                elif self._has_news:
                    await self._report(call)
                else:
                    await self._response_or_woken(read)
        finally:
            if read is not None:
                read.cancel()

    async def _response_or_woken(self, read: asyncio.Future[Any]) -> None:
        """Cancels no read, which would end the call."""
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({read, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            self._woken.clear()

    async def _report(self, call: grpc.aio.StreamStreamCall) -> None:
        """Of endpoints, unless there is nothing, and was nothing."""
        self._has_news = False
        text = self.endpoints()
        if text != NOTHING_REPORTED or self._reported != NOTHING_REPORTED:
            self._reported = text
            await self._write(call, self._stream.reporting(text))

    async def _heard(self, call: grpc.aio.StreamStreamCall, data: bytes) -> None:
        """A response: apply the state that it completes, and answer."""
        response = Response.FromString(data)
        self._received(response, len(data))
        found = self._stream.receive(response)
        if isinstance(found, State):
            for answer in await self._take(found):
                await self._write(call, answer)
        elif found is not None:
            if found.HasField("error_detail"):
                self._count("xds_nacks_total")
            await self._write(call, found)

    async def _write(self, call: grpc.aio.StreamStreamCall, request: Request) -> None:
        self._count("xds_request_bytes_total", _kind(request.type_url), by=request.ByteSize())
        await call.write(request)

    async def _take(self, state: State) -> list[Request]:
        refused = await self._apply(state.records)
        self.version = state.version
        # Behind the answer, which the control plane waits for: a line costs as much.
        asyncio.get_running_loop().call_soon(_report, state, refused)
        answers = self._stream.answer(refused)
        for answer in answers:
            self._count("xds_nacks_total" if answer.HasField("error_detail") else "xds_acks_total")
        return answers

    def _received(self, response: Response, size: int) -> None:
        if not self.is_connected:
            self.is_connected = True
            self._metrics.slots[self._metrics.gauge("xds_connected")] = 1
            log.info("connected to the control plane", extra={"fields": {"address": self._address}})
        kind = _kind(response.type_url)
        self._count("xds_messages_total", kind)
        self._count("xds_message_bytes_total", kind, by=size)

    def _disconnected(self, reason: str) -> None:
        """Said once, and again when it is for another reason; not at every try."""
        code = reason.partition(":")[0]
        self._metrics.slots[self._metrics.gauge("xds_connected")] = 0
        self._count("xds_connection_terminations_total", code)
        self._unexplained = self._unexplained + 1 if reason == UNEXPLAINED else 0
        says_why = reason != UNEXPLAINED or self._unexplained == MOST_UNEXPLAINED
        is_news = self.is_connected or (says_why and code != self._logged)
        self.is_connected, self._logged = False, code if is_news or says_why else self._logged
        level = logging.WARNING if is_news else logging.DEBUG
        fields = {"address": self._address, "reason": reason}
        serving = "serving the last good state" if self.version else "no state received from it yet"
        log.log(level, f"no control plane; {serving}, trying again", extra={"fields": fields})

    def _count(self, name: str, *labels: str, by: int = 1) -> None:
        self._metrics.slots[self._metrics.counter(name, *labels)] += by


def _nothing_to_report() -> str:
    return NOTHING_REPORTED


def _report(state: State, refused: Mapping[str, str]) -> None:
    for name, reason in refused.items():
        log.warning("refused %s: %s", name or "state", reason)
    changed = sum(record.value is not None for record in state.records)
    fields = {"version": state.version, "changed": changed, "removed": len(state.records) - changed}
    log.info("state applied", extra={"fields": fields})


def _kind(type_url: str) -> str:
    return type_url.rpartition(".")[2]
