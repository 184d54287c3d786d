"""A real inference server behind the gateway, asked by SDKs: llama.cpp's, whose model recites (`fakes/llm_llama`)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes.llm_sdk_process import CLIENTS, LLAMA, Running, sdk
from tests.fakes.proxy_process import Proxy, running

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

STEPS = re.findall(r"^def (llama_\w+)", CLIENTS.read_text(), re.MULTILINE)
FORMATS = "[{type: Completions}, {type: Messages}, {type: AnthropicTokenCount}, {type: Embeddings}]"
ROUTES = "{/completions: Completions, /messages: Messages, /count_tokens: TokenCount, /embeddings: Embeddings}"


def route(name: str, address: str) -> str:
    port = address.rpartition(":")[2]
    provider = f"{{custom: {{formats: {FORMATS}}}, host: 127.0.0.1, port: {port}}}"
    backend = f"{{ai: {{provider: {provider}}}, policies: {{auth: {{key: sk-llama}}, ai: {{routes: {ROUTES}}}}}}}"
    return f"{{name: {name}, matches: [{{path: {{type: PathPrefix, value: /{name}}}}}], backends: [{backend}]}}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    folder: Path = tmp_path_factory.mktemp("llama")
    async with sdk(LLAMA, str(folder)) as servers:
        texts, vectors = await servers.said()
        routes = f"{route('texts', texts)}, {route('vectors', vectors)}"
        file = folder / "config.yaml"
        file.write_text(f"binds: [{{port: 8080, listeners: [{{name: http, routes: [{routes}]}}]}}]\n")
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(gateway: Proxy) -> AsyncIterator[Running]:
    base = f"http://127.0.0.1:{gateway.at(8080)}"
    texts = dict.fromkeys(("openai", "anthropic"), f"{base}/texts")
    async with sdk(CLIENTS, json.dumps({**texts, "embeddings": f"{base}/vectors", "key": "any"})) as started:
        yield started


@pytest.mark.parametrize("step", STEPS)
async def test_the_sdks_and_llama_cpp(step: str, clients: Running) -> None:
    found = await clients.ask(step)
    assert found is None, found


async def test_its_usage_is_in_the_log(clients: Running, gateway: Proxy) -> None:
    assert await clients.ask("llama_chat_stream") is None
    line = await gateway.logged("llm.time_to_first_token_ms=")
    assert "gen_ai.usage.output_tokens=11" in line and "gen_ai.response.model=chain" in line
