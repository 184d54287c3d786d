"""`gatewright trace-change` beside a real controller and a proxy with two workers: an edit is followed to the end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.web_objects import OBJECTS, route
from tests.harness.patience import PATIENCE
from tests.harness.processes import running
from tests.harness.waiting import wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KEYS = """\
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {one: hush-hush}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: keys}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}
"""


@dataclass(frozen=True, slots=True)
class World:
    objects: Path
    admin: int

    def trace(self, *words: str) -> tuple[int, str, str]:
        """Code, standard output and error of the command."""
        command = [sys.executable, "-m", "controlplane.cli", "trace-change", "--admin", f"127.0.0.1:{self.admin}"]
        ended = subprocess.run([*command, *words], capture_output=True, text=True, timeout=PATIENCE)
        return ended.returncode, ended.stdout, ended.stderr

    def one(self, name: str) -> dict[str, Any]:
        code, out, err = self.trace(name, "-o", "json")
        assert code == 0, err
        (found,) = json.loads(out)["traces"]
        return dict(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all: only one test edits it, and the others do not look at what it edits."""
    tmp_path = tmp_path_factory.mktemp("world")
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=9) + route("shop", "/a") + KEYS)
    socket = tmp_path / "xds.sock"
    command = [sys.executable, "-m", "controlplane", str(objects), "--socket", str(socket)]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    with running(tmp_path, "controller", command) as controller:
        controller.await_ready()
        with proxy(tmp_path, socket) as started:
            started.await_ready()
            yield World(objects, controller.port("ADMIN"))


def proxy(folder: Path, socket: Path) -> Any:  # Any: a context manager of a Program
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{socket}", "--gateway", "default/web"]
    command += ["--any-port", "--workers", "2", "--admin", "off", "--stats", "off", "--readiness", "off"]
    return running(folder, "proxy", command)


def served(world: World, name: str) -> dict[str, Any] | None:
    """The trace of an object, once the proxy serves all of it."""
    found = world.one(name)
    (holder,) = found["proxies"] or [None]
    (state,) = found["states"]
    return found if holder and holder["serves"] == state["resources"] else None


def test_an_edit_is_followed_from_the_file_to_the_proxy(world: World) -> None:
    before = wait_until(lambda: served(world, "httproute/shop"), lambda: world.trace("httproute/shop")[1])
    (resource,) = before["resources"]
    assert (resource["name"], resource["gateway"]) == ("route/httproute/default/shop/0", "default/web")
    (world.objects / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=9) + route("shop", "/b") + KEYS)

    def edited() -> dict[str, Any] | None:
        found = served(world, "httproute/default/shop")
        return found if found and found["object"]["generation"] == 2 else None

    after = wait_until(edited, lambda: world.trace("httproute/shop")[1])
    (changed,), (holder,), (state,) = after["resources"], after["proxies"], after["states"]
    assert changed["version"] != resource["version"]
    times = [after["object"]["read"], changed["published"], holder["answered"]]
    assert all(map(TIME.fullmatch, times)) and times == sorted(times), times
    assert holder["version"] == state["version"] and (holder["lacks"], holder["refuses"]) == ([], [])
    (parent,) = after["object"]["status"]["parents"]
    assert {each["observedGeneration"] for each in parent["conditions"]} == {2}

    code, out, _ = world.trace("httproute/shop")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("HTTPRoute default/shop, generation 2, read 2") and lines[0].endswith("web.yaml")
    assert re.search(r"^\S+ +default/web +1 of 1 +[0-9a-f]{12} +\S+Z$", out, re.MULTILINE)
    assert re.search(r"^Accepted=True +parent web +2 +\S+Z$", out, re.MULTILINE)


def test_secrets_are_followed_and_not_shown(world: World) -> None:
    found = wait_until(lambda: served(world, "secret/keys"), lambda: world.trace("secret/keys")[1])
    assert [(row["name"], row["version"]) for row in found["resources"]] == [("secret/default/keys", "")]
    assert len(found["states"][0]["version"]) == 32
    for words in (("secret/keys",), ("gatewaypolicy/keys",), ("secret/keys", "-o", "json")):
        assert "hush" not in world.trace(*words)[1]
    names = {row["name"] for row in world.one("gatewaypolicy/keys")["resources"]}
    assert names == {"policy/default/keys/api_key_authentication"}


def test_what_is_absent_ends_with_4(world: World) -> None:
    code, out, err = world.trace("httproute/none", "httproute/shop")
    assert code == 4 and "HTTPRoute default/shop" in out
    assert err == "gatewright: httproute/none: there is no such object\n"
    assert world.trace("gateway")[0] == 2
