"""What became of one object, read from the parts of a running controller: resources, states, who serves them.

Called by `app` for the admin API. Reads, and changes nothing. Which resources are an object's is said by their names.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace

from controlplane.admin.facts import ObjectRow, Refusal
from controlplane.admin.trace import HolderRow, ResourceRow, StateRow, Trace
from controlplane.answers.proxies import ProxyStatus, status
from controlplane.kube import presence
from controlplane.pipeline import Pipeline
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, SECRETS, Record, Snapshot, shown
from controlplane.translate.keys import ObjectKey, endpoints_of, is_certificate_of, resources_of
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.schema import metadata as api

Resource = tuple[str, Record]
"""Type URL, and the resource."""


def trace(pipeline: Pipeline, row: ObjectRow) -> Trace:
    """The way of the object of a row."""
    key = api.ObjectKey(row.kind, row.namespace, row.name)
    found = {gateway: list(_resources(pipeline, key, gateway)) for gateway in pipeline.snapshots.gateways()}
    found = {gateway: resources for gateway, resources in found.items() if resources}
    return Trace(
        row,
        pipeline.read_at.get(key),
        [_state(pipeline, gateway, len(resources)) for gateway, resources in found.items()],
        [_resource(gateway, record) for gateway, resources in found.items() for _, record in resources],
        list(_holders(pipeline, found)),
    )


def _resources(pipeline: Pipeline, key: api.ObjectKey, gateway: str) -> Iterator[Resource]:
    """What a Gateway's newest state has of an object."""
    newest, plain = pipeline.snapshots.newest(gateway), ObjectKey(key.namespace, key.name)
    item = pipeline.objects.get(key)
    service = item.service_name if isinstance(item, EndpointSlice) else None
    endpoints = endpoints_of("Service", ObjectKey(key.namespace, service)) if service else endpoints_of(key.kind, plain)
    for type_url, names in ((RESOURCE_TYPE, resources_of(key.kind, plain)), (ENDPOINT_TYPE, endpoints)):
        held = newest.resources(type_url)
        for record in held if names else ():
            if _is_one_of(record.name, names) and not is_certificate_of(key.kind, plain, record.name):
                yield type_url, record


def _is_one_of(name: str, names: Collection[str]) -> bool:
    return any(name.startswith(each) if each.endswith("/") else name == each for each in names)


def _resource(gateway: str, record: Record) -> ResourceRow:
    version = "" if record.name.startswith(SECRETS) else record.version
    return ResourceRow(gateway, record.name, version, record.published)


def _state(pipeline: Pipeline, gateway: str, count: int) -> StateRow:
    published = pipeline.published_at.get(gateway)
    at = None if published is None else time.time() - (time.monotonic() - published)
    return StateRow(gateway, shown(pipeline.snapshots.newest(gateway).version), at, count)


def _holders(pipeline: Pipeline, found: dict[str, list[Resource]]) -> Iterator[HolderRow]:
    for proxy in pipeline.fleet.proxies(lambda gateway: pipeline.snapshots.newest(gateway).sequence):
        if proxy.gateway in found:
            yield _holder(pipeline, proxy, *_answered(proxy), found[proxy.gateway])
    for controller, other in pipeline.fleet.elsewhere():
        if other.gateway in found:
            row = _holder(pipeline, status(other, newest=0), other.answered_version, None, found[other.gateway])
            yield replace(row, controller=presence.pod_of(controller))


def _holder(
    pipeline: Pipeline, proxy: ProxyStatus, version: str, answered: float | None, resources: list[Resource]
) -> HolderRow:
    """What a proxy that last answered the state of a version has of an object's resources."""
    held = _state_of(pipeline, proxy.gateway, version)
    refused = {refusal.key: refusal.error for refusal in proxy.refusals}
    refuses = [Refusal(record.name, refused[record.name]) for _, record in resources if record.name in refused]
    if "" in refused:  # of a whole state
        refuses.append(Refusal("", refused[""]))
    others = [(type_url, record) for type_url, record in resources if record.name not in refused]
    lacks = tuple(record.name for type_url, record in others if not _has(held, type_url, record))
    serves = len(others) - len(lacks)
    instance = proxy.node_id.rpartition("/")[2]
    return HolderRow(proxy.gateway, instance, shown(version), answered, serves, lacks, tuple(refuses))


def _answered(proxy: ProxyStatus) -> tuple[str, float | None]:
    """The last state that a proxy answered: acknowledged it, or applied all of it but what it refuses."""
    if proxy.refusals and "" not in {refusal.key for refusal in proxy.refusals}:
        return proxy.refused_version, proxy.refused_at
    return proxy.acknowledged_version, proxy.acknowledged_at


def _state_of(pipeline: Pipeline, gateway: str, version: str) -> Snapshot | None:
    """None for a state that is not remembered any more: what it held is not known."""
    newest = pipeline.snapshots.newest(gateway)
    return newest if version == newest.version else pipeline.snapshots.recall(gateway, version)


def _has(held: Snapshot | None, type_url: str, record: Record) -> bool:
    there = held.resources(type_url).get(record.name) if held is not None else None
    return there is not None and there.version == record.version
