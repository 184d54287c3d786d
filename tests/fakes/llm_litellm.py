"""LiteLLM with a file of its proxy, beside a gateway with the file that was made of it, by the environment of the SDKs
(`llm-python`). `loopback/test_llm_litellm` starts it.

What its proxy makes of such a file is a `Router`; that answers here, without the proxy's web server. The provider of
both is in this process, so that what it got can be compared.

It prints the provider's port. The first line that it reads has LiteLLM's file and the keys that the file names; each
further one is `{"base": …, "request": …}`, and is answered with what came of the request: without `base` by LiteLLM.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import openai

KEY = "sk-master"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
CALL = ("weather", '{"city":"Bern"}')
WORDS = ("Grüße", " 世界", "!")
REFUSED = {"down": 503, "busy": 429, "strict": 400}
"""By the model that the provider is asked for: how it answers."""


# --- the provider

Event = tuple[str, dict[str, Any]]


def chat(body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(WORDS)}
    if body.get("tools"):
        function = {"name": CALL[0], "arguments": CALL[1]}
        message = {**message, "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop"}
    named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": body["model"]}
    return {**named, "choices": [choice], "usage": USAGE}


def chunks(body: dict[str, Any]) -> Iterator[Event]:
    named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": body["model"]}

    def chunk(delta: dict[str, Any], why: str | None = None) -> Event:
        return "", {**named, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]}

    if body.get("tools"):
        first = {"index": 0, "id": "c1", "type": "function", "function": {"name": CALL[0], "arguments": ""}}
        yield chunk({"role": "assistant", "tool_calls": [first]})
        for piece in (CALL[1][:7], CALL[1][7:]):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        for word in WORDS:
            yield chunk({"role": "assistant", "content": word})
    yield chunk({}, "tool_calls" if body.get("tools") else "stop")
    if body.get("stream_options"):
        yield "", {**named, "choices": [], "usage": USAGE}


def message(body: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "text", "text": "".join(WORDS)}
    if body.get("tools"):
        said = {"type": "tool_use", "id": "c1", "name": CALL[0], "input": json.loads(CALL[1])}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [said],
        "stop_reason": "tool_use" if body.get("tools") else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }


def events(body: dict[str, Any]) -> Iterator[Event]:
    whole = message(body)
    yield "message_start", {"message": {**whole, "content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for word in WORDS:
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}}
    yield "content_block_stop", {"index": 0}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": delta, "usage": {"output_tokens": 4}}
    yield "message_stop", {}


class Provider(BaseHTTPRequestHandler):
    got: ClassVar[list[dict[str, Any]]] = []
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers.get("x-api-key") or self.headers.get("authorization")
        self.got.append({"path": self.path, "key": key, "body": body})
        is_messages = self.path.endswith("/messages")
        if body["model"] in REFUSED:
            told = {"message": f"it is {body['model']}", "type": "x", "param": None, "code": None}
            self._answer(REFUSED[body["model"]], "application/json", json.dumps({"error": told}))
        elif not body.get("stream"):
            self._answer(200, "application/json", json.dumps((message if is_messages else chat)(body)))
        else:
            found = (events if is_messages else chunks)(body)
            text = "".join(self._event(*each) for each in found) + ("" if is_messages else "data: [DONE]\n\n")
            self._answer(200, "text/event-stream", text)

    def _event(self, name: str, value: dict[str, Any]) -> str:
        data = json.dumps({"type": name, **value} if name else value)
        return f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n"

    def _answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed but what was asked for."""


# --- both clients


def came(ask: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    """What a client of OpenAI's API reads of the answer, and what the provider got last."""
    Provider.got.clear()
    try:
        found = ask(**request)
        read = _streamed(found) if request.get("stream") else _whole(found)
    except Exception as error:
        if not hasattr(error, "status_code"):
            raise
        read = {"status": error.status_code}
    return {**read, "asked": [each["body"]["model"] for each in Provider.got], "got": Provider.got[-1:]}


def _whole(found: Any) -> dict[str, Any]:
    (choice,) = found.choices
    calls = [(each.function.name, each.function.arguments) for each in choice.message.tool_calls or ()]
    return _read(choice.message.content, calls, choice.finish_reason, found.usage)


def _streamed(found: Any) -> dict[str, Any]:
    said, name, arguments, why, usage = "", "", "", None, None
    for chunk in found:
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices:
            said += choice.delta.content or ""
            why = choice.finish_reason or why
            for call in choice.delta.tool_calls or ():
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    return _read(said, [(name, arguments)] if name else [], why, usage)


def _read(said: str | None, calls: list[tuple[str, str]], why: str | None, usage: Any) -> dict[str, Any]:
    return {
        "status": 200,
        "said": said or "",
        "why": why,
        "calls": [(name, json.loads(arguments)) for name, arguments in calls],
        "usage": None if usage is None else (usage.prompt_tokens, usage.completion_tokens),
    }


def router(config: dict[str, Any]) -> Any:
    """As LiteLLM's proxy makes it of its file."""
    from litellm import Router  # takes seconds

    settings = config.get("litellm_settings", {})
    return Router(model_list=config["model_list"], **config.get("router_settings", {}), **settings)


def main() -> None:
    said, sys.stdout = sys.stdout, sys.stderr  # LiteLLM prints
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps(server.server_port), file=said, flush=True)
    given = json.loads(sys.stdin.readline())
    os.environ.update(given["keys"])
    peer = router(given["config"])
    print(json.dumps("ready"), file=said, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "base" not in asked:
            found = came(peer.completion, asked["request"])
        else:
            with openai.OpenAI(base_url=asked["base"], api_key=KEY, max_retries=0) as client:
                found = came(client.chat.completions.create, asked["request"])
        print(json.dumps(found), file=said, flush=True)


main()
