"""Official SDKs before the gateway, with Amazon Bedrock and Vertex AI behind it as botocore's and others' published
types have them: `fakes/cloud_sdk_provider` judges requests and signatures, `fakes/cloud_sdk_clients` are the clients.
Both run in an environment of their own, which `scripts/tools` makes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.llm_sdk_process import FAKES, Running, sdk
from tests.fakes.proxy_process import Proxy, running

PROVIDER, CLIENTS = FAKES / "cloud_sdk_provider.py", FAKES / "cloud_sdk_clients.py"
STEPS = re.findall(r"^def ((?:aws|anthropic|google|gpt|claude|cohere)_\w+)", CLIENTS.read_text(), re.MULTILINE)

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

AWS = "auth: {aws: {secretRef: {accessKey: {value: AKIDPROVIDER}, secretKey: {value: its-secret}}}}"
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
    "aws": (8082, PASSED, "bedrock: {region: eu-west-1}", AWS),
    "google": (8083, PASSED, "vertexai: {projectId: p1}", GOOGLE),
}


def bind(name: str, provider: int) -> str:
    port, routes, kind, auth = PLACES[name]
    backend = f"{{ai: {{provider: {{{kind}, host: 127.0.0.1, port: {provider}}}}}, policies: {{{auth}}}}}"
    route = f"{{name: {name}, policies: {{ai: {{routes: {routes}}}}}, backends: [{backend}]}}"
    return f"{{port: {port}, listeners: [{{name: {name}, routes: [{route}]}}]}}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[int]:
    """Its port."""
    async with sdk(PROVIDER) as started:
        yield (await started.said())["port"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(provider: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    file = tmp_path_factory.mktemp("cloud") / "config.yaml"
    file.write_text(f"binds: [{', '.join(bind(name, provider) for name in PLACES)}]\n")
    async with running("-f", str(file), workers=1) as proxy:
        await proxy.ready()
        yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(gateway: Proxy) -> AsyncIterator[Running]:
    given = {name: f"http://127.0.0.1:{gateway.at(port)}" for name, (port, *_) in PLACES.items()}
    async with sdk(CLIENTS, json.dumps(given)) as started:
        yield started


@pytest.mark.parametrize("step", STEPS)
async def test_a_client_through_the_gateway(step: str, clients: Running) -> None:
    found = await clients.ask(step)
    assert found is None, found
