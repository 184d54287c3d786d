"""One exporter: records of one kind to one collector, over HTTP or gRPC, beside the traffic.

A request that ends calls `add` and nothing else. A Task of the worker makes messages and sends them one after the
other through `Calls`, so that the policies of the collector's backend say how it is connected to. A collector that
hangs, refuses or is gone costs records, which are counted, never a request its time.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.chain.grpc.status import StatusError
from dataplane.chain.grpc.unary import unary
from dataplane.export import outcomes
from dataplane.export.batches import Batches
from dataplane.export.outcomes import Outcome

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.telemetry.collector import Collector

Record = TypeVar("Record")
Record_contra = TypeVar("Record_contra", contravariant=True)

log = logging.getLogger("dataplane.export")

EVERY: Final = 1.0
"""Seconds that a record waits for others at most."""
WITHIN: Final = 10.0
"""Seconds for the answer to a message (the default of OTLP's exporters)."""
MOST_ANSWER: Final = 65_536
"""Bytes of an answer."""
SLICE: Final = 8
"""Records that are encoded before others have a turn."""
QUIET: Final = 60.0
"""Seconds between two log lines about one collector."""
_OK: Final = 200
_DROPPED: Final = Outcome(outcomes.AGAIN, "records are dropped: too many wait")


class Signal(Protocol[Record_contra]):
    """How records of one kind are sent."""

    name: str
    """`traces`, `logs` or `metrics`."""
    method: str
    """Path of the method of gRPC."""

    def weight(self, record: Record_contra) -> int:
        """About how many bytes it holds."""
        ...

    def encode(self, records: Sequence[Record_contra]) -> bytes:
        """A request message of some records. The bytes of several, one behind the other, are one message of all."""
        ...

    def rejected(self, answer: bytes) -> tuple[int, str]:
        """Of an answer: records that the collector did not take, and its words. Raises ValueError for what is none."""
        ...


class Exporter(Generic[Record]):
    """See above. `count(signal, outcome, records)` adds to the metrics; `spawn` begins a Task of the worker."""

    def __init__(
        self,
        signal: Signal[Record],
        collector: Collector,
        calls: Calls,
        spawn: Callable[[Any], Any],
        count: Callable[[str, str, int], None],
    ) -> None:
        self._signal = signal
        self._collector = collector
        self._calls = calls
        self._count = count
        self._batches: Batches[Record] = Batches()
        self._full = asyncio.Event()
        self._ended = asyncio.Event()
        self._spawn = spawn
        self._runs = False
        self._reported = -QUIET
        self._closing = False

    def admits(self) -> bool:
        """Whether a record is worth making; one that would find no place is counted as dropped."""
        if self._batches.is_full:
            self._drop()
            return False
        return True

    def add(self, record: Record) -> None:
        """Take in a record; it is dropped, and counted, where too many wait."""
        if not self._batches.add(record, self._signal.weight(record)):
            self._drop()
            return
        if not self._runs:
            self._runs = True
            self._ended.clear()
            self._spawn(self._run())
        elif self._batches.is_due:
            self._full.set()

    def _drop(self) -> None:
        self._count(self._signal.name, "dropped", 1)
        self._report(_DROPPED)

    @property
    def is_idle(self) -> bool:
        """Nothing waits, and nothing is under way."""
        return not self._runs

    async def close(self) -> None:
        """No record comes any more: what waits is sent now, once. Returns when that is done."""
        self._closing = True
        self._full.set()
        if self._runs:
            await self._ended.wait()

    async def _run(self) -> None:
        """Until nothing waits; the next record begins another."""
        try:
            while len(self._batches):
                if not self._batches.is_due and not self._closing:
                    await self._pause()
                records = self._batches.take()
                try:
                    await self._deliver(records)
                except Exception:  # a bug costs the records of one message, and says so
                    self._count(self._signal.name, "undelivered", len(records))
                    log.exception("collector %s (%s)", self._collector.backend, self._signal.name)
        finally:
            self._runs = False
            self._ended.set()

    async def _pause(self) -> None:
        self._full.clear()
        try:
            await asyncio.wait_for(self._full.wait(), EVERY)
        except TimeoutError:
            return

    async def _deliver(self, records: list[Record]) -> None:
        message = await self._encoded(records)
        loop = asyncio.get_running_loop()
        until, tries = loop.time() + outcomes.LONGEST, 0
        while True:
            outcome = await self._send(message)
            tries += 1
            if outcome.kind != outcomes.AGAIN:
                self._count_outcome(outcome, len(records))
                return
            self._report(outcome)
            seconds = outcomes.pause(tries, outcome.after, random.random())
            if self._closing or loop.time() + seconds > until:
                self._count(self._signal.name, "undelivered", len(records))
                return
            await asyncio.sleep(seconds)

    async def _encoded(self, records: list[Record]) -> bytes:
        parts = []
        for at in range(0, len(records), SLICE):
            if at:
                await asyncio.sleep(0)
            parts.append(self._signal.encode(records[at : at + SLICE]))
        return b"".join(parts)

    async def _send(self, message: bytes) -> Outcome:
        try:
            answer = await (self._over_http(message) if self._collector.path else self._over_grpc(message))
        except CallFailed as failure:
            return outcomes.of_failure(failure.cause, str(failure))
        except StatusError as error:
            return outcomes.of_grpc(error.status)
        if isinstance(answer, Outcome):
            return answer
        try:
            rejected, words = self._signal.rejected(answer)
        except ValueError:
            return Outcome(outcomes.TAKEN)  # it answered 200: what it says besides is its own affair
        return Outcome(outcomes.TAKEN, words, rejected)

    async def _over_grpc(self, message: bytes) -> bytes:
        return await unary(
            self._calls, None, self._collector.backend, self._signal.method, message, WITHIN, MOST_ANSWER
        )

    async def _over_http(self, message: bytes) -> bytes | Outcome:
        headers = b"content-type: application/x-protobuf\r\n"
        request = CallRequest(b"POST", self._collector.path, b"", headers, message)
        answer = await self._calls.http(self._collector.backend, request, WITHIN, MOST_ANSWER)
        if answer.status == _OK:
            return answer.body
        return outcomes.of_http(answer.status, answer.head.get(b"retry-after") or b"")

    def _count_outcome(self, outcome: Outcome, records: int) -> None:
        rejected = records if outcome.kind == outcomes.REFUSED else min(outcome.rejected, records)
        if records > rejected:
            self._count(self._signal.name, "sent", records - rejected)
        if rejected:
            self._count(self._signal.name, "rejected", rejected)
            self._report(outcome)

    def _report(self, outcome: Outcome) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._reported < QUIET:
            return
        self._reported = now
        log.warning("collector %s (%s): %s", self._collector.backend, self._signal.name, outcome.detail)
