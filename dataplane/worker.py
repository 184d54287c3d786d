"""One serving process: its event loop, and the link to the agent. What it serves with is put together in `serving`.

Forked (`--forks-fd`) or started (`--link-fd`) with one end of a socket pair, whose other end is the agent's. What the
agent says is done in the order in which it was said; heartbeats, dumps and log levels are answered at once. When the
link ends, so does the worker: it accepts no more, lets requests end and goes. It never loads YAML, pydantic, grpc,
prometheus_client or what watches files.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dataplane import fork_server
from dataplane.chain.filter import Row
from dataplane.filters import registry
from dataplane.link import messages
from dataplane.link.channel import Channel
from dataplane.link.messages import Message
from dataplane.link.shared import Region
from dataplane.serving import Host, Serving
from dataplane.settings import Drain
from dataplane.table import collection
from dataplane.telemetry import process_log

log = logging.getLogger("dataplane.worker")

SPARE_FILES = 8
"""Descriptors held back for listening sockets that the agent hands over when traffic has used up all others."""


class Worker:
    """One serving process. Everything but the link is made when the agent has said `Hello`."""

    def __init__(self, link: socket.socket, rows: Sequence[Row], host: Host | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._rows = rows
        self._host = host or Host()
        self._regions: list[Region] = []
        self._heard: asyncio.Queue[tuple[Message, int]] = asyncio.Queue()
        self._end: asyncio.Future[tuple[float, float]] = self._loop.create_future()
        self._serving: Serving | None = None
        self._channel = Channel(link, self._on_message, self._on_end, SPARE_FILES)

    async def run(self) -> None:
        """Until the agent ends it. A failure, or being cancelled, lets go of everything at once."""
        listening = self._loop.create_task(self._obey())
        ends: set[asyncio.Future[Any]] = {listening, self._end}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()  # raises: a message could not be carried out; what would follow is unknown
            if self._serving is not None:
                await self._serving.drain(*self._end.result())
        finally:
            listening.cancel()
            self._channel.close()
            if self._serving is not None:
                await self._serving.close()
            while not self._heard.empty():
                _, fd = self._heard.get_nowait()
                if fd >= 0:
                    os.close(fd)
            for region in self._regions:
                region.close()

    def terminate(self) -> None:
        """SIGTERM: drain as the settings say; without settings there is nothing to drain."""
        drain = self._serving.settings.drain if self._serving is not None else Drain(0.0, 0.0)
        self._finish(drain.minimum, drain.maximum)

    def _on_message(self, message: Message, fd: int) -> None:
        at_once = AT_ONCE.get(type(message))
        if at_once is not None:
            at_once(self, message)
        else:
            self._heard.put_nowait((message, fd))

    def _on_end(self, reason: str) -> None:
        log.warning("the agent is gone%s; ending", f" ({reason})" if reason else "")
        maximum = self._serving.settings.drain.maximum if self._serving is not None else 0.0
        self._finish(0.0, maximum)

    def _finish(self, minimum: float, maximum: float) -> None:
        if not self._end.done():
            self._end.set_result((minimum, maximum))

    # At once.

    def _pong(self, message: messages.Ping) -> None:
        self._channel.send(messages.Pong(message.number))

    def _drain(self, message: messages.Drain) -> None:
        self._finish(message.minimum, message.maximum)

    def _dump(self, message: messages.DumpRequest) -> None:
        dump = self._serving.dump() if self._serving is not None else {}
        self._channel.send(messages.DumpAnswer(message.number, dump))

    def _commit(self, _message: messages.Commit) -> None:
        if self._serving is not None:
            self._serving.commit()

    def _set_levels(self, message: messages.LogLevel) -> None:
        self._host.set_levels(message.default, message.modules)

    # In order.

    async def _obey(self) -> None:
        hello, fd = await self._heard.get()
        common, common_fd = await self._heard.get()
        assert isinstance(hello, messages.Hello) and isinstance(common, messages.Common)
        self._regions = [region, shared] = [Region.attach(fd), Region.attach(common_fd)]
        self._serving = serving = Serving(hello, region, shared, self._rows, self._host, self._channel.send)
        while True:
            message, fd = await self._heard.get()
            answer = await _IN_ORDER[type(message)](serving, message, fd)
            if answer is not None:
                self._channel.send(answer)


AT_ONCE: dict[type[Message], Callable[[Worker, Any], None]] = {
    messages.Ping: Worker._pong,
    messages.Commit: Worker._commit,
    messages.Drain: Worker._drain,
    messages.DumpRequest: Worker._dump,
    messages.LogLevel: Worker._set_levels,
}


_IN_ORDER: dict[type[Message], Callable[[Serving, Any, int], Coroutine[Any, Any, Message | None]]] = {
    messages.Changes: Serving.collect,
    messages.StateEnd: Serving.apply,
    messages.OpenBind: Serving.open_bind,
    messages.CloseBind: Serving.close_bind,
}


def main(extra_rows: Sequence[Row] = ()) -> None:
    """Serve until the agent says otherwise. `extra_rows`: policies beside those of the registry (benchmarks)."""
    quicker = loop_factory()  # loaded before there are workers
    collection.configure()
    link = _link(sys.argv[1:])
    if link is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the agent decides
    process_log.configure("text", "worker")
    with asyncio.Runner(loop_factory=quicker) as runner:
        runner.run(_serve(link, (*registry.ROWS, *extra_rows)))


def _link(arguments: Sequence[str]) -> socket.socket | None:
    """Of `--link-fd N`, or of a fork of what `--forks-fd N` asks for; None: there is nothing left to fork for."""
    # By hand: argparse would take a twentieth of the start.
    if len(arguments) != 2 or arguments[0] not in ("--link-fd", "--forks-fd") or not arguments[1].isdecimal():
        sys.exit("python -m dataplane.worker --link-fd FD | --forks-fd FD: started by the agent only")
    given = socket.socket(fileno=int(arguments[1]))
    return given if arguments[0] == "--link-fd" else fork_server.serve(given)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _serve(link: socket.socket, rows: Sequence[Row]) -> None:
    worker = Worker(link, rows)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.terminate)
    await worker.run()


if __name__ == "__main__":
    main()
    sys.exit(0)
