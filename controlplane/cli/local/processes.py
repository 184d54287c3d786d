"""The child processes of `gatewright up`: what should run by the folder's objects, what does run, and the difference.

`up` calls `reconcile` once, `follow` for the rest of its life, and `stop` at the end. A proxy that ends by itself is
started again after a pause that grows; what children write is passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from controlplane import app as app_
from controlplane.cli import children
from controlplane.cli.local import demo, fleet, summary

GRACE = 4.0
"""Seconds from SIGTERM to SIGKILL, when `gatewright up` ends its processes."""
SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds before a process that ended unexpectedly is started again: twice as many each time, up to the longest."""
STEADY_SECONDS = 30.0
"""A proxy that ran this long starts its next pauses from the shortest again."""
DEMO = "demo"

Start = Callable[[children.Command, children.Output], Awaitable[children.Child]]
"""Starts a child; raises OSError when the program cannot be run."""


@dataclass(slots=True)
class _Slot:
    """One proxy that should run. `child` is None between its end and its next start."""

    proxy: fleet.Proxy
    child: children.Child | None = None
    watch: asyncio.Task[None] | None = None
    started: float = 0.0
    due: float = 0.0
    pause: float = SHORTEST_PAUSE
    code: int | None = None


class Processes:
    """Everything that `up` started."""

    def __init__(
        self,
        app: app_.App,
        plan: fleet.Plan,
        output: children.Output,
        environment: Mapping[str, str],
        start: Start = children.start,
    ) -> None:
        self.plan = plan
        self.demos: frozenset[demo.Server] = frozenset()
        self._app = app
        self._output = output
        self._environment = environment
        self._start_child = start
        self._clock = asyncio.get_running_loop().time
        self._lifeline = children.Lifeline()
        self._places: dict[str, int] = {}
        self._slots: dict[str, _Slot] = {}
        self._demo: children.Child | None = None
        self._demo_watch: asyncio.Task[None] | None = None
        self._complaints: list[str] = []
        self._news = app.news

    def say(self, text: str) -> None:
        """A line of `up` itself, between those of its children."""
        self._output.say(text.encode() + b"\n")

    def wanted(self) -> list[fleet.Proxy]:
        """The proxies that the folder's Gateways ask for now."""
        return fleet.wanted(self._app.gateways(), self.plan, self._places)

    def ended(self, label: str) -> int | None:
        """The exit status of a proxy that ended by itself, None while it runs."""
        return self._slots[label].code

    async def follow(self) -> None:
        """Keeps what runs equal to what is wanted, until cancelled."""
        while True:
            due = min((slot.due for slot in self._slots.values() if slot.child is None), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                    await self._news.wait()
            self._news.clear()
            await self.reconcile()

    async def reconcile(self) -> None:
        """One step: stops what is no longer wanted, starts what is wanted and does not run."""
        wanted = {proxy.label: proxy for proxy in self.wanted()}
        gone = [self._slots.pop(label) for label in self._slots.keys() - wanted.keys()]
        await self._stop([slot.child for slot in gone if slot.child], GRACE)
        await self._reconcile_demos()
        for label, proxy in wanted.items():
            slot = self._slots.setdefault(label, _Slot(proxy))
            if slot.child is None and self._clock() >= slot.due:
                await self._start(slot)

    async def _start(self, slot: _Slot) -> None:
        command = fleet.command(slot.proxy, self.plan, self._environment, self._lifeline.reading)
        slot.code, slot.started = None, self._clock()
        slot.child = await self._start_child(command, self._output)
        slot.watch = asyncio.create_task(self._watch(slot, slot.child))

    async def _watch(self, slot: _Slot, child: children.Child) -> None:
        """Notes the end of a proxy, and when to start it again."""
        code = await child.ended()
        if self._slots.get(slot.proxy.label) is not slot:
            return
        now = self._clock()
        if now - slot.started > STEADY_SECONDS:
            slot.pause = SHORTEST_PAUSE
        self.say(f"{slot.proxy.label} ended with {code}; it is started again in {slot.pause:.0f} s")
        slot.code, slot.child, slot.due = code, None, now + slot.pause
        slot.pause = min(slot.pause * 2, LONGEST_PAUSE)
        self._news.set()

    async def _reconcile_demos(self) -> None:
        servers, complaints = summary.demos(self._app.pipeline.objects.values())
        for complaint in dict.fromkeys(complaints):
            if complaint not in self._complaints:
                self.say(f"warning: {complaint}")
        self._complaints = complaints
        if self._demo is not None and not self._demo.is_running:
            self.say("the demo servers ended; they are started again")
            self._demo, self.demos = None, frozenset()
        if servers == self.demos:
            return
        if self._demo is None:
            command = children.Command(DEMO, children.python(demo.__name__), self._environment, (), speaks=True)
            self._demo = await self._start_child(command, self._output)
            self._demo_watch = asyncio.create_task(self._watch_demo(self._demo))
        self.demos = servers
        await self._demo.say(demo.encode(servers))

    async def _watch_demo(self, child: children.Child) -> None:
        """Its end is news, a moment later: one that cannot live must not be started without pause."""
        await child.ended()
        await asyncio.sleep(SHORTEST_PAUSE)
        self._news.set()

    async def stop(self, hurry: asyncio.Event) -> None:
        """Ends everything: proxies first, so that they have their controller and upstreams while they drain.

        `hurry` set: at once.
        """
        if self._demo_watch is not None:
            self._demo_watch.cancel()
        slots, self._slots = list(self._slots.values()), {}
        if slots or self._demo:
            self.say("stopping; Ctrl-C again stops at once")
        ending = asyncio.create_task(self._stop([slot.child for slot in slots if slot.child], GRACE))
        hurried = asyncio.create_task(hurry.wait())
        await asyncio.wait({ending, hurried}, return_when=asyncio.FIRST_COMPLETED)
        for slot in slots if not ending.done() else ():
            if slot.child:
                slot.child.signal(signal.SIGKILL)
        hurried.cancel()
        await ending
        await self._stop([self._demo] if self._demo else [], 0.0 if hurry.is_set() else GRACE)
        self._lifeline.cut()

    async def _stop(self, stopping: Sequence[children.Child], grace: float) -> None:
        if stopping:
            await children.stop(stopping, grace)
