"""Requests that are no conversations, to providers of clouds whose API for them is another one: embeddings, rankings,
counts of tokens."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from tests.carriers import Carrier, Response
from tests.fakes.llm_toys import CHAT, as_json, error, post, sent
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
