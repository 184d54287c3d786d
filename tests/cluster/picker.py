"""The reference endpoint picker of the inference extension with two servers of llama.cpp, beside an API server.

Run by `scripts/inference`, with the picker, its definitions and the folder of a built API server. It ends with 0 when
each line that it prints is true.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tests.cluster.kube import ApiServer
from tests.fakes import up_process
from tests.fakes.llm_sdk_process import LLAMA, sdk
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.ports import reserve
from tests.harness.processes import Program
from tests.harness.waiting import until
from tests.policies.test_endpoint_picker import OBJECTS

GROUP: Final = "/apis/inference.networking.k8s.io/v1/namespaces/default"
PODS: Final = "/api/v1/namespaces/default/pods"
MERGE: Final = "application/merge-patch+json"
READY: Final = {
    "phase": "Running",
    "podIP": "127.0.0.1",
    "podIPs": [{"ip": "127.0.0.1"}],
    "conditions": [{"type": "Ready", "status": "True"}],
}
CHOSEN: Final = re.compile(r'"?x-gateway-destination-endpoint"?[^0-9]{1,40}(127\.0\.0\.1:\d+)')
ASKED: Final = 12


def said(what: str) -> None:
    print(f"ok      {what}", flush=True)


class Picker:
    """The program, for the pool `llama` of the API server."""

    def __init__(self, program: Path, server: ApiServer, folder: Path, *, secure: bool) -> None:
        config = folder / "kubeconfig.json"
        config.write_text(json.dumps(server.kubeconfig()))
        self.port = reserve()
        command = [
            *(str(program), "--pool-name", "llama", "--pool-namespace", "default", "--grpc-port", str(self.port)),
            *("--grpc-health-port", str(reserve()), "--metrics-port", str(reserve()), "-v", "5"),
            *("--metrics-endpoint-auth=false", "--tracing=false", f"--secure-serving={str(secure).lower()}"),
        ]
        environment = {"POD_NAME": "epp", "NAMESPACE": "default", "KUBECONFIG": str(config)}
        name = "picker-tls" if secure else "picker"
        self.process = Program(folder, name, command, environment=environment, cwd=folder)

    async def serves(self) -> None:
        await until(lambda: up_process.opens(self.port) or self._alive(), self.process.log)

    def _alive(self) -> None:
        assert self.process.returncode is None, self.process.log()[-3000:]


def define(server: ApiServer, definitions: Path, ports: list[int]) -> Any:
    """Kinds of the extension, and the pool."""
    for file in sorted(definitions.glob("*.yaml")):
        definition = yaml.load(file.read_text(), yaml.CSafeLoader)
        made = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert made.status < 300, made.message
    pool = {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": "llama", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "llama"}},
            "targetPorts": [{"number": port} for port in ports],
            "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
        },
    }
    return lambda: server.request("POST", f"{GROUP}/inferencepools", pool).status < 300


def start_pod(server: ApiServer) -> None:
    container = {"name": "server", "image": "llama"}
    pod = {
        "metadata": {"name": "llama-1", "namespace": "default", "labels": {"app": "llama"}},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }
    server.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    made = server.request("POST", PODS, pod)
    assert made.status < 300, made.message
    server.request("PATCH", f"{PODS}/llama-1/status", {"status": READY}, MERGE)


async def ask(proxy: SocketProxy, path: str, text: str) -> tuple[int, bytes]:
    body = {"model": "chain", "max_tokens": 16, "prompt": text, "messages": [{"role": "user", "content": text}]}
    url, headers = f"http://127.0.0.1:{proxy.port}{path}", {"authorization": "Bearer sk-llama"}
    async with aiohttp.ClientSession() as client, client.post(url, json=body, headers=headers) as answer:
        return answer.status, await answer.read()


def objects(picker: Picker, ports: list[int], *, secure: bool) -> str:
    """Those of a Gateway, whose pool and Pod are the API server's."""
    text = OBJECTS.replace("APP", "http2" if secure else "kubernetes.io/h2c").replace("PICKER", str(picker.port))
    return (
        text.replace("MODE", "FailClose")
        .replace("FIRST", str(ports[0]))
        .replace("SECOND", str(ports[1]))
        .replace("RULE", "")
    )


async def refuses(proxy: SocketProxy) -> None:
    status, body = await ask(proxy, "/v1/completions", "nobody is there")
    assert status == 503, (status, body)
    said(f"no ready Pod: the picker's 503 ({body.decode().strip()[:80]})")


async def goes(proxy: SocketProxy, picker: Picker) -> None:
    """Each request, to where the picker's log says that it sent it."""
    await until(lambda: _answers(proxy), lambda: picker.process.log()[-3000:])
    said("a ready Pod: its server answers")
    before, logged = len(chosen(picker)), len(proxy.log_lines())
    for number in range(ASKED):
        path = "/v1/chat/completions" if number % 2 else "/v1/completions"
        status, body = await ask(proxy, path, f"{number} is a number")
        assert status == 200 and b"gateway" in body, (status, body)
    served = [word[9:] for line in proxy.log_lines()[logged:] for word in line.split() if word.startswith("endpoint=")]
    assert served == chosen(picker)[before:], (served, chosen(picker)[before:])
    said(f"{ASKED} requests went where the picker said, to {len({*served})} servers; chats through an LLM provider too")


async def _answers(proxy: SocketProxy) -> bool:
    return (await ask(proxy, "/v1/completions", "is anybody there"))[0] == 200


def chosen(picker: Picker) -> list[str]:
    """By its log, which has each choice twice: as a header, and in the metadata."""
    found = CHOSEN.findall(picker.process.log())
    assert found[::2] == found[1::2], found
    return found[::2]


async def proven(program: Path, definitions: Path, assets: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="picker") as name:
        async with AsyncExitStack() as stack:
            folder = Path(name)
            server = ApiServer(assets, folder)
            server.start()
            stack.callback(server.stop)
            llama = await stack.enter_async_context(sdk(LLAMA, name, "texts", "texts"))
            ports = [int(each.rpartition(":")[2]) for each in await llama.said()]
            await until(define(server, definitions, ports), "the kind InferencePool")
            pickers: list[tuple[bool, Picker]] = []
            for secure in (False, True):
                picker = Picker(program, server, folder, secure=secure)
                stack.callback(picker.process.stop)
                await picker.serves()
                pickers.append((secure, picker))
            said("the picker serves, without and with TLS")
            proxies = []
            for secure, picker in pickers:
                text = objects(picker, ports, secure=secure)
                proxies.append((await stack.enter_async_context(serving(text, of_objects=True)), picker))
            for proxy, _ in proxies:
                await refuses(proxy)
            start_pod(server)
            for proxy, picker in proxies:
                await goes(proxy, picker)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picker", type=Path)
    parser.add_argument("definitions", type=Path)
    parser.add_argument("apiserver", type=Path)
    given = parser.parse_args()
    asyncio.run(proven(given.picker, given.definitions, given.apiserver))
    return 0


if __name__ == "__main__":
    sys.exit(main())
