"""ReferenceGrants: which object may name an object of another namespace (Gateway API GEP-709).

A grant is indexed by every permission it gives, so that asking is one look-up however many grants there are, and an
object that asked is translated again exactly when the answer changes. Namespaces' own references need no grant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controlplane.derive import Context, Groups
from controlplane.translate.keys import ObjectKey
from gatewright.api.reference_grant import ReferenceGrant


class Permission(NamedTuple):
    """Objects of a kind in one namespace may name an object in another; `name` "" means every one of that kind."""

    from_group: str
    from_kind: str
    from_namespace: str
    group: str
    kind: str
    namespace: str
    name: str


def permissions(key: ObjectKey, grant: ReferenceGrant) -> Iterator[Permission]:
    """What a grant permits: each `from` with each `to`. A grant lives in the namespace of the objects referred to."""
    for source in grant.spec.from_:
        for target in grant.spec.to:
            yield Permission(
                source.group, source.kind, source.namespace, target.group, target.kind, key.namespace, target.name or ""
            )


def permitted(context: Context, granted: Groups[Permission], wanted: Permission) -> bool:
    """Whether the reference may be followed; the transform depends on the answer."""
    if wanted.from_namespace == wanted.namespace:
        return True
    by_name, by_kind = context.fetch(granted, wanted), context.fetch(granted, wanted._replace(name=""))
    return by_name is not None or by_kind is not None
