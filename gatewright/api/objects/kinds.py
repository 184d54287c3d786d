"""Which kinds we read, of which group and versions: one table.

Called by decoding, and by sources that list and watch. A kind that is not served yet is validated, then refused by
name, because ignoring it could open what it was meant to close.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy
from gatewright.api.objects.config_map import ConfigMap
from gatewright.api.objects.custom_resource_definition import CustomResourceDefinition
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_backend import GatewayBackend
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.gateway_parameters import GatewayParameters
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.inference_pool import InferencePool
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.objects.namespace import Namespace
from gatewright.api.objects.pod import Pod
from gatewright.api.objects.reference_grant import ReferenceGrant
from gatewright.api.objects.secret import Secret
from gatewright.api.objects.service import Service
from gatewright.api.routes.grpc_route import GRPCRoute
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.routes.stream_routes import TCPRoute, TLSRoute, UDPRoute
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.names import AWAITED, GATEWAY_API_GROUP, GROUP, INFERENCE_GROUP, VERSION


class KindInfo(NamedTuple):
    """One kind. `versions` are those whose fields are alike, the preferred one first."""

    kind: str
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool
    model: type[KubeObject]

    @property
    def served(self) -> bool:
        """Whether it can be honoured."""
        return self.kind not in AWAITED

    @property
    def api_versions(self) -> tuple[str, ...]:
        """As written in `apiVersion`."""
        return tuple(f"{self.group}/{version}" if self.group else version for version in self.versions)


_KINDS: Final = (
    KindInfo("GatewayClass", GATEWAY_API_GROUP, ("v1", "v1beta1"), "gatewayclasses", False, GatewayClass),
    KindInfo("Gateway", GATEWAY_API_GROUP, ("v1", "v1beta1"), "gateways", True, Gateway),
    KindInfo("HTTPRoute", GATEWAY_API_GROUP, ("v1", "v1beta1"), "httproutes", True, HTTPRoute),
    KindInfo("ReferenceGrant", GATEWAY_API_GROUP, ("v1", "v1beta1"), "referencegrants", True, ReferenceGrant),
    KindInfo("GRPCRoute", GATEWAY_API_GROUP, ("v1",), "grpcroutes", True, GRPCRoute),
    KindInfo("TLSRoute", GATEWAY_API_GROUP, ("v1", "v1alpha3", "v1alpha2"), "tlsroutes", True, TLSRoute),
    KindInfo("TCPRoute", GATEWAY_API_GROUP, ("v1", "v1alpha2"), "tcproutes", True, TCPRoute),
    KindInfo("UDPRoute", GATEWAY_API_GROUP, ("v1", "v1alpha2"), "udproutes", True, UDPRoute),
    KindInfo("ListenerSet", GATEWAY_API_GROUP, ("v1",), "listenersets", True, ListenerSet),
    KindInfo(
        "BackendTLSPolicy",
        GATEWAY_API_GROUP,
        ("v1", "v1alpha3"),
        "backendtlspolicies",
        True,
        BackendTLSPolicy,
    ),
    KindInfo("InferencePool", INFERENCE_GROUP, ("v1",), "inferencepools", True, InferencePool),
    KindInfo("GatewayBackend", GROUP, (VERSION,), "gatewaybackends", True, GatewayBackend),
    KindInfo("GatewayParameters", GROUP, (VERSION,), "gatewayparameters", True, GatewayParameters),
    KindInfo("GatewayPolicy", GROUP, (VERSION,), "gatewaypolicies", True, GatewayPolicy),
    KindInfo("Service", "", ("v1",), "services", True, Service),
    KindInfo("Pod", "", ("v1",), "pods", True, Pod),
    KindInfo("Secret", "", ("v1",), "secrets", True, Secret),
    KindInfo("ConfigMap", "", ("v1",), "configmaps", True, ConfigMap),
    KindInfo("Namespace", "", ("v1",), "namespaces", False, Namespace),
    KindInfo(
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        ("v1",),
        "customresourcedefinitions",
        False,
        CustomResourceDefinition,
    ),
    KindInfo("EndpointSlice", "discovery.k8s.io", ("v1",), "endpointslices", True, EndpointSlice),
)

KINDS: Final[dict[str, KindInfo]] = {info.kind: info for info in _KINDS}
"""Kind to its row."""

OWN_GROUPS: Final = (GATEWAY_API_GROUP, GROUP)
"""Groups in which an unknown kind is an error, not somebody else's."""


def there_is(kind: str, name: object) -> str:
    """The ending of a message about a reference to nothing, where an object of that name and another kind is there."""
    return f'; there is a {kind} {name}: write group: "{KINDS[kind].group}", kind: {kind}'
