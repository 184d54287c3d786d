"""A row's configuration behind the front door: a whole proxy in memory, and servers that answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.standalone import standalone
from gatewright.api.text import yaml_text
from gatewright.wire.v1 import resource_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.outside.dialects.case import Ask
from tests.unit.translate.golden import World

OK = "HTTP/1.1 200 OK"
LONGEST_WAIT = 0.1
"""Seconds before another try."""


class Request:
    """One that a server got."""

    def __init__(self, server: str, data: bytes) -> None:
        head, _, body = data.decode().partition("\r\n\r\n")
        line, *lines = head.split("\r\n")
        self.server = server
        self.line = line.removesuffix(" HTTP/1.1")
        self.headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in lines)}
        self.body = body


class Served(MemoryProxy):
    """A proxy with the configuration of a row: a standalone file, or objects that the control plane translates."""

    def __init__(self, text: str, servers: Mapping[str, str], gateway: str = "default/web") -> None:
        self.servers = servers
        self.gateway = gateway
        self.dice = 0.0
        super().__init__(text)
        self.context.random = lambda: self.dice

    def load(self, text: str) -> None:
        if is_file(text):
            super().load(text)
            return
        world = World()
        world.put(text)
        changes = [
            Change(url, name, data) for (owner, url, name), data in world.resources.items() if owner == self.gateway
        ]
        assert changes, f"no resources for {self.gateway}"
        invalid = [
            each.name
            for each in changes
            if each.type_url == RESOURCE_TYPE and resource_pb2.Resource.FromString(each.value or b"").policy.invalid
        ]
        assert not invalid, invalid
        for _ in self.applier.apply(changes):
            pass
        assert not self.applier.outcome.refused, self.applier.outcome.refused

    def ask(self, ask: Ask) -> tuple[int, dict[str, str], str, list[Request]]:
        """Status, headers and body that the client got, and what servers got."""
        self.dice = ask.dice
        if ask.after:
            self.advance(ask.after)
        for upstream in self.connector.upstreams:
            upstream.take()
        headers = {"host": "shop.example.com", **ask.headers}
        if ask.body:
            headers["content-length"] = str(len(ask.body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client = self.connect()
        client.send(f"{ask.request} HTTP/1.1\r\n{lines}\r\n{ask.body}".encode())
        got = self._let_servers_answer()
        head, _, body = client.received.decode().partition("\r\n\r\n")
        first, *rest = head.split("\r\n")
        pairs = (each.partition(": ") for each in rest)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body, got

    def _let_servers_answer(self) -> list[Request]:
        """Until nobody has anything to answer, also after the longest wait before another try."""
        got: list[Request] = []
        for _ in range(3):
            while waiting := [each for each in self.connector.upstreams if each.open and each.received]:
                for upstream in waiting:
                    request = Request(upstream.protocol.endpoint.label, upstream.take())
                    got.append(request)
                    upstream.answer(self._answer(request))
            self.advance(LONGEST_WAIT)
        return got

    def _answer(self, request: Request) -> bytes:
        first = self.servers.get(request.server, OK)
        if first.startswith("HTTP/1.1 101"):
            return f"{first}\r\n\r\n".encode()
        first, _, body = first.partition("\n\n")
        return f"{first}\r\ncontent-length: {len(body or 'ok')}\r\n\r\n{body or 'ok'}".encode()


def is_file(text: str) -> bool:
    """Whether a row's text is a standalone file."""
    try:
        value: Any = yaml_text.load(text)
    except yaml_text.TextError:
        return re.search(r"^binds:", text, re.MULTILINE) is not None
    return standalone.is_standalone(value)
