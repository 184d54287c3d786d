"""One resource as it is published: its name, its version and the bytes that go on the wire.

A record is made once, when its content changes, and from then on shared by every snapshot, stream and response that
holds it. The content stays opaque: any type URL works the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage

from gatewright.wire.external import discovery_pb2

RESOURCE_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Endpoint"

SECRETS: Final = "secret/"
"""How the names of resources with secret content begin. Their versions are unkeyed hashes, by which a weak secret can
be guessed offline: they are for proxies, which hold the content, and shown nowhere else."""

VERSION_BYTES: Final = 8
"""Of the content hash: 16 hex digits, sent back for each resource by a proxy that returns and holds another state."""


@dataclass(frozen=True, slots=True)
class Record:
    """One resource of a snapshot.

    `wire` is field 2 of a DeltaDiscoveryResponse, tag and length included, so that a response is the plain
    concatenation of its records. `published` is the wall-clock time at which this content was first published.
    """

    name: str
    version: str
    wire: bytes = field(repr=False)  # may hold a secret
    published: float

    def content(self) -> AnyMessage:
        """The resource within its Any (parsed from `wire`: the content is not kept twice)."""
        return discovery_pb2.DeltaDiscoveryResponse.FromString(self.wire).resources[0].resource


def version_of(content: bytes) -> str:
    """The version of a resource: a hash of its bytes, so that it is equal on every replica and after a restart.

    Callers must serialise deterministically (`SerializeToString(deterministic=True)`).
    """
    return blake2b(content, digest_size=VERSION_BYTES).hexdigest()


def make_record(type_url: str, name: str, content: bytes, published: float) -> Record:
    """Wrap the serialised message `content` for the wire."""
    version = version_of(content)
    wrapped = discovery_pb2.Resource(name=name, version=version, resource=AnyMessage(type_url=type_url, value=content))
    wire = discovery_pb2.DeltaDiscoveryResponse(resources=[wrapped]).SerializeToString()
    return Record(name, version, wire, published)
