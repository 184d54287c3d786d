"""Both planes in memory: objects as text in, bytes of clients and endpoints out; edits arrive as states do."""

from __future__ import annotations

from typing import Any

from controlplane.sources import decode
from controlplane.sources.file_state import Staged
from controlplane.sources.tree import Tree
from dataplane.server.protocols import plan_of
from dataplane.table.store import Change
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.unit.translate.golden import World

TRIES = 8
"""Rounds in which endpoints answer: more than any request has tries."""

WAIT = 0.1
"""Seconds between two of them: the longest wait before another try."""

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class BothPlanes(MemoryProxy):
    """A proxy of one Gateway, and the control plane's translation before it."""

    def __init__(self, text: str, gateway: str = "default/web", **named: Any) -> None:
        """`named`: as `MemoryProxy` takes it."""
        self.world = World()
        self.folder = Tree(decode.decode, decode.with_generation)
        self.gateway = gateway
        self.answers: dict[str, bytes] = {}
        """Of endpoints, by label; others say OK."""
        self.asked: list[tuple[str, str]] = []
        """What endpoints got."""
        super().__init__(text, **named)

    def load(self, text: str) -> None:
        """These objects come, or change."""
        self.world.put(text)
        self._arrive()

    def save(self, text: str) -> None:
        """A file has this text now, with or without mistakes."""
        *_, staged = self.folder.stage("a.yaml", text)
        assert isinstance(staged, Staged)
        self.world.program.apply(self.folder.commit(staged))
        self._arrive()

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        """An object goes."""
        self.world.apply([(kind, (namespace, name), None)])
        self._arrive()

    def _arrive(self) -> None:
        batches, self.world.batches[:] = [*self.world.batches], []
        changes = [
            Change(url, name, data) for batch in batches for owner, url, name, data in batch if owner == self.gateway
        ]
        for _ in self.applier.apply(changes):
            pass
        assert not self.applier.outcome.refused, self.applier.outcome.refused

    def ask(self, path: str = "/", *lines: str, method: str = "GET", body: str = "", port: int = 0) -> tuple[int, str]:
        """Status and body that a client gets; endpoints answer OK, or what `answers` says."""
        status, _, content = self.response(path, *lines, method=method, body=body, port=port)
        return status, content

    def response(
        self, path: str = "/", *lines: str, method: str = "GET", body: str = "", port: int = 0
    ) -> tuple[int, dict[str, str], str]:
        """As `ask`, with the headers. `port`: of the bind; 0: the only one."""
        length = [f"content-length: {len(body)}"] if body or method == "POST" else []
        host = [] if any(line.startswith("host:") for line in lines) else ["host: shop.example.com"]
        client = self.connect_to(port)
        client.send(("\r\n".join([f"{method} {path} HTTP/1.1", *host, *lines, *length, "", ""]) + body).encode())
        self.endpoints_answer()
        head, _, content = client.received.decode().partition("\r\n\r\n")
        if client.open:
            client.lose()
        first, *headers = head.split("\r\n")
        pairs = (each.partition(": ") for each in headers)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, content

    def connect_to(self, port: int) -> FakeTransport:
        """A client of the bind with this port."""
        if not port:
            return self.connect()
        bind = next(key for key in self.applier.current.table.binds if key.endswith(f"/{port}"))
        client = FakeTransport(plan_of(self.context, bind).open())
        self.clients.append(client)
        return client

    def endpoints_answer(self) -> None:
        """What waits at endpoints is answered, also what comes with another try."""
        for _ in range(TRIES):
            for upstream in self.connector.upstreams:
                if upstream.open and upstream.received:
                    label = upstream.protocol.endpoint.label
                    self.asked.append((label, upstream.take().decode("latin-1")))
                    upstream.answer(self.answers.get(label, OK))
            self.advance(WAIT)

    def reached(self) -> list[str]:
        """Endpoints that got anything since the last look."""
        return [label for label, _ in self.taken()]

    def taken(self) -> list[tuple[str, str]]:
        """The same, with what they got."""
        found, self.asked = self.asked, []
        return found
