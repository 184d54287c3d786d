"""Small synchronous incremental collections: change in, changed outputs out."""

from controlplane.derive.collection import Change, Collection, GraphError, Index, Source
from controlplane.derive.derived import Context, Derived, Groups
from controlplane.derive.feed import Feed, Outlet
from controlplane.derive.graph import AnyChange, Graph, TransformError

__all__ = [
    "AnyChange",
    "Change",
    "Collection",
    "Context",
    "Derived",
    "Feed",
    "Graph",
    "GraphError",
    "Groups",
    "Index",
    "Outlet",
    "Source",
    "TransformError",
]
