"""LLM providers behind one backend (AIBackend, BackendAI): where requests go, what becomes of bodies and
answers, who may use which model, errors in the shape of the API that was called."""

from __future__ import annotations

import json
import re

import pytest

from dataplane.telemetry.metric import COUNT, SUM
from tests.carriers import Carrier, Request, Response
from tests.fakes.llm_toys import (
    CHAT,
    CHATTED,
    CUSTOM,
    DONE,
    EVENTS,
    EVICTS,
    GROUPS,
    LAST,
    ONLY,
    TOKEN,
    USAGE,
    as_json,
    chat,
    error,
    of_backend,
    post,
    sent,
    text,
)

# --- where requests go

PROVIDERS = {
    "openai: {}": "/v1/chat/completions",
    "openai: {}, pathPrefix: /api/v4": "/api/v4/chat/completions",
    "openai: {}, path: /all": "/all",
    "gemini: {}": "/v1beta/openai/chat/completions",
    "azureopenai: {endpoint: 'https://own.openai.azure.com'}": "/openai/v1/chat/completions",
    "azureopenai: {endpoint: e, apiVersion: '2024-10-21', deploymentName: dep}": (
        "/openai/deployments/dep/chat/completions?api-version=2024-10-21"
    ),
    "azure: {resourceName: r, resourceType: OpenAI}": "/openai/v1/chat/completions",
    "azure: {resourceName: r, resourceType: Foundry, projectName: p}": "/api/projects/p/openai/v1/chat/completions",
    "custom: {formats: [{type: Completions, path: /own}]}": "/own",
}


@pytest.mark.parametrize(("provider", "target"), PROVIDERS.items(), ids=str)
def test_a_request_goes_to_the_path_of_its_provider(provider: str, target: str, carrier: Carrier) -> None:
    carried = chat(carrier, config=text(f"{provider}, host: 127.0.0.1, port: 9001"))
    (received,) = carried.reached
    assert (received.target, received.authority, carried.answer.status) == (target, "127.0.0.1:9001", 200)


ONE = "127.0.0.1:9001"
FORMAT = re.compile(r"type: (\w+)")
PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": {**CHAT, "max_tokens": 5},
    "/v1/responses": {"model": "gpt", "input": "hi"},
    "/v1/embeddings": {"model": "e", "input": ["hi"]},
    "/v1/messages/count_tokens": CHAT,
    "/v2/rerank": {"model": "r", "query": "q", "documents": ["d"]},
}


@pytest.mark.parametrize(
    ("api", "path", "body"),
    [
        (api, *each)
        for api, each in zip(
            ("Completions", "Messages", "Responses", "Embeddings", "AnthropicTokenCount", "Rerank"),
            PATHS.items(),
            strict=True,
        )
    ],
)
def test_an_end_of_the_path_may_be_of_any_api(api: str, path: str, body: object, carrier: Carrier) -> None:
    """Formats of the provider have paths of their own, which tell what the request was taken for."""
    formats = ", ".join(f"{{type: {each.group(1)}, path: /as/{each.group(1)}}}" for each in FORMAT.finditer(CUSTOM))
    config = text(f"custom: {{formats: [{formats}]}}, host: 127.0.0.1, port: 9001").replace("'*'", f"/own: {api}, '*'")
    (received,) = carrier.proxy(config).carry(post("/team/own", body), as_json({})).reached
    assert received.target == f"/as/{api.removeprefix('Anthropic')}"


@pytest.mark.parametrize(("path", "body"), PATHS.items(), ids=str)
def test_bodies_and_answers_of_every_format_keep_their_bytes(path: str, body: object, carrier: Carrier) -> None:
    content = json.dumps({"later": 12345678901234567890, **body}, indent=1).encode()  # type: ignore[dict-item]
    answer = b'{"model": "m",  "other": [1e400, "\\u00e9"]}'
    carried = carrier.proxy(text()).carry(
        post(f"/team{path}", content), Response(headers=(("content-type", "application/json"),), body=answer)
    )
    (received,) = carried.reached
    assert (received.target, received.body, carried.answer.body) == (path, content, answer)


def test_what_passes_as_it_is_keeps_path_and_bytes_both_ways(carrier: Carrier) -> None:
    request = Request("PUT", "/v1/files/1?a=b", headers=(("accept-encoding", "gzip"),), body=[b"\x00no", b"json"])
    carried = carrier.proxy(text()).carry(request, Response(201, body=[b"\x01", b"\x02"]))
    (received,) = carried.reached
    assert (received.method, received.target, received.body) == ("PUT", "/v1/files/1?a=b", b"\x00nojson")
    assert received.headers["accept-encoding"] == "gzip"
    assert (carried.answer.status, carried.answer.body) == (201, b"\x01\x02")


@pytest.mark.parametrize(
    ("provider", "path", "names"),
    [
        ("anthropic: {}", "/v1/embeddings", "Messages"),
        ("custom: {formats: [{type: Rerank}]}", "/v1/chat/completions", "Rerank"),
        ("custom: {formats: [{type: Embeddings}]}", "/v1/messages/count_tokens", "Embeddings"),
    ],
)
def test_a_format_that_the_provider_lacks_is_refused_by_name(
    provider: str, path: str, names: str, carrier: Carrier
) -> None:
    run = carrier.proxy(text(f"{provider}, host: 127.0.0.1, port: 9001"))
    carried = run.carry(post(path, PATHS[path]))
    assert carried.answer.status == 400 and not carried.reached
    assert names in error(carried.answer)["error"]["message"]


# --- credentials


def test_headers_of_another_api_do_not_reach_a_provider(carrier: Carrier) -> None:
    secrets = (("authorization", "Bearer own"), ("x-api-key", "k"), ("cookie", "a=b"), ("anthropic-beta", "x"))
    run = carrier.proxy(text())
    (received,) = run.carry(post("/v1/chat/completions", CHAT, *secrets), as_json(CHATTED)).reached
    assert received.headers["authorization"] == "Bearer own"
    assert [name for name in ("x-api-key", "cookie", "anthropic-beta") if received.headers.get(name)] == []
    (received,) = run.carry(post("/v1/messages", CHAT, *secrets), as_json({})).reached
    assert (received.headers["x-api-key"], received.headers["anthropic-beta"]) == ("k", "x")
    assert received.headers["authorization"] == "Bearer own", "SDKs of Anthropic send keys there too"
    assert received.headers["anthropic-version"] == "2023-06-01"
    run = carrier.proxy(text("anthropic: {}, host: 127.0.0.1, port: 9001"))
    (received,) = run.carry(post("/v1/messages", CHAT, *secrets), as_json({})).reached
    assert (received.headers["x-api-key"], received.headers.get("authorization")) == ("k", None)


KEYS = {
    ("openai: {}", "/v1/chat/completions"): ("authorization", "Bearer ours"),
    ("anthropic: {}", "/v1/messages"): ("x-api-key", "ours"),
    ("azureopenai: {endpoint: e}", "/v1/chat/completions"): ("api-key", "ours"),
}


@pytest.mark.parametrize(("of", "found"), KEYS.items(), ids=str)
def test_a_key_of_the_backend_stands_where_its_provider_looks(
    of: tuple[str, str], found: tuple[str, str], carrier: Carrier
) -> None:
    provider = f"provider: {{{of[0]}, host: 127.0.0.1, port: 9001}}}}, policies: {{auth: {{key: ours}}"
    theirs = (("authorization", "Bearer theirs"), ("x-api-key", "theirs"), ("api-key", "theirs"))
    run = carrier.proxy(of_backend(provider))
    (received,) = run.carry(post(of[1], CHAT, *theirs), as_json({})).reached
    names = ("authorization", "x-api-key", "api-key")
    assert [(name, received.headers[name]) for name in names if received.headers.get(name)] == [found]


# --- bodies

BAD = {
    b"": "must be a JSON object",
    b"[1]": "must be a JSON object",
    b'{"messages":[]}': "model: must be set",
    b'{"model":3,"messages":[]}': "model: must be set",
    b'{"model":"a","model":"b"}': "model: stands in the body more than once",
    b'{"Model":"a","model":"b"}': "model: is written as Model",
}


@pytest.mark.parametrize(("body", "why"), BAD.items(), ids=str)
def test_a_bad_body_is_refused_and_says_why(body: bytes, why: str, carrier: Carrier) -> None:
    carried = chat(carrier, body)
    assert (carried.answer.status, carried.reached) == (400, ())
    found = error(carried.answer)["error"]
    assert why in found["message"] and found["type"] == "invalid_request_error"


def test_a_compressed_body_is_refused(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    assert run.carry(post("/v1/chat/completions", CHAT, ("content-encoding", "gzip"))).answer.status == 415


@pytest.mark.parametrize(
    ("request_", "said", "allowed"),
    [
        (Request("GET", "/v1/chat/completions"), "are Completions, which takes POST", "POST"),
        (Request("POST", "/v1/models", body=b"{}"), "are Models, which takes GET, HEAD", "GET, HEAD"),
    ],
)
def test_a_method_that_its_api_does_not_have_is_answered_with_those_that_it_has(
    request_: Request, said: str, allowed: str, carrier: Carrier
) -> None:
    answer = carrier.proxy(text()).carry(request_).answer
    assert (answer.status, answer.headers.all("allow")) == (405, [allowed])
    assert said in error(answer)["error"]["message"]


# --- lists of models


def test_models_lists_what_is_configured_and_allowed(carrier: Carrier) -> None:
    policy = f"{ONLY}, modelAliases: {{gpt-fast: x, slow: y}}"
    run = carrier.proxy(text("openai: {model: gpt-4o}, host: 127.0.0.1, port: 9001", policy))
    listed = json.loads(run.carry(Request("GET", "/v1/models")).answer.body)
    assert listed["object"] == "list"
    assert [each["id"] for each in listed["data"]] == ["gpt-4o", "gpt-fast"]


# --- usage


def test_usage_of_an_answer_is_in_log_and_response_steps(carrier: Carrier) -> None:
    steps = "{transformation: {response: {set: [{name: x-tokens, value: 'string(llm.totalTokens)'}]}}}"
    carried = chat(carrier, config=text(policies=steps))
    assert carried.answer.headers["x-tokens"] == "13"
    for field in (
        "gen_ai.operation.name=chat",
        "gen_ai.provider.name=custom",
        "gen_ai.request.model=gpt",
        "gen_ai.response.model=gpt-2024",
        "gen_ai.usage.input_tokens=9",
        "gen_ai.usage.output_tokens=4",
    ):
        assert field in carried.line


def test_usage_of_a_stream_is_asked_for_and_hidden_from_who_did_not_ask(carrier: Carrier) -> None:
    carried = chat(
        carrier, {**CHAT, "stream": True}, answer=Response(headers=EVENTS, body=[TOKEN, LAST + USAGE + DONE])
    )
    assert sent(carried)["stream_options"] == {"include_usage": True}
    assert carried.answer.body == TOKEN + LAST + DONE
    assert "gen_ai.usage.input_tokens=9" in carried.line


def test_who_asked_for_usage_gets_it(carrier: Carrier) -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True, "x": 1}}
    carried = chat(carrier, body, answer=Response(headers=EVENTS, body=[TOKEN + LAST + USAGE[:20], USAGE[20:] + DONE]))
    assert sent(carried) == body
    assert carried.answer.body == TOKEN + LAST + USAGE + DONE
    assert "gen_ai.usage.output_tokens=4" in carried.line


def test_detect_passes_bytes_and_fills_what_is_known(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    body = json.dumps({**CHAT, "stream": True}, indent=2).encode()
    carried = run.carry(
        post("/detect/v1/chat/completions", body), Response(headers=EVENTS, body=[TOKEN, LAST + USAGE + DONE])
    )
    (received,) = carried.reached
    assert (received.target, received.body) == ("/detect/v1/chat/completions", body)
    assert carried.answer.body == TOKEN + LAST + USAGE + DONE
    assert "gen_ai.request.model=gpt" in carried.line and "gen_ai.usage.input_tokens=9" in carried.line


PARAMS = "frontendPolicies: {accessLog: {add: {heat: 'llm.params.temperature', seed: 'llm.params.seed'}}}\n"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ('"temperature": 1, "seed": 3', "heat=1.0 seed=3"),
        (f'"temperature": {"9" * 400}, "seed": 3', f"heat={float(2**63)} seed=3"),
        (f'"temperature": 1, "seed": {2**63}', f"heat=1.0 seed={2**63 - 1}"),
        (f'"temperature": 1, "user": "{"x" * 20_000}"', ""),
    ],
)
def test_parameters_of_a_request_have_a_value_while_it_is_kept(carrier: Carrier, fields: str, shown: str) -> None:
    run = carrier.proxy(PARAMS + text())
    body = json.dumps(CHAT)[:-1] + f", {fields}}}"
    carried = run.carry(post("/v1/chat/completions", body.encode()), as_json(CHATTED))
    assert carried.answer.status == 200
    assert " ".join(each for each in carried.line.split() if each.startswith(("heat=", "seed="))) == shown


def test_tokens_are_counted(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.carry(post("/v1/chat/completions", CHAT), as_json(CHATTED))
    metrics, labels = run.memory.context.recorder.metrics, ("chat", "custom", "gpt", "gpt-2024")
    for kind, count, bucket in (("input", 9, 2), ("output", 4, 1)):  # buckets end at 1, 4, 16
        first = metrics.histogram("gen_ai_client_token_usage", *labels, kind)
        assert (metrics.slots[first + SUM], metrics.slots[first + COUNT]) == (count, 1)
        assert metrics.slots[first + bucket] == 1


def test_an_answer_that_comes_in_pieces_is_held_and_what_is_held_takes_room(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    room = run.memory.context.body_memory
    asked = run.send(post("/v1/chat/completions", CHAT))
    run.arrival.head(Response(headers=(("content-type", "application/json"),)))
    content = json.dumps(CHATTED).encode()
    before = room.used
    run.arrival.content(content[:50])
    assert room.used == before + 50
    assert asked.answer.status is None
    run.arrival.content(content[50:])
    run.arrival.end()
    assert asked.answer.body == content
    assert room.used == 0


def test_what_is_held_of_an_answer_that_breaks_off_is_given_back(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    asked = run.send(post("/v1/chat/completions", CHAT))
    run.arrival.head(Response(headers=(("content-type", "application/json"),)))
    run.arrival.content(b'{"model":')
    run.arrival.reset()
    assert asked.answer.status == 502
    assert run.memory.context.body_memory.used == 0


# --- errors


def test_errors_of_the_provider_pass_as_they_are(carrier: Carrier) -> None:
    body = b'{"error": {"message": "slow down"}, "x":1}'
    headers = (("content-type", "application/json"), ("retry-after", "3"))
    carried = chat(carrier, answer=Response(429, headers=headers, body=body))
    assert (carried.answer.status, carried.answer.body, carried.answer.headers["retry-after"]) == (429, body, "3")


def test_errors_of_the_route_have_the_shape_of_the_api(carrier: Carrier) -> None:
    denied = "{authorization: {action: Deny, policy: {matchExpressions: ['true']}}}"
    run = carrier.proxy(text(policies=denied))
    found = error(run.carry(post("/v1/chat/completions", CHAT)).answer)
    assert found["error"]["code"] == "AuthorizationDenied" and found["error"]["type"] == "permission_error"
    found = error(run.carry(post("/v1/messages", CHAT)).answer)
    assert found == {"type": "error", "error": {"type": "permission_error", "message": "authorization failed"}}
    assert error(run.carry(post("/v2/rerank", {})).answer) == {"message": "authorization failed"}


def test_a_provider_that_cannot_be_reached_is_an_error_in_that_shape(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.refuse_connections()
    carried = run.carry(post("/v1/messages", CHAT))
    assert carried.answer.status == 503
    assert error(carried.answer)["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize(
    ("path", "start"), [("/v1/chat/completions", b'data: {"error"'), ("/v1/messages", b"event: error")]
)
def test_a_stream_that_ends_early_ends_with_an_error_event(path: str, start: bytes, carrier: Carrier) -> None:
    run = carrier.proxy(text())
    carried = run.carry(post(path, {**CHAT, "stream": True}), Response(headers=EVENTS, body=[TOKEN]))
    assert carried.answer.body.startswith(TOKEN + start)
    assert b"[DONE]" not in carried.answer.body


def test_a_stream_whose_connection_breaks_ends_with_an_error_event(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    asked = run.send(post("/v1/chat/completions", {**CHAT, "stream": True}))
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(TOKEN + TOKEN[:10])
    run.arrival.reset()
    assert asked.answer.body.startswith(TOKEN + b'data: {"error"')
    assert asked.answer.ended


# --- several providers


def test_the_first_provider_that_is_healthy_is_asked(carrier: Carrier) -> None:
    run = carrier.proxy(of_backend(GROUPS % (EVICTS, "")))
    run.carry(post("/v1/chat/completions", CHAT), lambda got: as_json({}, 500 if got.authority == ONE else 200))
    assert sent(run.carry(post("/v1/chat/completions", CHAT), as_json(CHATTED)))["model"] == "m2"
    run.advance(31)
    assert sent(run.carry(post("/v1/chat/completions", CHAT), as_json(CHATTED)))["model"] == "m1"
