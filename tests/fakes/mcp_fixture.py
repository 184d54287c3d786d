"""The server that the MCP conformance suites ask for, on the official SDK: `python -m tests.fakes.mcp_fixture [STEM]`.

It listens on a port of its own, which it prints. Tools and prompts are named `test_...`; with STEM `test_` they leave
that out, so that behind an endpoint of several servers, as the target `test`, they have the names that suites ask for.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

Json = Any
"""What JSON can be."""
Context = Any
"""What the SDK gives a handler."""

OBJECT: Json = {"type": "object"}
MISSING_CAPABILITY = -32021


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


_HEADER = (1).to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", _HEADER)
    + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + _chunk(b"IEND", b"")
).decode()
"""One red pixel."""
_FORM = b"fmt " + (16).to_bytes(4, "little") + bytes((1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x40, 0x1F, 0, 0, 1, 0, 8, 0))
_SOUND = b"WAVE" + _FORM + b"data" + (1).to_bytes(4, "little") + b"\x80\0"
WAV = base64.b64encode(b"RIFF" + len(_SOUND).to_bytes(4, "little") + _SOUND).decode()
"""One sample of silence."""


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _embedded(uri: str, mime: str, text: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


IMAGE: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
PLAIN: dict[str, list[Json]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        IMAGE,
        _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}
"""Tools that always answer the same."""


def done(text: str) -> Json:
    return {"content": [_text(text)], "resultType": "complete"}


# --- tools that talk to the client


async def logging(context: Context, params: Any) -> Json:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", text, related_request_id=context.request_id)
        await anyio.sleep(0.02)
    return done("logged")


async def progress(context: Context, params: Any) -> Json:
    for part in (0, 50, 100):
        await context.session.report_progress(part, 100)
        await anyio.sleep(0.02)
    return done("done")


async def failing(context: Context, params: Any) -> Json:
    return {**done("This tool intentionally returns an error for testing"), "isError": True}


async def headed(context: Context, params: Any) -> Json:
    return done(f"region {(params.arguments or {}).get('region')}")


async def sampling(context: Context, params: Any) -> Json:
    message = {"role": "user", "content": _text((params.arguments or {})["prompt"])}
    answer = await ask(context, "sampling/createMessage", {"messages": [message], "maxTokens": 100})
    return done(f"LLM response: {json.dumps(answer)}")


async def ask(context: Context, method: str, params: Json) -> Json:
    """A request to the client, within the stream of the request that is served."""
    return await context.session._request_outbound.send_raw_request(method, params)  # as JSON, not as models


def eliciting(message: str, properties: Json, required: list[str]) -> Callable[[Context, Any], Awaitable[Json]]:
    schema = {"type": "object", "properties": properties, "required": required}

    async def handler(context: Context, params: Any) -> Json:
        told = (params.arguments or {}).get("message", message)
        answer = await ask(context, "elicitation/create", {"message": told, "requestedSchema": schema})
        return done(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}")

    return handler


DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(first: str, kind: str) -> list[Json]:
    return [{"const": f"value{n}", "title": f"{word} {kind}"} for n, word in enumerate((first, "Second", "Third"), 1)]


ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": _titled("First", "Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("First", "Choice")}},
}
USER: Json = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}


async def reconnecting(context: Context, params: Any) -> Json:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(0.1)
    return done("reconnected")


# --- tools that ask by their result (revision 2026-07-28)


def elicit(message: str, **properties: str) -> Json:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": {**schema, "required": list(properties)}},
    }


def sample(text: str, tokens: int) -> Json:
    messages = [{"role": "user", "content": _text(text)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: Json = {"method": "roots/list", "params": {}}


def wanting(requests: Json, state: str | None = None) -> Json:
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else {**result, "requestState": state}


def asking(requests: Json, text: str = "done", state: str | None = None) -> Callable[[Context, Any], Awaitable[Json]]:
    """A tool that is done when all of its requests have answers, and its state came back."""

    async def handler(context: Context, params: Any) -> Json:
        answers = params.input_responses or {}
        if all(key in answers for key in requests) and (state is None or params.request_state == state):
            return done(text)
        return wanting(requests, state)

    return handler


async def rounds(context: Context, params: Any) -> Json:
    answers, state = params.input_responses or {}, params.request_state
    if state == "two" and "step2" in answers:
        return done("both steps done")
    if state == "one" and "step1" in answers:
        return wanting({"step2": elicit("Step 2: What is your favorite color?", color="string")}, "two")
    return wanting({"step1": elicit("Step 1: What is your name?", name="string")}, "one")


CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def capabilities(params: Any) -> Json:
    return ((params.meta or {}) if isinstance(params.meta, dict) else {}).get(CAPABILITIES) or {}


async def capable(context: Context, params: Any) -> Json:
    found = capabilities(params)
    requests = {"name": elicit("Your name?", name="string")} if "elicitation" in found else {}
    if "sampling" in found:
        requests["question"] = sample("What is the capital of France?", 100)
    return wanting(requests) if requests else done("the client can do nothing")


async def incapable(context: Context, params: Any) -> Json:
    if "sampling" in capabilities(params):
        return done("it can")
    raise MCPError(MISSING_CAPABILITY, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})


OK = {"confirm": elicit("Please confirm", ok="boolean")}
NAME = {"user_name": elicit("What is your name?", name="string")}
QUESTION = {"capital_question": sample("What is the capital of France?", 100)}
ALL = {**NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ROOTS}

bus = InMemorySubscriptionBus()


async def tools_change(context: Context, params: Any) -> Json:
    await bus.publish(ToolsListChanged())
    return done("changed")


async def prompts_change(context: Context, params: Any) -> Json:
    await bus.publish(PromptsListChanged())
    return done("changed")


TOOLS: dict[str, Callable[[Context, Any], Awaitable[Json]]] = {
    "test_tool_with_logging": logging,
    "test_tool_with_progress": progress,
    "test_error_handling": failing,
    "test_sampling": sampling,
    "test_elicitation": eliciting("?", USER, ["username", "email"]),
    "test_elicitation_sep1034_defaults": eliciting("Defaults?", DEFAULTS, []),
    "test_elicitation_sep1330_enums": eliciting("Enums?", ENUMS, []),
    "test_reconnection": reconnecting,
    "test_trigger_tool_change": tools_change,
    "test_trigger_prompt_change": prompts_change,
    "test_missing_capability": incapable,
    "test_streaming_elicitation": asking(NAME, "Hello, Alice!"),
    "test_logging_tool": logging,
    "test_header": headed,
    "json_schema_2020_12_tool": failing,
    "test_input_required_result_elicitation": asking(NAME, "Hello, Alice!"),
    "test_input_required_result_sampling": asking(QUESTION, "The capital of France is Paris."),
    "test_input_required_result_list_roots": asking({"client_roots": ROOTS}, "roots"),
    "test_input_required_result_request_state": asking(OK, "state-ok", "state"),
    "test_input_required_result_multiple_inputs": asking(ALL, "all", "state"),
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_tampered_state": asking(OK, "state-ok", "state"),
    "test_input_required_result_capabilities": capable,
}
_ADDRESS: Json = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": _ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Every keyword has to arrive."""
ARGUMENTS: dict[str, Json] = {
    "json_schema_2020_12_tool": SCHEMA,
    "test_header": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}

# --- prompts and resources


def _said(*contents: Json) -> Json:
    return {"messages": [{"role": "user", "content": each} for each in contents], "resultType": "complete"}


PROMPTS: dict[str, Callable[[dict[str, str]], Json]] = {
    "test_simple_prompt": lambda given: _said(_text("This is a simple prompt for testing.")),
    "test_prompt_with_arguments": lambda given: _said(
        _text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
    ),
    "test_prompt_with_embedded_resource": lambda given: _said(
        _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
        _text("Please process the embedded resource above."),
    ),
    "test_prompt_with_image": lambda given: _said(IMAGE, _text("Please analyze the image above.")),
    "test_input_required_result_prompt": lambda given: _said(_text("with context")),
}
PROMPT_ARGUMENTS = {
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
}
CONTEXT = {"user_context": elicit("What context should the prompt use?", context="string")}

RESOURCES: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
}
TEMPLATE = "test://template/{id}/data"
CACHED: Json = {"ttlMs": 1000, "cacheScope": "private", "resultType": "complete"}


def _content(uri: str) -> Json:
    found = RESOURCES.get(uri)
    if found is not None:
        return found
    before, after = TEMPLATE.split("{id}")
    if uri.startswith(before) and uri.endswith(after):
        number = uri.removeprefix(before).removesuffix(after)
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"mimeType": "application/json", "text": json.dumps(data, separators=(",", ":"))}
    raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})


def server(stem: str = "") -> Server[Any]:
    """`stem`: what is left out of names."""

    async def list_tools(context: Context, params: Any) -> Json:
        found = [
            {
                "name": name.removeprefix(stem),
                "description": name.replace("_", " "),
                "inputSchema": ARGUMENTS.get(name, OBJECT),
            }
            for name in (*PLAIN, *TOOLS)
        ]
        return {"tools": found, **CACHED}

    async def call_tool(context: Context, params: Any) -> Json:
        name = stem + params.name
        if name in PLAIN:
            return {"content": PLAIN[name], "resultType": "complete"}
        if name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await TOOLS[name](context, params)

    async def list_prompts(context: Context, params: Any) -> Json:
        found = []
        for name in PROMPTS:
            arguments = [{"name": each, "required": True} for each in PROMPT_ARGUMENTS.get(name, ())]
            found.append({"name": name.removeprefix(stem), "description": name, "arguments": arguments})
        return {"prompts": found, **CACHED}

    async def get_prompt(context: Context, params: Any) -> Json:
        name = stem + params.name
        if name not in PROMPTS:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
        if name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
            return wanting(CONTEXT)
        return PROMPTS[name](params.arguments or {})

    async def list_resources(context: Context, params: Any) -> Json:
        found = [
            {"uri": uri, "name": uri, "description": uri, "mimeType": each["mimeType"]}
            for uri, each in RESOURCES.items()
        ]
        return {"resources": found, **CACHED}

    async def list_templates(context: Context, params: Any) -> Json:
        found = [{"uriTemplate": TEMPLATE, "name": "template", "description": "t", "mimeType": "application/json"}]
        return {"resourceTemplates": found, **CACHED}

    async def read_resource(context: Context, params: Any) -> Json:
        uri = str(params.uri)
        return {"contents": [{"uri": uri, **_content(uri)}], **CACHED}

    async def complete(context: Context, params: Any) -> Json:
        values = [each for each in ("paris", "park", "party") if each.startswith(params.argument.value)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}, "resultType": "complete"}

    async def nothing(context: Context, params: Any) -> Json:
        return {}

    made: Server[Any] = Server(
        "fixture",
        version="1",
        instructions="for conformance",
        get_tool_input_schema=lambda name: ARGUMENTS.get(stem + name),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_completion=complete,
        on_set_logging_level=nothing,
        on_subscriptions_listen=ListenHandler(bus),
    )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture"))
    return made


class Events(EventStore):
    """All events of this process, for clients that go on where a stream broke off."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        if not last_event_id.isdigit() or not 0 < int(last_event_id) <= len(self._events):
            return None
        stream, _ = self._events[int(last_event_id) - 1]
        for number, (each, message) in enumerate(self._events[int(last_event_id) :], int(last_event_id) + 1):
            if each == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def main(stem: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    app = server(stem).streamable_http_app(event_store=Events(), retry_interval=50)
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
