"""Small synchronous incremental collections: change in, changed outputs out."""

from controlplane.derive.collection import Change, Collection, GraphError, Index, Source
from controlplane.derive.derived import Context, Derived, Groups
from controlplane.derive.feed import Feed, Outlet
from controlplane.derive.graph import AnyChange, Graph, TransformError
from controlplane.derive.selected import EVERYTHING, Members, Selected, Selecting

__all__ = [
    "EVERYTHING",
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
    "Members",
    "Outlet",
    "Selected",
    "Selecting",
    "Source",
    "TransformError",
]
