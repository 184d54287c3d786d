"""One API server for all tests of this folder, with the CRDs of manifests/ applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.choice import Unavailable, first
from tests.cluster.controllers import (
    SHOP,
    Controller,
    created,
    gateway,
    install,
    install_crds,
    provisioned_in,
    route,
    token_of_controller,
)
from tests.cluster.kube import ApiServer
from tests.harness.ports import reserve

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="package")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without our CRDs: the first of those in `choice`."""
    try:
        server = first(tmp_path_factory.mktemp("apiserver"))
    except Unavailable as reasons:
        pytest.skip(str(reasons))
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
    """With what manifests/ has for a controller, no right more, and a namespace whose Gateways get proxies."""
    install(cluster)
    provisioned_in(cluster, "shop")
    return cluster


@pytest.fixture(scope="package")
def token(server: ApiServer) -> str:
    return token_of_controller(server)


@pytest.fixture
def controller(server: ApiServer, token: str, tmp_path: Path) -> Iterator[Controller]:
    """A controller of this cluster that is ready."""
    made = Controller(server, token, tmp_path, "controller")
    try:
        yield made.await_ready()
    finally:
        made.process.stop()


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
