"""The realtime client of `openai`, unchanged but for base URL and key, before a provider that takes and gives what it
publishes as types: the same verdicts with the gateway between them as without it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.llm_sdk_process import FAKES, Running, sdk
from tests.fakes.proxy_process import Proxy, running

PROVIDER, CLIENTS = FAKES / "llm_realtime_provider.py", FAKES / "llm_realtime_clients.py"
KEY = "sk-provider"
STEPS = re.findall(r"^def ((?:sdk|gateway)_\w+)", CLIENTS.read_text(), re.MULTILINE)

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: realtime
      policies:
        ai:
          routes: {{/realtime: Realtime}}
          modelAliases: {{fast: gpt-realtime-mini}}
          authorization: {{action: Deny, policy: {{matchExpressions: ['llm.requestModel == "denied"']}}}}
      backends:
      - ai: {{provider: {{openai: {{}}, host: 127.0.0.1, port: {port}}}}}
        policies: {{auth: {{key: sk-provider}}}}
- port: 8081
  listeners:
  - name: guarded
    routes:
    - name: guarded
      policies:
        ai:
          routes: {{/realtime: Realtime}}
          promptGuard:
            request: [{{regex: {{builtins: [Ssn]}}}}]
            response: [{{regex: {{matches: ['\\S*世界\\S*']}}}}]
      backends:
      - ai: {{provider: {{custom: {{formats: [{{type: Realtime}}]}}, host: 127.0.0.1, port: {port}}}}}
        policies: {{auth: {{key: sk-provider}}}}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[int]:
    """Its port."""
    async with sdk(PROVIDER) as started:
        yield (await started.said())["port"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def direct(provider: int) -> AsyncIterator[Running]:
    own = f"http://127.0.0.1:{provider}"
    async with sdk(CLIENTS, json.dumps({"realtime": own, "provider": own, "key": KEY})) as clients:
        yield clients


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(provider: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    file = tmp_path_factory.mktemp("realtime") / "config.yaml"
    file.write_text(FILE.format(port=provider))
    async with running("-f", str(file), workers=1) as proxy:
        await proxy.ready()
        yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def through(provider: int, gateway: Proxy) -> AsyncIterator[Running]:
    """The clients, whose sessions pass the gateway. Their key is none of the provider's."""
    own, usual, guarded = (f"http://127.0.0.1:{port}" for port in (provider, gateway.at(8080), gateway.at(8081)))
    given = {"realtime": usual, "guarded": guarded, "provider": own, "key": "sk-mine"}
    async with sdk(CLIENTS, json.dumps(given)) as clients:
        yield clients


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("sdk_")])
async def test_the_client_and_the_provider_alone(step: str, direct: Running) -> None:
    found = await direct.ask(step)
    assert found is None, found


@pytest.mark.parametrize("step", STEPS)
async def test_the_client_through_the_gateway(step: str, through: Running) -> None:
    found = await through.ask(step)
    assert found is None, found
