"""Objects in, states out, and what proxies made of them back in: the seam of source, program, snapshots and fleet.

Owned by `app`, which starts the rooms around it. What the source tells is held until the source has nothing more to
read, translated as one batch, and published as one state: a folder that changes as a whole is never served by halves.
Translating, publishing and taking news of proxies are jobs of `turns`, one after the other and in slices; what others
read (objects, statuses, states) changes only when a job has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from controlplane.derive import Change, TransformError
from controlplane.facts import Fact
from controlplane.numbers import Numbers
from controlplane.snapshot import Coalescer, Snapshot, Snapshots, shown
from controlplane.translate.conditions import HOUR
from controlplane.translate.fleet import FleetView
from controlplane.translate.keys import ResourceKey
from controlplane.translate.program import Message, Program
from controlplane.translate.wanted import Outcome, Provisioner
from controlplane.turns import GIVE_WAY, PAUSE, Job, Turns
from controlplane.xds import Fleet, Proxy, View
from gatewright.api.schema.metadata import KubeObject, ObjectKey

log = logging.getLogger("controlplane")

ANSWERS = 0.1
"""Seconds in which proxies' answers are gathered, unless all have answered sooner."""
SETTLED = 0.003
"""Seconds after the last answer: proxies that have just swapped need the processors more."""
MOST_REASONS = 8
"""Reasons that one condition gives for what proxies refuse."""
PIECE = 200
"""Resources that are looked at together before they wait for publication."""
FEW = 20
"""Objects of a batch whose statuses may wait for the proxies to serve it."""
RETURN = 20.0
"""Seconds after the start in which proxies connect again: the longest pause between two tries of one is 15 s."""
LONGEST_HOLD = 1.0
"""Seconds that objects wait for a source that goes on reading."""


class Pipeline:
    """One controller's way from objects to states. `ready` is set with the first complete state."""

    def __init__(self, origin: str = "", *, selectors_need_grants: bool = False) -> None:
        """`origin` names this controller among those that serve the same Gateways; the other as `Program` has it."""
        self.facts: dict[ObjectKey, Fact] = {}
        """Of every object that is there, also of those that cannot be read."""
        self.objects: dict[ObjectKey, KubeObject] = {}
        """What acts of each; nothing of an object of which nothing could ever be read."""
        self.snapshots = Snapshots()
        self.fleet = Fleet(time.time, time.monotonic, self.snapshots.sequence_of, origin)
        self.program = Program(time.time, selectors_need_grants=selectors_need_grants)
        self.ready = asyncio.Event()
        self.read_at: dict[ObjectKey, float] = {}  # wall-clock seconds of each object's present content
        self.published_at: dict[str, float] = {}  # steady seconds of each Gateway's newest state
        self.changed: Callable[[], None] = lambda: None  # objects or proxies are not what they were
        self.owners_changed: Callable[[], None] = lambda: (
            None
        )  # a Gateway or a class is not what it was, in `objects` too
        self.turns = Turns()
        self.numbers = Numbers()
        self._coalescer = Coalescer(time.monotonic)
        self._timer: asyncio.TimerHandle | None = None
        self._hourly: asyncio.TimerHandle | None = None
        self._incoming: dict[ObjectKey, Fact] = {}
        self._incoming_since = 0.0
        self._translating_since: float | None = None  # when the oldest fact was reported that is being translated
        self._unpublished_since: float | None = None  # when the oldest change was reported that no state holds yet
        self._translated: list[Change[ResourceKey, Message]] = []
        self._wanted: dict[str, int] = {}  # of a Gateway: the first state that holds its newest content
        self._awaiting: set[str] = set()  # Gateways whose newest content is not published yet
        self._news: set[str] = set()  # Gateways whose proxies answered something
        self._news_due: asyncio.TimerHandle | None = None
        self._are_returning = bool(origin)  # whether proxies of before the start are waited for
        self._returned: asyncio.TimerHandle | None = None
        self._most: dict[str, int] = {}  # proxies of a Gateway that were connected meanwhile
        self.program.resources.subscribe(self._translated.extend)
        self.fleet.listen(self._answered)
        self.fleet.on_acknowledged = self._acknowledged
        self.fleet.on_complete = self._all_answered

    def close(self) -> None:
        """Publishes nothing more."""
        if self._timer:
            self._timer.cancel()
        if self._news_due:
            self._news_due.cancel()
        if self._hourly:
            self._hourly.cancel()
        if self._returned:
            self._returned.cancel()
        self.turns.close()

    # Objects in: the pipeline is the sink of a source

    async def take(self, facts: Sequence[Fact]) -> None:
        """As `Sink` has it."""
        if not self._incoming:
            self._incoming_since = time.monotonic()
        self.numbers.changes += len(facts)
        self.read_at.update(dict.fromkeys((fact.key for fact in facts), time.time()))
        self._incoming.update((fact.key, fact) for fact in facts)
        if self.ready.is_set() and time.monotonic() - self._incoming_since > LONGEST_HOLD:
            await self.idle()

    async def idle(self) -> None:
        """Translates what came in, and publishes it by the coalescing rule; the first time at once."""
        changes, self._incoming = self._incoming, {}
        await self.turns.start(self._translate(changes, self._incoming_since))
        if self.ready.is_set():
            self._publish_when_due()
        else:
            # No proxy is let in before `ready`.
            await self.turns.start(self._publish(early=True))
            self.ready.set()
            self._await_the_hour()
            if self._are_returning:
                self._returned = asyncio.get_running_loop().call_later(RETURN, self._all_returned)
        if changes:
            self.changed()

    def _await_the_hour(self) -> None:
        self._hourly = asyncio.get_running_loop().call_later(HOUR, self._see_the_hour)

    def _see_the_hour(self) -> None:
        """Statuses speak of certificates that expire soon, also while no object changes."""
        self.turns.start(self._translate({}, time.monotonic()))
        self._await_the_hour()

    def _translate(self, changes: Mapping[ObjectKey, Fact], since: float) -> Job:
        """One batch of objects, reported from `since` on, as a whole for whoever looks."""
        for key, fact in changes.items():
            if key.kind == "Gateway" and is_other_content(self.objects.get(key), fact.acts):
                yield from self._expect(f"{key.namespace}/{key.name}", fact.acts)
        self._translating_since = since
        try:
            with self._bugs_logged():
                for _ in self.program.steps(changes.values()):
                    if self._translated:
                        yield from self._resources_leave(since, PAUSE if len(changes) <= FEW else GIVE_WAY)
                    yield None
        finally:
            self._translating_since = None
        for fact in changes.values():
            self._note_fact(fact)
        if any(key.kind in ("Gateway", "GatewayClass") for key in changes):
            self.owners_changed()

    def age(self) -> float:
        """Seconds since the facts were reported that are being translated; 0: what happens now comes from no fact."""
        return 0.0 if self._translating_since is None else time.monotonic() - self._translating_since

    def _note_fact(self, fact: Fact) -> None:
        if fact.model is None:
            self.facts.pop(fact.key, None)
            self.read_at.pop(fact.key, None)
        else:
            self.facts[fact.key] = fact
        if fact.acts is None:
            self.objects.pop(fact.key, None)
        else:
            self.objects[fact.key] = fact.acts

    def _resources_leave(self, since: float, rest: float) -> Job:
        """What a batch changed that was reported from `since` on, to be published when it is due: before the statuses
        of the batch are computed. After that the job rests: proxies on the same machine need its processors now."""
        translated = self._translated.copy()
        self._translated.clear()
        if translated and self._unpublished_since is None:
            self._unpublished_since = since
        for start in range(0, len(translated), PIECE):
            self._hold(translated[start : start + PIECE])
            yield None
        if self.ready.is_set() and self._coalescer.wait() == 0:
            yield from self._publish()
            yield rest

    def _hold(self, changes: Sequence[Change[ResourceKey, Message]]) -> None:
        """Lets resources wait until they are due."""
        held = {(str(key.gateway), key.type_url, key.name): new for key, _, new in changes}
        unfinished = {place for place, new in held.items() if new is not None and new.unfinished}
        self._coalescer.add([(*place, new and new.content) for place, new in held.items()], unfinished)

    def _expect(self, gateway: str, model: KubeObject | None) -> Job:
        """A Gateway's content is new, so no proxy has it yet; said before its new status is computed."""
        if model is None:
            self._wanted.pop(gateway, None)
            self._awaiting.discard(gateway)
            return
        self._wanted[gateway] = self.snapshots.newest(gateway).sequence + 1
        self._awaiting.add(gateway)
        yield from self._tell_program(gateway)

    # Objects that should exist

    async def provision(self, provisioner: Provisioner) -> None:
        """Somebody makes what Gateways want, and all of it has this in common."""
        await self._told(self.program.provision(provisioner))

    async def provisioned(self, outcomes: Mapping[str, Outcome | None]) -> None:
        """What became of the wanted objects of Gateways ("namespace/name")."""
        await self._told(self.program.outcomes(outcomes))

    async def _told(self, steps: Iterator[None]) -> None:
        await self.turns.start(self._bugs_kept(steps))
        self.changed()

    def _bugs_kept(self, steps: Iterator[None]) -> Job:
        with self._bugs_logged():
            yield from steps

    # States out

    def _publish_when_due(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        wait = self._coalescer.wait()
        if wait:
            self._timer = asyncio.get_running_loop().call_later(wait, self._publish_when_due)
        else:
            self.turns.start(self._publish_and_go_on())

    def _publish_and_go_on(self) -> Job:
        yield from self._publish()
        if self._coalescer.wait() is not None:
            self._publish_when_due()

    def _publish(self, *, early: bool = False) -> Job:
        """What is due (`early`: all), one Gateway after the other: none of them waits for the resources of a bigger."""
        since = self._unpublished_since
        for changes in self._coalescer.take(early=early):
            published = yield from self.snapshots.steps(changes)
            if published and since is not None:
                self.numbers.change_seconds.observe(time.monotonic() - since)
            for snapshot in published:
                self._note(snapshot, len(changes))
        if not len(self._coalescer):
            self._unpublished_since = None
        self._settle_generations()

    def _note(self, snapshot: Snapshot, count: int) -> None:
        self.numbers.snapshots += 1
        self.published_at[snapshot.gateway] = time.monotonic()
        self._coalescer.published(snapshot.gateway)
        # Behind the streams, which were woken just now: a line costs as much as a response.
        asyncio.get_running_loop().call_soon(_tell_of, snapshot, count)
        self._answered(snapshot.gateway)

    def _settle_generations(self) -> None:
        for gateway in [each for each in self._awaiting if not self._coalescer.holds(each)]:
            # Also where the new content needed no new state: then the one that proxies have is the right one.
            self._wanted[gateway] = self.snapshots.newest(gateway).sequence
            self._answered(gateway)
            self._awaiting.discard(gateway)

    # The proxies' answers back in

    def _acknowledged(self, proxy: Proxy) -> None:
        """How long the newest state took; a proxy that came later was not waited for."""
        published = self.published_at.get(proxy.gateway, 0.0)
        is_newest = proxy.acknowledged == self.snapshots.newest(proxy.gateway).sequence
        if is_newest and proxy.connected_since <= published:
            self.numbers.acknowledge_seconds.observe(time.monotonic() - published)

    def _answered(self, gateway: str) -> None:
        """Several proxies answer at about the same time, though not in one turn of the loop: the program is told once
        for all, when the last one has answered the newest state, and now and then where that takes long."""
        self._news.add(gateway)
        is_settled = self.fleet.is_settled(gateway, self.snapshots.newest(gateway).sequence)
        if is_settled and self.fleet.serves(gateway):
            self._coalescer.answered(gateway)
            if self._coalescer.holds(gateway):
                self._publish_when_due()
        wait = SETTLED if is_settled else ANSWERS
        loop = asyncio.get_running_loop()
        if self._news_due is not None:
            if self._news_due.when() <= loop.time() + wait:
                return
            self._news_due.cancel()
        self._news_due = loop.call_later(wait, self._start_news)

    def _all_answered(self) -> None:
        """It concerns every Gateway whether all proxies are known."""
        for key in self.objects:
            if key.kind == "Gateway":
                self._answered(f"{key.namespace}/{key.name}")

    def _all_returned(self) -> None:
        """Who is not connected now is gone."""
        self._are_returning = False
        self._most.clear()
        self._all_answered()

    def _is_returning(self, gateway: str, connected: int) -> bool:
        """Whether further proxies of a Gateway may be on their way back. Where one has left nothing is kept."""
        if not self._are_returning:
            return False
        most = self._most[gateway] = max(self._most.get(gateway, 0), connected)
        return connected == most

    def _start_news(self) -> None:
        self._news_due = None
        self.turns.start(self._tell_news())

    def _tell_news(self) -> Job:
        gateways, self._news = self._news, set()
        for gateway in sorted(gateways):
            yield from self._tell_program(gateway)
        self.changed()

    def _tell_program(self, gateway: str) -> Job:
        view = self.fleet.view(gateway)
        with self._bugs_logged():
            returning = self._is_returning(gateway, view.connected)
            found = dataclasses.replace(fleet_view(view, self._wanted.get(gateway, 0)), returning=returning)
            yield from self.program.news(gateway, found, refusals(view))

    @contextlib.contextmanager
    def _bugs_logged(self) -> Iterator[None]:
        """A transform that raises is a bug of ours. The rest of the batch took effect: serve that, and say so."""
        try:
            yield
        except TransformError as bug:
            self.numbers.failures += 1
            log.error("a bug in the controller: %s", bug, exc_info=bug.failures[0][2])


def is_other_content(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether proxies may have to serve something else than before. An object also gets another version when its status
    is written, most often by us, and another generation by fields that nothing reads: its proxies are not behind
    because of that."""
    return old is None or new is None or _content(old) != _content(new)


def _content(model: KubeObject) -> tuple[object, ...]:
    return model.metadata.uid, getattr(model, "spec", None)


def _tell_of(snapshot: Snapshot, count: int) -> None:
    changed = "1 resource" if count == 1 else f"{count} resources"
    log.info("%s: version %s, %s changed", snapshot.gateway, shown(snapshot.version)[:12], changed)


def fleet_view(view: View, wanted: int) -> FleetView:
    """How far the proxies are with a Gateway's newest content. A refusal that names no resource concerns the Gateway;
    one that names a resource is a condition of the object behind it."""
    unnamed = view.refusals.get("", ())
    acknowledged = max(0, view.answered_by(wanted) - view.refused_by.get("", 0))
    detail = _joined([f"{_instance(each.node_id)}: {each.error}" for each in unnamed], view.refused_by.get("", 0))
    return FleetView(view.connected, acknowledged, detail, view.complete)


def refusals(view: View) -> Mapping[str, str]:
    """Resource to why it is refused, and by how many of the proxies when not by all."""
    return {
        key: _joined([refuser.error for refuser in refusers]) + _by(view.refused_by[key], view.connected)
        for key, refusers in view.refusals.items()
        if key
    }


def _joined(reasons: Sequence[str], of: int = 0) -> str:
    """The first few different reasons: 500 proxies that each say something else would make a message of a megabyte."""
    different = [*dict.fromkeys(reasons)]
    over = max(len(different), of) - MOST_REASONS
    return "; ".join(different[:MOST_REASONS]) + (f"; and {over} more" if over > 0 else "")


def _by(count: int, connected: int) -> str:
    return "" if count >= connected else f" ({count} of {connected} proxies)"


def _instance(node_id: str) -> str:
    return node_id.rpartition("/")[2]
