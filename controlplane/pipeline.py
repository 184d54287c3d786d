"""Objects in, states out: the seam of source, program and snapshots.

Owned by `app`, which starts the packages around it. What the source reports is held until it has nothing more to read,
translated as one batch, and published as one state: a folder that changes as a whole is never served by halves.
Translating, publishing and taking answers of proxies (`answers.news`) are jobs of `turns`, one after the other and in
slices; what others read (objects, statuses, states) changes only when a job has ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controlplane import condition_log
from controlplane.answers.news import News
from controlplane.derive import Change
from controlplane.facts import Fact
from controlplane.numbers import Numbers
from controlplane.snapshot import Change as SnapshotChange
from controlplane.snapshot import Coalescer, Snapshot, Snapshots, shown
from controlplane.spans import NO_SPANS
from controlplane.translate import bugs
from controlplane.translate.conditions import HOUR
from controlplane.translate.gateway.wanted import Outcome, Provisioner
from controlplane.translate.keys import ResourceKey
from controlplane.translate.program import Message, Program
from controlplane.turns import GIVE_WAY, PAUSE, Job, Turns
from gatewright.api.schema.metadata import KubeObject, ObjectKey

log = logging.getLogger("controlplane")

PIECE = 200
"""Resources that are looked at together before they wait for publication."""
FEW = 20
"""Objects of a batch whose statuses may wait for the proxies to serve it."""
LONGEST_HOLD = 1.0
"""Seconds that objects wait for a source that goes on reading."""


MOST_NAMED: Final = 16
"""Gateways whose names a span has."""
MOST_LISTED: Final = 200
"""Resources of one state whose names the log has at level debug."""


class Listener:
    """Who hears of a pipeline's news. This one ignores them."""

    def changed(self) -> None:
        """Objects or proxies are not what they were."""

    def owners_changed(self) -> None:
        """A Gateway or a class is not what it was, in `objects` too."""


class Pipeline:
    """One controller's way from objects to states. `ready` is set with the first complete state."""

    def __init__(
        self, origin: str = "", *, selectors_need_grants: bool = False, listener: Listener | None = None
    ) -> None:
        """`origin` names this controller among those that serve the same Gateways; `listener` hears what happens;
        the other as `Program` has it."""
        self._listener = listener or Listener()
        self.facts: dict[ObjectKey, Fact] = {}
        """Of every object that is there, also of those that cannot be read."""
        self.objects: dict[ObjectKey, KubeObject] = {}
        """What acts of each; nothing of an object of which nothing could ever be read."""
        self.snapshots = Snapshots()
        self.program = Program(time.time, selectors_need_grants=selectors_need_grants)
        self.ready = asyncio.Event()
        self.read_at: dict[ObjectKey, float] = {}  # wall-clock seconds of each object's present content
        self.published_at: dict[str, float] = {}  # steady seconds of each Gateway's newest state
        self.spans = NO_SPANS
        """Who wants to know of batches and states."""
        self.turns = Turns()
        self.numbers = Numbers()
        self.news = News(self.program, self.snapshots, self.turns, self.numbers, self, origin)
        self.fleet = self.news.fleet
        self._coalescer = Coalescer(time.monotonic)
        self._timer: asyncio.TimerHandle | None = None
        self._hourly: asyncio.TimerHandle | None = None
        self._incoming: dict[ObjectKey, Fact] = {}
        self._incoming_since = 0.0
        self._translating_since: float | None = None  # when the oldest fact was reported that is being translated
        self._unpublished_since: float | None = None  # when the oldest change was reported that no state holds yet
        self._translated: list[Change[ResourceKey, Message]] = []
        self.program.resources.subscribe(self._translated.extend)
        self.program.status_changes.subscribe(condition_log.write)

    def close(self) -> None:
        """Publishes nothing more."""
        for timer in (self._timer, self._hourly):
            if timer is not None:
                timer.cancel()
        self.news.close()
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
            self.news.start()
        if changes:
            self._listener.changed()

    def _await_the_hour(self) -> None:
        self._hourly = asyncio.get_running_loop().call_later(HOUR, self._see_the_hour)

    def _see_the_hour(self) -> None:
        """Statuses speak of certificates that expire soon, also while no object changes."""
        self.turns.start(self._translate({}, time.monotonic()))
        self._await_the_hour()

    def _translate(self, changes: Mapping[ObjectKey, Fact], since: float) -> Job:
        """One batch of objects, reported from `since` on, as one step for all readers."""
        for key, fact in changes.items():
            if key.kind == "Gateway" and is_other_content(self.objects.get(key), fact.acts):
                yield from self._expect(name_of(key), fact.acts)
        self._translating_since = since
        span = self.spans.begin("reconcile", objects=len(changes))
        failures = self.numbers.failures
        try:
            with bugs.logged(self.numbers):
                for _ in self.program.steps(changes.values()):
                    if self._translated:
                        yield from self._resources_leave(since, PAUSE if len(changes) <= FEW else GIVE_WAY)
                    yield None
        finally:
            self._translating_since = None
            span.end("TransformFailed" if self.numbers.failures > failures else "")
        for fact in changes.values():
            self._note_fact(fact)
        if any(key.kind in ("Gateway", "GatewayClass") for key in changes):
            self._listener.owners_changed()

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
        """A Gateway's content is new; said before its new status is computed."""
        if model is None:
            self.news.forget(gateway)
        else:
            yield from self.news.expect(gateway)

    # Objects that should exist

    async def provision(self, provisioner: Provisioner) -> None:
        """Somebody makes what Gateways want, and all of it has this in common."""
        await self._finish(self.program.provision(provisioner))

    async def provisioned(self, outcomes: Mapping[str, Outcome | None]) -> None:
        """What became of the wanted objects of Gateways ("namespace/name")."""
        await self._finish(self.program.outcomes(outcomes))

    async def _finish(self, steps: Iterator[None]) -> None:
        await self.turns.start(self._bugs_kept(steps))
        self._listener.changed()

    def _bugs_kept(self, steps: Iterator[None]) -> Job:
        with bugs.logged(self.numbers):
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
            span = self.spans.begin("publish", resources=len(changes))
            published = yield from self.snapshots.steps(changes)
            span.end(states=len(published), gateways=" ".join(snapshot.gateway for snapshot in published[:MOST_NAMED]))
            if published and since is not None:
                self.numbers.change_seconds.observe(time.monotonic() - since)
            for snapshot in published:
                self._note(snapshot, changes)
        if not len(self._coalescer):
            self._unpublished_since = None
        self.news.published(self._coalescer.holds)

    def _note(self, snapshot: Snapshot, changes: Sequence[SnapshotChange]) -> None:
        self.numbers.snapshots += 1
        self.published_at[snapshot.gateway] = time.monotonic()
        self._coalescer.published(snapshot.gateway)
        # Behind the streams, which were woken just now: a line costs as much as a response.
        asyncio.get_running_loop().call_soon(_log_state, snapshot, changes)
        self.news.answered(snapshot.gateway)

    # What proxies answered: the pipeline is the publisher of `answers.news`

    def gateways(self) -> Iterator[str]:
        """As `Publisher` has it."""
        return (name_of(key) for key in self.objects if key.kind == "Gateway")

    def all_answered(self, gateway: str) -> None:
        """As `Publisher` has it: what was held back for its answers may go."""
        self._coalescer.answered(gateway)
        if self._coalescer.holds(gateway):
            self._publish_when_due()

    def judged(self) -> None:
        """As `Publisher` has it."""
        self._listener.changed()


def name_of(gateway: ObjectKey) -> str:
    return f"{gateway.namespace}/{gateway.name}"


def is_other_content(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether proxies may have to serve something else than before. An object also gets another version when its status
    is written, most often by us, and another generation by fields that nothing reads: its proxies are not behind
    because of that."""
    return old is None or new is None or _content(old) != _content(new)


def _content(model: KubeObject) -> tuple[object, ...]:
    return model.metadata.uid, getattr(model, "spec", None)


def _log_state(snapshot: Snapshot, changes: Sequence[SnapshotChange]) -> None:
    changed = "1 resource" if len(changes) == 1 else f"{len(changes)} resources"
    log.info("%s: version %s, %s changed", snapshot.gateway, shown(snapshot.version)[:12], changed)
    if log.isEnabledFor(logging.DEBUG):
        for _, _, name, content in changes[:MOST_LISTED]:
            log.debug("%s: %s %s", snapshot.gateway, "removed" if content is None else "changed", name)
        if len(changes) > MOST_LISTED:
            log.debug("%s: and %d more", snapshot.gateway, len(changes) - MOST_LISTED)
