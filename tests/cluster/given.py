"""A cluster that somebody has: reached by KUBECONFIG, filled with what the tests need, and left without it.

Only where GATEWRIGHT_USE_CLUSTER is set beside KUBECONFIG: what a shell happens to point at may be in production.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.kube import ApiServer

SWITCH = "GATEWRIGHT_USE_CLUSTER"
SPACES = ("shop", "partner", "random", "gatewright-system")
LEFT_BEHIND = (
    *(f"/api/v1/namespaces/{name}" for name in SPACES),
    "/apis/gateway.networking.k8s.io/v1/gatewayclasses/gatewright",
    *(
        f"/apis/rbac.authorization.k8s.io/v1/{plural}/gatewright-{name}"
        for plural in ("clusterrolebindings", "clusterroles")
        for name in ("controller", "provisioner")
    ),
    *(
        f"/apis/admissionregistration.k8s.io/v1/{plural}/gatewright-{name}"
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies")
        for name in ("parameters", "class-parameters", "infrastructure", "controller")
    ),
)
"""What is removed in the end. Definitions of kinds stay: they may have been there before."""


def is_given(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether tests are to use the cluster of KUBECONFIG."""
    return bool(environment.get("KUBECONFIG") and environment.get(SWITCH))


class GivenCluster(ApiServer):
    """What `ApiServer` has, but for ends and beginnings, which are not ours."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.folder = folder
        self._processes = []
        self._token = ""
        self._connection = None
        self._found = asyncio.run(_read(file))

    def start(self) -> None:
        """Raises RuntimeError where the cluster has what the tests would make, and would remove."""
        there = [each for each in LEFT_BEHIND if self.request("GET", each).status == http.HTTPStatus.OK]
        if there:
            raise RuntimeError(f"the cluster of KUBECONFIG has {', '.join(there)}: use one without Gatewright")

    def stop(self) -> None:
        fresh = self.another()  # the server may have closed one that was idle
        for each in LEFT_BEHIND:
            fresh.request("DELETE", each)
        fresh.close()
        self.close()

    def restart(self) -> None:
        pytest.skip("the API server is not one that a test may restart")

    def forget(self) -> None:
        pytest.skip("the store is not one that a test may compact")

    def kubeconfig(self, token: str = "") -> dict[str, Any]:
        """With a token; the tests know no other way for somebody else."""
        found = self._found
        trust = (
            {"certificate-authority": found.ssl_ca_cert} if found.ssl_ca_cert else {"insecure-skip-tls-verify": True}
        )
        return self._config({"server": found.host, **trust}, token)

    def _connected(self, seconds: float) -> http.client.HTTPSConnection:
        found = self._found
        context = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if not found.verify_ssl:
            context = ssl._create_unverified_context()  # as the file says
        if found.cert_file and not self._token:
            context.load_cert_chain(found.cert_file, found.key_file)
        host, _, path = found.host.removeprefix("https://").partition("/")
        assert not path, "an API server below a path"
        return http.client.HTTPSConnection(host, timeout=seconds, context=context)

    def _authorization(self) -> dict[str, str]:
        token = f"Bearer {self._token}" if self._token else self._found.api_key.get("BearerToken")
        return {"Authorization": token} if token else {}


async def _read(file: Path) -> Any:  # Any: the library has no types
    from kubernetes_asyncio import client, config

    configuration = client.Configuration()
    await config.load_kube_config(str(file), None, configuration)
    return configuration
