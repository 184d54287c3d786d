"""LiteLLM with its file, and this gateway with the one that `gatewright import litellm` makes of it: the same requests,
the same answers, and the provider is asked for the same. LiteLLM runs in an environment of its own, which
`scripts/tools` makes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from gatewright.api.standalone.imported.litellm import imported
from tests.fakes.llm_sdk_process import FAKES, Running, sdk
from tests.fakes.proxy_process import Proxy, running
from tests.harness import yamls

pytestmark = [pytest.mark.slow, pytest.mark.needs("llm-python"), pytest.mark.asyncio(loop_scope="module")]

LITELLM: Final = FAKES / "llm_litellm.py"
KEYS: Final = {"OPENAI_KEY": "sk-openai", "CLAUDE_KEY": "sk-claude", "MASTER_KEY": "sk-master"}
CONFIG: Final = """
model_list:
- model_name: gpt
  litellm_params: {model: openai/gpt-4o, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY, temperature: 0.2}
- model_name: own
  litellm_params: {model: hosted_vllm/llama, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY}
- model_name: claude
  litellm_params: {model: anthropic/claude-sonnet-4-5, api_base: BASE, api_key: os.environ/CLAUDE_KEY}
- model_name: shaky
  litellm_params: {model: openai/down, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY}
- model_name: limited
  litellm_params: {model: openai/busy, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY}
- model_name: lost
  litellm_params: {model: openai/down, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY}
- model_name: strict
  litellm_params: {model: openai/strict, api_base: "BASE/v1", api_key: os.environ/OPENAI_KEY}
litellm_settings:
  fallbacks: [{shaky: [gpt]}, {limited: [own]}]
  num_retries: 0
router_settings: {model_group_alias: {gpt-4: gpt}}
"""
USER: Final = {"role": "user", "content": "hello"}
SYSTEM: Final = {"role": "system", "content": "be kind"}
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HISTORY: Final = [
    USER,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"X"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
]
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE: Final = {
    "role": "user",
    "content": [
        {"type": "text", "text": "what is it"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ],
}
SCHEMA: Final = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
}
WITH_USAGE: Final = {"stream": True, "stream_options": {"include_usage": True}}


def asked(model: str, *messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages or (USER,)), **more}


REQUESTS: Final = {
    "whole": asked("gpt"),
    "streamed": asked("gpt", stream=True),
    "streamed with usage": asked("gpt", **WITH_USAGE),
    "a tool": asked("gpt", tools=[TOOL]),
    "a tool, streamed": asked("gpt", tools=[TOOL], stream=True),
    "a default of the file that the request replaces": asked("gpt", temperature=0.9),
    "a system prompt and a bound": asked("gpt", SYSTEM, USER, max_tokens=50, top_p=0.5),
    "the result of a tool": asked("gpt", *HISTORY, tools=[TOOL]),
    "a picture": asked("gpt", PICTURE),
    "a schema": asked("gpt", response_format=SCHEMA),
    "a server of one's own": asked("own", SYSTEM, USER, seed=7),
    "a server of one's own, streamed": asked("own", stream=True),
    "another API": asked("claude", max_tokens=50),
    "another API, streamed": asked("claude", max_tokens=50, stream=True),
    "another API, streamed with usage": asked("claude", max_tokens=50, **WITH_USAGE),
    "another API, a tool": asked("claude", tools=[TOOL], max_tokens=50),
    "another API, a system prompt and more": asked(
        "claude", SYSTEM, PICTURE, max_tokens=50, temperature=0.5, stop=["x"]
    ),
    "another API, the result of a tool": asked("claude", *HISTORY, tools=[TOOL], max_tokens=50),
    "a fallback": asked("shaky"),
    "a fallback, streamed": asked("shaky", stream=True),
    "a fallback of one that is busy": asked("limited"),
    "an alias": asked("gpt-4"),
    "a provider that fails": asked("lost"),
    "a provider that refuses": asked("strict"),
}
SAME: Final = ("status", "said", "why", "calls", "usage", "asked")
"""What has to be equal of what came of it."""


def plain(value: Any) -> Any:
    """The same in one spelling: a text by itself is a part, null is nothing, a tool is the usual kind of its API. Usage
    of a stream is asked for here always."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: plain(each) for name, each in value.items() if each is not None and name != "stream_options"}
    if "input_schema" in found:
        found.setdefault("type", "custom")
    for name in ("content", "system"):
        if isinstance(found.get(name), str):
            found[name] = [{"type": "text", "text": found[name]}]
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def litellm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Running, Proxy]]:
    async with sdk(LITELLM) as peer:
        text = CONFIG.replace("BASE", f"http://127.0.0.1:{await peer.said()}")
        (config,) = yamls.load_all(text)
        assert await peer.ask(json.dumps({"config": config, "keys": KEYS})) == "ready"
        file = tmp_path_factory.mktemp("litellm") / "gateway.yaml"
        made = imported(text + "general_settings: {master_key: os.environ/MASTER_KEY}\n")
        assert not made.left_out
        file.write_text(yamls.dump(made.document))
        async with running("-f", str(file), workers=1, environment=KEYS) as gateway:
            await gateway.ready()
            yield peer, gateway


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_is_answered_as_litellm_answers_it(name: str, litellm: tuple[Running, Proxy]) -> None:
    peer, gateway = litellm
    request = REQUESTS[name]
    theirs = await peer.ask(json.dumps({"request": request}))
    ours = await peer.ask(json.dumps({"request": request, "base": f"http://127.0.0.1:{gateway.at(4000)}/v1"}))
    assert {part: ours.get(part) for part in SAME} == {part: theirs.get(part) for part in SAME}
    assert plain(ours["got"]) == plain(theirs["got"])
