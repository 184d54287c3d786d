"""Objects in, states out, and what proxies made of them back in: the seam of source, program, snapshots and fleet.

Owned by `app`, which starts the rooms around it. What the source tells is held until the source has nothing more to
read, translated in slices, and published as one state: a folder that changes as a whole is never served by halves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from controlplane.derive import TransformError
from controlplane.snapshot import Coalescer, Snapshot, Snapshots
from controlplane.sources.tree import Change
from controlplane.translate.fleet import FleetView
from controlplane.translate.program import Program, ResourceChange
from controlplane.xds import Fleet, View
from gatewright.api.metadata import KubeObject, ObjectKey

log = logging.getLogger("controlplane")

BATCH = 25  # objects translated without letting others run
FIRST_BATCH = 100  # resources of the first state published without letting others run
LONGEST_HOLD = 1.0  # seconds that objects wait for a source that goes on reading

# What others refer to comes first, so that a cold start translates each route once.
ORDER = ("Namespace", "GatewayClass", "ReferenceGrant", "Gateway", "GatewayBackend", "Service", "EndpointSlice")
RANKS = {kind: rank for rank, kind in enumerate(ORDER)}


class Pipeline:
    """One controller's way from objects to states. `ready` is set with the first complete state."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, KubeObject] = {}
        self.snapshots = Snapshots()
        self.fleet = Fleet(time.time)
        self.program = Program(time.time)
        self.ready = asyncio.Event()
        self.published_at: dict[str, float] = {}  # wall-clock seconds of each Gateway's newest state
        self.changed: Callable[[], None] = lambda: None  # objects or proxies are not what they were
        self._coalescer = Coalescer(time.monotonic)
        self._timer: asyncio.TimerHandle | None = None
        self._incoming: dict[ObjectKey, KubeObject | None] = {}
        self._incoming_since = 0.0
        self._translated: list[ResourceChange] = []
        self._wanted: dict[str, int] = {}  # of a Gateway: the first state that holds its newest content
        self._awaiting: set[str] = set()  # Gateways whose newest content is not published yet
        self._news: set[str] = set()  # Gateways whose proxies answered something
        self.program.on_resources(self._translated.extend)
        self.fleet.listen(self._answered)

    def close(self) -> None:
        """Publishes nothing more."""
        if self._timer:
            self._timer.cancel()

    # Objects in

    async def take(self, changes: Sequence[Change]) -> None:
        """The source's sink."""
        if not self._incoming:
            self._incoming_since = time.monotonic()
        self._incoming.update((change.key, change.model) for change in changes)
        if self.ready.is_set() and time.monotonic() - self._incoming_since > LONGEST_HOLD:
            await self.flush()

    async def flush(self) -> None:
        """Translates what came in, and publishes it by the coalescing rule; the first time at once."""
        changes = sorted(self._incoming.items(), key=lambda change: RANKS.get(change[0].kind, len(RANKS)))
        self._incoming = {}
        for start in range(0, len(changes), BATCH):
            if start:
                await asyncio.sleep(0)
            self._translate(changes[start : start + BATCH])
        self._coalescer.add(self._translated)
        self._translated.clear()
        if self.ready.is_set():
            self._publish_when_due()
        else:
            await self._publish_first()
            self.ready.set()
        if changes:
            self.changed()

    def _translate(self, changes: Iterable[tuple[ObjectKey, KubeObject | None]]) -> None:
        batch = []
        for key, model in changes:
            if model is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = model
            if key.kind == "Gateway":
                self._expect(f"{key.namespace}/{key.name}", model)
            batch.append((key.kind, (key.namespace, key.name), model))
        with _bugs_logged():
            self.program.apply(batch)

    def _expect(self, gateway: str, model: KubeObject | None) -> None:
        """A Gateway's content is new, so no proxy has it yet; said before its new status is computed."""
        if model is None:
            self._wanted.pop(gateway, None)
            self._awaiting.discard(gateway)
            return
        self._wanted[gateway] = self.snapshots.newest(gateway).sequence + 1
        self._awaiting.add(gateway)
        self._tell_program(gateway)

    # States out

    async def _publish_first(self) -> None:
        """The first state, in slices as well: no proxy is let in before `ready`, so none sees a part of it."""
        changes = self._coalescer.take()
        for start in range(0, len(changes), FIRST_BATCH):
            self.snapshots.apply(changes[start : start + FIRST_BATCH])
            await asyncio.sleep(0)
        for gateway, count in Counter(gateway for gateway, *_ in changes).items():
            self._note(self.snapshots.newest(gateway), count)
        self._settle_generations()

    def _publish_when_due(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        wait = self._coalescer.wait()
        if not wait:
            self._publish()
        else:
            self._timer = asyncio.get_running_loop().call_later(wait, self._publish_when_due)

    def _publish(self) -> None:
        changes = self._coalescer.take()
        counts = Counter(gateway for gateway, *_ in changes)
        for snapshot in self.snapshots.apply(changes):
            self._note(snapshot, counts[snapshot.gateway])
        self._settle_generations()

    def _note(self, snapshot: Snapshot, count: int) -> None:
        self.published_at[snapshot.gateway] = time.time()
        changed = "1 resource" if count == 1 else f"{count} resources"
        log.info("%s: version %s, %s changed", snapshot.gateway, snapshot.version[:12], changed)
        self._answered(snapshot.gateway)

    def _settle_generations(self) -> None:
        for gateway in self._awaiting:
            # Also where the new content needed no new state: then the one that proxies have is the right one.
            self._wanted[gateway] = self.snapshots.newest(gateway).sequence
            self._answered(gateway)
        self._awaiting.clear()

    # The proxies' answers back in

    def _answered(self, gateway: str) -> None:
        """Several proxies answer at about the same time: the program is told once for all of them."""
        if not self._news:
            asyncio.get_running_loop().call_soon(self._tell_news)
        self._news.add(gateway)

    def _tell_news(self) -> None:
        gateways, self._news = self._news, set()
        for gateway in sorted(gateways):
            self._tell_program(gateway)
        self.changed()

    def _tell_program(self, gateway: str) -> None:
        view = self.fleet.view(gateway)
        with _bugs_logged():
            self.program.fleet(gateway, fleet_view(view, self._wanted.get(gateway, 0)))
            self.program.refuse(gateway, refusals(view))


def fleet_view(view: View, wanted: int) -> FleetView:
    """How far the proxies are with a Gateway's newest content. A refusal that names no resource concerns the Gateway;
    one that names a resource is a condition of the object behind it."""
    unnamed = view.refusals.get("", ())
    acknowledged = max(0, view.answered_by(wanted) - len(unnamed))
    return FleetView(
        view.connected, acknowledged, "; ".join(f"{_instance(each.node_id)}: {each.error}" for each in unnamed)
    )


def refusals(view: View) -> Mapping[str, str]:
    """Resource to why it is refused, and by how many of the proxies when not by all."""
    return {
        key: "; ".join(dict.fromkeys(refuser.error for refuser in refusers)) + _by(len(refusers), view.connected)
        for key, refusers in view.refusals.items()
        if key
    }


def _by(count: int, connected: int) -> str:
    return "" if count >= connected else f" ({count} of {connected} proxies)"


def _instance(node_id: str) -> str:
    return node_id.rpartition("/")[2]


@contextlib.contextmanager
def _bugs_logged() -> Iterator[None]:
    """A transform that raises is a bug of ours. The rest of the batch took effect: serve that, and say so loudly."""
    try:
        yield
    except TransformError as bug:
        log.error("a bug in the controller: %s", bug, exc_info=bug.failures[0][2])
