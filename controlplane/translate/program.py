"""What the composition root calls: objects, fleet news and refusals in; resources and statuses out.

`Program` runs the collections of `graph`. No event loop, no I/O; time comes from the clock that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from controlplane.derive import AnyChange, Change, Feed, Outlet, TransformError
from controlplane.facts import Fact
from controlplane.translate.conditions import HOUR, StatusBody, timestamp
from controlplane.translate.fleet import FleetView, RefusalKey
from controlplane.translate.gateway.class_finalizers import FinalizerWrite
from controlplane.translate.gateway.wanted import Outcome, Provisioner, Wanted
from controlplane.translate.graph import Collections
from controlplane.translate.keys import ObjectKey, ResourceKey
from controlplane.translate.status.statuses import Statuses, StatusKey, StatusWrite


class Message(NamedTuple):
    """A resource as it is sent."""

    content: bytes
    """Serialised."""
    unfinished: bool = False
    """Whether it looks as if something were still missing that it needs (`unfinished`)."""

    def __repr__(self) -> str:
        """Without the content, which may be a secret."""
        return f"Message({len(self.content)} bytes, unfinished={self.unfinished})"


class Program:
    """Objects in; resources, objects that should exist and statuses out, as change feeds of equal rank (`derive.feed`).

    `apply`, `fleet` and `refuse` each run one batch: everything that follows from it is computed before they return.
    The changed resources are handed out once, all of the batch, before anything else of it is computed; statuses can
    be read when the batch has ended. The order of changes does not matter, and an object equal to the one
    known changes nothing. A transform that raises is a bug: the rest of the batch takes effect and is handed out, then
    `controlplane.derive.TransformError` is raised.

    What is said of times to come is that of the last batch of facts, which may be empty: every `HOUR` is often enough.

    `steps` is `apply` for batches of any size: a generator that yields often, so that its caller can let others run. A
    batch must have ended before the next one begins; until then every status is that of the state before.

    Not thread-safe; callbacks must not call back into the program.
    """

    def __init__(self, clock: Callable[[], float], *, selectors_need_grants: bool = False) -> None:
        """`clock` gives seconds since the epoch, for `lastTransitionTime` and what is said of times to come.
        `selectors_need_grants`: those of MCP backends, for Services of other namespaces."""
        self._clock = clock
        self._collections = Collections(selectors_need_grants=selectors_need_grants)
        self.resources: Outlet[ResourceKey, Message] = Outlet()
        """What proxies should have."""
        self.wanted: Outlet[ObjectKey, Wanted] = Outlet()
        """What should exist, by Gateway."""
        self.class_finalizers: Outlet[ObjectKey, FinalizerWrite] = Outlet()
        """Of managed classes that have others than they should, where their source gives versions."""
        self._changed: list[Change[ResourceKey, bytes]] = []
        inputs = self._collections.inputs
        self._statuses = Statuses(self._collections.statuses, inputs.by_kind, inputs.invalid)
        for outputs in self._collections.resources:
            outputs.subscribe(self._note_resources)
        self._collections.wanted.subscribe(self.wanted.put)
        self._collections.class_finalizers.subscribe(self.class_finalizers.put)

    def apply(self, facts: Iterable[Fact]) -> None:
        """Take a batch of facts. Kinds that nothing reads are passed over."""
        _finish(self.steps(facts))

    def steps(self, facts: Iterable[Fact]) -> Iterator[None]:
        """`apply`, a piece at a time."""
        inputs = self._collections.inputs
        return self._steps(chain([(inputs.hours, "", self._hour())], inputs.changes(map(self._noted, facts))))

    def _hour(self) -> int:
        return int(self._clock() // HOUR)

    def _noted(self, fact: Fact) -> Fact:
        self._statuses.take(fact)
        return fact

    def news(self, gateway: str, view: FleetView | None, refusals: Mapping[str, str]) -> Iterator[None]:
        """`fleet` and `refuse` as one batch, a piece at a time."""
        yield from self._steps([*self._fleet(gateway, view), *self._refusals(gateway, refusals)])

    def fleet(self, gateway: str, view: FleetView | None) -> None:
        """Say how many proxies of a Gateway ("namespace/name") are connected and have acknowledged; None: forget it."""
        _finish(self._steps(self._fleet(gateway, view)))

    def refuse(self, gateway: str, refusals: Mapping[str, str]) -> None:
        """Say which resources the proxies of a Gateway refuse now, by resource name with the reason's text.

        Replaces what was said before for this Gateway; an empty mapping takes everything back.
        """
        _finish(self._steps(self._refusals(gateway, refusals)))

    def provision(self, provisioner: Provisioner) -> Iterator[None]:
        """Say that somebody makes what Gateways want, and what all of it has in common; a piece at a time."""
        return self._steps([(self._collections.inputs.provisioner, "", provisioner)])

    def outcomes(self, outcomes: Mapping[str, Outcome | None]) -> Iterator[None]:
        """Say what became of the wanted objects of Gateways ("namespace/name"), a piece at a time; None: forget it."""
        source = self._collections.inputs.outcomes
        yield from self._steps([(source, _gateway(name), outcome) for name, outcome in outcomes.items()])

    def status(self, kind: str, namespace: str, name: str) -> StatusBody | None:
        """The `status` of an object, ready for Kubernetes; None for objects that Gatewright does not manage. Not to be
        modified."""
        return self._statuses.changes.present().get((kind, namespace, name))

    def statuses(self) -> Mapping[StatusKey, StatusBody]:
        """All statuses, by kind, namespace and name."""
        return self._statuses.changes.present()

    def false_conditions(self) -> Mapping[tuple[str, ...], int]:
        """How many conditions are False that should not be, by kind, type and reason."""
        return self._statuses.troubles.false

    def true_conditions(self) -> Mapping[tuple[str, ...], int]:
        """How many conditions are True that should not be, by kind, type and reason."""
        return self._statuses.troubles.true

    @property
    def status_changes(self) -> Feed[StatusKey, StatusBody]:
        """Every object's status."""
        return self._statuses.changes

    @property
    def unwritten(self) -> Feed[StatusKey, StatusWrite]:
        """Statuses that differ from what is written where their objects come from. They go as they are written: when
        a fact comes that has them. For the writer of statuses, one at a time for each object, the latest."""
        return self._statuses.unwritten

    @property
    def collections(self) -> Collections:
        """The graph, for those who ask about one state and change nothing."""
        return self._collections

    def runs(self) -> dict[str, int]:
        """How often each transform has run since the start; "HTTPRoute translations" is
        the translator of HTTPRoutes."""
        return self._collections.graph.runs()

    def dump(self) -> list[dict[str, Any]]:
        """Every collection with its size, readers and runs, for debugging."""
        return self._collections.graph.dump()

    def _fleet(self, gateway: str, view: FleetView | None) -> list[AnyChange]:
        return [(self._collections.inputs.fleet, _gateway(gateway), view)]

    def _refusals(self, gateway: str, refusals: Mapping[str, str]) -> list[AnyChange]:
        key, inputs = _gateway(gateway), self._collections.inputs
        known = {refusal.resource for refusal, _ in inputs.refusals_by_gateway.members(key)}
        return [(inputs.refusals, RefusalKey(key, name), refusals.get(name)) for name in known | set(refusals)]

    def _steps(self, changes: Iterable[AnyChange]) -> Iterator[None]:
        failed: TransformError | None = None
        try:
            for _ in self._collections.graph.steps(changes):
                if self._changed:
                    yield from self._hand_out()
                yield
        except TransformError as error:
            failed = error
        yield from self._statuses.refresh(timestamp(self._clock()))
        if failed:
            try:
                raise failed
            finally:
                del failed  # see `gatewright/kept_errors`

    def _hand_out(self) -> Iterator[None]:
        """What the graph said of resources, which it says of all at once, to the consumers."""
        self.resources.put((yield from self._resources()))

    def _note_resources(self, changes: Sequence[Change[ResourceKey, bytes]]) -> None:
        self._changed += changes

    def _resources(self) -> Generator[None, None, list[Change[ResourceKey, Message]]]:
        """What changed, sorted, and whether it lacks something."""
        noted, self._changed = self._changed, []
        changed: list[Change[ResourceKey, Message]] = []
        present, unfinished = self.resources.present(), self._collections.unfinished
        noted.reverse()
        while noted:  # taken away one by one, so that the old values are not freed all at once
            key, _, new = noted.pop()
            message = None if new is None else Message(new, key in unfinished)
            changed.append(Change(key, present.get(key), message))
            yield
        changed.sort(key=_key)
        return changed


def _key(change: Change[ResourceKey, Message]) -> ResourceKey:
    return change.key


def _finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def _gateway(name: str) -> ObjectKey:
    return ObjectKey(*name.split("/", 1))
