"""LLM providers of clouds: where each model is asked, in which API, with which credentials; what comes back of
streams in binary frames, of errors, and of what breaks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.carriers import Carrier, Request, Response
from tests.fakes import aws_frames
from tests.fakes.llm_toys import CHAT, CHATTED, as_json, error, of_backend, post, sent
from tests.fakes.memory_proxy import MemoryProxy
from tests.policies.test_ai_translation import ANSWER_OF_MESSAGES, AS_MESSAGES, MESSAGE_EVENTS

AWS = "policies: {auth: {aws: {secretRef: {accessKey: {value: AKID}, secretKey: {value: secret}}}}}"
KEY = "policies: {auth: {key: a-token}}"
AT = "host: 127.0.0.1, port: 9001"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=AKID/\d{8}/(\S+)/(\S+)/aws4_request, SignedHeaders=(\S+), Signature=")
FRAMES = (("content-type", "application/vnd.amazon.eventstream"),)


def bedrock(settings: str = "", policy: str = "") -> str:
    return of_backend(f"groups: [{{providers: [{{name: b, bedrock: {{{settings}}}, {AT}, {AWS}}}]}}]", policy)


def vertex(settings: str = "", policy: str = "") -> str:
    made = f"projectId: my-project{settings and ', ' + settings}"
    return of_backend(f"groups: [{{providers: [{{name: v, vertexai: {{{made}}}, {AT}, {KEY}}}]}}]", policy)


CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "ho"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
    "metrics": {"latencyMs": 1},
}


# --- Bedrock: where


@pytest.mark.parametrize("model", [NOVA, CLAUDE, PROFILE])
def test_completions_reach_bedrock_by_converse(model: str, carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock("region: eu-west-1")).carry(
        post("/v1/chat/completions", {**CHAT, "model": model}), as_json(CONVERSED)
    )
    (received,) = carried.reached
    escaped = model.replace(":", "%3A").replace("/", "%2F")
    assert received.target == f"/model/{escaped}/converse"
    assert sent(carried)["messages"] == [{"role": "user", "content": [{"text": "hi"}]}]
    assert "model" not in sent(carried)
    match = SIGNED.match(received.headers["authorization"])
    assert match is not None and match.groups()[:2] == ("eu-west-1", "bedrock")
    answer = json.loads(carried.answer.body)
    assert (answer["choices"][0]["message"]["content"], answer["usage"]["total_tokens"]) == ("ho", 13)


def test_a_model_of_the_provider_is_asked_in_place_of_the_request_s(carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock(f"model: '{NOVA}'")).carry(post("/v1/chat/completions", CHAT), as_json(CONVERSED))
    (received,) = carried.reached
    assert received.target == "/model/amazon.nova-pro-v1%3A0/converse"
    match = SIGNED.match(received.headers["authorization"])
    assert match is not None and match[1] == "us-east-1"


def test_a_provider_has_the_host_of_its_region() -> None:
    text = of_backend("provider: {bedrock: {region: eu-central-1}}")
    plans = MemoryProxy(text, environment={}).applier.current.table.backends.values()
    (host,) = {plan.host for plan in plans if plan.host}
    assert host == b"bedrock-runtime.eu-central-1.amazonaws.com"


def test_the_guardrail_of_the_provider_is_in_each_request_of_converse(carrier: Carrier) -> None:
    run = carrier.proxy(bedrock("guardrail: {identifier: gr1, version: '3'}"))
    carried = run.carry(post("/v1/chat/completions", {**CHAT, "model": NOVA}), as_json(CONVERSED))
    assert sent(carried)["guardrailConfig"] == {"guardrailIdentifier": "gr1", "guardrailVersion": "3"}


# --- Bedrock: Messages natively


def test_messages_reach_claude_natively(carrier: Carrier) -> None:
    body = {**AS_MESSAGES, "model": CLAUDE, "later": {"a": 1}}
    betas = ("anthropic-beta", "context-1m-2025-08-07, claude-code-20250219")
    carried = carrier.proxy(bedrock("guardrail: {identifier: gr1, version: '3'}")).carry(
        post("/v1/messages?beta=true", body, betas, ("x-amzn-bedrock-guardrailidentifier", "mine")),
        as_json(ANSWER_OF_MESSAGES),
    )
    (received,) = carried.reached
    assert received.target == f"/model/{CLAUDE.replace(':', '%3A')}/invoke"
    wanted = {name: value for name, value in body.items() if name != "model"}
    assert sent(carried) == {
        **wanted,
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07"],
    }
    headers = received.headers
    assert "anthropic-beta" not in headers
    assert headers["x-amzn-bedrock-guardrailidentifier"] == "gr1"
    assert json.loads(carried.answer.body) == ANSWER_OF_MESSAGES
    assert "llm.dropped=anthropic-beta:claude-code-20250219" in carried.line.replace('"', "")


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_of_claude_comes_out_of_its_frames(size: int, carrier: Carrier) -> None:
    whole = b"".join(map(aws_frames.chunk, MESSAGE_EVENTS))
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/messages", {**AS_MESSAGES, "model": CLAUDE, "stream": True}), Response(headers=FRAMES, body=parts)
    )
    (received,) = carried.reached
    assert received.target.endswith("/invoke-with-response-stream") and "stream" not in sent(carried)
    assert carried.answer.headers["content-type"].startswith("text/event-stream")
    assert events(carried.answer.body) == [*MESSAGE_EVENTS]
    assert carried.answer.body.startswith(b"event: message_start\ndata: {")
    assert "gen_ai.usage.output_tokens=7" in carried.line


def events(body: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


WHOLE = b"".join(map(aws_frames.chunk, MESSAGE_EVENTS[:8]))
BROKEN = {
    "a wrong checksum": WHOLE + aws_frames.chunk(MESSAGE_EVENTS[8])[:-1] + b"\x00",
    "a frame that is cut": WHOLE + aws_frames.chunk(MESSAGE_EVENTS[8])[:-9],
    "an exception": WHOLE + aws_frames.exception("throttlingException", "too many tokens"),
    "an event that is none": WHOLE + aws_frames.event("chunk", {"bytes": "%%%"}),
    "an end too early": WHOLE,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("size", [11, 100_000])
def test_a_stream_of_claude_that_breaks_ends_with_an_error(body: bytes, size: int, carrier: Carrier) -> None:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/messages", {**AS_MESSAGES, "model": CLAUDE, "stream": True}), Response(headers=FRAMES, body=parts)
    )
    found = events(carried.answer.body)
    assert found[:-1] == [*MESSAGE_EVENTS[:8]]
    assert found[-1]["type"] == "error" and found[-1]["error"]["message"]
    assert b"message_stop" not in carried.answer.body


def test_an_exception_in_a_stream_says_what_is_wrong(carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/messages", {**AS_MESSAGES, "model": CLAUDE, "stream": True}),
        Response(headers=FRAMES, body=[BROKEN["an exception"]]),
    )
    assert events(carried.answer.body)[-1]["error"] == {"type": "rate_limit_error", "message": "too many tokens"}


def test_errors_of_bedrock_come_in_the_shape_of_the_client_s_api(carrier: Carrier) -> None:
    answer = as_json({"message": "The model is not ready."}, 424)
    run = carrier.proxy(bedrock())
    carried = run.carry(post("/v1/messages", {**AS_MESSAGES, "model": CLAUDE}), answer)
    assert (carried.answer.status, error(carried.answer)) == (
        424,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "The model is not ready."}},
    )
    carried = run.carry(post("/v1/chat/completions", {**CHAT, "model": CLAUDE}), answer)
    assert error(carried.answer)["error"]["message"] == "The model is not ready."


def test_messages_reach_other_models_by_converse(carrier: Carrier) -> None:
    body = {**CHAT, "model": NOVA, "max_tokens": 5}
    carried = carrier.proxy(bedrock()).carry(post("/v1/messages", body), as_json(CONVERSED))
    (received,) = carried.reached
    assert received.target.endswith("/converse")
    assert json.loads(carried.answer.body)["content"][0]["text"] == "ho"


CONVERSE_STREAM = (
    aws_frames.event("messageStart", {"role": "assistant"})
    + aws_frames.event("contentBlockDelta", {"delta": {"text": "ho"}, "contentBlockIndex": 0})
    + aws_frames.event("contentBlockStop", {"contentBlockIndex": 0})
    + aws_frames.event("messageStop", {"stopReason": "end_turn"})
    + aws_frames.event("metadata", {"usage": CONVERSED["usage"], "metrics": {"latencyMs": 1}})
)


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_of_converse_comes_as_completions(size: int, carrier: Carrier) -> None:
    parts = [CONVERSE_STREAM[at : at + size] for at in range(0, len(CONVERSE_STREAM), size)]
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/chat/completions", {**CHAT, "model": NOVA, "stream": True}), Response(headers=FRAMES, body=parts)
    )
    (received,) = carried.reached
    assert received.target.endswith("/converse-stream")
    assert b'"content":"ho"' in carried.answer.body and carried.answer.body.endswith(b"data: [DONE]\n\n")


def test_an_api_that_a_model_of_bedrock_does_not_have_is_refused(carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock()).carry(post("/v2/rerank", {"model": "m", "query": "q", "documents": ["d"]}))
    assert (carried.answer.status, carried.reached) == (400, ())


# --- credentials


def test_bedrock_is_asked_with_the_ambient_credentials_where_no_policy_has_some() -> None:
    proxy = MemoryProxy(
        of_backend(f"provider: {{bedrock: {{region: eu-west-1}}, {AT}}}"),
        environment={"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"},
    )
    client = proxy.connect()
    body = json.dumps({**CHAT, "model": NOVA}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer mine\r\n"
    client.send(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    received = proxy.connector.upstream.received
    assert b"Credential=AKID/" in received and b"/eu-west-1/bedrock/aws4_request" in received
    assert b"Bearer mine" not in received


# --- Vertex AI


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ("", "aiplatform.googleapis.com"),
        ("region: global", "aiplatform.googleapis.com"),
        ("region: eu", "aiplatform.eu.rep.googleapis.com"),
        ("region: europe-west4", "europe-west4-aiplatform.googleapis.com"),
    ],
)
def test_vertex_has_the_host_of_its_region(settings: str, host: str) -> None:
    text = of_backend(f"provider: {{vertexai: {{projectId: p{settings and ', ' + settings}}}}}")
    plans = MemoryProxy(text, environment={}).applier.current.table.backends.values()
    assert {plan.host for plan in plans if plan.host} == {host.encode()}


def test_vertex_is_asked_with_the_ambient_credentials_where_no_policy_has_some() -> None:
    text = of_backend("provider: {vertexai: {projectId: p}}")
    plans = MemoryProxy(text, environment={}).applier.current.table.backends.values()
    (finishers,) = (plan.finishers for plan in plans if plan.host)
    assert repr(finishers) == "(Presented(Token(Google Cloud)),)"


GENERATED = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "ho"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
    "modelVersion": "gemini-3",
}
ABOVE = "/v1/projects/my-project/locations/europe-west4"


@pytest.mark.parametrize("model", ["gemini-3-pro", "google/gemini-3-pro"])
def test_gemini_is_asked_by_its_own_api(model: str, carrier: Carrier) -> None:
    run = carrier.proxy(vertex("region: europe-west4"))
    carried = run.carry(post("/v1/chat/completions", {**CHAT, "model": model}), as_json(GENERATED))
    (received,) = carried.reached
    assert received.target == f"{ABOVE}/publishers/google/models/gemini-3-pro:generateContent"
    assert sent(carried)["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert received.headers["authorization"] == "Bearer a-token"
    assert json.loads(carried.answer.body)["choices"][0]["message"]["content"] == "ho"


def test_claude_is_asked_by_its_own_api(carrier: Carrier) -> None:
    run = carrier.proxy(vertex("region: europe-west4"))
    body = {**AS_MESSAGES, "model": "claude-sonnet-4-5-20250929"}
    carried = run.carry(post("/v1/messages", body, ("anthropic-beta", "b1")), as_json(ANSWER_OF_MESSAGES))
    (received,) = carried.reached
    assert received.target == f"{ABOVE}/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"
    wanted = {name: value for name, value in body.items() if name != "model"}
    assert sent(carried) == {**wanted, "anthropic_version": "vertex-2023-10-16"}
    assert received.headers["anthropic-beta"] == "b1"
    assert json.loads(carried.answer.body) == ANSWER_OF_MESSAGES


def test_completions_are_translated_for_claude_on_vertex(carrier: Carrier) -> None:
    run = carrier.proxy(vertex("model: claude-opus-4-1@20250805"))
    carried = run.carry(post("/v1/chat/completions", CHAT), as_json(ANSWER_OF_MESSAGES))
    (received,) = carried.reached
    assert received.target.endswith("/locations/global/publishers/anthropic/models/claude-opus-4-1@20250805:rawPredict")
    found = sent(carried)
    assert found["anthropic_version"] == "vertex-2023-10-16" and "model" not in found


def test_models_of_others_are_asked_by_the_endpoint_for_openai_s_clients(carrier: Carrier) -> None:
    run = carrier.proxy(vertex())
    body = {**CHAT, "model": "meta/llama-4"}
    carried = run.carry(post("/v1/chat/completions", body), as_json(CHATTED))
    (received,) = carried.reached
    assert received.target == "/v1/projects/my-project/locations/global/endpoints/openapi/chat/completions"
    assert sent(carried) == body


def test_tokens_are_counted_by_vertex_for_claude(carrier: Carrier) -> None:
    run = carrier.proxy(vertex())
    body = {**CHAT, "model": "claude-sonnet-4-5-20250929"}
    carried = run.carry(post("/v1/messages/count_tokens", body), as_json({"input_tokens": 5}))
    (received,) = carried.reached
    assert received.target.endswith("/publishers/anthropic/models/count-tokens:rawPredict")
    assert sent(carried)["model"] == "claude-sonnet-4-5@20250929"
    assert json.loads(carried.answer.body) == {"input_tokens": 5}


def test_errors_of_google_come_in_the_shape_of_messages_and_anthropic_s_own_pass(carrier: Carrier) -> None:
    run = carrier.proxy(vertex())
    body = {**AS_MESSAGES, "model": "claude-x"}
    google = [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}]
    carried = run.carry(post("/v1/messages", body), as_json(google, 429))
    assert error(carried.answer) == {"type": "error", "error": {"type": "rate_limit_error", "message": "quota"}}
    own = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    assert error(run.carry(post("/v1/messages", body), as_json(own, 529)).answer) == own


@pytest.mark.parametrize("path", ["/model/amazon.nova-pro-v1%3A0/converse", "/detect/v1/chat/completions"])
def test_what_passes_as_it_is_is_signed_when_it_is_complete(path: str, carrier: Carrier) -> None:
    signed = "AWS4-HMAC-SHA256 Credential=mine/20260101/us-west-2/bedrock/aws4_request, SignedHeaders=host, Signature=0"
    headers = (("authorization", signed), ("x-amz-date", "20260101T000000Z"), ("x-amz-security-token", "mine"))
    request = Request("POST", path, headers=headers, body=[b'{"messages":', b"[]}"])
    carried = carrier.proxy(bedrock("region: eu-west-1")).carry(request, Response(body=[b"\x00", b"\x01"]))
    (received,) = carried.reached
    match = SIGNED.match(received.headers["authorization"])
    assert match is not None and match.groups()[:2] == ("eu-west-1", "bedrock")
    assert (received.target, received.body, carried.answer.body) == (path, b'{"messages":[]}', b"\x00\x01")
    assert "x-amz-security-token" not in received.headers


@pytest.mark.parametrize("model", [".", ".."])
def test_a_model_that_would_be_another_path_is_refused(model: str, carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock()).carry(post("/v1/chat/completions", {**CHAT, "model": model}))
    assert (carried.answer.status, carried.reached) == (400, ())
    assert error(carried.answer)["error"]["param"] == "model"


DETECTED = {
    "/model/m/converse": CONVERSED,
    "/model/m/invoke": {"usage": {"input_tokens": 9, "output_tokens": 4}},
    "/v1/projects/p/locations/global/publishers/anthropic/models/m:rawPredict": {
        "usage": {"input_tokens": 9, "output_tokens": 4}
    },
    "/v1/projects/p/locations/global/publishers/google/models/m:generateContent": GENERATED,
}


@pytest.mark.parametrize("path", DETECTED)
def test_usage_of_clouds_is_detected_by_the_end_of_the_path(path: str, carrier: Carrier) -> None:
    config = bedrock().replace("'*': Passthrough", "'*': Detect")
    carried = carrier.proxy(config).carry(post(path, {}), as_json(DETECTED[path]))
    assert "gen_ai.usage.input_tokens=9" in carried.line and "gen_ai.usage.output_tokens=4" in carried.line
    assert json.loads(carried.answer.body) == DETECTED[path]
