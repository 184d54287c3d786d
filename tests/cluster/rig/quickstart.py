"""What docs/deploying.md tells a newcomer, on a rig: the controllers as a Deployment of their own, from the files of
manifests/ as they are, and the example of examples/kubernetes, until its Gateway answers at the address in its status.

    scripts/quickstart-rig [--hold]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.cluster.rig.api import Api, ApiError, Json
from tests.cluster.rig.conformance import entrance
from tests.cluster.rig.features import VERSIONS
from tests.cluster.rig.world import FIRST, PYTHON, ROOT, SYSTEM, World, apply, documents, established, place, running

MANIFESTS = ROOT / "manifests"
EXAMPLE = ROOT / "examples" / "kubernetes"
IMAGE = "ghcr.io/gatewright/"
RUNS = ["/usr/bin/env", f"PYTHONPATH={ROOT}", "XDG_RUNTIME_DIR=/run/gatewright", *PYTHON]
PROGRAMS: Mapping[str, str] = {"controller": "controlplane.cli", "gatewright": "dataplane"}
"""What the image runs, by the name of the container."""
GATEWAY = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/web"
PATIENCE = 120.0


class Newcomer(World):
    """Nothing of the product runs beside the cluster."""

    namespace = "default"

    def __init__(self, binaries: Path, folder: Path) -> None:
        super().__init__(binaries, folder, {}, fixed={})

    def command(self, container: Json) -> list[str] | None:
        program = PROGRAMS.get(container["name"]) if container["image"].startswith(IMAGE) else None
        return None if program is None else [*RUNS, program]


def resources(kustomization: Path) -> list[Json]:
    """What `kubectl apply -k` applies, as far as the files of manifests/ use it."""
    settings = yaml.safe_load((kustomization / "Kustomization").read_text())
    found: list[Json] = []
    for each in settings["resources"]:
        path = (kustomization / each).resolve()
        found += resources(path) if path.is_dir() else documents(path)
    if "namespace" in settings:
        found = [{**each, "metadata": {**each["metadata"], "namespace": settings["namespace"]}} for each in found]
    return sorted(found, key=lambda each: each["kind"] not in FIRST)


async def follow(api: Api, definitions: Path) -> str:
    """The page, step by step; the answer is what the Gateway says at its address."""
    for document in documents(*sorted(definitions.glob("*.yaml"))):  # Gateway API's own
        await apply(api, document)
    for document in resources(MANIFESTS):
        await apply(api, document)
    await established(api)
    for document in documents(*sorted(EXAMPLE.glob("*.yaml"))):
        await apply(api, document)
    address = await programmed(api)
    return await asked(address)


async def programmed(api: Api) -> str:
    """The address of the example's Gateway, when it says that it serves."""
    while True:
        status = (await api.call("GET", GATEWAY)).get("status") or {}
        said = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        if said.get("Programmed") == "True" and status.get("addresses"):
            return str(status["addresses"][0]["value"])
        await asyncio.sleep(0.1)


async def asked(address: str) -> str:
    """One request; `Programmed` promised that it is answered."""
    reader, writer = await asyncio.open_connection(address, 80)
    writer.write(b"GET /hello HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return f"{head.splitlines()[0].split()[1]} {body.strip()}"


async def _report(api: Api) -> None:
    """What there is, where the page does not lead to its end."""
    for path in (GATEWAY, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments", "/api/v1/pods"):
        try:
            print(yaml.safe_dump(await api.call("GET", path))[-6000:], file=sys.stderr)
        except ApiError as error:
            print(error, file=sys.stderr)


async def _run(binaries: Path, entered_by: int | None) -> int:
    """`entered_by`: the process by which one enters the cluster, which stays then until it is ended."""
    folder = place()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    world = Newcomer(binaries, folder)
    async with running(world) as api:
        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await follow(api, binaries / VERSIONS[-1] / "crd" / "standard")
        except TimeoutError:
            await _report(api)
            for file in folder.rglob("controller.log"):
                print(file.read_text()[-3000:], file=sys.stderr)
            return 1
        print(f"{answer} after {time.monotonic() - began:.1f} s", flush=True)
        if entered_by is not None:
            print(entrance(entered_by, world.kubeconfig), flush=True)
            await asyncio.Event().wait()
    return int(answer != "200 hello")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=Path, required=True, help="what scripts/rig prints")
    parser.add_argument("--entered-by", type=int, help="the process outside by which nsenter reaches the cluster")
    parser.add_argument("--hold", action="store_true", help="keep the cluster until Ctrl-C, and print how to enter it")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    try:
        return asyncio.run(_run(arguments.binaries, arguments.entered_by if arguments.hold else None))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
