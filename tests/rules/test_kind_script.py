"""scripts/kind with programs that write down how they were called: there is no Docker where this runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.patience import PATIENCE
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.process

TOOLS = ("docker", "kind", "kubectl", "curl", "sleep")


class Machine:
    """Programs of `TOOLS` that succeed, each of whose calls is a line."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self._calls.touch()
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in TOOLS:
            self.define(name)

    def forward(self) -> None:
        """kubectl forwards a port until it is ended, and writes down which process it is."""
        self.define(
            "kubectl", f'case "$*" in *port-forward*) echo $$ >"{self.forwarding}"; exec tail -f /dev/null;; esac'
        )
        self.define("curl", f'until [ -s "{self.forwarding}" ]; do /bin/sleep 0.01; done')

    @property
    def forwarding(self) -> Path:
        return self.bin.parent / "forwarding"

    def define(self, name: str, then: str = "") -> None:
        program = self.bin / name
        program.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self._calls}"\n{then}\n')
        program.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{self.bin}:/usr/bin:/bin", "TMPDIR": str(self.bin.parent)}
        command = [str(ROOT / "scripts" / "kind"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()

    def place(self, start: str) -> int:
        """Of the first call that begins so."""
        return next(at for at, each in enumerate(self.calls) if each.startswith(start))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_cluster_comes_up_with_definitions_controller_and_gateway_in_this_order(machine: Machine) -> None:
    machine.forward()
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert "the Gateway answers" in done.stdout
    context = "kubectl --context kind-gatewright"
    order = [
        "kind create cluster --name gatewright",
        "docker build -t gatewright:kind -f manifests/Containerfile .",
        "kind load docker-image --name gatewright gatewright:kind",
        f"{context} apply --server-side -f https://",
        f"{context} apply --server-side -k manifests",
        f"{context} -n gatewright-system set image deployment/gatewright-controller controller=gatewright:kind",
        f"{context} -n gatewright-system rollout status deployment/gatewright-controller",
        f"{context} apply --server-side -f examples/kubernetes",
        f"{context} rollout status deployment/web",
        "curl ",
    ]
    places = [machine.place(each) for each in order]
    assert places == sorted(places)
    forwarding = int(machine.forwarding.read_text())
    wait_until(lambda: not Path(f"/proc/{forwarding}/cmdline").exists(), "the forwarded port is left behind")


def test_a_cluster_that_is_there_is_used(machine: Machine) -> None:
    machine.define("kind", '[ "$*" != "get clusters" ] || echo gatewright')
    machine.forward()
    assert machine.run().returncode == 0
    assert not [each for each in machine.calls if each.startswith("kind create")]


def test_what_does_not_answer_fails(machine: Machine) -> None:
    machine.forward()
    machine.define("curl", "exit 22")
    done = machine.run()
    assert done.returncode == 1
    assert "the Gateway does not answer" in done.stderr


def test_a_step_that_fails_ends_it(machine: Machine) -> None:
    machine.define("docker", "exit 3")
    assert machine.run().returncode == 3
    assert not [each for each in machine.calls if each.startswith("kubectl")]


def test_it_goes_down(machine: Machine) -> None:
    assert machine.run("--down").returncode == 0
    assert machine.calls == ["kind delete cluster --name gatewright"]


def test_what_is_absent_is_named(machine: Machine) -> None:
    (machine.bin / "kind").unlink()
    done = machine.run()
    assert done.returncode == 1
    assert "gatewright: kind is needed" in done.stderr


def test_the_tests_have_a_cluster_of_their_own_that_goes_with_them(machine: Machine) -> None:
    """Here it cannot be made: it is removed all the same, and nothing is tested."""
    machine.define("kind", 'case "$*" in create*) exit 4;; esac')
    done = machine.run("--test")
    assert done.returncode == 4
    assert machine.calls[0].startswith("kind create cluster --name gatewright-tests --kubeconfig ")
    assert machine.calls[-1] == "kind delete cluster --name gatewright-tests"
    assert not list(machine.bin.parent.glob("tmp.*"))


def test_scripts_are_programs_of_their_shell() -> None:
    for script in sorted((ROOT / "scripts").iterdir()):
        if script.is_file() and script.read_bytes().startswith(b"#!/usr/bin/env bash"):
            done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
