"""Amazon Bedrock and Vertex AI, by the environment of the SDKs (`llm-python`): requests are judged by botocore's own
model of the service, their signatures by botocore, bodies of Messages by Anthropic's types. It misbehaves when the
model's name says so. `loopback/test_cloud_sdks` starts it with files of a certificate and its key, for runtimes of
agents (Amazon Bedrock AgentCore). It prints its port, and that of a forward proxy which leads to its runtimes, whatever
name is asked for.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import botocore.session
from aiohttp import web
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types.message_create_params import MessageCreateParams
from aws_frames import chunk, event, exception  # type: ignore[import-not-found]  # beside this file
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.validate import ParamValidator
from google.genai import types
from pydantic import TypeAdapter

REGION, ACCESS, SECRET, TOKEN = "eu-west-1", "AKIDPROVIDER", "its-secret", "ya29.its-token"
TEXT = "Grüße 世界 🌍!"
SERVICE = botocore.session.get_session().get_service_model("bedrock-runtime")
MESSAGES: TypeAdapter[Any] = TypeAdapter(MessageCreateParams)
USAGE = {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": TEXT}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 4},
}
EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}} for each in TEXT),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def signature(request: web.Request, body: bytes, service: str = "bedrock") -> str:
    """What is wrong with it; "": nothing."""
    found = re.fullmatch(
        rf"AWS4-HMAC-SHA256 Credential={ACCESS}/\d+/{REGION}/{service}/aws4_request,"
        r" SignedHeaders=(\S+), Signature=(\w+)",
        request.headers.get("authorization", ""),
    )
    if found is None:
        return f"no signature of ours: {request.headers.get('authorization')}"
    signed = {name: request.headers[name] for name in found[1].split(";")}
    made = AWSRequest(request.method, f"http://{request.host}{request.raw_path}", headers=signed, data=body)
    made.context["timestamp"] = signed["x-amz-date"]
    auth = SigV4Auth(Credentials(ACCESS, SECRET), service, REGION)
    wanted = auth.signature(auth.string_to_sign(made, auth.canonical_request(made)), made)
    return "" if wanted == found[2] else "the signature does not match"


def problems(operation: str, body: Any, model: str) -> str:
    report = ParamValidator().validate({**body, "modelId": model}, SERVICE.operation_model(operation).input_shape)
    return report.generate_report() if report.has_errors() else ""


def called(body: Any) -> str:
    """The tool that it calls, by its name there."""
    tools = body.get("toolConfig", {}).get("tools", [])
    return tools[0]["toolSpec"]["name"] if tools else ""


def conversed(body: Any, model: str) -> Any:
    name = called(body)
    content = [{"toolUse": {"toolUseId": "t1", "name": name, "input": {"a": 1}}}] if name else [{"text": TEXT}]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if name else "end_turn",
        "usage": USAGE,
        "metrics": {"latencyMs": 1},
    }


def converse_stream(body: Any, model: str) -> list[bytes]:
    found = [event("messageStart", {"role": "assistant"})]
    found += [event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": each}}) for each in TEXT]
    found += [event("contentBlockStop", {"contentBlockIndex": 0}), event("messageStop", {"stopReason": "end_turn"})]
    return broken([*found, event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}})], model)


def broken(frames: list[bytes], model: str) -> list[bytes]:
    kept = frames[:4]
    if "throttled" in model:
        return [*kept, exception("throttlingException", "too many tokens")]
    if "wrongcrc" in model:
        return [*kept, frames[4][:-1] + bytes([frames[4][-1] ^ 1]), *frames[5:]]
    return [*kept, frames[4][:-7]] if "cut" in model else frames


def messages_problem(body: Any, version: str) -> str:
    if body.pop("anthropic_version", "") not in (version, ANTHROPIC_API_VERSION):  # of requests as its SDK sends them
        return f"anthropic_version must be {version}"
    body.pop("anthropic_beta", None)
    try:
        MESSAGES.validate_python({"model": "m", **body})
    except ValueError as error:
        return str(error)
    return "model stands in it" if "model" in body else ""


def invoked(body: Any, model: str) -> tuple[str, Any]:
    if "titan" in model:
        wrong = "" if body.keys() <= {"inputText", "dimensions", "normalize"} else "unknown fields"
        return wrong, {"embedding": [0.5, 0.25], "inputTextTokenCount": 3}
    if "rerank" in model:
        return "" if body.get("api_version") == 2 else "api_version", {
            "results": [{"index": 1, "relevance_score": 0.9}]
        }
    return messages_problem(body, "bedrock-2023-05-31"), MESSAGE


async def streamed(request: web.Request, kind: str, parts: list[bytes]) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": kind})
    await answer.prepare(request)
    for each in parts:
        await answer.write(each)
        await asyncio.sleep(0)
    return answer


def refused(message: str, status: int = 400) -> web.Response:
    headers = {"x-amzn-errortype": "ThrottlingException" if status == 429 else "ValidationException"}
    return web.json_response({"message": message}, status=status, headers=headers)


async def bedrock(request: web.Request) -> web.StreamResponse:
    data = await request.read()
    _, _, segment, action = request.raw_path.split("/", 3)
    model, body = unquote(segment), json.loads(data)
    operation = {"converse": "Converse", "converse-stream": "ConverseStream", "count-tokens": "CountTokens"}.get(action)
    wrong = signature(request, data) or (problems(operation, body, model) if operation else "")
    if wrong:
        return refused(wrong)
    if "busy" in model:
        return refused("too many requests", 429)
    if action == "converse":
        return web.json_response(conversed(body, model))
    if action == "converse-stream":
        return await streamed(request, "application/vnd.amazon.eventstream", converse_stream(body, model))
    if action == "count-tokens":
        inner = json.loads(base64.b64decode(body["input"]["invokeModel"]["body"]))
        wrong = messages_problem(inner, "bedrock-2023-05-31")
        return refused(wrong) if wrong else web.json_response({"inputTokens": 42})
    wrong, answer = invoked(body, model)
    if wrong:
        return refused(wrong)
    if action == "invoke":
        return web.json_response(answer)
    frames = broken([chunk(each) for each in EVENTS], model)
    return await streamed(request, "application/vnd.amazon.eventstream", frames)


def sse(events: list[Any], is_named: bool) -> list[bytes]:
    return [
        (b"event: %b\n" % each["type"].encode() if is_named else b"") + b"data: %b\n\n" % json.dumps(each).encode()
        for each in events
    ]


def generated(text: str) -> Any:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    return {"candidates": [{**candidate, "finishReason": "STOP"}], "usageMetadata": usage, "modelVersion": "gemini-3"}


def google_refused(message: str, status: int = 400, code: str = "INVALID_ARGUMENT") -> web.Response:
    return web.json_response({"error": {"code": status, "message": message, "status": code}}, status=status)


async def vertex(request: web.Request) -> web.StreamResponse:
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return google_refused("no token of ours", 401, "UNAUTHENTICATED")
    body = await request.json()
    path = request.path.removeprefix("/v1beta1").removeprefix("/v1")
    found = re.fullmatch(r"/projects/p1/locations/(\S+)/publishers/(\w+)/models/([\w.@-]+):(\w+)", path)
    if found is None:
        return google_refused(f"no such path: {path}", 404, "NOT_FOUND")
    maker, model, action = found[2], found[3], found[4]
    if maker == "anthropic":
        if model == "count-tokens":
            return web.json_response({"input_tokens": 42})
        wrong = messages_problem(body, "vertex-2023-10-16")
        if wrong:
            return google_refused(wrong)
        if action == "rawPredict":
            return web.json_response(MESSAGE)
        return await streamed(request, "text/event-stream", sse(EVENTS, True))
    try:
        for each in body["contents"]:
            types.Content.model_validate(each)
    except (KeyError, ValueError) as error:
        return google_refused(str(error))
    if action == "countTokens":
        known = {"contents", "systemInstruction", "tools", "generationConfig"}
        return web.json_response({"totalTokens": 42}) if body.keys() <= known else google_refused("unknown fields")
    if action == "generateContent":
        return web.json_response(generated(TEXT))
    return await streamed(request, "text/event-stream", sse([generated(TEXT)], False))


async def entra(request: web.Request) -> web.StreamResponse:
    """A token that says whom it is for."""
    asked = await request.post()
    if (asked["client_id"], asked["client_secret"], request.match_info["tenant"]) != ("c1", "its-secret", "t1"):
        return web.json_response({"error": "invalid_client"}, status=401)
    return web.json_response({"access_token": f"for {asked['scope']}".replace(" ", "-"), "expires_in": 3600})


AUDIENCES = {"openai": "https://cognitiveservices.azure.com/.default", "api": "https://ai.azure.com/.default"}
"""By the first part of the path: of a resource of OpenAI, and of a project of Azure AI Foundry."""


async def azure(request: web.Request) -> web.StreamResponse:
    wanted = f"Bearer for-{AUDIENCES[request.path.split('/')[1]]}"
    if request.headers.get("authorization") != wanted or "api-key" in request.headers:
        return web.json_response({"error": {"message": f"not {wanted}", "code": "401"}}, status=401)
    message = {"role": "assistant", "content": TEXT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


async def runtime(request: web.Request) -> web.StreamResponse:
    """It says what it was asked, in a stream."""
    data = await request.read()
    wrong = signature(request, data, "bedrock-agentcore")
    if wrong or request.host != f"bedrock-agentcore.{REGION}.amazonaws.com":
        return refused(wrong or f"no host of runtimes: {request.host}", 403)
    session = request.headers.get(SESSION, "")
    answer = web.StreamResponse(headers={"content-type": "text/event-stream", SESSION: session})
    await answer.prepare(request)
    for each in (request.raw_path.encode(), b"\n", data):
        await answer.write(each)
        await asyncio.sleep(0)
    return answer


SESSION = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


def way_to(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """A forward proxy (RFC 9110 9.3.6) that leads there."""

    async def led(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(copied(reader, outer), copied(inner, writer), return_exceptions=True)

    return led


async def served(app: web.Application, security: ssl.SSLContext | None = None) -> int:
    """Its port."""
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=security).start()
    return int(runner.addresses[0][1])


async def main() -> None:
    app = web.Application(client_max_size=1 << 22)
    routes: dict[str, Callable[[web.Request], Any]] = {
        "/{tenant}/oauth2/v2.0/token": entra,
        "/openai/{rest:.*}": azure,
        "/api/projects/{rest:.*}": azure,
        "/model/{rest:.*}": bedrock,
        "/{rest:.*}": vertex,
    }
    for path, handler in routes.items():
        app.router.add_post(path, handler)
    runtimes = web.Application()
    runtimes.router.add_post("/runtimes/{rest:.*}", runtime)
    security = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    security.load_cert_chain(*sys.argv[1:3])
    forward = await asyncio.start_server(way_to(await served(runtimes, security)), "127.0.0.1", 0)
    ports = {"port": await served(app), "forward": forward.sockets[0].getsockname()[1]}
    print(json.dumps(ports), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
