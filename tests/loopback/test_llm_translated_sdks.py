"""The official SDKs before a provider of another API: what they do without a gateway (`fakes/llm_sdk_clients`) they do
through a translation, and the provider takes every request by the types of its own API.

One cell is a step of a client and an API of the provider. `DIFFERS` has those that cannot be, with the reason.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.proxy_process import Proxy, running
from tests.loopback.test_llm_sdks import CLIENTS, KEY, PROVIDER, ROUTES, WITHOUT, Running, addresses, sdk

pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

APIS = {"Completions": "sdk_chat", "Messages": "sdk_message", "Responses": "sdk_response"}
"""APIs of providers, and steps of clients of the same, which are not translated."""
NO_STOP = "Responses has no stop sequences, and an answer that goes on is none that the client can use"
NOT_OVERLOADED = "a provider of OpenAI's APIs has no word for being overloaded: its 500 is an api_error"
DIFFERS = {
    ("sdk_chat", "Messages"): "the newest types of Anthropic's SDK have no temperature; most models take it",
    ("sdk_message_errors", "Completions"): NOT_OVERLOADED,
    ("sdk_message_errors", "Responses"): NOT_OVERLOADED,
    ("sdk_chat", "Responses"): NO_STOP,
    ("sdk_message", "Responses"): NO_STOP,
}
ALSO = ("sdk_message_count",)
"""Steps that are about something else than a conversation."""
STEPS = [step for step in WITHOUT if step.startswith(tuple(APIS.values())) and step not in ALSO]
CELLS = [(step, api) for step in STEPS for api, own in APIS.items() if not (step == own or step.startswith(f"{own}_"))]
MADE = [cell for cell in CELLS if cell not in DIFFERS]


async def test_cells_that_do_not_apply_are_few_and_have_a_reason() -> None:
    assert set(DIFFERS) <= set(CELLS)
    assert (len(CELLS), len(MADE)) == (46, 41)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[int]:
    async with sdk(PROVIDER) as started:
        yield (await started.said())["port"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(provider: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    def route(api: str) -> str:
        backend = f"{{ai: {{provider: {{custom: {{formats: [{{type: {api}}}]}}, host: 127.0.0.1, port: {provider}}}}}"
        matches = f"matches: [{{path: {{type: PathPrefix, value: /{api}}}}}]"
        return (
            f"{{name: {api.lower()}, {matches}, policies: {{ai: {{{ROUTES}}}}},"
            f" backends: [{backend}, policies: {{auth: {{key: {KEY}}}}}}}]}}"
        )

    file = tmp_path_factory.mktemp("llm") / "config.yaml"
    routes = ", ".join(map(route, APIS))
    file.write_text(f"binds: [{{port: 8080, listeners: [{{name: all, routes: [{routes}]}}]}}]\n")
    async with running("-f", str(file), workers=1) as proxy:
        await proxy.ready()
        yield proxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(provider: int, gateway: Proxy) -> AsyncIterator[dict[str, Running]]:
    """By the API of the provider."""
    base = f"http://127.0.0.1:{gateway.at(8080)}"

    def given(api: str) -> str:
        return addresses(provider, base, openai=f"{base}/{api}", anthropic=f"{base}/{api}")

    async with (
        sdk(CLIENTS, given("Completions")) as one,
        sdk(CLIENTS, given("Messages")) as two,
        sdk(CLIENTS, given("Responses")) as three,
    ):
        yield dict(zip(APIS, (one, two, three), strict=True))


@pytest.mark.parametrize(("step", "api"), MADE)
async def test_a_client_through_a_translation(step: str, api: str, clients: dict[str, Running]) -> None:
    found = await clients[api].ask(step)
    assert found is None, found
