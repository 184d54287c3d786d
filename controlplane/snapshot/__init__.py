"""Immutable sets of wire resources, one per Gateway, between translation and the xDS server."""

from controlplane.snapshot.coalesce import Coalescer
from controlplane.snapshot.records import ENDPOINT_TYPE, RESOURCE_TYPE, Record
from controlplane.snapshot.resource_map import Difference, ResourceMap
from controlplane.snapshot.snapshots import Change, Snapshot, Snapshots

__all__ = [
    "ENDPOINT_TYPE",
    "RESOURCE_TYPE",
    "Change",
    "Coalescer",
    "Difference",
    "Record",
    "ResourceMap",
    "Snapshot",
    "Snapshots",
]
