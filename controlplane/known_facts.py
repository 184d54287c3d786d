"""What the admin API shows of a running controller, from the packages that know. Made by `app`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Protocol

from controlplane import readings, tracing
from controlplane.admin import content, facts, ignored, metrics
from controlplane.answers.proxies import Proxy, ProxyStatus
from controlplane.kube import cluster as kube
from controlplane.kube import presence
from controlplane.pipeline import Pipeline
from controlplane.settings import Settings
from controlplane.snapshot import RESOURCE_TYPE
from controlplane.sources.source import Source
from controlplane.xds import XdsServer
from controlplane.xds.protocol import reports
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem
from gatewright.version import VERSION


class Controller(Protocol):
    """The part of `app.App` that is shown."""

    settings: Settings
    pipeline: Pipeline
    source: Source
    cluster: kube.ClusterSide | None
    xds: XdsServer
    is_broken: bool

    def notes(self) -> list[str]: ...

    def pending(self) -> list[str]: ...


class KnownFacts:
    """Answers the admin API from the packages that know."""

    def __init__(self, app: Controller) -> None:
        self._app = app
        self._started = time.monotonic()
        self._started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def about(self) -> facts.Json:
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "source": str(self._app.settings.source),
            "synced": self._app.pipeline.ready.is_set(),
            "startedAt": self._started_at,
            "ready": not self._app.pending(),
            "uptimeSeconds": round(time.monotonic() - self._started, 3),
        }

    def proxies(self) -> Sequence[facts.ProxyRow]:
        newest = self._app.pipeline.snapshots.newest
        fleet = self._app.pipeline.fleet
        here = [self._proxy(row) for row in fleet.proxies(lambda gateway: newest(gateway).sequence)]
        return [*here, *(self._proxy_elsewhere(controller, proxy) for controller, proxy in fleet.elsewhere())]

    def _proxy_elsewhere(self, controller: str, proxy: Proxy) -> facts.ProxyRow:
        """A proxy of another controller, which has reported what it answered."""
        return facts.ProxyRow(
            proxy.gateway,
            proxy.node_id.rpartition("/")[2],
            self._app.pipeline.snapshots.newest(proxy.gateway).version,
            proxy.answered_version,
            0.0,
            tuple(facts.Refusal(name, refusal.error) for name, refusal in proxy.refusals.items()),
            controller=presence.pod_of(controller),
        )

    def _proxy(self, row: ProxyStatus) -> facts.ProxyRow:
        newest = self._app.pipeline.snapshots.newest(row.gateway)
        backends, wanted = newest.resources(RESOURCE_TYPE), newest.version
        return facts.ProxyRow(
            row.gateway,
            row.node_id.rpartition("/")[2],
            wanted,
            row.acknowledged_version,
            round(readings.lag(self._app.pipeline, row), 3),
            tuple(facts.Refusal(refusal.key, refusal.error) for refusal in row.refusals),
            tuple(asdict(each) for each in reports.read(row.report, row.reported_at, backends.__contains__)),
        )

    def objects(self) -> Iterator[facts.ObjectRow]:
        status = self._app.pipeline.program.status
        for key, item in self._app.pipeline.objects.items():
            fact = self._app.pipeline.facts[key]
            # Of an object with a mistake its last valid version acts, and its conditions are about the newest content.
            generation = fact.invalid.generation if fact.invalid else item.metadata.generation
            body = dict(status(*key) or {})
            is_reported = body.get("conditions") or body.get("parents") or body.get("ancestors")
            why = "" if is_reported else ignored.reason(item, self._app.pipeline.objects)
            yield facts.ObjectRow(*key, generation, fact.origin.place, body, why, ignored.is_foreign(item))
        yield from facts.unreadable(self.problems(), self._app.pipeline.objects)

    def problems(self) -> Sequence[Problem]:
        return self._app.source.problems()

    def notes(self) -> Sequence[str]:
        cluster = self._app.cluster
        return [*self._app.notes(), *([] if cluster is None else cluster.notes())]

    def pending(self) -> Sequence[str]:
        return self._app.pending()

    def is_broken(self) -> bool:
        return self._app.is_broken

    def numbers(self) -> metrics.Values:
        app = self._app
        found = readings.values(app.pipeline, app.xds.numbers, self.problems(), is_ready=not app.pending())
        return found if app.cluster is None else {**found, **app.cluster.numbers()}

    def trace(self, row: facts.ObjectRow) -> facts.Json:
        return tracing.trace(self._app.pipeline, row).as_json()

    def content(self, kind: str, namespace: str, name: str) -> facts.Json | None:
        by_kind = {known.lower(): known for known in {key.kind for key in self._app.pipeline.objects}}
        item = self._app.pipeline.objects.get(ObjectKey(by_kind.get(kind.lower(), kind), namespace, name))
        if item is None:
            return None
        return content.shown(item) | {"status": dict(self._app.pipeline.program.status(*item.key) or {})}
