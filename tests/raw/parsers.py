"""Two readers of what the origin received that are not the gateway's own parser: h11, and Go's net/http.

`read_h11` and `GoParser.read` answer the same: the whole requests in the bytes, and whether anything was left over.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11

_GO = Path(__file__).parent / "goparse"


IN_TRAILERS = "in trailers:"
"""How the error of an oracle begins that read a request up to its trailers."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One whole request. `fields` are lower-case names with values, sorted, Host apart."""

    method: bytes
    target: bytes
    host: bytes
    body: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    trailers: tuple[tuple[bytes, bytes], ...]

    def values(self, name: bytes) -> list[bytes]:
        return [v for n, v in self.fields if n == name]


@dataclass(frozen=True, slots=True)
class Reading:
    """`rest`: "" when the bytes end with a request, "incomplete" or "error: ..." otherwise."""

    requests: tuple[Parsed, ...]
    rest: str


def _sorted(pairs: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(sorted((n.lower(), v) for n, v in pairs))


def read_h11(data: bytes, skip_empty_line: bool = False) -> Reading:
    """Every request in `data`, as h11 reads it; an empty line before one (RFC 9112 2.2) is an error or skipped."""
    found: list[Parsed] = []
    while data:
        if skip_empty_line:
            data = data.removeprefix(b"\r\n")
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        parser.receive_data(data)
        try:
            parsed = _one(parser)
        except h11.RemoteProtocolError as error:
            return Reading(tuple(found), f"error: {error}")
        if parsed is None:
            return Reading(tuple(found), "incomplete")
        found.append(parsed)
        data = parser.trailing_data[0]
    return Reading(tuple(found), "")


def _one(parser: h11.Connection) -> Parsed | None:
    request: h11.Request | None = None
    body = b""
    while True:
        reader = parser._reader
        try:
            event = parser.next_event()
        except h11.RemoteProtocolError as error:
            if getattr(reader, "_reading_trailer", False):
                raise h11.RemoteProtocolError(f"{IN_TRAILERS} {error}") from error
            raise
        if isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            pairs = [(n, v) for n, v in request.headers if n not in (b"host", b"content-length", b"transfer-encoding")]
            hosts = [v for n, v in request.headers if n == b"host"]
            host = b", ".join(hosts)
            return Parsed(request.method, request.target, host, body, _sorted(pairs), _sorted(list(event.headers)))
        else:
            return None


def read_h11_responses(data: bytes) -> Reading:
    """Every response to a GET request in `data`, interim ones too, as h11 reads them; `data` ends with its connection.

    A response has its status where a request has its method.
    """
    found: list[Parsed] = []
    while data:
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        parser.send(h11.Request(method=b"GET", target=b"/", headers=[(b"host", b"a.example")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(data)
        parser.receive_data(b"")
        try:
            parsed = _one_response(parser, found)
        except h11.RemoteProtocolError as error:
            text = str(error)
            return Reading(tuple(found), "incomplete" if "closed" in text else f"error: {text}")
        if parsed is None:
            return Reading(tuple(found), "incomplete")
        found.append(parsed)
        data = parser.trailing_data[0]
    return Reading(tuple(found), "")


def _one_response(parser: h11.Connection, interim: list[Parsed]) -> Parsed | None:
    head: h11.Response | None = None
    body = b""
    while True:
        event = parser.next_event()
        if isinstance(event, h11.InformationalResponse):
            interim.append(_response(event, b"", ()))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _response(head, body, _sorted(list(event.headers)))
        else:
            return None


def _response(
    head: h11.Response | h11.InformationalResponse, body: bytes, trailers: tuple[tuple[bytes, bytes], ...]
) -> Parsed:
    pairs = [(n, v) for n, v in head.headers if n not in (b"content-length", b"transfer-encoding")]
    return Parsed(b"%d" % head.status_code, b"", b"", body, _sorted(pairs), trailers)


class GoParser:
    """Go's `http.ReadRequest` or `http.ReadResponse` over any number of byte strings, one process for all of them."""

    def __init__(self, go: str = "go") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="goparse")
        self._binary = Path(self._folder.name) / "goparse"
        subprocess.run([go, "build", "-o", self._binary, "."], cwd=_GO, check=True, capture_output=True)

    def close(self) -> None:
        self._folder.cleanup()

    def read(self, inputs: Sequence[bytes], kind: str = "requests") -> list[Reading]:
        """One reading for each input; `kind`: "requests" or "responses" (to GET requests)."""
        text = b"".join(b64encode(data) + b"\n" for data in inputs)
        out = subprocess.run([self._binary, kind], input=text, check=True, capture_output=True).stdout
        return [_reading(json.loads(line)) for line in out.splitlines()]


def _reading(row: dict[str, Any]) -> Reading:
    return Reading(tuple(_parsed(r) for r in row["messages"]), row["rest"])


def _parsed(row: dict[str, Any]) -> Parsed:
    method, target, host, body = (b64decode(row[name]) for name in ("method", "target", "host", "body"))
    fields, trailers = (
        _sorted([(b64decode(name), b64decode(value)) for name, value in row[kind]]) for kind in ("fields", "trailers")
    )
    return Parsed(method, target, host, body, fields, trailers)
