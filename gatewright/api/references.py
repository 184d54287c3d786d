"""References to other objects, as Gateway API 1.7 writes them.

Used by routes, Gateways and our kinds. Whether the object exists, and may be referred to, is the translator's matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatewright.api.fields import Group, Kind, NamespaceName, ObjectName, Port, SectionName
from gatewright.api.model import Broken, Model, RuledModel
from gatewright.api.names import GATEWAY_API_GROUP


class ParentReference(Model):
    """Gateway API ParentReference; group and kind default to Gateway."""

    group: Group = GATEWAY_API_GROUP
    kind: Kind = "Gateway"
    namespace: NamespaceName | None = None
    name: ObjectName
    section_name: SectionName | None = None
    port: Port | None = None


class BackendObjectReference(RuledModel):
    """Gateway API BackendObjectReference; group and kind default to Service, which needs a port."""

    group: Group = ""
    kind: Kind = "Service"
    name: ObjectName
    namespace: NamespaceName | None = None
    port: Port | None = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.group == "" and self.kind == "Service" and self.port is None:
            yield Broken(("port",), "is required for a Service")


class SecretObjectReference(Model):
    """Gateway API SecretObjectReference."""

    group: Group = ""
    kind: Kind = "Secret"
    name: ObjectName
    namespace: NamespaceName | None = None


class ObjectReference(Model):
    """Gateway API ObjectReference: group and kind have no default."""

    group: Group
    kind: Kind
    name: ObjectName
    namespace: NamespaceName | None = None


class LocalObjectReference(Model):
    """Gateway API LocalObjectReference."""

    group: Group
    kind: Kind
    name: ObjectName


class ParametersReference(Model):
    """Gateway API ParametersReference; the namespace is for namespaced kinds."""

    group: Group
    kind: Kind
    name: ObjectName
    namespace: NamespaceName | None = None
