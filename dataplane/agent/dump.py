"""The configuration dump: what the agent holds, as JSON for people, with every secret value taken out. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from dataplane.agent.resources import Resources
from dataplane.link.messages import ENDPOINT, RESOURCE, Record
from gatewright.wire.v1 import backend_pb2, resource_pb2

REDACTED = b"[redacted]"
_MESSAGES: Mapping[str, type[resource_pb2.Resource | backend_pb2.Endpoint]] = {
    RESOURCE: resource_pb2.Resource,
    ENDPOINT: backend_pb2.Endpoint,
}


def resources(table: Resources, refused: Mapping[str, str]) -> dict[str, Any]:
    """Resources by kind and key; each with its source, and with the reason when its newest version is refused."""
    found: dict[str, dict[str, Any]] = {}
    for record in table.good():
        kind, content = _readable(record)
        entry = {"source": table.source_of(record.type_url, record.name), **content}
        found.setdefault(kind, {})[record.name] = entry
    return {kind: found[kind] for kind in sorted(found)} | ({"refused": dict(refused)} if refused else {})


def as_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str).encode() + b"\n"


def _readable(record: Record) -> tuple[str, dict[str, Any]]:
    from google.protobuf import json_format  # 10 ms that no start has to wait for

    message = _MESSAGES[record.type_url]()
    try:
        message.ParseFromString(record.value or b"")
    except DecodeError:
        return "unreadable", {"bytes": len(record.value or b"")}
    if isinstance(message, backend_pb2.Endpoint):
        return "endpoint", json_format.MessageToDict(message)
    kind = message.WhichOneof("kind") or "unknown"
    if kind == "secret":
        for name in list(message.secret.data):
            message.secret.data[name] = REDACTED
    content = json_format.MessageToDict(message)
    content.pop("key", None)
    return kind, content
