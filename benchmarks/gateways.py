"""A Gateway created to its first answer: `python -m benchmarks.gateways [--gateways N]`. Linux, as root.

In a cluster without nodes (tests/cluster/rig): API server, Kubernetes' own controllers, a kubelet whose Pods are
processes, a load balancer, and our controller, which starts the proxy of each Gateway. Gateways are created one after
the other, each with a route that is there before; time counts from the API server's answer to the first answer of the
route at the address that the load balancer gave.

`Programmed` has to wait for that: requests that begin after a watch has reported `Programmed` have to be answered. Each
is counted that is not.

Where the time went is printed for each of them (`gateway_hops`).

Demands: 900 ms at most (aim: 500), nothing unanswered. Times count on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import gateway_hops
from tests.cluster.rig.api import Api
from tests.cluster.rig.conformance import IMAGES
from tests.cluster.rig.features import VERSIONS
from tests.cluster.rig.world import ROOT, World, apply, install, place, running, start_controller

MOST_MS, AIM_MS = 900.0, 500.0
SPACE = "bench"
GATEWAY_API = f"/apis/gateway.networking.k8s.io/v1/namespaces/{SPACE}"
PROBED_EVERY = 0.002
PROBE = 1.0
"""Seconds that a request may take."""
AFTER = 20
"""Requests behind `Programmed`, all of which have to be answered."""
PATIENCE, COLLECTED = 60.0, 180.0
"""Seconds for a Gateway to answer, and for its Pods to be gone afterwards."""
EXPECTED = b"HTTP/1.1 302"

Json = dict[str, Any]


@dataclass(slots=True)
class Probe:
    began: float
    ended: float
    answered: bool


@dataclass(slots=True)
class Seen:
    """What watches report, and when."""

    addresses: dict[str, str] = field(default_factory=dict)
    programmed: dict[str, float] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def service(self, event: str, found: Json) -> None:
        ingress = ((found.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        if event != "DELETED" and ingress:
            self.addresses.setdefault(found["metadata"]["name"], ingress[0]["ip"])
        self.news.set()

    def gateway(self, event: str, found: Json) -> None:
        conditions = (found.get("status") or {}).get("conditions") or ()
        if event != "DELETED" and any(_is_programmed(each, found["metadata"]["generation"]) for each in conditions):
            self.programmed.setdefault(found["metadata"]["name"], time.perf_counter())
        self.news.set()

    async def address(self, name: str) -> str:
        while name not in self.addresses:
            self.news.clear()
            await self.news.wait()
        return self.addresses[name]


def _is_programmed(condition: Json, generation: int) -> bool:
    said = (condition["type"], condition["status"], condition.get("observedGeneration"))
    return said == ("Programmed", "True", generation)


def gateway(name: str) -> Json:
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    spec = {"gatewayClassName": "gatewright", "listeners": [listener]}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name}, "spec": spec}


def route(name: str) -> Json:
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": "a.example"}}
    spec = {"parentRefs": [{"name": name}], "rules": [{"filters": [redirect]}]}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name}, "spec": spec}


async def probe(address: str) -> Probe:
    """One request on a connection of its own."""
    began, line = time.perf_counter(), b""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE):
            reader, writer = await asyncio.open_connection(address, 80)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
            finally:
                writer.close()
    return Probe(began, time.perf_counter(), line.startswith(EXPECTED))


async def probes(seen: Seen, name: str) -> list[Probe]:
    """From when there is an address until some time after `Programmed` and an answer."""
    address, made, after = await seen.address(name), [], 0
    while after < AFTER or not any(each.answered for each in made):
        made.append(await probe(address))
        after += name in seen.programmed and made[-1].began >= seen.programmed[name]
        await asyncio.sleep(PROBED_EVERY)
    return made


@dataclass(frozen=True, slots=True)
class Row:
    """Times in ms since the API server answered."""

    answered: float
    programmed: float
    early: int
    """Requests that began after `Programmed` and were not answered."""


def judged(created: float, made: Sequence[Probe], programmed: float) -> Row:
    answered = next(each.ended for each in made if each.answered)
    early = sum(each.began >= programmed and not each.answered for each in made)
    return Row((answered - created) * 1000, (programmed - created) * 1000, early)


async def measured(world: World, api: Api, seen: Seen, name: str) -> Row:
    await api.call("POST", f"{GATEWAY_API}/httproutes", route(name))
    await api.call("POST", f"{GATEWAY_API}/gateways", gateway(name))
    created, began = time.perf_counter(), time.time()
    async with asyncio.timeout(PATIENCE):
        made = await probes(seen, name)
        row = judged(created, made, seen.programmed[name])
        print(*hops(world, name, began, row), sep="\n", flush=True)
    await removed(api, name)
    return row


async def removed(api: Api, name: str) -> None:
    """With its Pods. The first may take half a minute: until Kubernetes' collector of garbage looks for new kinds."""
    for plural in ("gateways", "httproutes"):
        await api.call("DELETE", f"{GATEWAY_API}/{plural}/{name}")
    async with asyncio.timeout(COLLECTED):
        while (await api.call("GET", f"/api/v1/namespaces/{SPACE}/pods"))["items"]:
            await asyncio.sleep(0.1)


def hops(world: World, name: str, began: float, row: Row) -> Iterator[str]:
    """Where its time went. `began`: by the clock of the machine."""
    moments = gateway_hops.noted((world.folder / "audit.log").read_text().splitlines(), name)
    for file in (world.folder / "pods").glob(f"*-{name}-*/gatewright.log"):
        moments |= gateway_hops.logged(file.read_text().splitlines())
    moments |= {"first answer": began + row.answered / 1000, "Programmed": began + row.programmed / 1000}
    yield f"{name}: since the Gateway was created, and since the line before"
    yield from gateway_hops.table(moments, began)


def summary(rows: Sequence[Row]) -> Json:
    answered = sorted(each.answered for each in rows)
    return {
        "gateways": len(rows),
        "first answer mean ms": round(statistics.mean(answered)),
        "p50": round(answered[len(answered) // 2]),
        "max": round(answered[-1]),
        "Programmed after first answer, mean ms": round(statistics.mean(r.programmed - r.answered for r in rows)),
        "unanswered after Programmed": sum(each.early for each in rows),
    }


async def _run(binaries: Path, gateways: int) -> int:
    folder = place()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    images = {image: [each.format(binaries=binaries) for each in command] for image, command in IMAGES.items()}
    world = World(binaries, folder, images)
    async with running(world) as api:
        await install(world, api, binaries / VERSIONS[-1] / "crd" / "experimental")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await apply(api, space)
        await start_controller(world, api)
        seen = Seen()
        watches = [
            asyncio.create_task(api.follow(f"/api/v1/namespaces/{SPACE}/services", seen.service)),
            asyncio.create_task(api.follow(f"{GATEWAY_API}/gateways", seen.gateway)),
        ]
        try:
            await measured(world, api, seen, "first")  # files of Python come from the disk
            rows = [await measured(world, api, seen, f"web{number}") for number in range(gateways)]
        except TimeoutError:
            print(world.log("controller")[-3000:], file=sys.stderr)
            raise
        finally:
            for task in watches:
                task.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
    found = summary(rows)
    print("gateways", json.dumps(found), flush=True)
    return int(bool(found["unanswered after Programmed"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gateways", type=int, default=20)
    parser.add_argument("--binaries", type=Path, help=argparse.SUPPRESS)  # where this runs in namespaces of its own
    arguments = parser.parse_args()
    if arguments.binaries is not None:
        return asyncio.run(_run(arguments.binaries, arguments.gateways))
    built = subprocess.run([ROOT / "scripts/rig"], check=True, capture_output=True, text=True).stdout.strip()
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    again = [sys.executable, "-m", "benchmarks.gateways", "--binaries", built, "--gateways", str(arguments.gateways)]
    os.execvp(apart[0], [*apart, *again])


if __name__ == "__main__":
    sys.exit(main())
