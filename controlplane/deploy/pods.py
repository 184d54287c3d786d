"""The Deployment of a Gateway's proxies. Pure.

Proxies run as a user without rights, on a root file system that they cannot write to, and have one token: for the
controller alone. What changes with listeners is not in here, so that pods are not replaced for a port.
"""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any, Final

from controlplane.deploy import environment
from controlplane.deploy.parameters import Parameters, laid_over
from controlplane.deploy.quantities import quantity
from controlplane.deploy.request import Defaults, Request

Json = dict[str, Any]  # Any: JSON

CONTAINER: Final = "gatewright"
USER: Final = 65532
"""As in manifests/Containerfile."""
METRICS_PORT, READINESS_PORT = 15020, 15021
AUDIENCE: Final = "gatewright"
TOKEN_FOLDER: Final = "/var/run/secrets/gatewright"
TOKEN_FILE: Final = "token"
TOKEN_SECONDS: Final = 3600
"""The kubelet renews a token when a fifth of its time is left."""
MESH_AUDIENCE: Final = "istio-ca"
MESH_TOKEN_FOLDER: Final = "/var/run/secrets/tokens"
MESH_CA_FOLDER: Final = "/var/run/secrets/istio"
MESH_CA_CONFIG_MAP: Final = "istio-ca-root-cert"
MESH_PORT: Final = 15008
"""On which the proxies of a Gateway in a mesh take tunnels."""
MESH_LABELS: Final = {
    "istio.io/dataplane-mode": "none",  # the mesh's own proxies redirect nothing of these Pods,
    "sidecar.istio.io/inject": "false",  # and none is put into them:
    "networking.istio.io/tunnel": "http",  # they take tunnels themselves
}
MESH_NETWORK_LABEL: Final = "topology.istio.io/network"
"""By which the mesh knows in which of its networks a Pod is."""
CONFIG_FOLDER: Final = "/etc/gatewright"
CONFIG_FILE: Final = "config.yaml"
CA_FILE: Final = "xds-ca.crt"
CHECKSUM: Final = "gatewright.dev/config-checksum"
MOST_WORKERS: Final = 256


def config_file(found: Parameters) -> Json | None:
    """What the proxy reads beside its Gateway; None where `rawConfig` asks for nothing. Typed fields win."""
    if not found.raw_config:
        return None
    logging = {"level": found.log_level, "format": found.log_format}
    return laid_over(found.raw_config, {"config": {"logging": logging}})


def deployment_spec(name: str, labels: Json, annotations: Json, selector: Json, rendering: Rendering) -> Json:
    """Without replicas, which an autoscaler may choose."""
    return {
        "selector": {"matchLabels": selector},
        "template": {
            "metadata": {"labels": labels | rendering.labels(), "annotations": annotations | rendering.annotations()},
            "spec": rendering.pod(name),
        },
    }


class Rendering:
    """Of one Gateway."""

    def __init__(self, request: Request, found: Parameters, defaults: Defaults) -> None:
        self._request = request
        self._found = found
        self._defaults = defaults
        self._config = config_file(found)

    def labels(self) -> Json:
        """Of the pods alone."""
        mesh = self._found.mesh
        if mesh is None:
            return {}
        return dict(MESH_LABELS) | ({MESH_NETWORK_LABEL: mesh.network} if mesh.network else {})

    def annotations(self) -> Json:
        """Of the pods: another configuration file is read by new ones."""
        result: Json = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
        if self._config is not None:
            text = json.dumps(self._config, sort_keys=True)
            result[CHECKSUM] = blake2b(text.encode(), digest_size=16).hexdigest()
        return result

    def pod(self, name: str) -> Json:
        return {
            "serviceAccountName": name,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": self._found.maximum,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
                # Listeners of ports below 1024, without a capability.
                "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
            },
            "containers": [self._container(name)],
            "volumes": self._volumes(name),
        }

    def _container(self, name: str) -> Json:
        policy = {"imagePullPolicy": self._found.pull_policy} if self._found.pull_policy else {}
        probe = {"httpGet": {"path": "/healthz/ready", "port": "readiness"}}
        return {
            "name": CONTAINER,
            "image": self._found.image,
            **policy,
            "command": ["gatewright-proxy"],
            "args": self._arguments(),
            "env": environment.environment(name, self._found),
            "ports": [
                {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
                {"name": "readiness", "containerPort": READINESS_PORT, "protocol": "TCP"},
                *self._mesh_ports(),
            ],
            "resources": self._found.resources,
            "startupProbe": {**probe, "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 60},
            "readinessProbe": {**probe, "periodSeconds": 5, "timeoutSeconds": 2, "failureThreshold": 2},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
            "volumeMounts": self._mounts(),
        }

    def _mesh_ports(self) -> list[Json]:
        return [] if self._found.mesh is None else [{"name": "hbone", "containerPort": MESH_PORT, "protocol": "TCP"}]

    def _arguments(self) -> list[str]:
        request, found, defaults = self._request, self._found, self._defaults
        arguments = [
            *("--xds", defaults.xds),
            *("--gateway", f"{request.namespace}/{request.name}"),
            *("--instance", "$(POD_NAME)"),
            *("--xds-ca-file", f"{CONFIG_FOLDER}/{CA_FILE}"),
            *("--xds-token-file", f"{TOKEN_FOLDER}/{TOKEN_FILE}"),
        ]
        if defaults.server_name:
            arguments += ["--xds-server-name", defaults.server_name]
        if self._config is not None:
            arguments += ["--file", f"{CONFIG_FOLDER}/{CONFIG_FILE}"]
        arguments += ["--log-level", found.log_level, "--log-format", found.log_format]
        workers = self._workers()
        return [*arguments, "--workers", str(workers)] if workers else arguments

    def _workers(self) -> int:
        """As many as the container may use cores: the machine's number of them says nothing. 0: not said."""
        limit = quantity((self._found.resources.get("limits") or {}).get("cpu"))
        chosen = (self._config or {}).get("config", {}).get("workers")
        if limit is None or chosen is not None:
            return 0
        return max(0, min(math.ceil(limit), MOST_WORKERS))

    def _volumes(self, name: str) -> list[Json]:
        volumes: list[Json] = [
            {"name": "config", "configMap": {"name": name}},
            _token("xds-token", AUDIENCE, TOKEN_FILE),
            {"name": "tmp", "emptyDir": {}},
        ]
        if self._found.mesh is not None:
            volumes.append(_token("mesh-token", MESH_AUDIENCE, "istio-token"))
            volumes.append({"name": "mesh-ca", "configMap": {"name": MESH_CA_CONFIG_MAP}})
        return volumes

    def _mounts(self) -> list[Json]:
        folders = {"config": CONFIG_FOLDER, "xds-token": TOKEN_FOLDER}
        if self._found.mesh is not None:
            folders |= {"mesh-token": MESH_TOKEN_FOLDER, "mesh-ca": MESH_CA_FOLDER}
        mounts: list[Json] = [{"name": name, "mountPath": path, "readOnly": True} for name, path in folders.items()]
        return [*mounts, {"name": "tmp", "mountPath": "/tmp"}]


def _token(name: str, audience: str, file: str) -> Json:
    token = {"audience": audience, "expirationSeconds": TOKEN_SECONDS, "path": file}
    return {"name": name, "projected": {"sources": [{"serviceAccountToken": token}]}}
