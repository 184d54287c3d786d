"""A simulated proxy that costs next to nothing: one delta xDS stream as bytes in, bytes out.

Used by `lean_fleet`, hundreds in one process, so that a measurement shows the server and not its clients. Speaks the
HTTP/2 that one gRPC call needs (RFC 9113 and the gRPC protocol over HTTP/2) and the conversation of our own agent
(`dataplane/agent/xds_stream.py`): claim, question, states, one answer for each response. It applies nothing. Pure: no
socket, no clock. Promises nothing to other servers than gRPC's own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gatewright import revisions
from gatewright.wire.external import discovery_pb2

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse

PATH: Final = b"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
RESOURCE_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Endpoint"
TYPES: Final = (ENDPOINT_TYPE, RESOURCE_TYPE)
USER_AGENT: Final = "gatewright"
STATE_KEY: Final = "gatewright.state"
QUESTION: Final = "versions"

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
INITIAL_WINDOW_SIZE: Final = 4
FIRST_WINDOW: Final = 65_535
"""Of RFC 9113, 6.9.2. We leave it so: what gRPC's own clients begin with."""
MOST_IN_FRAME: Final = 16_384

Held = Mapping[str, Mapping[str, str]]
"""Type URL -> name -> version."""

Content = tuple[str, Mapping[str, str], tuple[str, ...]]
"""Of one response: its type URL, the versions by name, the removed names."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One HTTP/2 frame (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(index: int, value: bytes, name: bytes = b"") -> bytes:
    """A header field without indexing (RFC 7541, 6.2.2), of a name in the static table or a new one."""
    if name:
        head = b"\x00" + bytes((len(name),)) + name
    else:
        head = bytes((index,)) if index < 15 else bytes((15, index - 15))
    return head + bytes((len(value),)) + value


HEADER_BLOCK: Final = b"".join(
    (
        b"\x83\x86",  # :method POST, :scheme http
        _literal(4, PATH),
        _literal(1, b"localhost"),  # :authority
        _literal(31, b"application/grpc"),  # content-type
        _literal(0, b"trailers", b"te"),
    )
)


@dataclass(slots=True)
class Sharing:
    """What the proxies of one process need to know once: what is held in a state, by the state's version.

    Without `keeps_names` nothing is kept, and a question is answered as by a proxy that holds nothing.
    """

    keeps_names: bool = False
    held: dict[str, Held] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What one proxy saw since it was connected. `received`: bytes of everything, `bytes`: of messages."""

    received: int = 0
    messages: int = 0
    bytes: int = 0
    states: int = 0
    questions: int = 0
    nonces: list[str] = field(default_factory=list)


class LeanProxy:
    """One proxy over all its connections. `refuses`: the error text with which it answers every state."""

    def __init__(self, gateway: str, instance: str, sharing: Sharing, refuses: str = "") -> None:
        self.gateway, self.instance = gateway, instance
        self.refuses = refuses
        self.grants = True
        """Whether the server may send more when the first windows are used up."""
        self.state = ""
        self.tally = Tally()
        self.ended = ""
        self._sharing = sharing
        self._reset()

    def _reset(self) -> None:
        self._frames = bytearray()
        self._message = bytearray()
        self._parts: list[tuple[str, str]] = []
        self._contents: list[Content] = []
        self._unacked = 0
        self._waiting = bytearray()
        self._window = self._stream_window = self._first_window = FIRST_WINDOW

    def open(self, *, cold: bool = False) -> bytes:
        """The first bytes of a new connection: settings, the call, both subscriptions. `cold`: holding nothing."""
        self._reset()
        self.ended, self.tally = "", Tally()
        if cold:
            self.state = ""
        first, second = (Request(type_url=type_url, resource_names_subscribe=["*"]) for type_url in TYPES)
        first.node.id, first.node.cluster = f"{self.gateway}/{self.instance}", self.gateway
        first.node.user_agent_name, first.node.user_agent_version = USER_AGENT, "lean"
        first.node.metadata["wire_revision"] = revisions.NEWEST
        if self.state:
            first.node.metadata[STATE_KEY] = self.state
        head = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, HEADER_BLOCK)
        return head + self._send(first, second)

    def receive(self, data: bytes) -> bytes:
        """Take what the server sent; answers what to send back."""
        answers = []
        self.tally.received += len(data)
        self._frames += data
        for kind, flags, stream, payload in self._whole_frames():
            if kind == DATA:
                answers.append(self._data(flags, payload))
            elif kind == PING and not flags & ACK:
                answers.append(frame(PING, ACK, 0, payload))
            elif kind == SETTINGS and not flags & ACK:
                answers.append(self._settings(payload))
            elif kind == WINDOW_UPDATE:
                answers.append(self._more_window(stream, payload))
            elif kind in (RST_STREAM, GOAWAY) or (kind == HEADERS and flags & END_STREAM):
                self.ended = f"frame {kind}: {payload[:300]!r}"
        return b"".join(answers)

    def _whole_frames(self) -> Iterator[tuple[int, int, int, bytes]]:
        start, buffer = 0, self._frames
        while len(buffer) - start >= 9:
            length = int.from_bytes(buffer[start : start + 3], "big")
            end = start + 9 + length
            if len(buffer) < end:
                break
            stream = int.from_bytes(buffer[start + 5 : start + 9], "big")
            yield buffer[start + 3], buffer[start + 4], stream, bytes(buffer[start + 9 : end])
            start = end
        del buffer[:start]

    # Flow control

    def _settings(self, payload: bytes) -> bytes:
        for key, value in struct.iter_unpack(">HI", payload):
            if key == INITIAL_WINDOW_SIZE:
                self._stream_window += value - self._first_window
                self._first_window = value
        return frame(SETTINGS, ACK, 0) + self._flush()

    def _more_window(self, stream: int, payload: bytes) -> bytes:
        more = int.from_bytes(payload, "big")
        if stream:
            self._stream_window += more
        else:
            self._window += more
        return self._flush()

    def _send(self, *requests: Request) -> bytes:
        for request in requests:
            data = request.SerializeToString(deterministic=True)
            self._waiting += struct.pack(">BI", 0, len(data)) + data
        return self._flush()

    def _flush(self) -> bytes:
        """What flow control lets through."""
        frames = []
        while self._waiting and (most := min(self._window, self._stream_window, MOST_IN_FRAME)) > 0:
            piece = bytes(self._waiting[:most])
            del self._waiting[:most]
            self._window -= len(piece)
            self._stream_window -= len(piece)
            frames.append(frame(DATA, 0, 1, piece))
        return b"".join(frames)

    def _data(self, flags: int, payload: bytes) -> bytes:
        self._unacked += len(payload)
        self._message += payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
        answer = self._converse()
        if self._unacked < FIRST_WINDOW // 2 or not self.grants:
            return answer
        more = struct.pack(">I", self._unacked)
        self._unacked = 0
        return answer + frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, 1, more)

    # The conversation

    def _converse(self) -> bytes:
        answers = []
        while len(self._message) >= 5:
            end = 5 + int.from_bytes(self._message[1:5], "big")
            if len(self._message) < end:
                break
            answers.append(self._respond(bytes(self._message[5:end])))
            del self._message[:end]
        return b"".join(answers)

    def _respond(self, data: bytes) -> bytes:
        response = Response.FromString(data)
        self.tally.messages += 1
        self.tally.bytes += len(data)
        if response.nonce == QUESTION and not response.system_version_info:
            return self._tell_versions(response.type_url)
        self._parts.append((response.type_url, response.nonce))
        if self._sharing.keeps_names:
            self._contents.append(_content(response))
        if not response.system_version_info:
            return b""
        return self._answer(response.system_version_info)

    def _tell_versions(self, type_url: str) -> bytes:
        self.tally.questions += 1
        versions = self._sharing.held.get(self.state, {}).get(type_url, {})
        return self._send(Request(type_url=type_url, response_nonce=QUESTION, initial_resource_versions=versions))

    def _answer(self, version: str) -> bytes:
        """One answer for each response of the state, as our agent gives them."""
        self.tally.states += 1
        self.tally.nonces.append(self._parts[-1][1])
        if self._sharing.keeps_names and version not in self._sharing.held:
            self._sharing.held[version] = _applied(self._sharing.held.get(self.state, {}), self._contents)
        self.state = "" if self.refuses else version
        requests = [Request(type_url=type_url, response_nonce=nonce) for type_url, nonce in self._parts]
        if self.refuses:
            requests[-1].error_detail.code = 3
            requests[-1].error_detail.message = self.refuses
        self._parts, self._contents = [], []
        return self._send(*requests)


def _content(response: Response) -> Content:
    versions = {resource.name: resource.version for resource in response.resources}
    return response.type_url, versions, tuple(response.removed_resources)


def _applied(before: Held, contents: list[Content]) -> Held:
    """What is held after a state."""
    held = {type_url: dict(before.get(type_url, {})) for type_url in TYPES}
    for type_url, versions, removed in contents:
        held[type_url].update(versions)
        for name in removed:
            held[type_url].pop(name, None)
    return held
