"""A toy source that behaves as an API server does: lists, watches, loses its watch, lists anew, repeats itself.

Objects are dictionaries as Kubernetes has them; `write` and `write_status` are what clients do.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.facts import Fact, gone
from controlplane.sources.objects import fact_from
from controlplane.sources.source import Sink
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.text.problem import Problem
from tests.harness import yamls

Json = dict[str, Any]


class ObjectServer:
    """A `Source`. Nothing reaches the sink before `run` was given it and something was listed."""

    def __init__(self, *texts: str) -> None:
        self._objects: dict[ObjectKey, Json] = {}
        self._given: dict[ObjectKey, KubeObject | None] = {}
        self._version = 0
        self._sink: Sink | None = None
        for text in texts:
            self.store(text)

    # What clients do.

    def store(self, text: str) -> list[ObjectKey]:
        """Objects without that anybody watches."""
        return [self._store(value) for value in yamls.load_all(text) if value]

    def _store(self, value: Json) -> ObjectKey:
        metadata = value["metadata"]
        key = ObjectKey(value["kind"], metadata.get("namespace", ""), metadata["name"])
        before = self._objects.get(key, {"metadata": {"generation": 0}})
        self._version += 1
        generation = before["metadata"]["generation"] + (before.get("spec") != value.get("spec"))
        new = copy.deepcopy(value) | {"status": before.get("status", {})}
        new["metadata"] |= {"generation": generation, "resourceVersion": f"{self._version}"}
        self._objects[key] = new
        return key

    def status(self, key: ObjectKey) -> Any:
        return self._objects[key]["status"]

    async def write(self, text: str) -> None:
        await self._tell([self._fact(key) for key in self.store(text)])

    async def write_status(self, key: ObjectKey, body: Json) -> None:
        self._version += 1
        self._objects[key]["status"] = copy.deepcopy(body)
        self._objects[key]["metadata"]["resourceVersion"] = f"{self._version}"
        await self._tell([self._fact(key)])

    async def delete(self, key: ObjectKey) -> None:
        del self._objects[key]
        self._given.pop(key, None)
        await self._tell([gone(key)])

    def lose(self, key: ObjectKey) -> None:
        """It is deleted while the watch is lost."""
        del self._objects[key]

    # What the source does.

    async def run(self, sink: Sink) -> None:
        self._sink = sink
        await self.list_anew()
        await asyncio.Event().wait()

    def problems(self) -> Sequence[Problem]:
        return ()

    async def list_anew(self, *, idle: bool = True) -> None:
        """Everything that is there, and what is not there any more."""
        lost = [key for key in self._given if key not in self._objects]
        for key in lost:
            del self._given[key]
        await self._tell([*map(gone, lost), *map(self._fact, self._objects)], idle=idle)

    async def repeat(self, key: ObjectKey, times: int) -> None:
        """The same several times in one batch, an old one first."""
        await self._tell([gone(key), *[self._fact(key)] * times])

    def _fact(self, key: ObjectKey) -> Fact:
        fact = fact_from(copy.deepcopy(self._objects[key]), "objects", self._given.get(key))
        assert fact is not None
        if isinstance(fact.model, KubeObject):
            self._given[key] = fact.model
        else:
            self._given.setdefault(key, None)
        return fact

    async def _tell(self, facts: Iterable[Fact], *, idle: bool = True) -> None:
        if self._sink is not None:
            await self._sink.take([*facts])
            if idle:
                await self._sink.idle()
