"""Runs Gateway API's conformance suite against a controller in a rig: `scripts/conformance` starts it in namespaces of
its own."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.rig.api import Api, Json
from tests.cluster.rig.features import VERSIONS, of_suite
from tests.cluster.rig.world import PYTHON, ROOT, World, emptied, install, place, running, start_controller

PROFILES = "GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP"
USABLE, UNUSABLE = "10.97.255.1", "10.99.99.99"
CLASS = "gatewright"
IMAGES = {
    "registry.k8s.io/gateway-api/": ["{binaries}/echo-basic"],
    # A ConfigMap that it mounts on /root hides an interpreter that is installed there.
    "registry.k8s.io/coredns/": ["/usr/bin/python3", f"{ROOT}/tests/cluster/rig/echo_dns.py"],
    "ghcr.io/gatewright/": ["/usr/bin/env", f"PYTHONPATH={ROOT}", *PYTHON, "dataplane"],
}
RESULT = re.compile(r"^    --- (PASS|FAIL|SKIP): TestConformance/([^/ ]+) \(([0-9.]+)s\)$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=Path, required=True, help="what scripts/rig prints")
    parser.add_argument("--output", type=Path, required=True, help="folder for report, logs and summary")
    parser.add_argument("--suite", choices=VERSIONS, default=VERSIONS[0], help="version of the suite")
    parser.add_argument("--profiles", default=PROFILES)
    parser.add_argument("--test", default="", help="regular expression: these tests alone")
    parser.add_argument("--skip", default="", help="tests that are skipped, with commas")
    parser.add_argument("--entered-by", type=int, help="the process outside by which nsenter reaches the cluster")
    parser.add_argument("--hold", action="store_true", help="bring the world up and wait")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    output = emptied(arguments.output)
    folder = place()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    images = {
        image: [each.format(binaries=arguments.binaries) for each in command] for image, command in IMAGES.items()
    }
    world = World(arguments.binaries, folder, images)
    try:
        async with running(world) as api:
            await install(world, api, arguments.binaries / arguments.suite / "crd" / "experimental")
            await start_controller(world, api)
            claimed = of_suite(await features(world, api), arguments.suite)
            print(f"world up, KUBECONFIG={world.kubeconfig}", flush=True)
            if arguments.hold:
                print(entrance(arguments.entered_by, world.kubeconfig), flush=True)
                await asyncio.Event().wait()
            return await _suite(world, arguments, claimed, output)
    finally:
        save(folder, output)


def entrance(process: int, kubeconfig: Path) -> str:
    """The command that enters the cluster from another terminal: the namespaces are those of the script's process."""
    return f"enter it by: nsenter --target {process} --net --mount env KUBECONFIG={kubeconfig} bash"


async def features(world: World, api: Api) -> list[str]:
    """What the class says once it is accepted."""
    while True:
        if world.processes["controller"].poll() is not None:
            raise RuntimeError(world.log("controller")[-3000:])
        found = await api.call("GET", f"/apis/gateway.networking.k8s.io/v1/gatewayclasses/{CLASS}")
        status = found.get("status") or {}
        if _is_accepted(status) and status.get("supportedFeatures"):
            return [each["name"] for each in status["supportedFeatures"]]
        await asyncio.sleep(0.2)


def _is_accepted(status: Json) -> bool:
    return any(each["type"] == "Accepted" and each["status"] == "True" for each in status.get("conditions") or ())


async def _suite(world: World, arguments: argparse.Namespace, claimed: list[str], output: Path) -> int:
    flags = [
        f"-gateway-class={CLASS}",
        f"-conformance-profiles={arguments.profiles}",
        f"-supported-features={','.join(claimed)}",
        f"-report-output={output}/report.yaml",
        "-organization=gatewright",
        "-project=gatewright",
        "-url=https://gatewright.dev",
        f"-version={version()}",
        "-contact=https://gatewright.dev",
        f"-usable-address={USABLE}",
        f"-unusable-address={UNUSABLE}",
        "-cleanup-base-resources=false",
        "-test.v",
        "-test.timeout=3h",
        "-test.run=^TestConformance$" + (f"/^({arguments.test})$" if arguments.test else ""),
    ]
    if arguments.skip:
        flags.append(f"-skip-tests={arguments.skip}")
    with (output / "suite.log").open("wb") as file:
        suite = await asyncio.create_subprocess_exec(
            world.binaries / arguments.suite / "conformance.test",
            *flags,
            env={**os.environ, "KUBECONFIG": str(world.kubeconfig)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        code = await suite.wait()
    return summary(output, code)


def version() -> str:
    """Of this checkout."""
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "development"


def summary(output: Path, code: int) -> int:
    """Writes the verdict of each test to `summary.txt`, prints what failed, and gives the suite's own end."""
    found = RESULT.findall((output / "suite.log").read_text(errors="replace"))
    lines = sorted(f"{verdict} {name} {seconds}" for verdict, name, seconds in found)
    (output / "summary.txt").write_text("\n".join(lines) + "\n")
    counts = {verdict: sum(each[0] == verdict for each in found) for verdict in ("PASS", "FAIL", "SKIP")}
    print(*[line for line in lines if line.startswith("FAIL")], sep="\n")
    print(f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped; the suite ended with {code}")
    return code


def save(folder: Path, output: Path) -> None:
    """Logs of everything; the rest is gone with the world."""
    for file in folder.rglob("*.log"):
        if "etcd" not in file.parts and "root" not in file.relative_to(folder).parts:
            target = output / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


if __name__ == "__main__":
    sys.exit(main())
