"""Which API server the tests of this folder use: the first of one that somebody gives, one that is built, one in a
container."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.cluster.container import ContainerCluster, Unstarted
from tests.cluster.given import GivenCluster, is_given
from tests.cluster.kube import ApiServer
from tests.conftest import ALL, ROOT

ASKED = 10.0
"""Seconds that Docker has for an answer."""


class Unavailable(Exception):
    """Why there is none of a kind."""


Make = Callable[[Path], ApiServer]
"""With a folder of its own; started by whoever asked. Raises Unavailable."""


class Option(NamedTuple):
    name: str
    make: Make


def given(folder: Path, environment: Mapping[str, str] = os.environ) -> ApiServer:
    if not is_given(environment):
        raise Unavailable("KUBECONFIG and GATEWRIGHT_USE_CLUSTER are not set")
    return GivenCluster(Path(environment["KUBECONFIG"]), folder)


def built(folder: Path) -> ApiServer:
    """KUBEBUILDER_ASSETS, or what scripts/apiserver has built; only a full run builds it."""
    command = [str(ROOT / "scripts" / "apiserver"), *([] if ALL else ["--built"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"scripts/apiserver has none {done.stderr.strip()[-300:]}".rstrip())
    return ApiServer(Path(done.stdout.strip()), folder)


def contained(folder: Path) -> ApiServer:
    """k3s in a container, whose image Docker fetches."""
    if (reason := no_docker()) is not None:
        raise Unavailable(reason)
    try:
        return ContainerCluster(folder)
    except Unstarted as why:
        raise Unavailable(str(why)) from why


OPTIONS = (Option("a cluster of yours", given), Option("a built API server", built), Option("a container", contained))


def first(folder: Path, options: Iterable[Option] = OPTIONS) -> ApiServer:
    """Raises Unavailable with the reasons of all."""
    reasons = []
    for name, make in options:
        try:
            return make(folder)
        except Unavailable as reason:
            reasons.append(f"{name}: {reason}")
    raise Unavailable("needs a Kubernetes API server; " + "; ".join(reasons))


def no_docker() -> str | None:
    """Why containers cannot be started, if so. A client without a server is usual."""
    client = shutil.which("docker")
    if client is None:
        return "there is no Docker"
    try:
        done = subprocess.run(
            [client, "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=ASKED,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"docker does not answer: {error}"
    answered = done.returncode == 0 and bool(done.stdout.strip())
    return None if answered else f"docker has no server: {done.stderr.strip()[-200:]}"
