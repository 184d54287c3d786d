"""A Gateway in a mesh under a controller: Pods say which endpoints are workloads, which requests reach by tunnels."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.mesh import MeshAuthority, Workload, identity, serving, tls, workload
from tests.fakes.up_process import GATEWRIGHT_UP, LISTENER, Up, running
from tests.fakes.web_objects import CLASS
from tests.harness.waiting import until

OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: shop}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: %(listener)s, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: shop}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{name: app, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-1, namespace: shop, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
endpoints: [{addresses: [%(address)s]}]
ports: [{port: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: app-1, namespace: shop, annotations: {ambient.istio.io/redirection: enabled}}
spec: {serviceAccountName: %(account)s}
status: {podIP: %(address)s, conditions: [{type: Ready, status: "True"}]}
"""
)


@asynccontextmanager
async def up(
    tmp_path: Path, account: str = "app", seconds: float = 3600.0
) -> AsyncIterator[tuple[Up, Workload, MeshAuthority]]:
    authority = MeshAuthority()
    authority.seconds = seconds
    address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
    folder, scratch = tmp_path / "objects", tmp_path / "scratch"
    for each in (folder, scratch):
        each.mkdir()
    (folder / "all.yaml").write_text(OBJECTS % {"listener": LISTENER, "address": address, "account": account})
    context = tls(authority.workload(identity("shop", "app")), authority.root.pem, server=True)
    async with workload(address, context) as peer, serving(authority, tmp_path) as given:
        program = ("env", *(f"{name}={value}" for name, value in given.items()), *GATEWRIGHT_UP)
        with running(
            folder, scratch, "--workers", "1", "--proxies", "1", program=program, listeners=(LISTENER, 15008)
        ) as started:
            await asyncio.to_thread(started.wait_ready)
            yield started, peer, authority


async def test_a_request_reaches_a_workload_by_a_tunnel(tmp_path: Path) -> None:
    async with up(tmp_path) as (started, peer, _):
        status, _, body = await asyncio.to_thread(started.get, "/")
        assert (status, body) == (200, "hello"), started.output
        assert [each.authority.rpartition(":")[2] for each in peer.streams] == ["8080"]


async def test_a_pod_of_another_account_than_its_certificate_says_gets_nothing(tmp_path: Path) -> None:
    async with up(tmp_path, account="other") as (started, peer, _):
        status, _, _ = await asyncio.to_thread(started.get, "/")
        assert status == 503 and not peer.streams
        await until(
            lambda: "is not for spiffe://cluster.local/ns/shop/sa/other" in started.output, lambda: started.output
        )


async def test_status_names_an_authority_that_fails(tmp_path: Path) -> None:
    async with up(tmp_path, seconds=4.0) as (started, _, authority):
        authority.failing = "it is away"

        async def is_said() -> bool:
            return "UNAVAILABLE: it is away" in await asyncio.to_thread(lambda: started.cli("status").stdout)

        await until(is_said, lambda: started.cli("status").stdout)
