"""Which API server the tests of tests/cluster use, and that a container ends whatever happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker.errors import NotFound

from tests.cluster import choice
from tests.cluster.choice import OPTIONS, Option, Unavailable, first
from tests.cluster.container import IMAGE, ContainerCluster
from tests.cluster.given import LEFT_BEHIND
from tests.cluster.kube import Answer, ApiServer
from tests.harness import yamls

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


class Container:
    """What the library of containers gives."""

    def __init__(self, config: str = yamls.dump(CONFIG)) -> None:
        self.config = config
        self.stops = 0

    def config_yaml(self) -> str:
        return self.config

    def stop(self) -> None:
        self.stops += 1


def option(name: str, available: bool, asked: list[str]) -> Option:
    def make(folder: Path) -> ApiServer:
        asked.append(name)
        if not available:
            raise Unavailable(f"no {name}")
        return ApiServer(folder / name, folder)

    return Option(name, make)


def test_the_first_that_there_is_counts(tmp_path: Path) -> None:
    asked: list[str] = []
    options = [option("given", False, asked), option("built", True, asked), option("container", True, asked)]
    assert first(tmp_path, options)._binaries == tmp_path / "built"
    assert asked == ["given", "built"]


def test_without_any_all_reasons_are_told(tmp_path: Path) -> None:
    asked: list[str] = []
    options = [option("given", False, asked), option("container", False, asked)]
    with pytest.raises(Unavailable, match="given: no given; container: no container"):
        first(tmp_path, options)


def test_the_order_is_that_of_who_decides() -> None:
    assert [each.make for each in OPTIONS] == [choice.given, choice.built, choice.contained]


def test_a_cluster_of_somebody_needs_both_variables(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yamls.dump(CONFIG))
    for environment in ({"KUBECONFIG": str(file)}, {"GATEWRIGHT_USE_CLUSTER": "1"}, {}):
        with pytest.raises(Unavailable):
            choice.given(tmp_path, environment)
    assert choice.given(tmp_path, {"KUBECONFIG": str(file), "GATEWRIGHT_USE_CLUSTER": "1"}).folder == tmp_path


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 27.1.0", None),
        ("echo; echo Cannot connect to the Docker daemon >&2; exit 1", "docker has no server: Cannot connect"),
        ("echo; echo Cannot connect to the Docker daemon >&2", "docker has no server: Cannot connect"),
        (None, "there is no Docker"),
    ],
    ids=["answers", "fails", "says nothing", "is not there"],
)
def test_docker_counts_when_its_server_answers(
    script: str | None, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "docker").chmod(0o755)
    reason = choice.no_docker()
    assert reason is None if expected is None else (reason or "").startswith(expected)
    if expected is not None:
        with pytest.raises(Unavailable, match=expected.partition(":")[0]):
            choice.contained(tmp_path)


def test_a_container_is_read_by_its_own_configuration_which_nobody_else_can_read(tmp_path: Path) -> None:
    container = Container()
    cluster = ContainerCluster(tmp_path, lambda: container)
    assert (tmp_path / "k3s.yaml").stat().st_mode & 0o077 == 0
    assert cluster.kubeconfig()["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    cluster.stop()
    assert container.stops == 1


def test_a_docker_that_has_no_image_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[str] = []

    class Missing:
        def __init__(self, image: str) -> None:
            assert image == IMAGE

        def start(self) -> None:
            raise NotFound("no such image")

        def stop(self) -> None:
            stops.append("stopped")

    monkeypatch.setattr("testcontainers.community.k3s.K3SContainer", Missing)
    monkeypatch.setattr(choice, "no_docker", lambda: None)
    with pytest.raises(Unavailable, match="no such image"):
        choice.contained(tmp_path)
    assert stops == ["stopped"]


def test_a_container_that_cannot_be_used_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Container("{}")
    with pytest.raises(Exception, match=r"current-context|Invalid kube-config"):
        ContainerCluster(tmp_path, lambda: broken)
    assert broken.stops == 1
    filled = Container()
    cluster = ContainerCluster(tmp_path, lambda: filled)
    monkeypatch.setattr(cluster, "request", lambda method, path: Answer(200, {}))
    with pytest.raises(RuntimeError, match=LEFT_BEHIND[0]):
        cluster.start()
    assert filled.stops == 1
