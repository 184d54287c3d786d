"""A cluster as a source of facts (`controlplane.sources.source` has the laws): a reflector for each kind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from controlplane.facts import Fact
from controlplane.kube.reading.beside import Beside
from controlplane.kube.reading.known import Known
from controlplane.kube.reading.reflector import Reads, Reflector
from controlplane.kube.reading.spaces import KIND as NAMESPACE
from controlplane.kube.reading.spaces import Spaces
from controlplane.sources.source import Sink
from controlplane.translate.backend import workloads
from gatewright.api.objects.kinds import KINDS, KindInfo
from gatewright.api.schema.names import INFERENCE_POOL, OUR_KINDS
from gatewright.api.text.problem import Problem

ASKED_FOR_BY: Final[Mapping[str, Callable[[Fact], bool]]] = {
    "Pod": lambda fact: fact.key.kind == INFERENCE_POOL or workloads.asks_for_pods(fact)
}
"""Kinds of which a cluster has many, and which facts ask for them: they are read from the first of those on."""
FIELDS: Final = {
    "Secret": {"fieldSelector": "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"},
}
"""Of a kind: which objects are read at all. What charts and accounts keep in Secrets is large and of no use here."""
NEEDED: Final = ("GatewayClass", "Gateway", "HTTPRoute", *OUR_KINDS)
"""Kinds that a cluster with Gatewright defines; that others are not there is usual."""
INSTALL: Final = "install Gateway API's definitions, and Gatewright's with `gatewright crds | kubectl apply -f -`"
WATCHED: Final = tuple(KINDS.values())


class ClusterSource:
    """Given an open access; `kinds` are those of the table that are read, `spaces` says in which namespaces."""

    def __init__(
        self,
        access: Reads,
        kinds: Iterable[KindInfo] = WATCHED,
        draw: Callable[[], float] = random.random,
        spaces: Spaces | None = None,
    ) -> None:
        self._spaces = Spaces() if spaces is None else spaces
        self.beside = Beside(self._deliver)
        self.reflectors = {
            info.kind: Reflector(
                info, access, self._deliver, draw, Known(info, self._spaces.is_read, self.beside), FIELDS.get(info.kind)
            )
            for info in kinds
        }
        self._asked_for = {kind: asyncio.Event() for kind in self.reflectors if kind in ASKED_FOR_BY}
        """Of kinds that are read when somebody needs them: somebody does."""
        self._one_at_a_time = asyncio.Lock()
        self._sink: Sink | None = None
        self._is_complete = False
        self._waiting = 0

    async def run(self, sink: Sink) -> None:
        """As `Source` has it."""
        self._sink = sink
        async with asyncio.TaskGroup() as group:
            group.create_task(self.beside.run())
            for reflector in self._first():
                group.create_task(reflector.run())
                await reflector.listed.wait()
            for reflector in self.reflectors.values():
                if reflector not in self._first():
                    group.create_task(self._run(reflector))
            for reflector in self.reflectors.values():
                if reflector.info.kind not in self._asked_for:
                    await reflector.listed.wait()
            for kind, asked_for in self._asked_for.items():
                if asked_for.is_set():
                    await self.reflectors[kind].listed.wait()
            await self.beside.started()
            async with self._one_at_a_time:
                self._is_complete = True
                await sink.idle()

    def problems(self) -> Sequence[Problem]:
        """Kinds that cannot be read now, or are not defined. What is wrong with objects is in their statuses."""
        found = [
            Problem("cluster", 0, each.info.plural, "", f"cannot be read: {each.trouble}", code="unreadable")
            for each in self.reflectors.values()
            if each.trouble
        ]
        if missing := self._undefined():
            text = f"does not define {', '.join(missing)}: {INSTALL}"
            found.append(Problem("cluster", 0, "", "", text, severity="warning", code="unreadable"))
        return found

    def version_of(self, kind: str) -> str:
        """In which objects of a kind are read and written; "" when the cluster has no such kind."""
        reflector = self.reflectors.get(kind)
        return "" if reflector is None else reflector.version

    async def _run(self, reflector: Reflector[Fact]) -> None:
        asked_for = self._asked_for.get(reflector.info.kind)
        if asked_for is not None:
            await asked_for.wait()
        await reflector.run()

    def _undefined(self) -> Sequence[str]:
        """Of the kinds that are needed, those that the cluster does not define. None before all was read."""
        if not self._is_complete:
            return ()
        needed = (self.reflectors[kind] for kind in NEEDED if kind in self.reflectors)
        return [f"{each.info.plural}.{each.info.group}" for each in needed if not each.version and not each.trouble]

    def _first(self) -> list[Reflector[Fact]]:
        """Those that decide what the others read."""
        return [self.reflectors[NAMESPACE]] if self._spaces.is_selective else []

    async def _deliver(self, facts: Sequence[Fact]) -> None:
        assert self._sink is not None
        # A namespace may have ceased to be read while they were decoded.
        facts = [each for each in facts if each.model is None or self._spaces.is_read(each.key.namespace)]
        facts += self._moved(facts)
        for kind, asked_for in self._asked_for.items():
            if not asked_for.is_set() and any(map(ASKED_FOR_BY[kind], facts)):
                asked_for.set()
        self._waiting += 1
        async with self._one_at_a_time:
            self._waiting -= 1
            await self._sink.take(facts)
            # Others that wait have seen more already: one publication for all of them.
            if self._is_complete and not self._waiting:
                await self._sink.idle()

    def _moved(self, facts: Sequence[Fact]) -> list[Fact]:
        """Follow Namespaces that are read from now on, or no more. What was in the latter goes at once, of all kinds: a
        route whose Gateway goes before it would be said to have none. What was read before goes on before it."""
        gone: list[Fact] = []
        for name, is_read in self._spaces.take(each for each in facts if each.key.kind == NAMESPACE).items():
            for reflector in self.reflectors.values():
                if reflector.info.namespaced:
                    gone += () if is_read else reflector.left(name)
                    reflector.look_into(name, is_read=is_read)
        return gone
