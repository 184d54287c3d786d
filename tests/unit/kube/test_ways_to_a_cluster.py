"""By which configuration a cluster is reached, with a client library of one page, and how connections end."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from controlplane.kube import access
from controlplane.kube.access import Access, Found, NoCluster, opened
from controlplane.settings import Cluster

CONTEXTS = [
    {"name": "one", "context": {"namespace": "of-one"}},
    {"name": "two", "context": {"namespace": "of-two"}},
    {"name": "bare", "context": {}},
]


class Library:
    """Notes how a configuration was asked for."""

    class ConfigException(Exception):
        pass

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.error: Exception | None = None
        self.contexts: list[Any] = CONTEXTS
        self.config = self
        self.client = self

    def Configuration(self) -> SimpleNamespace:  # as the library calls it
        return SimpleNamespace(host="https://server")

    def ApiClient(self, configuration: object) -> SimpleNamespace:
        return SimpleNamespace(configuration=configuration)

    def load_incluster_config(self, client_configuration: object) -> None:
        self.asked.append("pod")

    async def load_kube_config(self, file: str | None, context: str | None, _: object) -> None:
        self.asked.append((file, context))
        if self.error is not None:
            raise self.error

    def list_kube_config_contexts(self, file: str | None) -> tuple[list[Any], Any]:
        return self.contexts, self.contexts[0] if self.contexts else None


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    made = Library()
    for name in ("kubernetes_asyncio", "kubernetes_asyncio.client", "kubernetes_asyncio.config"):
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setattr(access, "POD_NAMESPACE", tmp_path / "namespace")
    return made


WAYS = [
    (Cluster(), True, "pod", "of-pod"),
    (Cluster(namespace="own"), True, "pod", "own"),
    (Cluster(), False, (None, None), "of-one"),
    (Cluster(context="two"), True, (None, "two"), "of-two"),
    (Cluster(context="bare"), True, (None, "bare"), "default"),
    (Cluster(kubeconfig=Path("/some/file")), True, ("/some/file", None), "of-one"),
    (Cluster(kubeconfig=Path("/some/file"), context="two"), False, ("/some/file", "two"), "of-two"),
    (Cluster(context="two", namespace="own"), False, (None, "two"), "own"),
]


@pytest.mark.parametrize(("cluster", "is_in_pod", "asked", "namespace"), WAYS)
async def test_a_pod_has_its_own_account_unless_somebody_names_a_file_or_a_context(
    library: Library, cluster: Cluster, is_in_pod: bool, asked: object, namespace: str
) -> None:
    if is_in_pod:
        access.POD_NAMESPACE.write_text("of-pod\n")
    found = await opened(cluster)
    assert library.asked == [asked]
    assert (found.namespace, found.host) == (namespace, "https://server")


async def test_a_file_without_contexts_names_no_namespace(library: Library) -> None:
    library.contexts = []
    assert (await opened(Cluster())).namespace == "default"


@pytest.mark.parametrize("error", [Library.ConfigException("no current context"), OSError("no such file")])
async def test_what_keeps_a_cluster_from_being_reached_is_said_with_what_to_do(
    library: Library, error: Exception
) -> None:
    library.error = error
    with pytest.raises(NoCluster, match=f"^the cluster, context two: {error}; name a kubeconfig file with"):
        await opened(Cluster(context="two"))


class Ending:
    """An answer whose connection ends after the first line."""

    status = 200

    def __init__(self, error: Exception) -> None:
        self.content = self
        self.error = error
        self.is_released = False

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b"first\n"
        raise self.error

    def release(self) -> None:
        self.is_released = True

    close = release


def reading(error: Exception, *, at_once: bool = False) -> tuple[Access, Ending]:
    answer = Ending(error)

    async def request(*_: object, **settings: object) -> Ending:
        assert settings["_preload_content"] is False, "an answer is read piece by piece"
        if at_once:
            raise error
        return answer

    async def update(*_: object) -> None:
        return None

    async def look() -> Found:
        raise AssertionError("nothing was refused")

    configuration = SimpleNamespace(host="https://server", api_key={})
    client = SimpleNamespace(
        configuration=configuration, update_params_for_auth=update, rest_client=SimpleNamespace(request=request)
    )
    return Access(client, "", look), answer


BROKEN = [(aiohttp.ClientPayloadError("cut"), "cut"), (aiohttp.ServerDisconnectedError(""), "ServerDisconnectedError")]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("error", "text"), BROKEN)
async def test_a_connection_that_ends_is_an_error_of_the_network(error: Exception, text: str, at_once: bool) -> None:
    found, answer = reading(error, at_once=at_once)
    with pytest.raises(OSError, match=f"^{text}$"):
        await found.read("/api")
    with pytest.raises(OSError, match=f"^{text}$"):
        assert [lines async for lines in found.lines("/api")] == [[b"first"]]
    assert answer.is_released is not at_once


async def test_a_watch_that_is_silent_ends() -> None:
    found, answer = reading(aiohttp.SocketTimeoutError())
    assert [lines async for lines in found.lines("/api")] == [[b"first"]]
    assert answer.is_released
