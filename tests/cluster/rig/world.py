"""A cluster without nodes on one machine: API server, controllers, kubelet, load balancer and DNS, in namespaces of the
kernel that nothing outlives.

`scripts/conformance` starts this inside `unshare`, so every address and port here is its own; several worlds can run
side by side. Everything dies with the first process.
"""

from __future__ import annotations

import asyncio
import compileall
import contextlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.rig.api import Api, Json
from tests.cluster.rig.balancer import Balancer
from tests.cluster.rig.dns import Dns, resolver
from tests.cluster.rig.kubelet import Kubelet
from tests.cluster.rig.shell import BRIDGE, NODE_ADDRESS, sh

log = logging.getLogger("rig")

ROOT = Path(__file__).resolve().parents[3]
API_PORT, STORE_PORT, CONTROLLERS_PORT = 16443, 23790, 16257
XDS_PORT, ADMIN_PORT = 18000, 18001
TOKEN = "rig"
SYSTEM = "gatewright-system"
CONTROLLER = "gatewright-controller"
FIXED = {f"{CONTROLLER}.{SYSTEM}.svc": NODE_ADDRESS}
"""Names of what runs beside the cluster."""
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "horizontal-pod-autoscaler-controller",
    "disruption-controller",
)
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Deployment": "deployments",
    "Gateway": "gateways",
    "GatewayParameters": "gatewayparameters",
    "GatewayPolicy": "gatewaypolicies",
    "GatewayClass": "gatewayclasses",
    "HTTPRoute": "httproutes",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
FIRST = ("Namespace", "CustomResourceDefinition")
"""Kinds that others need."""
PYTHON = [sys.executable, "-m"]


class World:
    """Made by `running`; `folder` takes all files. `fixed`: addresses by names of what runs beside the cluster."""

    namespace: str = SYSTEM
    """Of kubectl, where none is named."""

    def __init__(
        self, binaries: Path, folder: Path, images: Mapping[str, list[str]], fixed: Mapping[str, str] = FIXED
    ) -> None:
        self.binaries, self.folder, self.fixed = binaries, folder, fixed
        self.kubeconfig = folder / "kubeconfig"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._images = images

    def command(self, container: Json) -> list[str] | None:
        """What runs for an image."""
        for prefix, command in self._images.items():
            if container["image"].startswith(prefix):
                return command
        return None

    def start(self, name: str, *command: object, environment: Mapping[str, str] | None = None) -> None:
        """A process of this world; its output is in `NAME.log`."""
        with (self.folder / f"{name}.log").open("ab") as file:
            self.processes[name] = subprocess.Popen(
                [str(each) for each in command],
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def write_kubeconfig(self, file: Path, token: str) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": f"https://{NODE_ADDRESS}:{API_PORT}", "insecure-skip-tls-verify": True},
                }
            ],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": self.namespace}}],
            "current-context": "x",
        }
        file.write_text(yaml.safe_dump(document))


async def prepare_network() -> None:
    """A bridge that Pods are plugged into, and forwarding without redirects."""
    await sh("mount -t tmpfs tmpfs /run; mkdir /run/netns; mount --make-shared /run/netns || true")
    settings = ["ip_forward=1"]
    settings += [f"conf.{where}.{name}=0" for where in ("all", "default") for name in ("send_redirects", "rp_filter")]
    await sh("\n".join([
        *(f"sysctl -qw net.ipv4.{each}" for each in settings),
        "ip link set lo up",
        f"ip link add {BRIDGE} mtu 65535 type bridge forward_delay 0",
        f"ip link set {BRIDGE} up",
        f"ip addr add {NODE_ADDRESS}/16 dev {BRIDGE}",
    ]))  # fmt: skip


def _compile() -> None:
    """As an image is made: proxies run as a user who may not write, and would compile what changed at each start."""
    for package in ("gatewright", "controlplane", "dataplane"):
        compileall.compile_dir(ROOT / package, quiet=1)


@contextlib.asynccontextmanager
async def running(world: World) -> AsyncIterator[Api]:
    """A world with kubelet, balancer and DNS, and an administrator's access to its API server."""
    _compile()
    await prepare_network()
    # As in an image: what is not compiled is compiled at each start of a proxy, which takes longer than all else.
    await sh(f"{sys.executable} -m compileall -q {ROOT}/controlplane {ROOT}/dataplane {ROOT}/gatewright")
    await _start_server(world)
    async with Api(f"https://127.0.0.1:{API_PORT}", TOKEN) as api:
        await _await_server(world, api)
        _start_controllers(world)
        kubelet = Kubelet(api, world.folder, world.command, API_PORT)
        balancer = Balancer(api, kubelet)
        loop = asyncio.get_running_loop()
        resolve = resolver(balancer.services, kubelet, world.fixed)
        await loop.create_datagram_endpoint(lambda: Dns(resolve), (NODE_ADDRESS, 53))
        tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(balancer.run())]
        for task in tasks:
            task.add_done_callback(_ended)
        try:
            yield api
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # The API server before its store: without it, it would wait for minutes.
            for name in reversed(world.processes):
                world.processes[name].kill()


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the rig broke: %r", task.exception(), exc_info=task.exception())


async def _start_server(world: World) -> None:
    folder = world.folder
    key = folder / "sa.key"
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    (folder / "audit.yaml").write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
    )
    world.write_kubeconfig(world.kubeconfig, TOKEN)
    await sh(f"openssl genrsa -out {key} 2048 2>/dev/null; openssl req -x509 -newkey rsa:2048 -nodes -days 2"
             f" -subj /CN=rig -keyout {folder}/kubelet.key -out {folder}/kubelet.crt 2>/dev/null")  # fmt: skip
    store = f"http://127.0.0.1:{STORE_PORT}"
    world.start("etcd", world.binaries / "etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={store}",
                f"--advertise-client-urls={store}", f"--listen-peer-urls=http://127.0.0.1:{STORE_PORT + 1}",
                "--unsafe-no-fsync")  # fmt: skip
    start_api_server(world)


def start_api_server(world: World) -> None:
    """Also again, after it was killed."""
    folder, key = world.folder, world.folder / "sa.key"
    flags = {
        "etcd-servers": f"http://127.0.0.1:{STORE_PORT}",
        "bind-address": "0.0.0.0",
        "advertise-address": NODE_ADDRESS,
        "secure-port": API_PORT,
        "cert-dir": folder / "certs",
        "service-cluster-ip-range": "10.96.0.0/16",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "token-auth-file": folder / "tokens.csv",
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "endpoint-reconciler-type": "none",
        "audit-policy-file": folder / "audit.yaml",
        "audit-log-path": folder / "audit.log",
    }
    flags_ = [f"--{name}={value}" for name, value in flags.items()]
    world.start("kube-apiserver", world.binaries / "kube-apiserver", *flags_, environment={"GOMEMLIMIT": "600MiB"})


async def _await_server(world: World, api: Api) -> None:
    while True:
        if world.processes["kube-apiserver"].poll() is not None:
            raise RuntimeError(world.log("kube-apiserver")[-2000:])
        if await api.is_ready():
            return
        await asyncio.sleep(0.2)


def _start_controllers(world: World) -> None:
    folder = world.folder
    world.start(
        "kube-controller-manager",
        world.binaries / "kube-controller-manager",
        f"--kubeconfig={world.kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--service-account-private-key-file={folder}/sa.key",
        f"--root-ca-file={folder}/certs/apiserver.crt",
        "--use-service-account-credentials=false",
        "--leader-elect=false",
        *("--kube-api-qps=500", "--kube-api-burst=1000"),
        *("--concurrent-deployment-syncs=10", "--concurrent-gc-syncs=20"),
        *("--bind-address=127.0.0.1", f"--secure-port={CONTROLLERS_PORT}"),
    )


async def apply(api: Api, document: Json) -> None:
    """Server-side apply."""
    group, metadata = document["apiVersion"], document["metadata"]
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    path = f"/{'apis' if '/' in group else 'api'}/{group}{inside}/{PLURALS[document['kind']]}/{metadata['name']}"
    await api.call("PATCH", f"{path}?fieldManager=rig&force=true", document, "application/apply-patch+yaml")


def documents(*files: Path) -> list[Json]:
    found: list[Any] = []
    for file in files:
        found += [
            each for each in yaml.load_all(file.read_text(), yaml.CSafeLoader) if (each or {}).get("kind") in PLURALS
        ]
    return sorted(found, key=lambda each: each["kind"] not in FIRST)


async def established(api: Api) -> None:
    """Until every definition is served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    while True:
        crds = (await api.call("GET", path))["items"]
        if all(_is_established(each) for each in crds):
            return
        await asyncio.sleep(0.1)


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def install(world: World, api: Api, definitions: Path) -> None:
    """Gateway API's definitions, ours, and what a controller needs; as `gatewright crds` prints it."""
    for document in documents(*sorted(definitions.glob("*.yaml"))):
        await apply(api, document)
    for document in documents(*sorted((ROOT / "manifests/crds").glob("*.yaml"))):
        await apply(api, document)
    await established(api)
    for part in ("base", "everywhere"):  # whoever uses a rig makes Gateways in namespaces of their own
        for document in documents(*sorted((ROOT / "manifests" / part).glob("*.yaml"))):
            await apply(api, document)


async def start_controller(
    world: World, api: Api, name: str = "controller", *options: str, port: int = XDS_PORT
) -> None:
    """With the rights of its own account alone."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{CONTROLLER}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36000}}
    token = (await api.insist("POST", path, body))["status"]["token"]
    config = world.folder / f"{name}.kubeconfig"
    world.write_kubeconfig(config, token)
    world.start(
        name,
        *(*PYTHON, "controlplane.cli", "controller", "--kubernetes", "--kubeconfig", config),
        *(
            "--xds",
            f"{NODE_ADDRESS}:{port}",
            "--admin",
            f"127.0.0.1:{port + 1}",
            "--socket",
            f"{world.folder}/{name}.sock",
        ),
        *options,
    )


def place() -> Path:
    """Where a world is mounted. Never removed: the kernel would take away what other worlds have mounted on it."""
    folder = Path("/tmp/rig")
    folder.mkdir(exist_ok=True)
    return folder


def emptied(folder: Path) -> Path:
    """A folder of its own for one run, on memory: overlays cannot be on an overlay."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
