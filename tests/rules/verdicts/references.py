"""Verdicts on references to other objects (1-resources, Common types), and on label selectors."""

from __future__ import annotations

from typing import Final

from tests.rules.verdicts.common import GROUP, KIND, PORTS, K, P, R, group, kind, port
from tests.rules.verdicts.table import Nested, shape
from tests.rules.verdicts.words import (
    entries,
    enum,
    given,
    invalid,
    items,
    required,
    text,
    unknown,
    valid,
)

_SECRET = R + "| LocalSecretObjectRef |"
LOCAL_SECRET: Final = shape(
    {"name": "s"},
    required("name", _SECRET),
    text("name", 1, 253, _SECRET),
    group("group", _SECRET),
    valid("group", "", _SECRET),
    given(
        {"name": "s", "kind": "K"},
        valid("group", "a" * 253, GROUP),
        invalid("group", "a" * 254, GROUP),
        invalid("group", "Not_A_Group", GROUP),
    ),
    invalid("group", "example.com", K + "a kind of another group must be named"),
    invalid("kind", 1, _SECRET),
    valid("kind", "", _SECRET),
    valid("kind", "Secret", _SECRET),
    invalid("kind", "ConfigMap", K + "the core group has no other kind of credential"),
    given(
        {"name": "s", "group": "example.com"},
        valid("kind", "K" * 63, KIND),
        invalid("kind", "K" * 64, KIND),
    ),
    unknown("namespace", "other", R + "Reference to a same-namespace credential"),
    unknown("key", "k", _SECRET),
)

_BACKEND = R + "`BackendObjectReference` is used wherever a Service or a Backend must be referenced"
_SHAPE = K + "BackendObjectReference of Gateway API"
BACKEND_REF: Final = shape(
    {"name": "s", "port": 80},
    required("name", _SHAPE),
    text("name", 1, 253, _SHAPE),
    group("group", _SHAPE),
    valid("group", "", _BACKEND),
    kind("kind", _SHAPE),
    valid("kind", "Service", _BACKEND),
    invalid("kind", "ConfigMap", _BACKEND),
    invalid("kind", "GatewayBackend", _BACKEND),
    invalid("group", "gatewright.dev", _BACKEND),
    valid("", {"group": "gatewright.dev", "kind": "GatewayBackend", "name": "b"}, _BACKEND),
    invalid("", {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "b"}, _BACKEND),
    invalid("", {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}, _BACKEND),
    given({"name": "b", "kind": "GatewayBackend"}, valid("group", "gatewright.dev", _BACKEND)),
    text("namespace", 1, 63, K + "a namespace is a label of 1 to 63 characters"),
    invalid("namespace", "a.b", K + "a namespace is a label of 1 to 63 characters"),
    required("port", K + "a Service needs a port"),
    port("port", PORTS),
    unknown("sectionName", "a", _BACKEND),
)

_LOCAL = R + "| LocalBackendObjectReference |"
LOCAL_BACKEND: Final = shape(
    {"name": "s", "port": 80},
    required("name", _LOCAL),
    text("name", 1, 253, _LOCAL),
    group("group", _LOCAL),
    valid("group", "", _LOCAL),
    kind("kind", _LOCAL),
    valid("kind", "Service", _LOCAL),
    valid("", {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}, _LOCAL),
    required("port", R + "required when the target is a Service"),
    port("port", _LOCAL),
    unknown("namespace", "other", _LOCAL),
)

_SERVICE = R + "optional; a same-namespace Service by name; replaces only the host"
LOCAL_SERVICE: Final = shape(
    {"name": "s"},
    required("name", _SERVICE),
    text("name", 1, 253, _SERVICE),
    group("group", K + "LocalObjectReference of Gateway API"),
    valid("group", "", _SERVICE),
    invalid("group", "example.com", _SERVICE),
    kind("kind", K + "LocalObjectReference of Gateway API"),
    valid("kind", "Service", _SERVICE),
    invalid("kind", "Pod", _SERVICE),
    unknown("namespace", "other", _SERVICE),
    unknown("port", 80, R + "port, path, protocol stay on the target"),
)

_CONFIG_MAP = P + "`caCertificateRefs` (array of LocalObjectReference, max 1; ConfigMap"
CONFIG_MAP: Final = shape(
    {"name": "c"},
    required("name", K + "LocalObjectReference of Gateway API"),
    text("name", 1, 253, _CONFIG_MAP),
    group("group", K + "LocalObjectReference of Gateway API"),
    valid("group", "", _CONFIG_MAP),
    invalid("group", "example.com", _CONFIG_MAP),
    kind("kind", K + "LocalObjectReference of Gateway API"),
    valid("kind", "ConfigMap", K + "LocalObjectReference of Gateway API"),
    invalid("kind", "Secret", _CONFIG_MAP),
)

_SELECTOR = K + "LabelSelector"
LABEL_SELECTOR: Final = shape(
    {"matchLabels": {"a": "b"}},
    valid("", {}, _SELECTOR),
    entries("matchLabels", 0, None, _SELECTOR),
    invalid("matchLabels", {"a": 1}, _SELECTOR),
    items("matchExpressions", 0, None, _SELECTOR, {"key": "a", "operator": "Exists"}),
    invalid("matchExpressions", [{"operator": "Exists"}], _SELECTOR),
    invalid("matchExpressions", [{"key": "a"}], _SELECTOR),
    Nested(
        "matchExpressions[0]",
        shape(
            {"key": "a", "operator": "Exists"},
            required("key", _SELECTOR),
            text("key", None, None, _SELECTOR),
            required("operator", _SELECTOR),
            given({"key": "a", "values": ["b"]}, enum("operator", ("In", "NotIn"), _SELECTOR)),
            enum("operator", ("Exists", "DoesNotExist"), _SELECTOR),
            *(
                row
                for operator in ("In", "NotIn")
                for row in given(
                    {"key": "a", "operator": operator},
                    valid("values", ["b", "c"], _SELECTOR),
                    invalid("values", "b", _SELECTOR),
                    invalid("values", [1], _SELECTOR),
                    invalid("values", [], _SELECTOR),
                )
            ),
            *(
                row
                for operator in ("Exists", "DoesNotExist")
                for row in given(
                    {"key": "a", "operator": operator},
                    valid("values", [], _SELECTOR),
                    invalid("values", ["b"], _SELECTOR),
                )
            ),
        ),
        _SELECTOR,
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    ),
)
