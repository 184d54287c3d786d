"""A proxy in a real mesh: certificates of istiod, tunnels with Istio's echo server and client, in both directions.

Run by `scripts/mesh`, with the folders of Istio's programs and of a built API server. It ends with 0 when each line
that it prints is true.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import grpc

from dataplane.agent.mesh import certificate
from gatewright.wire.external import workload_certificate_pb2 as pb
from tests.cluster.kube import ApiServer
from tests.fakes import up_process
from tests.fakes.mesh import METHOD, PORT, SERVICE
from tests.fakes.proxy_process import Proxy, running
from tests.fakes.up_process import GATEWRIGHT_UP, LISTENER
from tests.harness.ports import reserve
from tests.harness.processes import Program
from tests.harness.waiting import until, wait_until
from tests.loopback.test_mesh_both_planes import OBJECTS

DOMAIN = "cluster.local"
ROOT_CONFIG_MAP = "istio-ca-root-cert"
SERVER_NAME = "istiod.istio-system.svc"
LIFE = 20
"""Seconds of the proxy's certificates."""
FILE = """
binds:
- port: 8080
  listeners:
  - name: shop
    routes:
    - name: who
      policies:
        authorization: {action: Allow, policy: {matchExpressions: ['source.identity.namespace == "demo"']}}
        directResponse: {status: 200, bodyExpression: '"served for " + source.spiffeId'}
"""


def said(what: str) -> None:
    print(f"ok      {what}", flush=True)


class Mesh:
    """istiod beside an API server."""

    def __init__(self, programs: Path, assets: Path, folder: Path, stack: ExitStack) -> None:
        self.programs, self.folder = programs, folder
        self.server = ApiServer(assets, folder)
        self.server.start()
        stack.callback(self.server.stop)
        for name in ("istio-system", "demo", "shop"):
            self.server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.port = reserve()
        self.istiod = self._started()
        stack.callback(self.istiod.stop)
        wait_until(lambda: self.root() or self._alive(), self.istiod.log)
        wait_until(lambda: up_process.opens(self.port) or self._alive(), self.istiod.log)
        self.root_file = folder / "root-cert.pem"
        self.root_file.write_text(self.root())

    def _alive(self) -> None:
        assert self.istiod.returncode is None, self.istiod.log()[-3000:]

    def _started(self) -> Program:
        config = self.folder / "kubeconfig.json"
        config.write_text(json.dumps(self.server.kubeconfig()))
        command = [
            *(str(self.programs / "istiod"), "discovery", f"--kubeconfig={config}", "--ctrlz_port=0"),
            *(f"--secureGRPCAddr=127.0.0.1:{self.port}", f"--grpcAddr=127.0.0.1:{reserve()}"),
            *(f"--httpAddr=127.0.0.1:{reserve()}", f"--httpsAddr=127.0.0.1:{reserve()}"),
            *(f"--monitoringAddr=127.0.0.1:{reserve()}", "--keepaliveInterval=30s", "--domain=cluster.local"),
        ]
        environment = {
            "POD_NAME": "istiod-1",
            "POD_NAMESPACE": "istio-system",
            "REVISION": "default",
            "CLUSTER_ID": "Kubernetes",
            "JWT_POLICY": "third-party-jwt",
            "PILOT_ENABLE_AMBIENT": "true",
            "PILOT_CERT_PROVIDER": "istiod",
            "INJECT_ENABLED": "false",
            "VALIDATION_WEBHOOK_CONFIG_NAME": "",
            "GOMEMLIMIT": "400MiB",
        }
        return Program(self.folder, "istiod", command, environment=environment, cwd=self.folder)

    def root(self) -> str:
        found = self.server.request("GET", f"/api/v1/namespaces/shop/configmaps/{ROOT_CONFIG_MAP}")
        return str(found.body.get("data", {}).get("root-cert.pem", ""))

    def token(self, namespace: str, account: str) -> str:
        """Of a service account, for the authority."""
        base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.server.request("POST", base, {"metadata": {"name": account}})
        asked = {"spec": {"audiences": ["istio-ca"], "expirationSeconds": 3600}}
        answer = self.server.request("POST", f"{base}/{account}/token", asked)
        return str(answer.body["status"]["token"])

    async def issued(self, namespace: str, account: str) -> tuple[Path, Path]:
        """Certificate and key of another workload, from the same authority, as files."""
        asked = certificate.ask(f"spiffe://{DOMAIN}/ns/{namespace}/sa/{account}")
        credentials = grpc.ssl_channel_credentials(self.root_file.read_bytes())
        options = [("grpc.ssl_target_name_override", SERVER_NAME)]
        metadata = (("authorization", f"Bearer {self.token(namespace, account)}"), ("clusterid", "Kubernetes"))
        async with grpc.aio.secure_channel(f"127.0.0.1:{self.port}", credentials, options) as channel:
            call = channel.unary_unary(f"/{SERVICE}/{METHOD}")
            request = pb.WorkloadCertificateRequest(csr=asked.request.decode(), validity_duration=3600)
            answer = await call(request.SerializeToString(), metadata=metadata, timeout=30.0)
        chain = [*pb.WorkloadCertificateResponse.FromString(answer).cert_chain]
        made = certificate.read(asked, chain, f"spiffe://{DOMAIN}/ns/{namespace}/sa/{account}", b"", 0.0)
        files = self.folder / f"{account}.crt", self.folder / f"{account}.key"
        files[0].write_bytes(made.chain)
        files[1].write_bytes(made.key)
        return files

    def environment(self) -> dict[str, str]:
        """Of a proxy of the Gateway shop/web."""
        file = self.folder / "istio-token"
        file.write_text(self.token("shop", "web"))
        return {
            "CA_ADDRESS": f"https://127.0.0.1:{self.port}",
            "CA_SERVER_NAME": SERVER_NAME,
            "CA_TOKEN_FILE": str(file),
            "CA_ROOT_FILE": str(self.root_file),
            "TRUST_DOMAIN": DOMAIN,
            "POD_NAMESPACE": "shop",
            "SERVICE_ACCOUNT": "web",
            "SECRET_TTL": f"{LIFE}s",
        }

    def asks(self, proxy_port: int, certificate: Path, key: Path, url: str) -> str:
        """What Istio's client prints of a request that it sends through a tunnel to the proxy."""
        command = [
            *(str(self.programs / "echo-client"), "--hbone", f"127.0.0.1:{proxy_port}", "--hbone-insecure-skip-verify"),
            *("--hbone-client-cert", str(certificate), "--hbone-client-key", str(key), "--timeout", "10s", url),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr


async def takes_tunnels(mesh: Mesh) -> None:
    """From Istio's client to the proxy; the certificate is renewed meanwhile."""
    file = mesh.folder / "config.yaml"
    file.write_text(FILE)
    app = await mesh.issued("demo", "app")
    foe = await mesh.issued("shop", "foe")
    async with running("-f", str(file), workers=1, environment=mesh.environment()) as proxy:
        await proxy.ready()
        first = (await proxy.dump())["mesh"]
        assert first["identity"] == f"spiffe://{DOMAIN}/ns/shop/sa/web" and not first["trouble"], first
        said("istiod gives the proxy its certificate")
        port = proxy.at(15008)
        answer = await asyncio.to_thread(mesh.asks, port, *app, "http://10.1.2.3:8080/")
        assert f"served for spiffe://{DOMAIN}/ns/demo/sa/app" in answer, answer
        said("Istio's client is served through a tunnel, under its identity")
        answer = await asyncio.to_thread(mesh.asks, port, *foe, "http://10.1.2.3:8080/")
        assert "403" in answer and "served for" not in answer, answer
        said("another workload is refused by the rule")
        await until(lambda: _is_other(proxy, first["certificate_ends"]), lambda: proxy.log()[-2000:])
        said("the certificate was renewed")
        answer = await asyncio.to_thread(mesh.asks, port, *app, "http://10.1.2.3:8080/")
        assert "served for" in answer, answer
        said("Istio's client is served under the renewed one")


async def opens_tunnels(mesh: Mesh) -> None:
    """From the proxy to Istio's server, whose Pod says that it takes tunnels."""
    crt, key = await mesh.issued("shop", "app")
    port = reserve()
    folder, scratch = mesh.folder / "objects", mesh.folder / "scratch"
    for each in (folder, scratch):
        each.mkdir()
    values = {"listener": LISTENER, "address": "127.0.0.1", "account": "app"}
    (folder / "all.yaml").write_text((OBJECTS % values).replace("ports: [{port: 8080}]", f"ports: [{{port: {port}}}]"))
    command = [
        *(str(mesh.programs / "echo-server"), "--hbone", str(PORT), "--tls", str(PORT), "--port", str(port)),
        *("--crt", str(crt), "--key", str(key), "--ca", str(mesh.root_file), "--grpc", str(reserve())),
        *("--tcp", str(reserve()), "--metrics", str(reserve()), "--version", "v1"),
    ]
    server = Program(mesh.folder, "echo-server", command, cwd=mesh.folder, environment={"INSTANCE_IPS": "127.0.0.1"})
    try:
        await until(lambda: _listens(PORT), server.log)
        program = ("env", *(f"{name}={value}" for name, value in mesh.environment().items()), *GATEWRIGHT_UP)
        options = ("--workers", "1", "--proxies", "1")
        with up_process.running(folder, scratch, *options, program=program, listeners=(LISTENER, PORT)) as started:
            await asyncio.to_thread(started.wait_ready)
            status, _, body = await asyncio.to_thread(started.get, "/")
            assert status == 200 and "ServiceVersion=v1" in body, (status, body, server.log()[-2000:], started.output)
            said("a request reaches Istio's server by a tunnel")
    finally:
        server.stop()


def _listens(port: int) -> bool:
    return up_process.opens(port)


async def _is_other(proxy: Proxy, ends: str) -> bool:
    await asyncio.sleep(0.5)
    return bool((await proxy.dump())["mesh"]["certificate_ends"] != ends)


async def proven(programs: Path, assets: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mesh") as name, ExitStack() as stack:
        mesh = Mesh(programs, assets, Path(name), stack)
        said("istiod serves")
        await takes_tunnels(mesh)
        await opens_tunnels(mesh)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path)
    parser.add_argument("apiserver", type=Path)
    given = parser.parse_args()
    asyncio.run(proven(given.programs, given.apiserver))
    return 0


if __name__ == "__main__":
    sys.exit(main())
