"""Both planes in memory: objects as text in, bytes of clients and endpoints out; edits arrive as states do."""

from __future__ import annotations

from dataplane.table.store import Change
from tests.fakes.memory_proxy import MemoryProxy
from tests.unit.translate.golden import World

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class BothPlanes(MemoryProxy):
    """A proxy of one Gateway, and the control plane's translation before it."""

    def __init__(self, text: str, gateway: str = "default/web") -> None:
        self.world = World()
        self.gateway = gateway
        self.answer = OK
        self.asked: list[tuple[str, bytes]] = []
        """What endpoints got."""
        super().__init__(text)

    def load(self, text: str) -> None:
        """These objects come, or change."""
        self.world.put(text)
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

    def ask(self, path: str = "/", *lines: str, method: str = "GET", body: str = "") -> tuple[int, str]:
        """Status and body that a client gets; endpoints answer `answer`."""
        length = [f"content-length: {len(body)}"] if body or method == "POST" else []
        client = self.connect()
        head = [f"{method} {path} HTTP/1.1", "host: shop.example.com", *lines, *length, "", ""]
        client.send(("\r\n".join(head) + body).encode())
        for _ in range(8):  # tries of one request
            for upstream in self.connector.upstreams:
                if upstream.open and upstream.received:
                    self.asked.append((upstream.protocol.endpoint.label, upstream.take()))
                    upstream.answer(self.answer)
            self.advance(0.1)
        first, _, content = client.received.decode().partition("\r\n\r\n")
        client.lose()
        return int(first.split()[1]), content

    def reached(self) -> list[str]:
        """Endpoints that got anything since the last look."""
        found, self.asked = [label for label, _ in self.asked], []
        return found
