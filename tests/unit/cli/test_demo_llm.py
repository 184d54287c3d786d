"""The demo provider of models, over HTTP. The official SDKs look at it in `loopback/test_llm_sdks`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from controlplane.cli.local import demo
from tests.harness.ports import reserve

HELLO = [{"role": "user", "content": [{"type": "text", "text": "hello you"}]}]
USED = {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}


@pytest.fixture
async def provider() -> AsyncIterator[aiohttp.ClientSession]:
    server = demo.Server("llm", "models", "127.0.0.1", reserve())
    demos = demo.Demos(lambda _: None)
    await demos.apply(frozenset((server,)))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        yield session
    await demos.stop()


async def asked(provider: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    async with provider.post(path, json=body) as answer:
        assert answer.status == 200 and answer.headers["x-demo-service"] == "models"
        return await answer.json()


async def streamed(provider: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> list[str]:
    async with provider.post(path, json={**body, "stream": True}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        return [line[6:] for line in (await answer.text()).splitlines() if line.startswith("data: ")]


async def test_it_says_what_it_was_asked_in_every_api(provider: aiohttp.ClientSession) -> None:
    chat = await asked(provider, "/v1/chat/completions", {"model": "m", "messages": HELLO})
    assert (chat["model"], chat["choices"][0]["message"]["content"]) == ("m", "You said: hello you")
    assert chat["usage"] == USED
    message = await asked(provider, "/v1/messages", {"system": "be kind", "messages": HELLO})
    assert message["content"] == [{"type": "text", "text": "You said: hello you"}]
    assert message["usage"] == {"input_tokens": 4, "output_tokens": 4}
    response = await asked(provider, "/v1/responses", {"input": "hello"})
    assert response["output"][0]["content"][0]["text"] == "You said: hello"
    assert await asked(provider, "/v1/messages/count_tokens", {"messages": HELLO}) == {"input_tokens": 2}


async def test_streams_have_a_token_an_event_and_end_as_their_api_has_it(provider: aiohttp.ClientSession) -> None:
    *chunks, done = await streamed(provider, "/v1/chat/completions", {"messages": HELLO})
    texts = [json.loads(each)["choices"][0]["delta"].get("content", "") for each in chunks]
    assert ("".join(texts), done) == ("You said: hello you", "[DONE]")
    with_usage = {"messages": HELLO, "stream_options": {"include_usage": True}}
    assert json.loads((await streamed(provider, "/v1/chat/completions", with_usage))[-2])["usage"] == USED
    assert json.loads((await streamed(provider, "/v1/messages", {"messages": HELLO}))[-1]) == {"type": "message_stop"}
    events = [json.loads(each) for each in await streamed(provider, "/v1/responses", {"input": "hello"})]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"


async def test_equal_texts_have_equal_embeddings(provider: aiohttp.ClientSession) -> None:
    found = await asked(provider, "/v1/embeddings", {"input": ["one", "two", "one"]})
    one, two, again = (each["embedding"] for each in found["data"])
    assert one == again != two


async def test_what_it_does_not_have_and_what_is_no_json(provider: aiohttp.ClientSession) -> None:
    async with provider.get("/v1/files") as answer:
        assert answer.status == 404 and "/v1/files" in (await answer.json())["error"]["message"]
    for body in (b"{", b"[]", b"[" * 100_000):
        async with provider.post("/v1/messages", data=body) as answer:
            assert answer.status == 400
