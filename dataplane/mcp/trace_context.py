"""The trace context of a message to a server: `traceparent` and `tracestate` in `_meta` of its params, where
OpenTelemetry's conventions for MCP have it. Pure.

So a server that has no headers (standard input and output) gets it as well, and one with headers gets it once more.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import UNSET

from dataplane.mcp import messages


class Context(Protocol):
    """A span (`tracing/context.SpanContext`)."""

    def header_lines(self) -> bytes: ...


def written(body: bytes, context: Context) -> bytes:
    """A request or notification with the context in its `_meta`, in place of what a client has written there; what is
    no such message as it is."""
    try:
        message = messages.read(body)
        if message.method is UNSET:
            return body
        params = messages.object_of(message.params)
        meta = messages.object_of(params.get("_meta", UNSET))
    except messages.Malformed:
        return body
    for name in ("traceparent", "tracestate"):
        meta.pop(name, None)
    for line in context.header_lines().decode("latin-1").splitlines():
        name, _, value = line.partition(": ")
        meta[name] = messages.raw(value)
    params["_meta"] = messages.raw(meta)
    message.params = messages.raw(params)
    return bytes(messages.raw(message))
