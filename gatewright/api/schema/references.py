"""References to other objects, as Gateway API 1.7 writes them.

Used by routes, Gateways and our kinds. Whether the object exists, and may be referred to, is the translator's matter.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.fields import Group, Kind, NamespaceName, ObjectName, Port, SectionName
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.names import GATEWAY_API_GROUP, GATEWAY_BACKEND, GROUP, INFERENCE_POOL
from gatewright.api.schema.rules import Rule, is_one_of, required_where

_PORT: Final[tuple[Rule, ...]] = (
    required_where("port", "self.group == '' && self.kind == 'Service'", "is required for a Service"),
)


class ParentReference(Model):
    """Gateway API ParentReference; group and kind default to Gateway."""

    group: Group = GATEWAY_API_GROUP
    """API group of the parent."""
    kind: Kind = "Gateway"
    """Kind of the parent."""
    namespace: NamespaceName | None = None
    """Namespace of the parent; that of the referring object when unset."""
    name: ObjectName
    """Name of the parent."""
    section_name: SectionName | None = None
    """A section of the parent, for example a listener."""
    port: Port | None = None
    """A port of the parent."""


class BackendObjectReference(RuledModel):
    """Gateway API BackendObjectReference; group and kind default to Service, which needs a port."""

    group: Group = ""
    """API group of the target; empty is the core group."""
    kind: Kind = "Service"
    """Kind of the target."""
    name: ObjectName
    """Name of the target."""
    namespace: NamespaceName | None = None
    """Namespace of the target; that of the referring object when unset. Another one needs a ReferenceGrant there."""
    port: Port | None = None
    """Port of the target; required for a Service."""

    cel_rules = _PORT


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


class LocalSecretObjectRef(RuledModel):
    """A credential of the same namespace. The core group has Secrets alone."""

    name: ObjectName
    """Name of the credential."""
    group: Group = ""
    """API group of the credential; empty is the core group."""
    kind: Annotated[str, Field(max_length=63)] = ""
    """Kind of the credential; empty is Secret."""

    cel_rules = (
        Rule(
            "self.group != '' || self.kind in ['', 'Secret']", "kind must be Secret in the core group", path=("kind",)
        ),
        Rule("self.group == '' || self.kind != ''", "kind is required with group", path=("kind",)),
    )


class LocalBackendObjectReference(RuledModel):
    """A Service or InferencePool of the same namespace."""

    group: Group = ""
    """API group of the target; empty is the core group."""
    kind: Kind = "Service"
    """Kind of the target."""
    name: ObjectName
    """Name of the target."""
    port: Port | None = None
    """Port of the target; required for a Service."""

    cel_rules = _PORT


class LocalServiceReference(RuledModel):
    """A Service of the same namespace, by name alone."""

    group: Group = ""
    """API group of the target; must be the core group."""
    kind: Kind = "Service"
    """Kind of the target; must be Service."""
    name: ObjectName
    """Name of the Service."""

    cel_rules = (is_one_of([("", "Service")], "must be a Service"),)


class ConfigMapReference(RuledModel):
    """A ConfigMap of the same namespace."""

    group: Group = ""
    """API group of the target; must be the core group."""
    kind: Kind = "ConfigMap"
    """Kind of the target; must be ConfigMap."""
    name: ObjectName
    """Name of the ConfigMap."""

    cel_rules = (is_one_of([("", "ConfigMap")], "must be a ConfigMap"),)


class PolicyBackendReference(BackendObjectReference):
    """The server that a policy calls: a Service, or a GatewayBackend."""

    cel_rules = (
        *_PORT,
        is_one_of(
            [("", "Service"), (GROUP, GATEWAY_BACKEND)],
            f"kind must be Service, or {GATEWAY_BACKEND} of group {GROUP}; not supported: an {INFERENCE_POOL}, which is"
            " a backend of routes and of custom LLM providers alone",
            "kind",
        ),
    )
