"""What tests of a controller on a real API server share: objects in, statuses out, and the controller as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.kube import ApiServer
from tests.conftest import ROOT
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program

GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
SHOP = f"{GATEWAY_API}/namespaces/shop"
SYSTEM = "gatewright-system"
BASE = ROOT / "manifests" / "base"
Json = dict[str, Any]


PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
PLURALS |= {"RoleBinding": "rolebindings", "Namespace": "namespaces", "ServiceAccount": "serviceaccounts"}
PLURALS |= {"GatewayClass": "gatewayclasses"}


def path_of(document: Json) -> str:
    group, metadata = document["apiVersion"], document["metadata"]
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/{'apis' if '/' in group else 'api'}/{group}{inside}/{PLURALS[document['kind']]}/{metadata['name']}"


def created(server: ApiServer, path: str, document: Json) -> None:
    answer = server.apply(path, document)
    assert answer.status in (200, 201), answer.message


def apply(server: ApiServer, path: str, kind: str, spec: Json, version: str = "gateway.networking.k8s.io/v1") -> Json:
    metadata: Json = {"name": path.rpartition("/")[2]}
    answer = server.apply(path, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    assert answer.status in (200, 201), answer.message
    return answer.body


def gateway(server: ApiServer, name: str, port: int) -> None:
    listener = {"name": "http", "port": port, "protocol": "HTTP"}
    apply(server, f"{SHOP}/gateways/{name}", "Gateway", {"gatewayClassName": "gatewright", "listeners": [listener]})


def route(server: ApiServer, name: str, parent: str, status: int | str = 200) -> None:
    """It answers by itself: with a redirect to a host of this name."""
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{status}.example"}}
    match = {"path": {"type": "PathPrefix", "value": f"/{name}"}}
    rule = {"matches": [match], "filters": [redirect]}
    apply(server, f"{SHOP}/httproutes/{name}", "HTTPRoute", {"parentRefs": [{"name": parent}], "rules": [rule]})


def get(server: ApiServer, path: str) -> Json:
    return server.request("GET", path).body


def conditions(status: Json | None) -> dict[str, str]:
    return {row["type"]: row["status"] for row in (status or {}).get("conditions") or ()}


def of_route(server: ApiServer, name: str) -> dict[str, str]:
    parents = (get(server, f"{SHOP}/httproutes/{name}").get("status") or {}).get("parents") or [{}]
    return conditions(parents[0])


class Controller:
    """`gatewright controller --kubernetes`, told by a kubeconfig file."""

    def __init__(self, server: ApiServer, token: str, folder: Path, name: str, *more: str) -> None:
        self.socket = folder / f"{name}.sock"
        config = folder / "kubeconfig"
        config.write_text(yaml.safe_dump(server.kubeconfig(token)))
        options = ["--kubernetes", "--kubeconfig", str(config), "--namespace", SYSTEM, "--socket", str(self.socket)]
        command = [sys.executable, "-m", "controlplane.cli", "controller", *options, *more, "--xds", "127.0.0.1:0"]
        self.process = Program(folder, name, [*command, "--admin", "127.0.0.1:0"])

    def await_ready(self) -> Controller:
        self.process.await_ready()
        return self

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        admin = f"127.0.0.1:{self.process.port('ADMIN')}"
        command = [sys.executable, "-m", "controlplane.cli", *arguments, "--admin", admin]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @property
    def leads(self) -> bool:
        log = self.process.log()
        return log.count("this controller leads: ") > log.count("leads no more")

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.signal(number)
        self.process.wait()
        self.process.stop()
