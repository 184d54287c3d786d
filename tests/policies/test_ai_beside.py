"""Requests that are no conversations, to providers whose API for them is another one: embeddings, rankings, counts of
tokens."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from tests.carriers import Carrier, Response
from tests.fakes.llm_toys import CHAT, as_json, error, of_backend, post, sent
from tests.fakes.memory_proxy import MemoryProxy
from tests.policies.test_ai_clouds import ABOVE, CLAUDE, bedrock, vertex

COUNTED = (("content-type", "application/json"), ("x-amzn-bedrock-input-token-count", "7"))
TITAN, NOVA = "amazon.titan-embed-text-v2:0", "amazon.nova-2-multimodal-embeddings-v1:0"
COHERE, COHERE_4 = "cohere.embed-multilingual-v3", "eu.cohere.embed-v4:0"
NOVA_SENT = {
    "schemaVersion": "nova-multimodal-embed-v1",
    "taskType": "SINGLE_EMBEDDING",
    "singleEmbeddingParams": {
        "embeddingPurpose": "GENERIC_INDEX",
        "text": {"truncationMode": "NONE", "value": "one"},
        "embeddingDimension": 256,
    },
}
COHERE_SENT = {"texts": ["one"], "input_type": "search_document", "embedding_types": ["float"], "output_dimension": 256}
VECTOR = [0.5, 0.25]
BEDROCK: dict[str, tuple[Any, Any]] = {
    TITAN: ({"inputText": "one", "dimensions": 256}, {"embedding": VECTOR, "inputTextTokenCount": 7}),
    NOVA: (NOVA_SENT, {"embeddings": [{"embeddingType": "TEXT", "embedding": VECTOR}]}),
    COHERE: (COHERE_SENT, {"embeddings": [VECTOR], "texts": ["one"]}),
    COHERE_4: (COHERE_SENT, {"embeddings": {"float": [VECTOR]}}),
}


@pytest.mark.parametrize("model", BEDROCK)
@pytest.mark.parametrize("form", ["float", "base64"])
def test_embeddings_reach_models_of_bedrock_in_their_own_shape(model: str, form: str, carrier: Carrier) -> None:
    body = {"model": model, "input": "one", "dimensions": 256, "encoding_format": form}
    wanted, answer = BEDROCK[model]
    carried = carrier.proxy(bedrock()).carry(
        post("/v1/embeddings", body), Response(headers=COUNTED, body=json.dumps(answer).encode())
    )
    (received,) = carried.reached
    assert received.target == f"/model/{model.replace(':', '%3A')}/invoke"
    assert sent(carried) == wanted
    found = json.loads(carried.answer.body)
    vector = found["data"][0]["embedding"]
    if form == "base64":
        vector = [*struct.unpack("<2f", base64.b64decode(vector))]
    assert (vector, found["data"][0]["index"], found["model"]) == (VECTOR, 0, model)
    assert found["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert "gen_ai.usage.input_tokens=7" in carried.line


def test_several_texts_are_embedded_where_the_model_takes_them(carrier: Carrier) -> None:
    run = carrier.proxy(bedrock())
    body = {"model": COHERE, "input": ["one", "two"]}
    carried = run.carry(post("/v1/embeddings", body), as_json({"embeddings": [VECTOR, [1, 2]]}))
    assert sent(carried)["texts"] == ["one", "two"]
    assert [each["embedding"] for each in json.loads(carried.answer.body)["data"]] == [VECTOR, [1, 2]]
    refused = run.carry(post("/v1/embeddings", {**body, "model": TITAN}))
    assert (refused.answer.status, refused.reached) == (400, ())
    assert error(refused.answer)["error"]["param"] == "input"


@pytest.mark.parametrize(
    ("field", "value"),
    [("input", [1, 2]), ("input", []), ("input", {}), ("dimensions", "x"), ("encoding_format", "hex"), ("later", 1)],
)
def test_what_embeddings_of_another_shape_cannot_say_is_refused(field: str, value: Any, carrier: Carrier) -> None:
    carried = carrier.proxy(bedrock()).carry(post("/v1/embeddings", {"model": COHERE, "input": "one", field: value}))
    assert (carried.answer.status, carried.reached) == (400, ())
    assert error(carried.answer)["error"]["param"] == field


@pytest.mark.parametrize(
    "answer", [b"{", b"[]", b'{"embeddings": {}}', b'{"embeddings": [[1, "x"]]}', b'{"embeddings": 1}']
)
def test_an_answer_that_is_none_of_its_shape_is_an_error(answer: bytes, carrier: Carrier) -> None:
    body = {"model": COHERE, "input": "one", "encoding_format": "base64"}
    carried = carrier.proxy(bedrock()).carry(post("/v1/embeddings", body), Response(headers=COUNTED, body=answer))
    assert carried.answer.status == 502
    assert error(carried.answer)["error"]["message"]


def test_embeddings_reach_vertex_as_predictions(carrier: Carrier) -> None:
    made = {
        "predictions": [{"embeddings": {"values": VECTOR, "statistics": {"token_count": 3, "truncated": False}}}] * 2
    }
    body = {"model": "text-embedding-005", "input": ["one", "two"], "dimensions": 2}
    carried = carrier.proxy(vertex("region: europe-west4")).carry(post("/v1/embeddings", body), as_json(made))
    (received,) = carried.reached
    assert received.target == f"{ABOVE}/publishers/google/models/text-embedding-005:predict"
    assert sent(carried) == {
        "instances": [{"content": "one"}, {"content": "two"}],
        "parameters": {"outputDimensionality": 2},
    }
    found = json.loads(carried.answer.body)
    assert [each["embedding"] for each in found["data"]] == [VECTOR, VECTOR]
    assert found["usage"]["total_tokens"] == 6


@pytest.mark.parametrize(("model", "more"), [("cohere.rerank-v3-5:0", {"api_version": 2}), ("amazon.rerank-v1:0", {})])
def test_rankings_reach_models_of_bedrock(model: str, more: dict[str, int], carrier: Carrier) -> None:
    body = {"query": "q", "documents": ["a", "b"], "top_n": 1}
    answer = {"results": [{"index": 1, "relevance_score": 0.9}]}
    run = carrier.proxy(bedrock())
    carried = run.carry(post("/v2/rerank", {**body, "model": model}), as_json(answer))
    (received,) = carried.reached
    assert received.target == f"/model/{model.replace(':', '%3A')}/invoke"
    assert sent(carried) == {**body, **more}
    assert json.loads(carried.answer.body)["results"] == answer["results"]
    refused = run.carry(post("/v2/rerank", {**body, "model": model, "max_tokens_per_doc": 5}))
    assert refused.answer.status == 400 and "max_tokens_per_doc" in error(refused.answer)["message"]


def test_tokens_are_counted_by_bedrock_for_claude(carrier: Carrier) -> None:
    run = carrier.proxy(bedrock())
    asked = post("/v1/messages/count_tokens", {**CHAT, "model": CLAUDE}, ("anthropic-beta", "context-1m-2025-08-07"))
    carried = run.carry(asked, as_json({"inputTokens": 11}))
    (received,) = carried.reached
    assert received.target == "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens"
    assert json.loads(base64.b64decode(sent(carried)["input"]["invokeModel"]["body"])) == {
        "messages": CHAT["messages"],
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07"],
        "max_tokens": 1,
    }
    assert json.loads(carried.answer.body) == {"input_tokens": 11}


def test_an_error_of_counting_comes_in_the_shape_of_messages(carrier: Carrier) -> None:
    run = carrier.proxy(bedrock())
    asked = post("/v1/messages/count_tokens", {**CHAT, "model": CLAUDE})
    carried = run.carry(asked, as_json({"message": "not allowed"}, 403))
    assert carried.answer.status == 403
    assert error(carried.answer)["error"] == {"type": "permission_error", "message": "not allowed"}


def test_tokens_of_other_models_are_estimated(carrier: Carrier) -> None:
    asked = post("/v1/messages/count_tokens", {**CHAT, "model": "amazon.nova-pro-v1:0"})
    carried = carrier.proxy(bedrock()).carry(asked)
    assert (carried.answer.status, carried.reached) == (200, ())
    assert json.loads(carried.answer.body)["input_tokens"] > 0


# --- left out, where all of it is


@pytest.mark.parametrize("provider", ["bedrock", "vertex"])
def test_what_embeddings_cannot_say_is_left_out_where_the_policy_says_so(provider: str, carrier: Carrier) -> None:
    made, model, answer = {
        "bedrock": (bedrock, COHERE, {"embeddings": [VECTOR]}),
        "vertex": (vertex, "text-embedding-005", {"predictions": [{"embeddings": {"values": VECTOR}}]}),
    }[provider]
    body = {"model": model, "input": "one", "later": 1, "user": "u1"}
    carried = carrier.proxy(made("", "unsupportedFields: Drop")).carry(post("/v1/embeddings", body), as_json(answer))
    assert carried.answer.status == 200 and "later" not in sent(carried)
    assert "llm.dropped=later,user" in carried.line


def test_the_end_user_of_embeddings_is_left_out_and_said_so(carrier: Carrier) -> None:
    body = {"model": COHERE, "input": "one", "user": "u1"}
    carried = carrier.proxy(bedrock()).carry(post("/v1/embeddings", body), as_json({"embeddings": [VECTOR]}))
    assert "user" not in sent(carried) and "llm.dropped=user" in carried.line


# --- Google's ranking API

RANKER = "model: semantic-ranker-default-004"
RANKED = {"query": "q", "documents": ["a", "b"], "top_n": 1, "model": "any"}


def test_rankings_reach_google_s_ranking_api(carrier: Carrier) -> None:
    carried = carrier.proxy(vertex(RANKER)).carry(
        post("/v2/rerank", RANKED), as_json({"records": [{"id": "1", "score": 0.9}, {"id": "0"}]})
    )
    (received,) = carried.reached
    assert received.target == "/v1/projects/my-project/locations/global/rankingConfigs/default_ranking_config:rank"
    assert sent(carried) == {
        "model": "semantic-ranker-default-004",
        "query": "q",
        "records": [{"id": "0", "content": "a"}, {"id": "1", "content": "b"}],
        "topN": 1,
        "ignoreRecordDetailsInResponse": True,
    }
    assert json.loads(carried.answer.body)["results"] == [
        {"index": 1, "relevance_score": 0.9},
        {"index": 0, "relevance_score": 0.0},
    ]


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "discoveryengine.googleapis.com"),
        ("us", "us-discoveryengine.googleapis.com"),
        ("eu", "eu-discoveryengine.googleapis.com"),
    ],
)
def test_a_model_that_ranks_has_another_host(region: str, host: str) -> None:
    text = of_backend(f"provider: {{vertexai: {{projectId: p, region: {region}, {RANKER}}}}}")
    plans = MemoryProxy(text, environment={}).applier.current.table.backends.values()
    assert {plan.host for plan in plans if plan.host} == {host.encode()}


@pytest.mark.parametrize(("settings", "path"), [("", "/v2/rerank"), (RANKER, "/v1/chat/completions")])
def test_a_provider_of_vertex_ranks_or_converses(settings: str, path: str, carrier: Carrier) -> None:
    body = {**RANKED, **CHAT, "model": "semantic-ranker-default-004"}
    carried = carrier.proxy(vertex(settings)).carry(post(path, body))
    assert (carried.answer.status, carried.reached) == (400, ())
    assert "does not speak" in carried.answer.body.decode()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"records": 1},
        {"records": [{"id": "2", "score": 1}]},
        {"records": [{"id": 0, "score": 1}]},
        {"records": [{"id": ["0"]}]},
    ],
)
def test_an_answer_that_ranks_something_else_is_an_error(answer: Any, carrier: Carrier) -> None:
    carried = carrier.proxy(vertex(RANKER)).carry(post("/v2/rerank", RANKED), as_json(answer))
    assert carried.answer.status == 502


@pytest.mark.parametrize(
    ("field", "value"), [("query", None), ("query", 1), ("documents", "a"), ("documents", [{}]), ("top_n", "1")]
)
@pytest.mark.parametrize("provider", ["bedrock", "vertex"])
def test_a_ranking_that_is_none_is_refused(provider: str, field: str, value: Any, carrier: Carrier) -> None:
    run = carrier.proxy(vertex(RANKER) if provider == "vertex" else bedrock())
    carried = run.carry(post("/v2/rerank", {**RANKED, "model": "cohere.rerank-v3-5:0", field: value}))
    assert (carried.answer.status, carried.reached) == (400, ())
    assert field in error(carried.answer)["message"]


# --- tokens as Gemini counts them

GEMINI = of_backend("provider: {gemini: {}, host: 127.0.0.1, port: 9001}}, policies: {auth: {key: ours}")
ASKED = {
    "model": "gemini-3",
    "system": "be brief",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
}
COUNTED_REQUEST = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "systemInstruction": {"parts": [{"text": "be brief"}]},
    "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
}
OWN = (("x-api-key", "sk-ant-mine"), ("anthropic-beta", "b1"), ("anthropic-version", "2023-06-01"))


@pytest.mark.parametrize("model", ["gemini-3", "models/gemini-3"])
def test_tokens_are_counted_by_gemini(model: str, carrier: Carrier) -> None:
    asked = post("/v1/messages/count_tokens", {**ASKED, "model": model}, *OWN)
    carried = carrier.proxy(GEMINI).carry(asked, as_json({"totalTokens": 11}))
    (received,) = carried.reached
    assert received.target == "/v1beta/models/gemini-3:countTokens"
    assert sent(carried) == {
        "generateContentRequest": {
            "model": "models/gemini-3",
            **COUNTED_REQUEST,
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        }
    }
    assert received.headers["x-goog-api-key"] == "ours"
    assert not [name for name in received.headers if name.startswith("anthropic-") or name == "x-api-key"]
    assert json.loads(carried.answer.body) == {"input_tokens": 11}
    assert "llm.usage_estimated" not in carried.line


def test_tokens_are_counted_by_gemini_on_vertex(carrier: Carrier) -> None:
    carried = carrier.proxy(vertex()).carry(
        post("/v1/messages/count_tokens", ASKED, *OWN), as_json({"totalTokens": 11, "totalBillableCharacters": 9})
    )
    (received,) = carried.reached
    assert received.target.endswith("/locations/global/publishers/google/models/gemini-3:countTokens")
    assert sent(carried) == COUNTED_REQUEST
    assert not [name for name in received.headers if name.startswith("anthropic-") or name == "x-api-key"]
    assert json.loads(carried.answer.body) == {"input_tokens": 11}


def test_what_gemini_cannot_be_asked_to_count_is_estimated(carrier: Carrier) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://a.example/i.png"}}
    body = {**ASKED, "messages": [{"role": "user", "content": [image]}]}
    carried = carrier.proxy(GEMINI).carry(post("/v1/messages/count_tokens", body))
    assert (carried.answer.status, carried.reached) == (200, ())
    assert json.loads(carried.answer.body)["input_tokens"] > 1000
    assert "llm.usage_estimated=true" in carried.line


@pytest.mark.parametrize("answer", [{}, {"totalTokens": "11"}, {"totalTokens": True}, []])
def test_an_answer_without_a_number_of_tokens_is_an_error(answer: Any, carrier: Carrier) -> None:
    carried = carrier.proxy(GEMINI).carry(post("/v1/messages/count_tokens", ASKED), as_json(answer))
    assert carried.answer.status == 502


def test_an_error_of_gemini_s_counting_comes_in_the_shape_of_messages(carrier: Carrier) -> None:
    google = {"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}}
    carried = carrier.proxy(GEMINI).carry(post("/v1/messages/count_tokens", ASKED), as_json(google, 404))
    assert carried.answer.status == 404
    assert error(carried.answer)["error"] == {"type": "not_found_error", "message": "no such model"}
