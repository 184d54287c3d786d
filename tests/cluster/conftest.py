"""One API server for all tests of this folder, with the CRDs of manifests/ applied."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.controllers import SHOP, created, gateway, install, install_crds, route, token_of_controller
from tests.cluster.given import GivenCluster, is_given
from tests.cluster.kube import ApiServer
from tests.conftest import ALL, ROOT
from tests.harness.ports import reserve

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
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without our CRDs; that of KUBECONFIG where somebody gives one."""
    folder = tmp_path_factory.mktemp("apiserver")
    if is_given():
        server: ApiServer = GivenCluster(Path(os.environ["KUBECONFIG"]), folder)
    else:
        server = ApiServer(request.getfixturevalue("binaries"), folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="package")
def cluster(bare: ApiServer) -> ApiServer:
    """An API server that serves our kinds."""
    install_crds(bare)
    return bare


@pytest.fixture(scope="package")
def server(cluster: ApiServer) -> ApiServer:
    """With all that a controller needs, and a namespace."""
    install(cluster)
    created(cluster, "/api/v1/namespaces/shop", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    return cluster


@pytest.fixture(scope="package")
def token(server: ApiServer) -> str:
    return token_of_controller(server)


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
