"""A call of an agent as a value, and the facts of a request that it is read from."""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.http import grpc
from dataplane.http.heads import Head

JSON_RPC, REST, GRPC = "JSONRPC", "HTTP+JSON", "GRPC"
"""The bindings, by the names that cards have for them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read of a request. `body` is all of it, or as much as there is."""

    verb: str
    path: str
    body: bytes = b""
    content_types: tuple[bytes, ...] = ()
    is_coded: bool = False
    """Its body has a content coding."""
    query: str = ""
    """What stands behind the path and "?"."""
    overrides: bool = False
    """It has a header by which some frameworks take another HTTP method than the one that it came with."""

    @property
    def grpc_kind(self) -> int:
        """As `grpc.kind` has it."""
        return grpc.kind(self.content_types[0]) if self.content_types else grpc.NOT_GRPC


_OVERRIDES = (b"x-http-method-override", b"x-http-method", b"x-method-override")


def facts(method: bytes, path: bytes, query: bytes, head: Head, body: bytes) -> Facts:
    return Facts(
        method.decode(),
        path.decode("latin-1"),
        body,
        tuple(head.get_all(b"content-type")),
        head.is_coded,
        query.decode("latin-1"),
        b"-method" in head.low and any(head.get(name) is not None for name in _OVERRIDES),
    )


@dataclass(slots=True)
class Call:
    """A call, and what came of it."""

    method: str | None = None
    binding: str = ""
    task: str | None = None
    context: str | None = None
    skill: str | None = None
    state: str | None = None
    """The state of the task that the agent named last (`results`)."""
    error: int | None = None
    """The code of an error of JSON-RPC."""
