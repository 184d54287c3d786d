"""Which resources look as if something were still missing: a route to a backend that is not there, a policy without its
Secret or server, a Service without endpoints. Read by `program`, which gives it along with each resource; the coalescer
waits a moment for what may complete them.

People and tools write a route and its backend one after the other, in whichever order, and remove them so. Published
between the two, the route would answer 500 or 503 for a moment (Gateway API: what a missing backend is answered with),
and a policy would refuse all requests.

The translation of an object says what it lacks; here is only where that stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controlplane.derive import Index
from controlplane.translate.keys import ResourceKey


class Unfinished:
    """The resources that lack something now. Indexes alone: asking costs a look into each of them."""

    def __init__(self, named: Sequence[Index[ResourceKey, Any, Any]], backends: Index[str, Any, Any]) -> None:
        """`named`: groups are resources that lack something. `backends`: groups are names of backends that lack
        endpoints, at whichever Gateway."""
        self._named = named
        self._backends = backends

    def __contains__(self, key: ResourceKey) -> bool:
        return any(index.size(key) for index in self._named) or bool(self._backends.size(key.name))
