"""Which references into other namespaces may be followed (`gatewright.api.objects.grants`).

A grant is indexed by every permission it gives, so that asking is one look-up however many grants there are, and an
object that asked is translated again exactly when the answer changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.derive import Context, Groups
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects import grants
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.reference_grant import ReferenceGrant


def permissions(key: ObjectKey, grant: ReferenceGrant) -> Iterator[Permission]:
    """The groups of a grant in the index: what it permits."""
    return grants.permissions(key.namespace, grant)


def permitted(context: Context, granted: Groups[Permission], wanted: Permission) -> bool:
    """Whether the reference may be followed; the transform depends on the answer."""
    return grants.permitted(wanted, lambda permission: context.fetch(granted, permission) is not None)
