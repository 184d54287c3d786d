"""How lists and maps of generated objects are merged: which key identifies the items of a list.

Read from the definitions of Kubernetes (apps/v1, v1, policy/v1, autoscaling/v2), as far as objects that we generate
have such fields. A field without a row is replaced as a whole when it is a list, and merged when it is a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """A field, and those below it. `key`: of a list, the field that identifies items; "": of a list of plain
    values whose items are merged; None: the list is replaced."""

    key: str | None = None
    below: Mapping[str, Field] = field(default_factory=dict)
    replaced: bool = False
    """A map that is replaced and not merged."""
    optional_key: bool = False
    """Whether items may lack the key: those that do are one item."""


PLAIN: Final = Field()

_METADATA: Final = Field(below={"ownerReferences": Field("uid"), "finalizers": Field("")})
_CONTAINER: Final = {
    "ports": Field("containerPort"),
    "env": Field("name"),
    "volumeMounts": Field("mountPath"),
    "volumeDevices": Field("devicePath"),
}
_POD: Final = {
    "containers": Field("name", _CONTAINER),
    "initContainers": Field("name", _CONTAINER),
    "ephemeralContainers": Field("name", _CONTAINER),
    "volumes": Field("name"),
    "imagePullSecrets": Field("name"),
    "hostAliases": Field("ip"),
    "topologySpreadConstraints": Field("topologyKey"),
    "resourceClaims": Field("name"),
    "schedulingGates": Field("name"),
    # Kubernetes replaces this list. The specification of GatewayParameters has it merged.
    "tolerations": Field("key", optional_key=True),
}

SPECS: Final[dict[str, Field]] = {
    "Deployment": Field(below={"template": Field(below={"metadata": _METADATA, "spec": Field(below=_POD)})}),
    "Service": Field(below={"ports": Field("port")}),
    # It has no spec: its own fields are merged in place of one.
    "ServiceAccount": Field(below={"secrets": Field("name"), "imagePullSecrets": PLAIN}),
    "PodDisruptionBudget": Field(below={"selector": Field(replaced=True)}),
    "HorizontalPodAutoscaler": PLAIN,
}
"""The kinds that overlays are about: how their `spec` is merged."""
