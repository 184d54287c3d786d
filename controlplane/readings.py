"""What the page of metrics shows, read from the parts of a running controller. Pure; called at each scrape.

Values of labels are kinds, Gateways and collections that exist: what a proxy calls itself or asks for is in no label.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from controlplane.admin import metrics
from controlplane.answers.proxies import ProxyStatus
from controlplane.numbers import Histogram
from controlplane.pipeline import Pipeline
from controlplane.xds.numbers import Numbers
from gatewright.api.objects.kinds import KINDS
from gatewright.api.text.problem import Problem
from gatewright.version import VERSION

Series = dict[tuple[str, ...], float]

ALONE: Final[tuple[str, ...]] = ()
"""The labels of a metric that has none."""


def values(pipeline: Pipeline, xds: Numbers, problems: Iterable[Problem], *, is_ready: bool) -> metrics.Values:
    """The numbers of this moment."""
    found: dict[str, Series] = {
        "build_info": {metrics.build(VERSION): 1},
        "ready": {ALONE: is_ready},
        "objects": _labelled(Counter(key.kind for key in pipeline.objects)),
        "invalid_objects": _labelled(_invalid(problems)),
        "conditions_false": {**pipeline.program.false_conditions()},
        "conditions_true": {**pipeline.program.true_conditions()},
        "transforms_total": _labelled(pipeline.program.runs()),
        "xds_streams_total": _labelled(xds.streams),
        **_proxies(pipeline),
    }
    counted: dict[str, float | Histogram] = {
        "object_changes_total": pipeline.numbers.changes,
        "transform_failures_total": pipeline.numbers.failures,
        "change_duration_seconds": pipeline.numbers.change_seconds,
        "snapshots_total": pipeline.numbers.snapshots,
        "xds_kept_bytes": xds.kept(),
        "xds_responses_total": xds.responses,
        "xds_response_bytes_total": xds.response_bytes,
        "xds_acks_total": pipeline.fleet.acks,
        "xds_nacks_total": pipeline.fleet.nacks,
        "xds_acknowledge_duration_seconds": pipeline.numbers.acknowledge_seconds,
    }
    return {**found, **{name: {ALONE: number} for name, number in counted.items()}}


def lag(pipeline: Pipeline, proxy: ProxyStatus) -> float:
    """Seconds for which a proxy has been without the newest state; 0 when it has it."""
    if proxy.acknowledged_version == pipeline.snapshots.newest(proxy.gateway).version:
        return 0.0
    published = pipeline.published_at.get(proxy.gateway, proxy.connected_since)
    return time.monotonic() - max(published, proxy.connected_since)


def _labelled(numbers: dict[str, int]) -> Series:
    return {(label,): number for label, number in numbers.items()}


def _invalid(problems: Iterable[Problem]) -> Counter[str]:
    """Objects with an error by kind; a document that is of no known kind counts as another."""
    objects = {problem.object or problem.file for problem in problems if problem.severity == "error"}
    kinds = (name.partition(" ")[0] for name in objects)
    return Counter(kind if kind in KINDS else metrics.OTHER for kind in kinds)


def _proxies(pipeline: Pipeline) -> dict[str, Series]:
    """By Gateway. Those that exist are there also without a proxy; proxies of no Gateway are counted together."""
    gateways = {f"{key.namespace}/{key.name}" for key in pipeline.objects if key.kind == "Gateway"}
    names = ("xds_proxies", "xds_proxies_synced", "xds_proxies_refusing", "xds_lag_seconds")
    connected, synced, refusing, lags = found = [_zeros(gateways) for _ in names]
    for row in pipeline.fleet.proxies(lambda gateway: pipeline.snapshots.newest(gateway).sequence):
        label = (row.gateway if row.gateway in gateways else metrics.OTHER,)
        behind = lag(pipeline, row)
        connected[label] += 1
        refusing[label] += bool(row.refusals)
        synced[label] += not behind and not row.refusals
        lags[label] = max(lags[label], behind)
    sizes = _labelled({name: _size(pipeline, name) for name in gateways})
    return {"resources": sizes, **dict(zip(names, found, strict=True))}


def _zeros(gateways: Iterable[str]) -> Series:
    return defaultdict(float, {(name,): 0.0 for name in gateways})


def _size(pipeline: Pipeline, gateway: str) -> int:
    return sum(len(resources) for resources in pipeline.snapshots.newest(gateway).types.values())
