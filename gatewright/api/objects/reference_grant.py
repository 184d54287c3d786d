"""ReferenceGrant, Gateway API 1.7 (v1 and v1beta1 are alike)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.schema.fields import Group, Kind, NamespaceName, ObjectName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model


class ReferenceGrantFrom(Model):
    """Who may refer."""

    group: Group
    kind: Kind
    namespace: NamespaceName


class ReferenceGrantTo(Model):
    """What may be referred to; no name: every object of the kind."""

    group: Group
    kind: Kind
    name: ObjectName | None = None


class ReferenceGrantSpec(Model):
    """Every pair of `from` and `to` is allowed."""

    from_: Annotated[tuple[ReferenceGrantFrom, ...], Field(min_length=1, max_length=16, alias="from")]
    to: Annotated[tuple[ReferenceGrantTo, ...], Field(min_length=1, max_length=16)]


class ReferenceGrant(KubeObject):
    """Permission, in the namespace of the target, for references from other namespaces."""

    spec: ReferenceGrantSpec
