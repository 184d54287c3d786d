"""What a Gateway asks for, as objects of Kubernetes. Pure: the same request gives the same objects.

Typed fields of GatewayParameters come first (`parameters`), then the overlays of the class, then those of the Gateway
(`overlays`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controlplane.deploy import environment, names, overlays, pods
from controlplane.deploy.parameters import Parameters, parameters
from controlplane.deploy.request import (
    Defaults,
    Json,
    RenderingError,
    Request,
    WantedKey,
    WantedObject,
)

API_VERSIONS: Final = {
    "ServiceAccount": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
}
"""In the order in which objects are made: pods need what is before them."""
LONGEST_LABEL: Final = 63
MOST_REPLICAS: Final = 10
"""Of a HorizontalPodAutoscaler that names no number."""


def rendered(request: Request, defaults: Defaults, authority: str) -> tuple[WantedObject, ...]:
    """`authority`: certificates in PEM that the controller's own is signed by. Raises RenderingError."""
    return tuple(_Renderer(request, defaults, authority).objects())


class _Renderer:
    def __init__(self, request: Request, defaults: Defaults, authority: str) -> None:
        self._request = request
        self._authority = authority
        self._name = names.object_name(request.name)
        self._found: Parameters = parameters(request.layers, defaults)
        if self._found.mesh is not None and (pods.MESH_PORT, "TCP") in request.ports:
            raise RenderingError(
                f"listener of port {pods.MESH_PORT}: a proxy in a mesh (spec.istio of its parameters) has tunnels there"
            )
        self._pods = pods.Rendering(request, self._found, defaults)
        self._identity = _identity(request, self._name)
        self._labels = {**_free(request, self._identity), **self._identity}
        self._selector = {names.GATEWAY_NAME: self._name}

    def objects(self) -> Iterator[WantedObject]:
        found = self._found
        yield self._object("ServiceAccount", {"automountServiceAccountToken": False})
        yield self._object("ConfigMap", {"data": self._data()})
        if environment.needs_session_key(found):
            yield self._secret()
        if self._request.ports:
            yield self._object("Service", {"spec": self._service()})
        labels, annotations = self._labels, dict(self._request.annotations)
        spec = pods.deployment_spec(self._name, labels, annotations, self._selector, self._pods)
        deployment = self._object("Deployment", {"spec": spec})
        if overlays.asks_for(self._request.layers, "HorizontalPodAutoscaler"):
            deployment.body["spec"].pop("replicas", None)  # the autoscaler's to say
        yield deployment
        if overlays.asks_for(self._request.layers, "PodDisruptionBudget"):
            yield self._object("PodDisruptionBudget", {"spec": {"selector": {"matchLabels": self._selector}}})
        if overlays.asks_for(self._request.layers, "HorizontalPodAutoscaler"):
            target = {"apiVersion": API_VERSIONS["Deployment"], "kind": "Deployment", "name": self._name}
            yield self._object("HorizontalPodAutoscaler", {"spec": {"scaleTargetRef": target}})

    def _data(self) -> dict[str, str]:
        """JSON is YAML, and says the same for the same."""
        data = {pods.CA_FILE: self._authority}
        config = pods.config_file(self._found)
        if config is not None:
            data[pods.CONFIG_FILE] = json.dumps(config, indent=2, sort_keys=True) + "\n"
        return data

    def _secret(self) -> WantedObject:
        body = self._object("Secret", {"type": "Opaque"})
        return WantedObject(body.key, body.body, environment.SECRET_ENTRY)

    def _service(self) -> Json:
        ports = [
            {
                "name": f"{each.protocol.lower()}-{each.number}",
                "port": each.number,
                "protocol": each.protocol,
                "targetPort": each.number,
            }
            for each in self._request.ports
        ]
        kind = "ClusterIP" if self._request.is_of_cluster else "LoadBalancer"
        spec: Json = {"type": kind, "selector": self._selector, "ports": ports}
        if self._request.addresses:
            spec["loadBalancerIP"] = self._request.addresses[0]
        if self._request.cluster_addresses:
            spec["clusterIP"] = self._request.cluster_addresses[0]
        return spec

    def _object(self, kind: str, content: Mapping[str, Any]) -> WantedObject:
        key = WantedKey(kind, self._request.namespace, names.name_of(kind, self._request.name))
        metadata = {
            "name": key.name,
            "namespace": key.namespace,
            "labels": dict(self._labels),
            "annotations": dict(self._request.annotations),
            "ownerReferences": [_owner(self._request)],
        }
        body = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, **content}
        body = overlays.applied(body, self._request.layers, self._identity)
        _complete(body)
        return WantedObject(key, body)


def _identity(request: Request, name: str) -> dict[str, str]:
    """Labels by which objects are known, so that users may not choose them."""
    labels = {names.MANAGED_BY: names.PRODUCT, names.GATEWAY_NAME: name}
    if len(request.class_name) <= LONGEST_LABEL:
        labels[names.GATEWAY_CLASS] = request.class_name
    return labels


def _free(request: Request, identity: Mapping[str, str]) -> dict[str, str]:
    """Labels of every object that may be chosen: those of the infrastructure win."""
    taken = [key for key in request.labels if key in identity]
    if taken:
        raise RenderingError(f"spec.infrastructure.labels: {taken[0]} is set by the controller")
    instance = identity[names.GATEWAY_NAME]
    return {"app.kubernetes.io/name": "gatewright-proxy", "app.kubernetes.io/instance": instance, **request.labels}


def _owner(request: Request) -> Json:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "name": request.name,
        "uid": request.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _complete(body: Json) -> None:
    """What overlays left open and Kubernetes wants chosen."""
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return
    if body["kind"] == "PodDisruptionBudget" and not {"minAvailable", "maxUnavailable"} & spec.keys():
        # Without either no pod could ever be evicted.
        spec["maxUnavailable"] = 1
    if body["kind"] == "HorizontalPodAutoscaler" and "maxReplicas" not in spec:
        fewest = spec.get("minReplicas")
        spec["maxReplicas"] = max(MOST_REPLICAS, fewest) if isinstance(fewest, int) else MOST_REPLICAS
