"""The official SDKs of LLM providers, unchanged but for base URL and key, before a provider that takes what they
publish as types: the same verdicts with the gateway between them as without it. What the clients do is in
`fakes/llm_sdk_clients`; the provider is `fakes/llm_sdk_provider`. Both run in an environment of their own, which
`scripts/tools` makes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from controlplane.cli.local import demo
from tests.fakes.llm_sdk_process import CLIENTS, PROVIDER, Running, sdk
from tests.fakes.proxy_process import Proxy, running
from tests.harness.ports import reserve

KEY = "sk-provider"
STEPS = re.findall(r"^def ((?:sdk|gateway)_\w+)", CLIENTS.read_text(), re.MULTILINE)
WITHOUT = [step for step in STEPS if step.startswith("sdk_")]

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

FILE = """
binds:
- {{port: 8080, listeners: [{{name: usual, routes: [{routes}]}}]}}
- {{port: 8081, listeners: [{{name: large, http: {{maxBufferSize: 16777216}}, routes: [{large}]}}]}}
- {{port: 8082, listeners: [{{name: native, routes: [{native}]}}]}}
"""
ROUTES = (
    "routes: {/chat/completions: Completions, /responses: Responses, /embeddings: Embeddings, /messages: Messages,"
    " /count_tokens: TokenCount, /rerank: Rerank, /models: Models}"
)
MORE = (
    ", modelAliases: {fast: gpt-4o-mini},"
    " authorization: {action: Deny, policy: {matchExpressions: ['llm.requestModel == \"no\"']}}"
)
WHO = ", apiKeyAuthentication: {secretRef: {ann: {value: k-123}}}"
BACKENDS = {
    # path: provider, more of `ai`, other policies
    "openai": ("openai: {}", MORE, ""),
    "anthropic": ("anthropic: {}", "", ""),
    "azure": (
        "azureopenai: {endpoint: own.openai.azure.com, apiVersion: '2024-10-21', deploymentName: deployed}",
        "",
        "",
    ),
    "cohere": ("custom: {formats: [{type: Rerank}]}", "", ""),
    "google": ("gemini: {}", "", ""),
    "own": ("custom: {formats: [{type: Completions}, {type: Messages}]}", "", ""),
    "who": ("custom: {formats: [{type: Completions}, {type: Messages}]}", "", WHO),
}


def native(port: int) -> str:
    """Gemini's own API, as its SDK speaks it: requests pass as they are, with the gateway's key."""
    provider = f"{{gemini: {{}}, host: 127.0.0.1, port: {port}}}"
    auth = f"{{key: {KEY}, location: {{header: {{name: x-goog-api-key}}}}}}"
    backend = f"{{ai: {{provider: {provider}}}, policies: {{auth: {auth}}}}}"
    return f"{{name: gemini, policies: {{ai: {{routes: {{'*': Passthrough}}}}}}, backends: [{backend}]}}"


def route(name: str, port: int, named: str = "") -> str:
    provider, more, policies = BACKENDS[name]
    matches = f"matches: [{{path: {{type: PathPrefix, value: /{name}}}}}]"
    auth = "" if name == "own" else f", policies: {{auth: {{key: {KEY}}}}}"
    backend = f"{{ai: {{provider: {{{provider}, host: 127.0.0.1, port: {port}}}}}{auth}}}"
    return (
        f"{{name: {named or name}, {matches}, policies: {{ai: {{{ROUTES}{more}}}{policies}}}, backends: [{backend}]}}"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[int]:
    """Its port."""
    async with sdk(PROVIDER) as started:
        yield (await started.said())["port"]


def addresses(provider: int, base: str = "", **more: str) -> str:
    own = f"http://127.0.0.1:{provider}"
    named = {name: f"{base}/{name}" if base else own for name in (*BACKENDS, "gemini")}
    return json.dumps({**named, "provider": own, "key": "sk-mine" if base else KEY, **more})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def direct(provider: int) -> AsyncIterator[Running]:
    """The clients, without a gateway."""
    async with sdk(CLIENTS, addresses(provider)) as clients:
        yield clients


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(provider: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    file = tmp_path_factory.mktemp("llm") / "config.yaml"
    routes = ", ".join(route(name, provider) for name in BACKENDS)
    file.write_text(FILE.format(routes=routes, large=route("openai", provider, "large"), native=native(provider)))
    async with running("-f", str(file), workers=1) as proxy:
        await proxy.ready()
        yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def through(provider: int, gateway: Proxy) -> AsyncIterator[Running]:
    """The clients, whose requests pass the gateway. Their key is none of the provider's."""
    base = f"http://127.0.0.1:{gateway.at(8080)}"
    large = f"http://127.0.0.1:{gateway.at(8081)}/openai"
    gemini = f"http://127.0.0.1:{gateway.at(8082)}"
    async with sdk(CLIENTS, addresses(provider, base, large=large, gemini=gemini)) as clients:
        yield clients


@pytest.mark.parametrize("step", WITHOUT)
async def test_a_provider_alone(step: str, direct: Running) -> None:
    found = await direct.ask(step)
    assert found is None, found


@pytest.mark.parametrize("step", STEPS)
async def test_a_provider_through_the_gateway(step: str, through: Running) -> None:
    found = await through.ask(step)
    assert found is None, found


async def test_the_demo_provider_of_the_example() -> None:
    server = demo.Server("llm", "models", "127.0.0.1", reserve())
    demos = demo.Demos(lambda _: None)
    await demos.apply(frozenset((server,)))
    base = f"http://127.0.0.1:{server.port}"
    try:
        async with sdk(CLIENTS, json.dumps({"openai": base, "anthropic": base, "key": "any"})) as clients:
            found = await clients.ask("demo")
            assert found is None, found
    finally:
        await demos.stop()
