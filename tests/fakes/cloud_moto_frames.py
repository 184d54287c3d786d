"""Streams of Amazon Bedrock as moto writes them by AWS' own model of the service, one event at a time: a line of JSON,
with messages in base64 by name. Runs in the environment of clouds (`cloud-python`)."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any

from moto.core.eventstream import EventStream, EventStreamEncoder
from moto.core.serialize import EventStreamJSONSerializer
from moto.core.utils import get_service_model

MODEL = get_service_model("bedrock-runtime")
ENCODER = EventStreamEncoder()
TEXT = "Grüße 世界 🌍!"
USAGE = {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}
CONVERSED: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": TEXT[:6]}, "contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"text": TEXT[6:]}, "contentBlockIndex": 0}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "t1", "name": "look"}}, "contentBlockIndex": 1}},
    {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"city":'}}, "contentBlockIndex": 1}},
    {"contentBlockDelta": {"delta": {"toolUse": {"input": '"Bern"}'}}, "contentBlockIndex": 1}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}},
]
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
INVOKED: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def streamed(operation: str, member: str, events: list[dict[str, Any]]) -> list[bytes]:
    model = MODEL.operation_model(operation)
    found = EventStream({member: events}, model.output_shape, EventStreamJSONSerializer(model))
    return [ENCODER.encode_event(each) for each in found]


def exception(name: str) -> bytes:
    headers = {":message-type": "exception", ":exception-type": name, ":content-type": "application/json"}
    return ENCODER.encode_message(headers, b'{"message": "too many tokens"}')


def error(code: str) -> bytes:
    """Outside of the model (the protocol of event streams has it)."""
    return ENCODER.encode_message({":message-type": "error", ":error-code": code, ":error-message": "broken"}, b"")


MORE = {
    ":date": datetime.datetime(2028, 1, 1, tzinfo=datetime.UTC),
    "yes": True,
    "no": False,
    "number": 1 << 30,
    "bytes": b"\x00\xff",
    "text": "ü",
}
"""Headers of every type, which a proxy of AWS may add."""
PLAIN = {":message-type": "event", ":event-type": "messageStart", ":content-type": "application/json"}
FRAMES = {
    "converse": streamed("ConverseStream", "stream", CONVERSED),
    "invoke": streamed(
        "InvokeModelWithResponseStream", "body", [{"chunk": {"bytes": json.dumps(each)}} for each in INVOKED]
    ),
    "exception": [exception("throttlingException")],
    "error": [error("InternalError")],
    "headers": [ENCODER.encode_message({**MORE, **PLAIN}, b'{"role": "assistant"}')],
}
print(json.dumps({name: [base64.b64encode(each).decode() for each in frames] for name, frames in FRAMES.items()}))
