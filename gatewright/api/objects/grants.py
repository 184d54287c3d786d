"""ReferenceGrants: which object may name an object of another namespace (Gateway API GEP-709).

Called by the control plane when it follows a reference, and by lint. Pure; where grants are kept is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gatewright.api.objects.reference_grant import ReferenceGrant


class Permission(NamedTuple):
    """Objects of a kind in one namespace may name an object in another; `name` "" means every one of that kind."""

    from_group: str
    from_kind: str
    from_namespace: str
    group: str
    kind: str
    namespace: str
    name: str


def permissions(namespace: str, grant: ReferenceGrant) -> Iterator[Permission]:
    """What a grant permits: each `from` with each `to`. It lives in the `namespace` of the objects referred to."""
    for source in grant.spec.from_:
        for target in grant.spec.to:
            yield Permission(
                source.group, source.kind, source.namespace, target.group, target.kind, namespace, target.name or ""
            )


def permitted(wanted: Permission, is_granted: Callable[[Permission], bool]) -> bool:
    """Whether a reference may be followed. Those within a namespace need no grant."""
    if wanted.from_namespace == wanted.namespace:
        return True
    return is_granted(wanted) or is_granted(wanted._replace(name=""))


def lacking(*wanted: Permission) -> str:
    """What to report of a reference that is not permitted: what would permit it, of which one is enough."""
    kinds: dict[str, list[str]] = {}
    for each in wanted:
        kinds.setdefault(each.from_namespace, []).append(_plural(each.from_kind))
    sources = " or ".join(f"{' or '.join(found)} of namespace {namespace}" for namespace, found in kinds.items())
    return f"no ReferenceGrant in namespace {wanted[0].namespace} permits {sources}"


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2] not in "aeiou" else f"{kind}s"
