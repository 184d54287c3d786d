"""What translations make, by the types that the SDKs publish: every cell of the matrix (`unit/llm/test_llm_matrix`),
with Bedrock's service model and Google's models as validators of what they get. The checks run in the environment of
the SDKs (`fakes/llm_sdk_types`)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dataplane.llm import translation
from dataplane.llm.routes import Format
from tests.fakes import llm_talks as talks
from tests.loopback.test_llm_sdks import Running, sdk
from tests.unit.llm.test_llm_matrix import ANSWERED, asked_of, made_of, streamed

TYPES = Path(__file__).parents[1] / "fakes" / "llm_sdk_types.py"
pytestmark = [pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def types() -> AsyncIterator[Running]:
    async with sdk(TYPES) as started:
        yield started


async def wrong(types: Running, api: Format, what: str, data: Any) -> Any:
    return await types.ask(json.dumps({"api": api.value, "what": what, "data": data}))


def events_of(data: bytes) -> list[Any]:
    found = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(each) for each in found if each != b"[DONE]"]


@pytest.mark.parametrize(("scenario", "client", "provider"), ANSWERED)
async def test_the_provider_gets_a_request_of_its_api(
    scenario: str, client: Format, provider: Format, types: Running
) -> None:
    made = made_of(scenario, client, provider)
    body = json.loads(made.body)
    if provider is Format.MESSAGES:
        body.pop("temperature", None)  # the newest types have none, most models take it
    assert await wrong(types, provider, "request", body) == []


@pytest.mark.parametrize(("scenario", "client", "provider"), ANSWERED)
async def test_the_client_gets_an_answer_of_its_api(
    scenario: str, client: Format, provider: Format, types: Running
) -> None:
    saying = talks.SAID[scenario]
    made = made_of(scenario, client, provider, stream=True)
    _, body = translation.answer(made, json.dumps(talks.ANSWERS[provider](saying)).encode(), asked_of(made))
    whole = json.loads(body)
    assert await wrong(types, client, "answer", whole) == []
    given = events_of(streamed(made, talks.STREAMS[provider](saying)))
    assert await wrong(types, client, "events", {"events": given, "answer": whole}) == []
