"""Immutable sets of wire resources, one per Gateway, between translation and the xDS server."""

from controlplane.snapshot.coalesce import Coalescer
from controlplane.snapshot.records import ENDPOINT_TYPE, RESOURCE_TYPE, SECRETS, Record
from controlplane.snapshot.resource_map import Difference, ResourceMap
from controlplane.snapshot.snapshot import Snapshot, shown
from controlplane.snapshot.snapshots import Change, Snapshots

__all__ = [
    "ENDPOINT_TYPE",
    "RESOURCE_TYPE",
    "SECRETS",
    "Change",
    "Coalescer",
    "Difference",
    "Record",
    "ResourceMap",
    "Snapshot",
    "Snapshots",
    "shown",
]
