"""Small synchronous incremental collections: change in, changed outputs out."""

from controlplane.derive.collection import Change, Collection, GraphError, Index, Source
from controlplane.derive.derived import Context, Derived, Groups
from controlplane.derive.graph import Graph, TransformError

__all__ = [
    "Change",
    "Collection",
    "Context",
    "Derived",
    "Graph",
    "GraphError",
    "Groups",
    "Index",
    "Source",
    "TransformError",
]
