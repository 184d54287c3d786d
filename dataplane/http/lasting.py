"""Requests and responses that last as long as their client listens: streams of events and their like.

A client of HTTP/1.1 that ends its sending side may still read (RFC 9112 section 9.6), and one that has closed its
connection looks the same. Who listens to a stream has nothing to end before it, so there the end of the client's side
is the client's end; in MCP 2026-07-28 it is the cancellation of the request. Pure; asked when a client sends no more,
never before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.http.heads import Head

EVENTS: Final = b"text/event-stream"

STREAMS: Final = frozenset(
    {
        EVENTS,
        b"application/grpc-web",
        b"application/grpc-web-text",
        b"application/jsonl",
        b"application/json-seq",
        b"application/ndjson",
        b"application/stream+json",
        b"application/vnd.amazon.eventstream",
        b"application/x-ndjson",
        b"multipart/x-mixed-replace",
    }
)
"""Media types whose content comes piece by piece for as long as somebody listens. With `+proto` and its like behind it
a type of gRPC-Web is the same."""


def asks_for_stream(head: Head) -> bool:
    """Whether a request takes a stream of events by name, as EventSource, MCP and A2A do (RFC 9110 12.5.1)."""
    return any(_type(each) == EVENTS for value in head.get_all(b"accept") for each in value.split(b","))


def is_stream(head: Head) -> bool:
    """Whether a response is one of `STREAMS`."""
    return _type(head.get(b"content-type") or b"") in STREAMS


def _type(value: bytes) -> bytes:
    """Type and subtype without parameters and suffix (RFC 9110 8.3.1)."""
    name = value.partition(b";")[0].strip(b" \t").lower()
    return name.partition(b"+")[0] if name.startswith(b"application/grpc-web") else name
