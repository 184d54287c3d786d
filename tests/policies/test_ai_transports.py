"""Every client's API to every transport of a cloud, by scenario: what `unit/llm/test_llm_matrix` has of formats, in a
whole proxy, with the paths, frames and credentials of Amazon Bedrock, Vertex AI and Azure. Clouds answer by the path
that they are asked at, as they do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import NamedTuple

import pytest

from dataplane.llm.chat import Answer, Failure, Stop
from dataplane.llm.deltas import Sum
from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.routes import Format
from tests.carriers import CARRIERS, Received, Response, Run
from tests.fakes import aws_frames
from tests.fakes import llm_talks as talks
from tests.fakes.llm_toys import of_backend, post

AWS = "policies: {auth: {aws: {secretRef: {accessKey: {value: AKID}, secretKey: {value: secret}}}}}"
KEY = "policies: {auth: {key: a-token}}"
AT = "host: 127.0.0.1, port: 9001"


class Transport(NamedTuple):
    """`credential`: what stands in its requests, in which header."""

    provider: str
    auth: str
    credential: tuple[str, str]


SIGNED = ("authorization", "AWS4-HMAC-SHA256 Credential=AKID/")
BEARER = ("authorization", "Bearer a-token")
AZURE_KEY = ("api-key", "a-token")
TRANSPORTS = {
    "Bedrock Nova": Transport("bedrock: {model: 'amazon.nova-pro-v1:0'}", AWS, SIGNED),
    "Bedrock Claude": Transport("bedrock: {model: 'us.anthropic.claude-3-7-sonnet-20250219-v1:0'}", AWS, SIGNED),
    "Vertex Gemini": Transport("vertexai: {projectId: p, model: gemini-3-pro}", KEY, BEARER),
    "Vertex Claude": Transport("vertexai: {projectId: p, model: claude-3-7-sonnet@20250219}", KEY, BEARER),
    "Vertex others": Transport("vertexai: {projectId: p, model: meta/llama-4}", KEY, BEARER),
    "Azure": Transport("azure: {resourceName: r, resourceType: OpenAI, model: dep}", KEY, AZURE_KEY),
    "Foundry": Transport(
        "azure: {resourceName: r, resourceType: Foundry, projectName: p, model: claude}", KEY, AZURE_KEY
    ),
}
APIS = {
    r"/converse(-stream)?$": Format.CONVERSE,
    r"/invoke(-with-response-stream)?$": Format.MESSAGES,
    r":(streamG|g)enerateContent(\?alt=sse)?$": Format.GENERATE_CONTENT,
    r":(streamR|r)awPredict$": Format.MESSAGES,
    r"/chat/completions$": Format.COMPLETIONS,
    r"/responses$": Format.RESPONSES,
    r"/anthropic/v1/messages$": Format.MESSAGES,
}
"""What is asked at a path."""
PATHS = {
    Format.COMPLETIONS: "/v1/chat/completions",
    Format.MESSAGES: "/v1/messages",
    Format.RESPONSES: "/v1/responses",
}
FRAMED = (("content-type", "application/vnd.amazon.eventstream"),)
CELLS = [(scenario, client, name) for name in TRANSPORTS for client in CLIENTS for scenario in talks.SCENARIOS]
ASKED = {
    "Bedrock Nova": (Format.CONVERSE,),
    "Bedrock Claude": (Format.CONVERSE, Format.MESSAGES),
    "Vertex Gemini": (Format.GENERATE_CONTENT,),
    "Vertex Claude": (Format.MESSAGES,),
    "Vertex others": (Format.COMPLETIONS,),
    "Azure": (Format.COMPLETIONS, Format.RESPONSES),
    "Foundry": (Format.COMPLETIONS, Format.RESPONSES, Format.MESSAGES),
}
"""In which APIs: the client's own where the model has it, else the first."""


def api_of(received: Received) -> Format:
    (found,) = [api for end, api in APIS.items() if re.search(end, received.target)]
    return found


class Cloud:
    """It answers what is said in a scenario, in the API that it is asked in. `asked`: which that was."""

    def __init__(self, scenario: str, is_stream: bool) -> None:
        self.scenario, self.is_stream = scenario, is_stream
        self.asked: list[Format] = []

    def __call__(self, received: Received) -> Response:
        api = api_of(received)
        self.asked.append(api)
        if self.scenario == "error":
            return answer_of(talks.ERRORS[api], 429)
        saying = talks.SAID[self.scenario]
        if not self.is_stream:
            return answer_of(talks.ANSWERS[api](saying))
        data = talks.STREAMS[api](saying)
        if api is Format.CONVERSE:
            return Response(headers=FRAMED, body=[data])
        if "/invoke-with" in received.target:
            events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
            return Response(headers=FRAMED, body=[aws_frames.chunk(each) for each in events])
        return Response(headers=(("content-type", "text/event-stream"),), body=[data])


def answer_of(value: object, status: int = 200) -> Response:
    return Response(status, headers=(("content-type", "application/json"),), body=json.dumps(value).encode())


def proxy(name: str) -> Run:
    provider, auth, _ = TRANSPORTS[name]
    return CARRIERS["http1"].shared(of_backend(f"groups: [{{providers: [{{name: c, {provider}, {AT}, {auth}}}]}}]"))


def said(client: Format, body: bytes) -> Answer:
    """What a stream of the client's API says."""
    reader, read = PROVIDERS[client].reader(), Sum()
    read.add([*reader.feed(body), *reader.end()])
    assert read.failed is None, read.failed
    return read.answer()


def test_the_cells_are_counted() -> None:
    """All of them apply: no scenario has something that a cloud cannot carry."""
    assert len(CELLS) == 231
    assert set(ASKED) == set(TRANSPORTS) and set(PATHS) == set(CLIENTS)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_client_reaches_a_cloud(name: str, client: Format) -> None:
    run, (_, _, (header, value)) = proxy(name), TRANSPORTS[name]
    for scenario in talks.SCENARIOS:
        body = talks.REQUESTS[scenario][client]
        whole = run.carry(post(PATHS[client], body), cloud := Cloud(scenario, False))
        (received,) = whole.reached
        assert received.headers[header].startswith(value), (scenario, received.headers)
        assert cloud.asked == [client if client in ASKED[name] else ASKED[name][0]]
        if scenario == "error":
            assert whole.answer.status == 429
            failure = PROVIDERS[client].read_error(429, whole.answer.body)
            assert failure == Failure(429, "no more", "rate_limit_error"), cloud.asked
            continue
        assert whole.answer.status == 200, (scenario, whole.answer.body)
        answer = PROVIDERS[client].read_answer(whole.answer.body)
        assert answer.usage.output_tokens == 7 and answer.usage.input_tokens == 10, scenario
        stops = {"end": Stop.END, "tools": Stop.TOOLS, "length": Stop.MAX_TOKENS, "refusal": Stop.REFUSAL}
        assert answer.stop is stops[talks.SAID[scenario].stop], scenario
        more = {"stream_options": {"include_usage": True}} if client is Format.COMPLETIONS else {}
        asked = post(PATHS[client], {**body, "stream": True, **more})
        stream = run.carry(asked, Cloud(scenario, True))
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert replace(said(client, stream.answer.body), id="") == replace(answer, id=""), scenario
