"""From one state to the next as bytes: differences cut into chunks, serialised once and shared by all streams.

Pure, over opaque resources. A `Part` is what one type contributes to a state; its responses are built when they are
needed and kept in a `Library` of bounded size, so that 500 streams which make the same step send the same byte string,
and a stream that does not read holds no bytes at all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.snapshot import Difference, Record, Snapshot
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import discovery_pb2

MOST_RECORDS: Final = 250
MOST_BYTES: Final = 1 << 20
"""Of one response: 250 resources a message cost the least time and memory for many streams (measured)."""

SHARED_PARTS: Final = 64
SHARED_BYTES: Final = 32 << 20
"""Of responses that are kept for further proxies which are to get the same."""

_NAME_OVERHEAD: Final = 4  # tag and length of a removed name


@dataclass(frozen=True, slots=True)
class Chunk:
    """The resources and removed names of one response. `size`: about its bytes."""

    records: tuple[Record, ...] = ()
    removed: tuple[str, ...] = ()
    size: int = field(init=False)

    def __post_init__(self) -> None:
        names = sum(len(name.encode()) + _NAME_OVERHEAD for name in self.removed)
        object.__setattr__(self, "size", names + sum(len(record.wire) for record in self.records))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One type's share of a state: at least one chunk. `shared`: other streams make the same step."""

    type_url: str
    stem: str
    chunks: tuple[Chunk, ...]
    shared: bool = False

    def nonce(self, index: int) -> str:
        """Names the response of one chunk: the states and the type, so equal on all streams that make this step."""
        return f"{self.stem}.{index}"


Steps = tuple[tuple[Part, int], ...]
"""The responses of a state, in order: of which part, which chunk."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response as bytes. `ack`: the bytes of the plain ACK to it, the request that has type and nonce alone."""

    data: bytes = field(repr=False)  # may hold a secret
    nonce: str
    ack: bytes


def cut(difference: Difference) -> tuple[Chunk, ...]:
    """Chunks of at most 250 resources and 1 MiB (a bigger resource travels alone); removed names count as bytes."""
    chunks = [*_cut_records(difference.changed), *_cut_names(difference.removed)]
    if len(chunks) == 2 and sum(chunk.size for chunk in chunks) <= MOST_BYTES and chunks[1].removed:
        return (Chunk(chunks[0].records, chunks[1].removed),)  # the common small change: one message
    return tuple(chunks)


def _cut_records(records: tuple[Record, ...]) -> Iterator[Chunk]:
    start = size = 0
    for index, record in enumerate(records):
        if index > start and (index - start == MOST_RECORDS or size + len(record.wire) > MOST_BYTES):
            yield Chunk(records=records[start:index])
            start, size = index, 0
        size += len(record.wire)
    if records:
        yield Chunk(records=records[start:])


def _cut_names(names: tuple[str, ...]) -> Iterator[Chunk]:
    start = size = 0
    for index, name in enumerate(names):
        weight = len(name.encode()) + _NAME_OVERHEAD  # UTF-8, as on the wire
        if index > start and size + weight > MOST_BYTES:
            yield Chunk(removed=names[start:index])
            start, size = index, 0
        size += weight
    if names:
        yield Chunk(removed=names[start:])


def steps_of(parts: Iterable[Part]) -> Steps:
    """The responses that parts are sent in."""
    return tuple((part, index) for part in parts for index in range(len(part.chunks)))


def encode(part: Part, index: int, system_version: str) -> Response:
    """The serialised DeltaDiscoveryResponse of one chunk. `system_version` is empty but in a state's last response."""
    chunk, nonce = part.chunks[index], part.nonce(index)
    frame = discovery_pb2.DeltaDiscoveryResponse(
        type_url=part.type_url,
        nonce=nonce,
        removed_resources=chunk.removed,
        system_version_info=system_version,
    )
    data = b"".join((*(record.wire for record in chunk.records), frame.SerializeToString()))
    ack = discovery_pb2.DeltaDiscoveryRequest(type_url=part.type_url, response_nonce=nonce)
    return Response(data, nonce, ack.SerializeToString())


class Library:
    """Parts and responses that several streams need, the least recently used ones forgotten."""

    def __init__(self, most_bytes: int = SHARED_BYTES) -> None:
        self._most_bytes = most_bytes
        self._parts: OrderedDict[tuple[str, str, int, int], Part] = OrderedDict()
        self._steps: OrderedDict[tuple[str, int, int, tuple[str, ...]], Steps] = OrderedDict()
        self._responses: OrderedDict[tuple[Part, int, str], Response] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes of responses kept."""
        return self._size

    def step(self, snapshot: Snapshot, subscription: Subscription, serial: int) -> Part | None:
        """What this subscription lacks to hold the snapshot, or None. `serial` distinguishes one stream's own steps."""
        target = snapshot.resources(subscription.type_url)
        if not subscription.common:
            return _part(snapshot, subscription, f"~{serial}")
        if target is subscription.base:
            return None
        key = (snapshot.gateway, subscription.type_url, subscription.base_sequence, snapshot.sequence)
        part = self._parts.get(key)
        if part is None:
            part = _part(snapshot, subscription, "")
            if part is None:
                return None
            self._parts[key] = part
            if len(self._parts) > SHARED_PARTS:
                self._parts.popitem(last=False)
        else:
            self._parts.move_to_end(key)
        return part

    def steps(
        self, snapshot: Snapshot, held: int, types: tuple[str, ...], entries: Mapping[str, Subscription]
    ) -> Steps:
        """What all streams lack that hold the state of sequence `held` and want the whole of `types`: cut once."""
        key = (snapshot.gateway, held, snapshot.sequence, types)
        steps = self._steps.get(key)
        if steps is None:
            parts = (self.step(snapshot, entries[type_url], 0) for type_url in types)
            steps = self._steps[key] = steps_of(part for part in parts if part is not None)
            if len(self._steps) > SHARED_PARTS:
                self._steps.popitem(last=False)
        return steps

    def response(self, part: Part, index: int, system_version: str) -> Response:
        """One response: the same object for every stream, while it is remembered."""
        if not part.shared:
            return encode(part, index, system_version)
        key = (part, index, system_version)
        kept = self._responses.get(key)
        if kept is not None:
            self._responses.move_to_end(key)
            return kept
        made = self._responses[key] = encode(part, index, system_version)
        self._size += len(made.data)
        while self._size > self._most_bytes and len(self._responses) > 1:
            self._size -= len(self._responses.popitem(last=False)[1].data)
        return made


def _part(snapshot: Snapshot, subscription: Subscription, suffix: str) -> Part | None:
    difference = subscription.difference(snapshot.resources(subscription.type_url))
    if not difference:
        return None
    stem = _stem(snapshot, subscription, suffix)
    return Part(subscription.type_url, stem, cut(difference), shared=not suffix)


def empty_part(snapshot: Snapshot, subscription: Subscription, serial: int) -> Part:
    """One response without resources: the whole of an empty state."""
    return Part(subscription.type_url, _stem(snapshot, subscription, f"~{serial}"), (Chunk(),))


def _stem(snapshot: Snapshot, subscription: Subscription, suffix: str) -> str:
    kind = subscription.type_url.rpartition(".")[2]
    return f"{snapshot.sequence}.{subscription.base_sequence}{suffix}.{kind}"
