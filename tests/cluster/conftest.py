"""One API server for all tests of this folder, with the CRDs of manifests/ applied."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.controllers import BASE, SHOP, SYSTEM, created, gateway, path_of, route
from tests.cluster.kube import ApiServer
from tests.conftest import ALL, ROOT
from tests.harness.ports import reserve
from tests.harness.waiting import wait_until
from tests.outside.gateway_api.modules import definitions

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="package")
def binaries() -> Path:
    """The folder of etcd and kube-apiserver; only a full run builds them."""
    command = [str(ROOT / "scripts" / "apiserver"), *([] if ALL else ["--built"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a Kubernetes API server (scripts/apiserver builds it) {done.stderr[-300:]}")
    return Path(done.stdout.strip())


@pytest.fixture(scope="package")
def bare(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without our CRDs."""
    server = ApiServer(binaries, tmp_path_factory.mktemp("apiserver"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="package")
def cluster(bare: ApiServer) -> ApiServer:
    """An API server that serves our kinds."""
    for file in sorted((ROOT / "manifests" / "crds").glob("*.yaml")):
        crd = yaml.load(file.read_text(), yaml.CSafeLoader)
        name = crd["metadata"]["name"]
        answer = bare.apply(f"{CRDS}/{name}", crd)
        assert answer.status in (200, 201), f"{file.name}: {answer.message}"
        wait_until(lambda crd=name: is_established(bare, crd), f"{name} is served")  # type: ignore[misc]
    return bare


def is_established(server: ApiServer, name: str) -> bool:
    crd = server.request("GET", f"{CRDS}/{name}").body
    conditions = {row["type"]: row["status"] for row in (crd.get("status") or {}).get("conditions") or ()}
    return conditions.get("Established") == "True" and conditions.get("NonStructuralSchema") != "True"


@pytest.fixture(scope="package")
def server(cluster: ApiServer) -> ApiServer:
    """With Gateway API's definitions and a namespace."""
    for crd in definitions():
        answer = cluster.apply(f"{CRDS}/{crd['metadata']['name']}", crd)
        assert answer.status in (200, 201), answer.message
        wait_until(lambda name=crd["metadata"]["name"]: is_established(cluster, name))  # type: ignore[misc]
    created(cluster, "/api/v1/namespaces/shop", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for file in sorted(BASE.glob("*.yaml"), key=lambda each: each.name != "namespace.yaml"):
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            created(cluster, path_of(document), document)
    return cluster


@pytest.fixture(scope="package")
def token(server: ApiServer) -> str:
    """Of the controller's own account: it may do what manifests/base says, and nothing else."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/gatewright-controller/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    found: str = server.request("POST", path, body).body["status"]["token"]
    return found


@pytest.fixture
def shop(server: ApiServer) -> Iterator[str]:
    """A Gateway with a route, and the account of its proxies."""
    gateway(server, "web", reserve())
    route(server, "web", "web")
    for name in ("web", "other"):
        path = f"/api/v1/namespaces/shop/serviceaccounts/{name}"
        created(server, path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    yield "web"
    for plural in ("httproutes", "gateways"):
        server.request("DELETE", f"{SHOP}/{plural}/web")
