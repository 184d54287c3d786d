"""How messages become the bytes that are sent. Deterministic, because versions are hashes of them."""

from __future__ import annotations

from typing import Any

from gatewright.wire.v1 import resource_pb2

# The schema revision that these translators write. A field that older proxies must not overlook raises it.
REVISION = 1


def resource(key: str, **kind: Any) -> bytes:  # Any: one message of Resource.kind, under its field name
    """The bytes of a Resource that carries the one message given."""
    message = resource_pb2.Resource(key=key, revision=REVISION, min_revision=REVISION, **kind)
    return message.SerializeToString(deterministic=True)
