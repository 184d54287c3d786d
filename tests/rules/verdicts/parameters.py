"""Verdicts on GatewayParameters (1-resources, GatewayParameters)."""

from __future__ import annotations

from tests.rules.verdicts.common import K, P, R
from tests.rules.verdicts.table import Rows, shape
from tests.rules.verdicts.words import (
    boolean,
    entries,
    enum,
    first_of,
    given,
    integer,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_LOGGING = R + "| logging | object | `level` (string; per-module filter syntax"
LOGGING = shape(
    {},
    valid("level", "info", _LOGGING),
    *(
        valid("level", level, _LOGGING)
        for level in ("error", "warn", "debug", "off", "info,dataplane.http=debug,xds=off")
    ),
    *(invalid("level", level, _LOGGING) for level in ("loud", "info,xds=loud", "xds=")),
    invalid("level", 1, _LOGGING),
    enum("format", ("json", "text"), _LOGGING),
)

_IMAGE = R + "| image | Image | container image: `registry`, `repository`, `tag`, `digest`"


def _image_text(path: str) -> Rows:
    yield valid(path, "a", _IMAGE)
    yield invalid(path, 1, _IMAGE)


IMAGE = shape(
    {},
    *(row for path in ("registry", "repository", "tag", "digest") for row in _image_text(path)),
    enum("pullPolicy", ("Always", "IfNotPresent", "Never"), _IMAGE),
)

_ENV = R + "| env | array of EnvVar | container environment variables"
ENV = shape(
    {"name": "A"},
    required("name", K + "EnvVar"),
    text("name", 1, None, K + "EnvVar"),
    valid("value", "$(B) $$(C)", _ENV),
    valid("value", "", K + "EnvVar"),
    invalid("value", 1, K + "EnvVar"),
    valid("valueFrom", {"fieldRef": {"fieldPath": "metadata.name"}}, K + "EnvVar"),
    invalid("valueFrom", "a", K + "EnvVar"),
    given({"name": "A", "value": "v"}, invalid("valueFrom", {"fieldRef": {"fieldPath": "a"}}, K + "EnvVar")),
)

_RESOURCES = R + "| resources | ResourceRequirements | compute resources of the container |"


def _quantities(path: str) -> Rows:
    spec = K + "ResourceRequirements"
    yield valid(path, {"cpu": "500m", "memory": "1Gi"}, spec)
    yield valid(path, {"cpu": 2}, spec)
    yield invalid(path, {"cpu": []}, spec)
    yield invalid(path, {"cpu": True}, spec)
    yield invalid(path, "1Gi", spec)


RESOURCES = shape(
    {},
    _quantities("limits"),
    _quantities("requests"),
    valid("claims", [{"name": "gpu"}], K + "ResourceRequirements"),
    invalid("claims", ["gpu"], K + "ResourceRequirements"),
    invalid("claims", {"name": "gpu"}, _RESOURCES),
)

_SHUTDOWN = P + "| Shutdown `min` and `max` | 0 to 31536000 seconds |"
_BOTH = R + "| shutdown | ShutdownSpec | `min` (integer, required, 0 to 31536000, seconds"
SHUTDOWN = shape(
    {"min": 0, "max": 31536000},
    required("min", _BOTH),
    required("max", _BOTH),
    integer("min", 0, 31536000, _SHUTDOWN),
    integer("max", 0, 31536000, _SHUTDOWN),
    invalid("", {"min": 2, "max": 1}, "decisions.md: `min <= max`"),
    valid("", {"min": 1, "max": 1}, "decisions.md: `min <= max`"),
)

_MESH = R + "MeshSpec (all optional): `enabled` (boolean"


def _mesh_text(path: str, value: str) -> Rows:
    yield valid(path, value, _MESH)
    yield invalid(path, 1, _MESH)


MESH = shape(
    {},
    boolean("enabled", _MESH),
    _mesh_text("caAddress", "https://istiod.istio-system.svc:15012"),
    _mesh_text("trustDomain", "cluster.local"),
    items("additionalTrustDomains", 0, None, _MESH, lambda n: f"d{n}.example"),
    invalid("additionalTrustDomains", [1], _MESH),
    _mesh_text("clusterId", "Kubernetes"),
    _mesh_text("network", ""),
)

_OVERLAY = R + "KubernetesResourceOverlay: `metadata` (`labels`, `annotations`: maps of string to string)"
_METADATA = shape(
    {},
    entries("labels", 0, None, _OVERLAY),
    invalid("labels", {"a": 1}, _OVERLAY),
    entries("annotations", 0, None, _OVERLAY),
    invalid("annotations", {"a": 1}, _OVERLAY),
    unknown("name", "other", _OVERLAY),
)
OVERLAY = shape(
    {},
    nested("metadata", _METADATA, _OVERLAY),
    valid("spec", {"template": {"spec": {"containers": [{"name": "gatewright", "$patch": "delete"}]}}}, _OVERLAY),
    invalid("spec", "a", _OVERLAY),
    invalid("spec", [], _OVERLAY),
    unknown("status", {}, _OVERLAY),
)


_OVERLAYS = R + "| deployment, service, serviceAccount | KubernetesResourceOverlay |"
SPEC = shape(
    {},
    valid("", {}, R + "`spec` fields (all optional):"),
    required("", R + "Configures dynamic provisioning of the gateway data plane."),
    nested("logging", LOGGING, _LOGGING),
    valid("rawConfig", {"binds": [], "anything": {"a": None}}, R + "| rawConfig | JSON object |"),
    invalid("rawConfig", "binds: []", R + "| rawConfig | JSON object |"),
    invalid("rawConfig", [], R + "| rawConfig | JSON object |"),
    nested("image", IMAGE, _IMAGE),
    items("env", 0, None, _ENV, lambda n: {"name": f"A{n}"}),
    invalid("env", [{"name": "A"}, {"name": "A"}], K + "EnvVar: a list by name"),
    first_of("env", ENV, _ENV),
    nested("resources", RESOURCES, _RESOURCES),
    nested("shutdown", SHUTDOWN, _BOTH),
    nested("istio", MESH, R + "| mesh | MeshSpec | service-mesh integration"),
    nested("deployment", OVERLAY, _OVERLAYS),
    nested("service", OVERLAY, _OVERLAYS),
    nested("serviceAccount", OVERLAY, _OVERLAYS),
    nested("podDisruptionBudget", OVERLAY, R + "| podDisruptionBudget | KubernetesResourceOverlay |"),
    nested("horizontalPodAutoscaler", OVERLAY, R + "| horizontalPodAutoscaler | KubernetesResourceOverlay |"),
    unknown("replicas", 2, R + "`spec` fields (all optional):"),
)
