"""Official clients before the gateway, in the environment of the SDKs (`llm-python`): of AWS, Anthropic and Google by
their own cloud's API through `Passthrough`, and of OpenAI, Anthropic and Cohere with a cloud behind. Names of functions
are written line by line (`loopback/test_cloud_sdks`); each is answered with a line of JSON: null, or what was wrong.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import anthropic
import boto3
import botocore.exceptions
import cohere
import openai
from botocore.config import Config
from google import genai
from google.oauth2.credentials import Credentials

TEXT = "Grüße 世界 🌍!"
HELLO: Any = [{"role": "user", "content": "hello"}]
CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
LONG = "a_tool_whose_name_is_longer_than_the_sixty_four_characters_that_it_may_have_there"
GIVEN = json.loads(sys.argv[1])
"""Addresses by name: `bedrock`, `vertex`, `azure` and `foundry` (APIs of LLMs), `aws` and `google` (what passes as
it is), `runtime` (of an agent), and the `path` of that runtime."""


def boto() -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=GIVEN["aws"],
        region_name="us-west-2",
        aws_access_key_id="mine",
        aws_secret_access_key="mine",
        config=Config(retries={"total_max_attempts": 1}),
    )


def gpt(where: str = "bedrock") -> openai.OpenAI:
    return openai.OpenAI(base_url=GIVEN[where] + "/v1", api_key="mine", max_retries=0)


def claude(where: str = "bedrock") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=GIVEN[where], api_key="mine", max_retries=0)


# --- as they are


def aws_converse() -> None:
    for model in (NOVA, CLAUDE, PROFILE):
        done = boto().converse(modelId=model, messages=[{"role": "user", "content": [{"text": "hello"}]}])
        assert done["output"]["message"]["content"] == [{"text": TEXT}], done


def aws_converse_stream() -> None:
    stream = boto().converse_stream(modelId=NOVA, messages=[{"role": "user", "content": [{"text": "hello"}]}])["stream"]
    deltas = [each["contentBlockDelta"]["delta"]["text"] for each in stream if "contentBlockDelta" in each]
    assert "".join(deltas) == TEXT


def aws_exception_in_a_stream() -> None:
    stream = boto().converse_stream(modelId="throttled", messages=[{"role": "user", "content": [{"text": "x"}]}])[
        "stream"
    ]
    try:
        list(stream)
    except botocore.exceptions.EventStreamError as error:
        assert error.response["Error"]["Code"] == "throttlingException"
    else:
        raise AssertionError("nothing was raised")


def aws_error() -> None:
    try:
        boto().converse(modelId="busy", messages=[{"role": "user", "content": [{"text": "x"}]}])
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "ThrottlingException"
    else:
        raise AssertionError("nothing was raised")


def aws_agent_runtime() -> None:
    """Its own path and signature are the gateway's; content, stream and session are its own."""
    client = boto3.client(
        "bedrock-agentcore",
        endpoint_url=GIVEN["runtime"],
        region_name="us-west-2",
        aws_access_key_id="mine",
        aws_secret_access_key="mine",
    )
    other = "arn:aws:bedrock-agentcore:us-west-2:000000000000:runtime/other-AbC123"
    payload = b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"big":12345678901234567890}}'
    done = client.invoke_agent_runtime(agentRuntimeArn=other, runtimeSessionId="s" * 40, payload=payload)
    path, _, sent = done["response"].read().partition(b"\n")
    assert (sent, done["runtimeSessionId"], done["contentType"]) == (payload, "s" * 40, "text/event-stream")
    assert path.decode() == GIVEN["path"], path


def anthropic_bedrock() -> None:
    client = anthropic.AnthropicBedrock(
        base_url=GIVEN["aws"], aws_access_key="mine", aws_secret_key="mine", aws_region="us-west-2", max_retries=0
    )
    done = client.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO)
    assert done.content[0].type == "text" and done.content[0].text == TEXT
    with client.messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == TEXT


def anthropic_vertex() -> None:
    client = anthropic.AnthropicVertex(
        base_url=GIVEN["google"] + "/v1", region="global", project_id="p1", access_token="mine", max_retries=0
    )
    done = client.messages.create(model="claude-sonnet-4-5@20250929", max_tokens=9, messages=HELLO)
    assert done.content[0].type == "text" and done.content[0].text == TEXT
    with client.messages.stream(model="claude-sonnet-4-5@20250929", max_tokens=9, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == TEXT


def google_genai() -> None:
    options = genai.types.HttpOptions(base_url=GIVEN["google"])
    client = genai.Client(
        vertexai=True, project="p1", location="global", credentials=Credentials("mine"), http_options=options
    )
    assert client.models.generate_content(model="gemini-3", contents="hello").text == TEXT
    parts = client.models.generate_content_stream(model="gemini-3", contents="hello")
    assert "".join(each.text or "" for each in parts) == TEXT


# --- a cloud behind


def gpt_converses() -> None:
    for model in (NOVA, CLAUDE, PROFILE):
        done = gpt().chat.completions.create(model=model, messages=HELLO)
        assert done.choices[0].message.content == TEXT and done.usage is not None and done.usage.total_tokens == 13
        chunks = gpt().chat.completions.create(model=model, messages=HELLO, stream=True)
        assert "".join(each.choices[0].delta.content or "" for each in chunks) == TEXT


def gpt_calls_a_tool_with_a_long_name() -> None:
    tools: Any = [{"type": "function", "function": {"name": LONG, "parameters": {"type": "object"}}}]
    done = gpt().chat.completions.create(model=NOVA, messages=HELLO, tools=tools)
    (call,) = done.choices[0].message.tool_calls or []
    assert call.type == "function" and call.function.name == LONG


def gpt_streams_that_break() -> None:
    for model in ("throttled", "wrongcrc", "cut"):
        try:
            list(gpt().chat.completions.create(model=f"amazon.{model}", messages=HELLO, stream=True))
        except openai.APIError:
            continue
        raise AssertionError(f"nothing was raised for {model}")


def gpt_response() -> None:
    assert gpt().responses.create(model=NOVA, input="hello").output_text == TEXT


def gpt_embeds() -> None:
    done = gpt().embeddings.create(model="amazon.titan-embed-text-v2:0", input="one")
    assert (done.data[0].embedding, done.usage.total_tokens) == ([0.5, 0.25], 3)


def gpt_is_refused() -> None:
    try:
        gpt().chat.completions.create(model="busy", messages=HELLO)
    except openai.RateLimitError as error:
        assert "too many requests" in error.message
    else:
        raise AssertionError("nothing was raised")


def claude_natively() -> None:
    done = claude().messages.create(model=CLAUDE, max_tokens=9, messages=HELLO, extra_headers={"anthropic-beta": "x"})
    assert done.content[0].type == "text" and done.content[0].text == TEXT
    with claude().messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == TEXT
    assert claude().messages.count_tokens(model=CLAUDE, messages=HELLO).input_tokens == 42


def claude_streams_that_break() -> None:
    for model in ("throttled", "wrongcrc", "cut"):
        try:
            with claude().messages.stream(model=f"claude-{model}", max_tokens=9, messages=HELLO) as stream:
                list(stream)
        except anthropic.APIError:
            continue
        raise AssertionError(f"nothing was raised for {model}")


def cohere_ranks() -> None:
    client = cohere.ClientV2(api_key="mine", base_url=GIVEN["bedrock"])
    done = client.rerank(model="cohere.rerank-v3-5:0", query="q", documents=["a", "b"], top_n=1)
    assert [(each.index, each.relevance_score) for each in done.results] == [(1, 0.9)]


def gpt_asks_vertex() -> None:
    for model in ("gemini-3", "claude-sonnet-4-5-20250929"):
        done = gpt("vertex").chat.completions.create(model=model, messages=HELLO)
        assert done.choices[0].message.content == TEXT
        chunks = gpt("vertex").chat.completions.create(model=model, messages=HELLO, stream=True)
        assert "".join(each.choices[0].delta.content or "" for each in chunks) == TEXT


def claude_asks_vertex() -> None:
    for model in ("gemini-3", "claude-sonnet-4-5-20250929"):
        with claude("vertex").messages.stream(model=model, max_tokens=9, messages=HELLO) as stream:
            assert "".join(stream.text_stream) == TEXT
    for model in ("claude-x", "gemini-3"):
        assert claude("vertex").messages.count_tokens(model=model, messages=HELLO).input_tokens == 42


def gpt_asks_azure() -> None:
    client = openai.AzureOpenAI(
        azure_endpoint=GIVEN["azure"], api_version="2024-10-21", azure_ad_token="mine", max_retries=0
    )
    done = client.chat.completions.create(model="deployed", messages=HELLO)
    assert done.choices[0].message.content == TEXT
    assert gpt("foundry").chat.completions.create(model="m", messages=HELLO).choices[0].message.content == TEXT


for line in sys.stdin:
    try:
        globals()[line.strip()]()
        wrong = None
    except Exception:
        wrong = traceback.format_exc()
    print(json.dumps(wrong), flush=True)
