"""A response made by us instead of an upstream."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """What a step answers to end the descent of a request.

    `status`: 200 to 599. `reason`: the stable code for log, trace and metrics (`chain/replies` lists them). `headers`:
    finished lines (`b"name: value\\r\\n"`), without content-length. `body`: the whole body. `close`: the connection
    must not be used again, because what follows on it cannot be trusted.
    """

    status: int
    reason: str
    body: bytes = b""
    headers: bytes = b""
    content_type: bytes = b"text/plain"
    close: bool = False
    hint: str = ""
    """What a client may read beside the body, where its API has a field for a message of the gateway."""
    detail: str = field(default="", compare=False)
    """For the log only: never sent to a client."""
