"""Requests to LLM providers in a proxy in memory: files, bodies, answers, and what came of them."""

from __future__ import annotations

import json
from typing import Any

from tests.carriers import Answer, Carried, Carrier, Request, Response

ROUTES = (
    "routes: {/v1/chat/completions: Completions, /v1/messages: Messages, /v1/messages/count_tokens: TokenCount,"
    " /v1/responses: Responses, /v1/embeddings: Embeddings, /v2/rerank: Rerank, /v1/models: Models,"
    " /v1/realtime: Realtime, /detect/v1/chat/completions: Detect, '*': Passthrough}"
)
ALL = ", ".join(
    f"{{type: {form}}}" for form in ("Completions", "Messages", "Responses", "Embeddings", "TokenCount", "Rerank")
)
CUSTOM = f"custom: {{formats: [{ALL}]}}, host: 127.0.0.1, port: 9001"
TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    POLICIES
    routes:
    - name: llm
      policies: {ai: {ROUTE}}
      backends: [{ai: {BACKEND}}]
"""
CHAT = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}
CHATTED = {
    "id": "c1",
    "model": "gpt-2024",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ho"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}
TOKEN = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"ho"}}]}\n\n'
LAST = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\n'
DONE = b"data: [DONE]\n\n"
EVENTS = (("content-type", "text/event-stream"),)


def text(provider: str = CUSTOM, policy: str = "", policies: str = "") -> str:
    return of_backend(f"provider: {{{provider}}}", policy, policies)


def of_backend(backend: str, policy: str = "", policies: str = "") -> str:
    made = TEXT.replace("ROUTE", ROUTES + (", " + policy if policy else ""))
    return made.replace("BACKEND", backend).replace("POLICIES", policies and f"policies: {policies}")


def as_json(value: object, status: int = 200) -> Response:
    return Response(status, headers=(("content-type", "application/json"),), body=json.dumps(value).encode())


def post(path: str, body: object, *headers: tuple[str, str]) -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", path, headers=(("content-type", "application/json"), *headers), body=content)


def chat(carrier: Carrier, body: object = CHAT, config: str = "", answer: Response | None = None) -> Carried:
    run = carrier.proxy(config or text())
    return run.carry(post("/v1/chat/completions", body), answer or as_json(CHATTED))


def sent(carried: Carried) -> dict[str, Any]:
    (received,) = carried.reached
    found: dict[str, Any] = json.loads(received.body)
    return found


def error(answer: Answer) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(answer.body)
    return found


ONLY = "authorization: {action: Allow, policy: {matchExpressions: ['llm.requestModel.startsWith(\"gpt\")']}}"
GROUPS = (
    "groups: [{providers: [{name: one, openai: {model: m1}, host: 127.0.0.1, port: 9001%s}]},"
    " {providers: [{name: two, openai: {model: m2}, host: 127.0.0.2, port: 9001%s}]}]"
)
EVICTS = ", policies: {health: {eviction: {duration: 30s}}}"
