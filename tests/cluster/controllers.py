"""What tests of a controller on a real API server share: objects in, statuses out, and the controller as a process."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from controlplane.kube.authority_secret import NAME as AUTHORITY
from tests.cluster.kube import ApiServer
from tests.conftest import ROOT
from tests.fakes.proxy_process import TIMES
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, running
from tests.harness.waiting import wait_until
from tests.outside.gateway_api.modules import definitions

GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
SHOP = f"{GATEWAY_API}/namespaces/shop"
SYSTEM = "gatewright-system"
MANIFESTS = ROOT / "manifests"
BASE = MANIFESTS / "base"
Json = dict[str, Any]


PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
PLURALS |= {"RoleBinding": "rolebindings", "Namespace": "namespaces", "ServiceAccount": "serviceaccounts"}
PLURALS |= {"GatewayClass": "gatewayclasses", "NetworkPolicy": "networkpolicies"}
PLURALS |= {"ValidatingAdmissionPolicy": "validatingadmissionpolicies"}
PLURALS |= {"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}


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
    """Of the types that Gateway API has; those with a domain of their own are left out."""
    rows = (status or {}).get("conditions") or ()
    return {row["type"]: row["status"] for row in rows if "/" not in row["type"]}


def of_route(server: ApiServer, name: str) -> dict[str, str]:
    parents = (get(server, f"{SHOP}/httproutes/{name}").get("status") or {}).get("parents") or [{}]
    return conditions(parents[0])


class Controller:
    """`gatewright controller --kubernetes`, told by a kubeconfig file."""

    def __init__(
        self,
        server: ApiServer,
        token: str,
        folder: Path,
        name: str,
        *more: str,
        xds: str = "127.0.0.1:0",
        socket: str = "",
        config: Json | None = None,
    ) -> None:
        """`config`: a kubeconfig file, where it is another than that of the token."""
        self.socket = folder / f"{socket or name}.sock"
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(server.kubeconfig(token) if config is None else config))
        options = ["--kubernetes", "--kubeconfig", str(file), "--namespace", SYSTEM, "--socket", str(self.socket)]
        command = [sys.executable, "-m", "controlplane.cli", "controller", *options, *more, "--xds", xds]
        self.process = Program(folder, name, [*command, "--admin", "127.0.0.1:0"])

    def await_ready(self) -> Controller:
        self.process.await_ready()
        return self

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        admin = f"127.0.0.1:{self.process.port('ADMIN')}"
        command = [sys.executable, "-m", "controlplane.cli", *arguments, "--admin", admin]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @property
    def metrics(self) -> str:
        with urlopen(f"http://127.0.0.1:{self.process.port('ADMIN')}/metrics", timeout=PATIENCE) as page:
            return str(page.read().decode())

    @property
    def writes_pending(self) -> float:
        return self._metric("gatewright_controller_status_writes_pending")

    @property
    def written(self) -> float:
        """Statuses that were written."""
        return self._metric('gatewright_controller_status_writes_total{outcome="written"}')

    @property
    def acks(self) -> float:
        """States that proxies have acknowledged."""
        return self._metric("gatewright_controller_xds_acks_total")

    @property
    def is_settled(self) -> bool:
        """Whether a proxy has acknowledged, and nothing is to be written."""
        return self.acks > 0 and self.writes_pending == 0

    def _metric(self, name: str) -> float:
        return next(float(line.split()[1]) for line in self.metrics.splitlines() if line.startswith(f"{name} "))

    @property
    def leads(self) -> bool:
        log = self.process.log()
        return log.count("this controller leads: ") > log.count("leads no more")

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.signal(number)
        self.process.wait()
        self.process.stop()


SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/{AUTHORITY}"
SERVICE = f"gatewright-controller.{SYSTEM}.svc"


def token_of(
    server: ApiServer, account: str, audience: str = "gatewright", seconds: int = 3600, namespace: str = "shop"
) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    spec: dict[str, Any] = {"audiences": [audience], "expirationSeconds": seconds}
    answer = server.request(
        "POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    )
    return str(answer.body["status"]["token"])


def bundle(server: ApiServer) -> bytes:
    return base64.b64decode(get(server, SECRET)["data"]["ca.crt"])


@contextmanager
def proxy(
    folder: Path, controller: Controller, authority: bytes, token: str, name: str = "proxy", *more: str
) -> Iterator[Program]:
    (folder / f"{name}.ca").write_bytes(authority)
    (folder / f"{name}.token").write_text(token)
    port = controller.process.port("XDS")
    command = [sys.executable, "-m", "dataplane", "--xds", f"127.0.0.1:{port}", "--gateway", "shop/web"]
    command += ["--xds-ca-file", str(folder / f"{name}.ca"), "--xds-token-file", str(folder / f"{name}.token")]
    command += ["--xds-server-name", SERVICE, "--any-port", "--workers", "1", "--stats", "off", "--readiness", "off"]
    command += ["--admin", "127.0.0.1:0", *more]
    with running(folder, name, command, environment=TIMES) as started:
        yield started


def is_programmed(server: ApiServer) -> bool:
    return conditions(get(server, f"{SHOP}/gateways/web").get("status")).get("Programmed") == "True"


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_crds(server: ApiServer) -> None:
    """Of manifests/."""
    define(
        server, [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted((ROOT / "manifests/crds").glob("*"))]
    )


def install(server: ApiServer) -> None:
    """Gateway API's definitions, and what manifests/base has for a controller."""
    define(server, definitions())
    for file in sorted(BASE.glob("*.yaml"), key=lambda each: each.name != "namespace.yaml"):
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            created(server, path_of(document), document)


def provisioned_in(server: ApiServer, namespace: str) -> None:
    """A namespace whose Gateways get proxies, as `kubectl apply -n NAMESPACE -k manifests/namespace` has it."""
    place = f"/api/v1/namespaces/{namespace}"
    created(server, place, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for document in of_namespace(namespace):
        created(server, path_of(document), document)


def of_namespace(namespace: str) -> list[Json]:
    """What manifests/namespace has, there."""
    files = sorted((MANIFESTS / "namespace").glob("*.yaml"))
    documents = [each for file in files for each in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in documents]


def define(server: ApiServer, crds: Iterable[Json]) -> None:
    """Returns when all are served."""
    for crd in crds:
        name = crd["metadata"]["name"]
        created(server, f"{CRDS}/{name}", crd)
        wait_until(lambda crd=name: is_established(server, crd), f"{name} is served")  # type: ignore[misc]


def is_established(server: ApiServer, name: str) -> bool:
    crd = server.request("GET", f"{CRDS}/{name}").body
    conditions = {row["type"]: row["status"] for row in (crd.get("status") or {}).get("conditions") or ()}
    return conditions.get("Established") == "True" and conditions.get("NonStructuralSchema") != "True"


def token_of_controller(server: ApiServer) -> str:
    """Of the controller's own account: it may do what manifests/base says, and nothing else."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/gatewright-controller/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    found: str = server.request("POST", path, body).body["status"]["token"]
    return found
