"""The graph of the control plane, as a table of contents: which collection is made from which, by which room.

`Graph` below declares it in reading order. `Program` is what the composition root calls: objects, fleet news and
refusals in; resources and statuses out. No event loop, no I/O; time comes from the clock that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from controlplane.derive import Change, Collection
from controlplane.translate.conditions import StatusBody, stamped, timestamp
from controlplane.translate.fleet import FleetView, RefusalKey
from controlplane.translate.graph import Collections
from controlplane.translate.keys import ObjectKey, ResourceKey
from gatewright.api.metadata import KubeObject

ResourceChange = tuple[str, str, str, bytes | None]
"""Gateway "namespace/name", type URL, resource name, and the serialised message or None when it is gone."""

StatusKey = tuple[str, str, str]
"""Kind, namespace ("" for cluster-scoped kinds), name."""


class Program:
    """Objects in, wire resources and statuses out.

    `apply`, `fleet` and `refuse` each run one batch: everything that follows from it is computed before they return,
    the changed resources are handed to the callbacks once, and statuses can be read. The order of changes does not
    matter, and an object equal to the one known changes nothing. A transform that raises is a bug: the rest of the
    batch takes effect and is handed out, then `controlplane.derive.TransformError` is raised.

    Not thread-safe; callbacks must not call back into the program.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch, for `lastTransitionTime`."""
        self._clock = clock
        self._collections = Collections()
        self._listeners: list[Callable[[Sequence[ResourceChange]], None]] = []
        self._changed: list[ResourceChange] = []
        self._statuses: dict[StatusKey, StatusBody] = {}
        for outputs in self._collections.resources:
            outputs.subscribe(self._note_resources)
        for kind, statuses in self._collections.statuses.items():
            self._follow(kind, statuses)

    def apply(self, changes: Iterable[tuple[str, tuple[str, str], KubeObject | None]]) -> None:
        """Take a batch of (kind, (namespace, name), model or None when deleted).

        The namespace is "" for cluster-scoped kinds. Kinds that nothing reads yet (Secret, ConfigMap) are passed over.
        """
        sources = self._collections.sources
        self._run((sources[kind], ObjectKey(*key), model) for kind, key, model in changes if kind in sources)

    def fleet(self, gateway: str, view: FleetView | None) -> None:
        """Say how many proxies of a Gateway ("namespace/name") are connected and have acknowledged; None: forget it."""
        self._run([(self._collections.fleet, _gateway(gateway), view)])

    def refuse(self, gateway: str, refusals: Mapping[str, str]) -> None:
        """Say which resources the proxies of a Gateway refuse now, by resource name with the reason's text.

        Replaces what was said before for this Gateway; an empty mapping takes everything back.
        """
        key = _gateway(gateway)
        source = self._collections.refusals
        known = {refusal.resource for refusal, _ in self._collections.refusals_by_gateway.members(key)}
        self._run((source, RefusalKey(key, name), refusals.get(name)) for name in known | set(refusals))

    def on_resources(self, callback: Callable[[Sequence[ResourceChange]], None]) -> None:
        """Call `callback` with each batch's changed resources, sorted; never with an empty list."""
        self._listeners.append(callback)

    def status(self, kind: str, namespace: str, name: str) -> StatusBody | None:
        """The `status` of an object, ready for Kubernetes; None for objects that are not ours. Not to be modified."""
        return self._statuses.get((kind, namespace, name))

    def statuses(self) -> Mapping[StatusKey, StatusBody]:
        """All statuses, by kind, namespace and name."""
        return self._statuses

    def runs(self) -> dict[str, int]:
        """How often each transform has run since the start; "routes" is the translator of routes."""
        return self._collections.graph.runs()

    def dump(self) -> list[dict[str, Any]]:
        """Every collection with its size, readers and runs, for debugging."""
        return self._collections.graph.dump()

    def _run(self, changes: Iterable[tuple[Any, Any, Any]]) -> None:
        try:
            self._collections.graph.apply(changes)
        finally:
            changed, self._changed = sorted(self._changed, key=lambda change: change[:3]), []
            if changed:
                for callback in self._listeners:
                    callback(changed)

    def _note_resources(self, changes: Sequence[Change[ResourceKey, bytes]]) -> None:
        self._changed += [(str(key.gateway), key.type_url, key.name, new) for key, _, new in changes]

    def _follow(self, kind: str, statuses: Collection[ObjectKey, StatusBody]) -> None:
        def note(changes: Sequence[Change[ObjectKey, StatusBody]]) -> None:
            now = timestamp(self._clock())
            for key, _, body in changes:
                place = (kind, *key)
                if body is None:
                    del self._statuses[place]
                else:
                    self._statuses[place] = stamped(body, self._statuses.get(place), now)

        statuses.subscribe(note)


def _gateway(name: str) -> ObjectKey:
    return ObjectKey(*name.split("/", 1))
