"""ListenerSet, Gateway API 1.7: listeners that somebody else adds to a Gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatewright.api.objects.gateway import Listener, listeners_differ
from gatewright.api.schema.fields import Group, Kind, NamespaceName, ObjectName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, unique
from gatewright.api.schema.names import GATEWAY_API_GROUP


class ParentGatewayReference(Model):
    """Gateway API ParentGatewayReference."""

    group: Group = GATEWAY_API_GROUP
    kind: Kind = "Gateway"
    name: ObjectName
    namespace: NamespaceName | None = None


class ListenerSetSpec(RuledModel):
    """Gateway API ListenerSetSpec."""

    parent_ref: ParentGatewayReference
    listeners: Annotated[
        tuple[Listener, ...], Field(min_length=1, max_length=64), unique(lambda listener: listener.name, field="name")
    ]

    def broken_rules(self) -> Iterator[Broken]:
        yield from listeners_differ(self.listeners)


class ListenerSet(KubeObject):
    """Listeners added to a Gateway."""

    spec: ListenerSetSpec
