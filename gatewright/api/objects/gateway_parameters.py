"""GatewayParameters: how the data plane of a Gateway is provisioned."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.fields import Boolean, Integer, Json
from gatewright.api.schema.log_level import LEVELS, PATTERN
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, RuledModel, unique
from gatewright.api.schema.rules import Rule, where_set
from gatewright.api.schema.status import ConditionsStatus

_Seconds = Annotated[Integer, Field(ge=0, le=31_536_000)]


class ParametersLogging(RuledModel):
    """The proxy's own log."""

    level: str = "info"
    """A level, and `module=level` for modules that differ, separated by commas."""
    format: Literal["json", "text"] = "text"
    """Format of the process log and of the access log."""

    cel_rules = (
        where_set(
            "level",
            f"self.level.matches('^{PATTERN}$')",
            f"must be one of {', '.join(LEVELS)}, or module=LEVEL, separated by commas",
        ),
    )


class Image(Model):
    """The container image; what is unset is taken from the controller's settings."""

    registry: str | None = None
    """Host of the registry."""
    repository: str | None = None
    """Name within the registry."""
    tag: str | None = None
    """Tag; default is the controller's version."""
    digest: str | None = None
    """Digest, such as sha256:...; it wins over the tag."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled."""


class EnvVar(RuledModel):
    """An environment variable of the container."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the variable."""
    value: str | None = None
    """Its value. `$(NAME)` is expanded to the value of that variable, which is discouraged; `$$(NAME)` is the text
    itself."""
    value_from: dict[str, Json] | None = None
    """Where the value comes from instead, as in a Pod."""

    cel_rules = (where_set("valueFrom", "!has(self.value) || self.value == ''", "must be absent when value is set"),)


class ResourceRequirements(Model):
    """Compute resources, as in a Pod."""

    limits: dict[str, str | Integer] | None = None
    """The most that the container may use."""
    requests: dict[str, str | Integer] | None = None
    """What is reserved for the container."""
    claims: tuple[dict[str, Json], ...] | None = None
    """Claims of the Pod that the container uses."""


class ShutdownSpec(RuledModel):
    """How long proxies that end go on serving."""

    min: _Seconds
    """Seconds in which new connections are still accepted (CONNECTION_MIN_TERMINATION_DEADLINE)."""
    max: _Seconds
    """Seconds until everything ends (TERMINATION_GRACE_PERIOD_SECONDS)."""

    cel_rules = (Rule("self.min <= self.max", "min must be at most max", path=("min",)),)


class MeshSpec(Model):
    """mTLS with the workloads of an Istio mesh."""

    enabled: Boolean | None = None
    """Whether this gateway takes part in the mesh."""
    ca_address: str | None = None
    """Address of the mesh's authority; default https://istiod.istio-system.svc:15012."""
    trust_domain: str | None = None
    """The mesh's trust domain; default cluster.local, or that of the control plane's revision."""
    additional_trust_domains: tuple[str, ...] | None = None
    """Further trust domains of incoming tunnels; the local one is always accepted."""
    cluster_id: str = "Kubernetes"
    """Name of the cluster in the mesh."""
    network: str = ""
    """Name of the network in the mesh."""


class OverlayMetadata(Model):
    """Labels and annotations that are added."""

    labels: dict[str, str] | None = None
    """Labels."""
    annotations: dict[str, str] | None = None
    """Annotations."""


class KubernetesResourceOverlay(Model):
    """Changes of a generated object, by strategic merge patch."""

    metadata: OverlayMetadata | None = None
    """Labels and annotations that are added."""
    spec: dict[str, Json] | None = None
    """A part of the object's spec, merged into the generated one. `$patch: delete` removes, `$patch: replace` replaces;
    null removes only when this object is applied server-side. A container is found by its exact name; another name
    adds one."""


class GatewayParametersSpec(Model):
    """How the data plane of a Gateway is provisioned. Those of the Gateway win over those of its class; overlays are
    applied last, the class's before the Gateway's."""

    logging: ParametersLogging | None = None
    """The proxy's own log."""
    raw_config: dict[str, Json] | None = None
    """Settings in the form of the configuration file, merged into the generated one. The other fields here win."""
    image: Image | None = None
    """The container image."""
    env: Annotated[tuple[EnvVar, ...], unique(lambda variable: variable.name, field="name")] | None = None
    """Environment variables of the container, in place of generated ones of the same name. To take one away needs
    `$patch: delete` in the deployment's overlay. SESSION_KEY wins over the Gateway's own Secret."""
    resources: ResourceRequirements | None = None
    """Compute resources of the container."""
    shutdown: ShutdownSpec | None = None
    """How long proxies that end go on serving."""
    istio: MeshSpec | None = None
    """mTLS with the workloads of an Istio mesh."""
    deployment: KubernetesResourceOverlay | None = None
    """Changes of the generated Deployment."""
    service: KubernetesResourceOverlay | None = None
    """Changes of the generated Service."""
    service_account: KubernetesResourceOverlay | None = None
    """Changes of the generated ServiceAccount."""
    pod_disruption_budget: KubernetesResourceOverlay | None = None
    """Have a PodDisruptionBudget, with these changes. Its selector is the proxies'."""
    horizontal_pod_autoscaler: KubernetesResourceOverlay | None = None
    """Have a HorizontalPodAutoscaler, with these changes. Its target is the proxies' Deployment."""


class GatewayParameters(KubeObject):
    """How the data plane of Gateways is provisioned."""

    spec: GatewayParametersSpec
    """How the data plane of a Gateway is provisioned."""
    status: ConditionsStatus | None = None
    """What became of it."""
