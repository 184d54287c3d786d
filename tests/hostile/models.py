"""Hostile clients and providers of LLMs, as rows (`streams.Row`)."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Final

import dataplane.backends.llm.serving  # noqa: F401  # workers have it before a table has LLM providers
from dataplane.llm.formats.reading import MAX_ITEMS
from tests.fakes import aws_frames
from tests.hostile.agents import after, json, stream
from tests.hostile.streams import CLIENT, ENDPOINT, H1, NESTED, Row, Source, again, only, request
from tests.hostile.world import EVIL_PORT

_FILE: Final = """
frontendPolicies: {%s}
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: polite
      hostnames: [polite.test]
      backends: [{host: 127.0.0.1:9000}]
    - name: hostile
      hostnames: [a]
      policies: {ai: {routes: {/m: Messages, /r: Responses, /d: Detect, /models: Models}, %s}}
      backends: [{ai: {provider: {custom: {formats: [{type: Completions}, {type: Messages}, {type: Responses}]}, \
host: 127.0.0.1, port: %d}}}]
"""
_TRANSLATED: Final = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: polite
      hostnames: [polite.test]
      backends: [{host: 127.0.0.1:9000}]
    - name: hostile
      hostnames: [a]
      policies: {ai: {routes: {/m: Messages, /r: Responses}}}
      backends: [{ai: {provider: {%s, host: 127.0.0.1, port: %d}}, policies: {auth: {%s}}}]
"""


def translated(provider: str, port: int = 9001) -> str:
    """Requests to a provider of another API."""
    keys = "secretRef: {accessKey: {value: A}, secretKey: {value: s}}"
    return _TRANSLATED % (provider, port, f"aws: {{{keys}}}" if "bedrock" in provider else "key: k")


COMPLETIONS: Final = "custom: {formats: [{type: Completions}]}"
OWN_MESSAGES: Final = "custom: {formats: [{type: Messages}]}"
GEMINI: Final = "vertexai: {projectId: p, model: gemini-3}"
NOVA: Final = "bedrock: {model: 'amazon.nova-pro-v1:0'}"
CLAUDE: Final = "bedrock: {model: 'anthropic.claude-sonnet-4-5-20250929-v1:0'}"
_SHAPED: Final = (
    "modelAliases: {m: other}, defaults: [{field: user, value: x}], prompt: {prepend: [{role: system, content: s}]},"
    " transformations: [{field: z, expression: 'llmRequest.model'}],"
    " authorization: {action: Deny, policy: {matchExpressions: ['llm.prompt.exists(m, m.content == \"x\")']}}"
)
_LOGS: Final = "accessLog: {add: {said: 'llm.completion', called: 'llm.toolCalls', asked: 'llm.prompt'}}"
PLAIN: Final = _FILE % ("", "", 9001)
SHAPED: Final = _FILE % (_LOGS, _SHAPED, 9001)
_GUARDED: Final = (
    "promptGuard: {request: [{regex: {matches: [falcon], action: Reject}}, {regex: {builtins: [Ssn]}}],"
    " response: [{regex: {matches: [falcon]}}]}"
)
GUARDED: Final = _FILE % ("", _GUARDED, 9001)
EVIL_GUARDED: Final = _FILE % ("", _GUARDED, EVIL_PORT)
EVIL: Final = _FILE % ("", "", EVIL_PORT)
EVIL_HEARD: Final = _FILE % (_LOGS, "", EVIL_PORT)
MANY: Final = b",".join(b'"k%d":1' % number for number in range(170_000))
TWICE: Final = b'"k":1,' * 250_000 + b'"model":"m"'


def asked(body: bytes, target: bytes = b"/") -> bytes:
    return request(target, b"Content-Type: application/json\r\n", b"POST", body)


def chat(messages: bytes, more: bytes = b"", target: bytes = b"/") -> bytes:
    return asked(b'{"model":"m","max_tokens":1,"messages":%b%b}' % (messages, more), target)


SMALL: Final = chat(b'[{"role":"user","content":"hi"}]')
STREAMED: Final = chat(b'[{"role":"user","content":"hi"}]', b',"stream":true')
OF_MESSAGES: Final = chat(b'[{"role":"user","content":"hi"}]', b',"stream":true', b"/m")
OF_RESPONSES: Final = asked(b'{"model":"m","input":"hi","stream":true}', b"/r")
TURNS: Final = b"[" + b",".join([b'{"role":"user","content":"hi"}'] * 55_000) + b"]"
NO_TEXTS: Final = b'[{"role":"user","content":[' + b",".join([b"[]"] * 500_000) + b"]}]"
SPACES: Final = b"[" + b" " * 1_900_000 + b"]"
KEYS_OF_ESCAPES: Final = b",".join(b'"\\u006b%d":1' % number for number in range(100_000))

TOKEN: Final = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
EMPTY: Final = b'data: {"choices":[]}\n\n'
USAGE: Final = b'data: {"choices":[],"usage":{"prompt_tokens":2147483648,"completion_tokens":1}}\n\n'
ERRORS: Final = b'data: {"error":{}}\n\n'
CALLS: Final = (
    b'data: {"choices":[{"index":%d,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":"a"}}]}}]}\n\n'
)
MESSAGE: Final = b'data: {"type":"message_delta","usage":{"output_tokens":1}}\n\n'
CREATED: Final = b'data: {"type":"response.created","response":{"model":"m","usage":{}}}\n\n'
LONG_EVENT: Final = b"data: " + b"a" * 1_000_000
LARGE: Final = LONG_EVENT + b"\n\n"
CANDIDATE: Final = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n'
PARTS: Final = b'{"candidates":[{"content":{"parts":[' + b",".join([b'{"text":"a"}'] * 100_000) + b"]}}]}"
NOTHING: Final = b"data: {}\n\n"
DELTA_FRAME: Final = aws_frames.event("contentBlockDelta", {"delta": {"text": "a"}, "contentBlockIndex": 0})
OTHER_FRAME: Final = aws_frames.event("later", {})
TURN_BY_TURN: Final = (
    b"["
    + b",".join([b'{"role":"user","content":"hi"}', b'{"role":"assistant","content":"ho"}'] * (MAX_ITEMS // 2))
    + b"]"
)
ROUNDS: Final = (
    b"["
    + b",".join(
        [
            b'{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}',
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}',
        ]
        * (MAX_ITEMS // 4)
    )
    + b"]"
)


def framed(frame: bytes) -> Source:
    """An answer of messages of AWS's event stream without end."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n\r\n"
    return lambda: chain((head,), repeat(frame * (1_048_576 // len(frame))))


CHOICES: Final = b'{"choices":[' + b",".join([b'{"message":{"content":"a"}}'] * 60_000) + b"]}"
USED: Final = b'{"usage":{' + MANY + b"}}"

ROWS: Final = (
    # --- clients
    Row("chat completions, pipelined", CLIENT, H1, again(SMALL), PLAIN),
    Row("chat completions that policies shape, pipelined", CLIENT, H1, again(SMALL), SHAPED),
    Row("chat completions over 32 connections", CLIENT, H1, again(SMALL), SHAPED, connections=32),
    Row("a chat completion, a byte in each read", CLIENT, H1, only(SMALL), SHAPED, manner={"piece": 1, "pieces": 32}),
    Row("chat completions with 170,000 fields", CLIENT, H1, again(asked(b'{"model":"m",%b}' % MANY)), SHAPED),
    Row(
        "chat completions with a field 250,000 times",
        CLIENT,
        H1,
        again(asked(b'{"model":"m",%b"x":1}' % TWICE)),
        SHAPED,
    ),
    Row(
        "chat completions with 100,000 fields in escapes",
        CLIENT,
        H1,
        again(asked(b'{"model":"m",%b}' % KEYS_OF_ESCAPES)),
        SHAPED,
    ),
    Row("chat completions with 55,000 messages", CLIENT, H1, again(chat(TURNS)), SHAPED),
    Row("streams with 55,000 messages", CLIENT, H1, again(chat(TURNS, b',"stream":true')), SHAPED),
    Row("Messages with 55,000 messages", CLIENT, H1, again(chat(TURNS, target=b"/m")), SHAPED),
    Row("chat completions with 55,000 messages for guards", CLIENT, H1, again(chat(TURNS)), GUARDED),
    Row("chat completions with 500,000 empty lists for guards", CLIENT, H1, again(chat(NO_TEXTS)), GUARDED),
    Row("chat completions of 2 MB of white space", CLIENT, H1, again(chat(SPACES)), SHAPED),
    Row("chat completions, a million levels deep", CLIENT, H1, again(chat(NESTED)), SHAPED),
    Row("bodies to detect, with 170,000 fields", CLIENT, H1, again(asked(b'{"model":"m",%b}' % MANY, b"/d")), SHAPED),
    Row("lists of models, pipelined", CLIENT, H1, again(request(b"/models")), SHAPED),
    # --- providers
    Row("tokens without end", ENDPOINT, H1, stream(TOKEN), EVIL, asks=STREAMED),
    Row("tokens without end that the log keeps", ENDPOINT, H1, stream(TOKEN), EVIL_HEARD, asks=STREAMED),
    Row("chunks without a token without end", ENDPOINT, H1, stream(EMPTY), EVIL, asks=STREAMED),
    Row("usage without end", ENDPOINT, H1, stream(USAGE), EVIL, asks=STREAMED),
    Row("errors of a stream without end", ENDPOINT, H1, stream(ERRORS), EVIL, asks=STREAMED),
    Row("calls of tools without end that the log keeps", ENDPOINT, H1, stream(CALLS), EVIL_HEARD, asks=STREAMED),
    Row("usage of Messages without end", ENDPOINT, H1, stream(MESSAGE), EVIL, asks=OF_MESSAGES),
    Row("responses that are created without end", ENDPOINT, H1, stream(CREATED), EVIL, asks=OF_RESPONSES),
    Row("an event of a model without end", ENDPOINT, H1, stream(LONG_EVENT), EVIL, asks=STREAMED),
    Row(
        "a large event before tokens without end", ENDPOINT, H1, after(LONG_EVENT + b"\n\n", TOKEN), EVIL, asks=STREAMED
    ),
    Row("ends of lines of a model without end", ENDPOINT, H1, stream(b"\r\n"), EVIL, asks=STREAMED),
    Row("completions with 60,000 choices", ENDPOINT, H1, json(CHOICES), EVIL_HEARD, asks=SMALL),
    Row("completions with 60,000 choices for guards", ENDPOINT, H1, json(CHOICES), EVIL_GUARDED, asks=SMALL),
    Row("completions with usage of 170,000 fields", ENDPOINT, H1, json(USED), EVIL_HEARD, asks=SMALL),
    Row("completions, a million levels deep", ENDPOINT, H1, json(NESTED), EVIL_HEARD, asks=SMALL),
    # --- clients whose requests are translated
    Row("Completions with 55,000 messages, translated", CLIENT, H1, again(chat(TURNS)), translated(OWN_MESSAGES)),
    Row("Completions with as many messages as may be", CLIENT, H1, again(chat(TURN_BY_TURN)), translated(GEMINI)),
    Row(
        "Messages with as many calls of tools as may be",
        CLIENT,
        H1,
        again(chat(ROUNDS, target=b"/m")),
        translated(COMPLETIONS),
    ),
    # --- providers whose answers are translated
    *(
        Row(f"{what} without end, translated", ENDPOINT, H1, source, translated(provider, EVIL_PORT), asks=asks)
        for what, source, provider, asks in (
            ("tokens of Completions", stream(TOKEN), COMPLETIONS, OF_MESSAGES),
            ("events of nothing", stream(NOTHING), COMPLETIONS, OF_MESSAGES),
            ("tokens of Gemini", stream(CANDIDATE), GEMINI, STREAMED),
            ("tokens of Converse", framed(DELTA_FRAME), NOVA, STREAMED),
            ("frames of nothing", framed(OTHER_FRAME), NOVA, STREAMED),
            ("chunks of nothing", framed(OTHER_FRAME), CLAUDE, OF_MESSAGES),
        )
    ),
    Row(
        "completions with 60,000 choices, translated",
        ENDPOINT,
        H1,
        json(CHOICES),
        translated(COMPLETIONS, EVIL_PORT),
        asks=chat(b'[{"role":"user","content":"hi"}]', target=b"/m"),
    ),
    Row("100,000 parts of Gemini", ENDPOINT, H1, json(PARTS), translated(GEMINI, EVIL_PORT), asks=SMALL),
)
