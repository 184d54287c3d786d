"""Runs the conformance suite of Gateway API's inference extension against a controller in a rig: `scripts/inference
--suite` starts it in namespaces of its own."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

from tests.cluster.rig import conformance
from tests.cluster.rig.api import Api
from tests.cluster.rig.features import VERSIONS
from tests.cluster.rig.world import (
    World,
    apply,
    documents,
    emptied,
    established,
    install,
    place,
    running,
    start_controller,
)

PICKER = "registry.k8s.io/gateway-api-inference-extension/epp:"
ECHO = "gcr.io/k8s-staging-gateway-api/echo-basic:"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=Path, required=True, help="what scripts/rig prints")
    parser.add_argument("--programs", type=Path, required=True, help="folder with suite, picker and echo server")
    parser.add_argument("--version", required=True, help="of the suite, the picker and their definitions")
    parser.add_argument("--output", type=Path, default=Path("build/inference"), help="folder for report and logs")
    parser.add_argument("--test", default="", help="short name: this test alone")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    output = emptied(arguments.output.absolute())
    folder = place()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    programs: Path = arguments.programs
    images = {
        PICKER: [f"{programs}/epp-{arguments.version}"],
        ECHO: [f"{programs}/echo-basic"],
        "ghcr.io/gatewright/": conformance.IMAGES["ghcr.io/gatewright/"],
    }
    world = World(arguments.binaries, folder, images)
    try:
        async with running(world) as api:
            await install(world, api, arguments.binaries / VERSIONS[-1] / "crd" / "standard")
            await _define(api, programs / f"crd-{arguments.version}")
            await start_controller(world, api)
            await conformance.features(world, api)
            return await _suite(world, arguments, output)
    finally:
        conformance.save(folder, output)


async def _define(api: Api, definitions: Path) -> None:
    for document in documents(*sorted(definitions.glob("*.yaml"))):
        await apply(api, document)
    await established(api)


async def _suite(world: World, arguments: argparse.Namespace, output: Path) -> int:
    flags = [
        *(
            f"-gateway-class={conformance.CLASS}",
            f"-report-output={output}/report.yaml",
            "-cleanup-base-resources=false",
        ),
        *("-organization=gatewright", "-project=gatewright", "-url=https://gatewright.dev"),
        *(f"-version={conformance.version()}", "-contact=https://gatewright.dev"),
        "-allow-crds-mismatch",  # of Gateway API it was written for an older release
        *("-test.v", "-test.timeout=1h", "-test.run=^TestConformance$"),
    ]
    if arguments.test:
        flags.append(f"-run-test={arguments.test}")
    with (output / "suite.log").open("wb") as file:
        suite = await asyncio.create_subprocess_exec(
            arguments.programs / "conformance.test",
            *flags,
            env={**os.environ, "KUBECONFIG": str(world.kubeconfig)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        return conformance.summary(output, await suite.wait())


if __name__ == "__main__":
    sys.exit(main())
