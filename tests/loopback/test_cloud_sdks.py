"""Official SDKs before the gateway, with Amazon Bedrock and Vertex AI behind it as botocore's and others' published
types have them: `fakes/cloud_sdk_provider` judges requests and signatures, `fakes/cloud_sdk_clients` are the clients.
Both run in an environment of their own, which `scripts/tools` makes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.fakes.certificates import Authority
from tests.fakes.llm_sdk_process import FAKES, Running, sdk
from tests.fakes.proxy_process import Proxy, running

PROVIDER, CLIENTS = FAKES / "cloud_sdk_provider.py", FAKES / "cloud_sdk_clients.py"
STEPS = re.findall(r"^def ((?:aws|anthropic|google|gpt|claude|cohere)_\w+)", CLIENTS.read_text(), re.MULTILINE)

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

AWS = "auth: {aws: {secretRef: {accessKey: {value: AKIDPROVIDER}, secretKey: {value: its-secret}}}}"
ENTRA = "auth: {azure: {}}"
GOOGLE = "auth: {key: ya29.its-token}"
READ = (
    "{/chat/completions: Completions, /responses: Responses, /messages: Messages, /count_tokens: TokenCount,"
    " /embeddings: Embeddings, /rerank: Rerank}"
)
PASSED = "{'*': Passthrough}"
PLACES = {
    # name: port, routes, provider, credentials
    "bedrock": (8080, READ, "bedrock: {region: eu-west-1}", AWS),
    "vertex": (8081, READ, "vertexai: {projectId: p1}", GOOGLE),
    "azure": (
        8085,
        READ,
        "azure: {resourceName: r, resourceType: OpenAI, apiVersion: '2024-10-21', model: deployed}",
        ENTRA,
    ),
    "foundry": (8086, READ, "azure: {resourceName: r, resourceType: Foundry, projectName: p}", ENTRA),
    "aws": (8082, PASSED, "bedrock: {region: eu-west-1}", AWS),
    "google": (8083, PASSED, "vertexai: {projectId: p1}", GOOGLE),
}


ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/my_agent-AbC123"
RUNTIME = 8084


def bind(name: str, provider: Provider) -> str:
    port, routes, kind, auth = PLACES[name]
    backend = f"{{ai: {{provider: {{{kind}, host: 127.0.0.1, port: {provider.port}}}}}, policies: {{{auth}}}}}"
    route = f"{{name: {name}, policies: {{ai: {{routes: {routes}}}}}, backends: [{backend}]}}"
    return f"{{port: {port}, listeners: [{{name: {name}, routes: [{route}]}}]}}"


def bind_of_runtime(provider: Provider) -> str:
    tunnel = f"tunnel: {{host: '127.0.0.1:{provider.forward}'}}"
    tls = f"tls: {{caCertificateRefs: [{{file: '{provider.authority}'}}]}}"
    runtime = f"aws: {{agentRuntime: {{agentRuntimeArn: '{ARN}', qualifier: v1}}}}"
    backend = f"{{{runtime}, policies: {{{AWS}, {tunnel}, {tls}}}}}"
    return f"{{port: {RUNTIME}, listeners: [{{name: runtime, routes: [{{name: runtime, backends: [{backend}]}}]}}]}}"


class Provider(NamedTuple):
    """Ports of the stand-in, and the file with the authority of its certificate."""

    port: int
    forward: int
    authority: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Provider]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority()
    issued = authority.issue("bedrock-agentcore.eu-west-1.amazonaws.com")
    files = [folder / name for name in ("ca.pem", "chain.pem", "key.pem")]
    for file, content in zip(files, (authority.pem, issued.chain, issued.key), strict=True):
        file.write_bytes(content)
    async with sdk(PROVIDER, *map(str, files[1:])) as started:
        said = await started.said()
        yield Provider(said["port"], said["forward"], files[0])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    file = tmp_path_factory.mktemp("cloud") / "config.yaml"
    binds = [*(bind(name, provider) for name in PLACES), bind_of_runtime(provider)]
    file.write_text(f"binds: [{', '.join(binds)}]\n")
    client = {"AZURE_CLIENT_ID": "c1", "AZURE_TENANT_ID": "t1", "AZURE_CLIENT_SECRET": "its-secret"}
    environment = {**client, "AZURE_AUTHORITY_HOST": f"http://127.0.0.1:{provider.port}"}
    async with running("-f", str(file), workers=1, environment=environment) as proxy:
        await proxy.ready()
        yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(gateway: Proxy) -> AsyncIterator[Running]:
    given = {name: f"http://127.0.0.1:{gateway.at(port)}" for name, (port, *_) in PLACES.items()}
    given["runtime"] = f"http://127.0.0.1:{gateway.at(RUNTIME)}"
    given["path"] = f"/runtimes/{quote(ARN, safe='')}/invocations?qualifier=v1"
    async with sdk(CLIENTS, json.dumps(given)) as started:
        yield started


@pytest.mark.parametrize("step", STEPS)
async def test_a_client_through_the_gateway(step: str, clients: Running) -> None:
    found = await clients.ask(step)
    assert found is None, found
