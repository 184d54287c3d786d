"""Where the controller's credentials come from, and that it gets others when they end: from a plugin of a kubeconfig
file, a file of a token, and the account of its own Pod."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes_asyncio.config import incluster_config

from controlplane.kube import access
from controlplane.kube.access import Access, ApiError, NoCluster, opened
from controlplane.settings import Cluster
from tests.cluster.controllers import SHOP, SYSTEM, Controller, Json, gateway, of_route, route
from tests.cluster.kube import ApiServer
from tests.harness.ports import reserve
from tests.harness.waiting import until, wait_until

pytestmark = pytest.mark.needs("go")

ACCOUNT = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/gatewright-controller/token"
SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"
READ = "/api/v1/services"


class Tokens:
    """Tokens of the controller's account, each of which ends when `end` says so: they are bound to a Secret."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._names: list[str] = []

    def make(self) -> str:
        name = f"bound-{len(self._names)}"
        made = self._server.request("POST", SECRETS, {"metadata": {"name": name}})
        assert made.status == 201, made.message
        self._names.append(name)
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": made.body["metadata"]["uid"]}
        spec = {"expirationSeconds": 3600, "boundObjectRef": bound}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        token: str = self._server.request("POST", ACCOUNT, body).body["status"]["token"]
        return token

    def end(self, number: int = 0) -> None:
        self._server.request("DELETE", f"{SECRETS}/{self._names[number]}")

    def end_all(self) -> None:
        for number in range(len(self._names)):
            self.end(number)


@pytest.fixture
def tokens(server: ApiServer) -> Iterator[Tokens]:
    made = Tokens(server)
    yield made
    made.end_all()


def written(file: Path, text: str) -> Path:
    """In one step, as a kubelet does it."""
    (file.parent / "next").write_text(text)
    (file.parent / "next").replace(file)
    return file


PLUGIN = """
import json, os, pathlib, sys
given = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert given["kind"] == "ExecCredential", given
here = pathlib.Path(sys.argv[1])
with (here / "calls").open("a") as calls:
    calls.write(os.environ["WHO"] + "\\n")
status = {"token": (here / "token").read_text()}
print(json.dumps({"apiVersion": given["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def with_plugin(server: ApiServer, folder: Path, script: str = PLUGIN) -> Json:
    (folder / "plugin.py").write_text(script)
    config = server.kubeconfig()
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(folder / "plugin.py"), str(folder)],
        "env": [{"name": "WHO", "value": "gatewright"}],
        "interactiveMode": "Never",
    }
    return {**config, "users": [{"name": "admin", "user": {"exec": plugin}}]}


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


@asynccontextmanager
async def reached(config: Json | None, folder: Path) -> AsyncIterator[Access]:
    file = None
    if config is not None:
        file = folder / "credentials"
        file.write_text(yaml.safe_dump(config))
    found = await opened(Cluster(kubeconfig=file))
    try:
        yield found
    finally:
        await found.close()


async def test_a_plugin_is_asked_again_when_its_token_has_ended(
    server: ApiServer, tokens: Tokens, tmp_path: Path
) -> None:
    written(tmp_path / "token", tokens.make())
    async with reached(with_plugin(server, tmp_path), tmp_path) as found:
        assert await found.read(READ)
        assert await found.read(READ)
        assert calls(tmp_path) == ["gatewright"]
        written(tmp_path / "token", tokens.make())
        tokens.end()

        async def is_asked() -> bool:
            assert await found.read(READ)  # never refused
            return len(calls(tmp_path)) == 2

        await until(is_asked, lambda: str(calls(tmp_path)))


async def test_a_plugin_that_has_nothing_new_is_not_asked_all_the_time(
    server: ApiServer, tokens: Tokens, tmp_path: Path
) -> None:
    written(tmp_path / "token", tokens.make())
    async with reached(with_plugin(server, tmp_path), tmp_path) as found:
        tokens.end()
        refused = 0

        async def is_refused() -> bool:
            nonlocal refused
            try:
                await found.read(READ)
            except ApiError as error:
                assert error.status == 401
                refused += 1
            return refused == 20

        await until(is_refused)
        assert len(calls(tmp_path)) == 2


async def test_a_token_file_is_read_again_when_its_token_has_ended(
    server: ApiServer, tokens: Tokens, tmp_path: Path
) -> None:
    file = written(tmp_path / "token", tokens.make())
    config = {**server.kubeconfig(), "users": [{"name": "admin", "user": {"tokenFile": str(file)}}]}
    await goes_on(config, file, tokens, tmp_path)


async def test_the_account_of_a_pod_goes_on_when_its_token_is_rotated(
    server: ApiServer, tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a Pod: a folder with token, authority and namespace, and the address in the environment."""
    file = written(tmp_path / "token", tokens.make())
    (tmp_path / "ca.crt").write_bytes((server.folder / "certs" / "apiserver.crt").read_bytes())
    (tmp_path / "namespace").write_text(f"{SYSTEM}\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setattr(access, "POD_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(file))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    assert (await goes_on(None, file, tokens, tmp_path)) == SYSTEM


async def goes_on(config: Json | None, file: Path, tokens: Tokens, folder: Path) -> str:
    """With another token when the first one has ended; the answer is the namespace that was found."""
    async with reached(config, folder) as found:
        used: Callable[[], str] = lambda: found._client.configuration.api_key["BearerToken"]  # noqa: E731
        assert await found.read(READ)
        second = tokens.make()
        written(file, second)
        tokens.end()

        async def is_other() -> bool:
            assert await found.read(READ)  # never refused
            return used() == f"Bearer {second}"

        await until(is_other)
        return found.namespace


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import sys; sys.exit('log in first')", "log in first"),
        ("print('no JSON')", "failed to decode process output"),
        ("print('{}')", "missing key 'apiVersion'"),
    ],
    ids=["fails", "no JSON", "no answer"],
)
async def test_a_plugin_that_fails_says_why(server: ApiServer, tmp_path: Path, script: str, expected: str) -> None:
    with pytest.raises(NoCluster, match=expected):
        async with reached(with_plugin(server, tmp_path, script), tmp_path):
            raise AssertionError("reached")


async def test_a_plugin_that_fails_later_is_named_in_the_log_and_asked_again(
    server: ApiServer, tokens: Tokens, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "RENEWED", 0.1)
    written(tmp_path / "token", tokens.make())
    async with reached(with_plugin(server, tmp_path), tmp_path) as found:
        (tmp_path / "plugin.py").write_text("import sys; sys.exit('log in first')")
        tokens.end()

        async def is_refused() -> bool:
            try:
                await found.read(READ)
            except ApiError as error:
                return error.status == 401
            return False

        await until(is_refused)
        assert "credentials are refused, and there are no others" in caplog.text
        assert "log in first" in caplog.text
        written(tmp_path / "token", tokens.make())
        (tmp_path / "plugin.py").write_text(PLUGIN)

        async def is_answered() -> bool:
            return not await is_refused()

        await until(is_answered)


def test_a_controller_goes_on_when_the_token_of_its_plugin_ends(
    server: ApiServer, tokens: Tokens, tmp_path: Path
) -> None:
    written(tmp_path / "token", tokens.make())
    controller = Controller(server, "", tmp_path, "controller", config=with_plugin(server, tmp_path))
    try:
        controller.await_ready()
        gateway(server, "plugin", reserve())
        route(server, "plugin", "plugin")
        wait_until(lambda: of_route(server, "plugin").get("Accepted") == "True", controller.process.log)
        written(tmp_path / "token", tokens.make())
        tokens.end()
        wait_until(lambda: len(calls(tmp_path)) > 1, controller.process.log)
        route(server, "later", "plugin")
        wait_until(lambda: of_route(server, "later").get("Accepted") == "True", controller.process.log)
        assert "cannot be read: 401" not in controller.process.log()
        assert "eyJ" not in controller.process.log()  # no token
    finally:
        controller.process.stop()
        for path in ("httproutes/plugin", "httproutes/later", "gateways/plugin"):
            server.request("DELETE", f"{SHOP}/{path}")
