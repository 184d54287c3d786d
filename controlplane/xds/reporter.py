"""The end of a controller that does not lead: it reports to the leader what its proxies answered; `hub` is the other
end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc

from controlplane.answers.fleet import Fleet
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change
from controlplane.xds import answer_messages
from controlplane.xds.answer_messages import METHOD, ORIGIN
from controlplane.xds.hub import KEEPALIVE
from controlplane.xds.trust.authority import CONTROLLER
from controlplane.xds.trust.issuer import Issuer

log = logging.getLogger("controlplane.xds")

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 3.0
"""Seconds between two tries to reach the leader."""


class Reporter:
    """Reports to the leader. `leader`: its address, "" while there is none but this controller."""

    def __init__(self, fleet: Fleet, name: str, issuer: Issuer, leader: Callable[[], str]) -> None:
        self.trouble = ""
        self.messages = 0
        """That were sent."""
        self.failures = 0
        """Calls that ended with an error."""
        self._fleet = fleet
        self._name = name
        self._issuer = issuer
        self._leader = leader
        self._looks = asyncio.Event()
        """There may be another leader. Not `_news`: what a call leaves there would end the pause behind it."""
        self._news = asyncio.Event()
        """There may be another leader, an answer to pass on, or an end of the call."""

    def look(self) -> None:
        """The leader may be another one."""
        self._looks.set()
        self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause = FIRST_PAUSE
        while True:
            self._looks.clear()
            address = self._leader()
            if not address:
                self.trouble = ""  # it was about a leader that is none any more
                await self._wait(None)
                continue
            try:
                await self._report(address)
                pause = FIRST_PAUSE
            except grpc.aio.AioRpcError as error:
                self._failed(f"the leader, at {address}, cannot be reached: {error.code().name}")
            except asyncio.InvalidStateError:  # the library's word for a call that ended while it was written to
                pass
            await self._wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _wait(self, seconds: float | None) -> None:
        """Until the leader may be another one, and no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._looks.wait()

    async def _report(self, address: str) -> None:
        """To one leader, as long as it leads."""
        options = [
            ("grpc.ssl_target_name_override", CONTROLLER),
            ("grpc.keepalive_time_ms", int(KEEPALIVE[0] * 1000)),
            ("grpc.keepalive_timeout_ms", int(KEEPALIVE[1] * 1000)),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        async with grpc.aio.secure_channel(address, self._issuer.channel_credentials(), options) as channel:
            call = channel.stream_unary(METHOD)(metadata=((ORIGIN, self._name),))
            pending: dict[AnswerKey, Change[AnswerKey, Answer]] = {}

            def note(changes: Sequence[Change[AnswerKey, Answer]]) -> None:
                pending.update((change.key, change) for change in changes)
                self._news.set()

            end = self._fleet.answers.subscribe(note)
            self._news.set()  # the first batch is all that there is, also when that is nothing
            call.add_done_callback(lambda _call: self._news.set())
            try:
                await call.wait_for_connection()
                await self._pass_on(call, address, pending)
            finally:
                end()
                call.cancel()

    async def _pass_on(
        self, call: Any, address: str, pending: dict[AnswerKey, Change[AnswerKey, Answer]]
    ) -> None:  # Any: grpc is not typed
        while True:
            await self._news.wait()
            self._news.clear()
            if self._leader() != address:
                return
            if call.done():
                await call  # raises why
                return
            batch = [*pending.values()]
            pending.clear()
            for message in answer_messages.written(batch):
                await call.write(message)
                self.messages += 1
            self.trouble = ""

    def _failed(self, text: str) -> None:
        self.failures += 1
        if text != self.trouble:
            log.warning("%s; it is tried again", text)
        self.trouble = text
