"""What a test of a policy holds: one proxy with its configuration, whatever carries its exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dataplane.chain.calls import Calls
from dataplane.chain.filter import Row
from dataplane.upstream.endpoint import Endpoint
from tests.carriers.contract import Arrival, Client, Conversation, Ends
from tests.carriers.values import OK, Answer, Carried, Received, Request, Response
from tests.harness import leaks

PEER = ("192.0.2.7", 40000)

Answering = Response | Callable[[Received], Response]


class Run:
    """One proxy in memory and its clients and endpoints."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.memory = ends.memory
        """The proxy itself: configuration, clock, log, counters. Its transports are the carrier's."""
        self._written = 0
        self._clients: list[Client] = []

    # --- whole exchanges

    def carry(self, request: Request, answering: Answering = OK) -> Carried:
        """One exchange of a new client, from its beginning to its end."""
        before = len(self.arrivals)
        self.new_lines()
        answer = self.ask(request, answering, self.client())
        line, *others = self.new_lines()
        assert not others, others
        return Carried(answer, tuple(each.received for each in self.arrivals[before:]), line)

    def ask(self, request: Request, answering: Answering = OK, client: Client | None = None) -> Answer:
        """One exchange of a client (the run's own one), to whose tries, mirrors and calls endpoints answer so."""
        asked = (client or self.own).send(request)
        self.serve(answering)
        answer = asked.answer
        assert answer.ended or answer.reset, f"the exchange has not ended: {answer}"
        return answer

    def serve(self, answering: Answering = OK) -> None:
        """Answer all that arrived and has no answer yet."""
        while waiting := [each for each in self.arrivals if not each.is_answered and not each.is_cancelled]:
            for each in waiting:
                each.answer(answering(each.received) if callable(answering) else answering)

    # --- in steps

    @property
    def own(self) -> Client:
        """The run's own client."""
        if not self._clients:
            self._clients.append(self.client())
        return self._clients[0]

    def client(self, peer: tuple[str, int] = PEER) -> Client:
        """A new client."""
        return self.ends.client(peer)

    def begin(self, request: Request) -> Conversation:
        """The head of a request of the run's own client; its content comes later."""
        return self.own.begin(request)

    def send(self, request: Request) -> Conversation:
        """A whole request of the run's own client."""
        return self.own.send(request)

    @property
    def arrivals(self) -> Sequence[Arrival]:
        """All that arrived at endpoints so far."""
        return self.ends.arrivals()

    @property
    def arrival(self) -> Arrival:
        """The last one."""
        return self.arrivals[-1]

    # --- around it

    def load(self, text: str) -> None:
        """Make `text` the configuration."""
        self.memory.load(text)

    def advance(self, seconds: float) -> None:
        """Move the clock and fire what is due."""
        self.memory.advance(seconds)

    def random(self, draw: float) -> None:
        """What chance gives from now on, in [0, 1)."""
        self.memory.context.random = lambda: draw

    def refuse_connections(self, cause: str = "refused") -> None:
        """No endpoint can be reached any more; "" ends it."""
        self.memory.connector.refuse = cause

    def hold_connections(self) -> None:
        """Connections to endpoints take their time from now on, until `release_connections`."""
        self.memory.connector.hold = True

    def release_connections(self) -> None:
        """Those that are waited for come now."""
        self.memory.connector.release()

    @property
    def connections(self) -> int:
        """How many connections to endpoints were opened."""
        return len(self.memory.connector.upstreams)

    def connections_to(self, port: int) -> int:
        """How many of them to endpoints with this port."""
        ends: list[Any] = [upstream.protocol for upstream in self.memory.connector.upstreams]
        return sum(end.endpoint.port == port for end in ends)

    def resolve(self, resolver: Any) -> None:
        """Where names of backends are looked up; any: a fake of the resolver."""
        self.memory.context.resolver = resolver

    def log_lines(self) -> list[str]:
        """Lines of the access log so far."""
        return self.memory.log_lines()

    def new_lines(self) -> list[str]:
        """Those since the last look."""
        self.memory.context.access_log.close()
        written = self.memory.lines[self._written :]
        self._written += len(written)
        return b"".join(written).decode().splitlines()

    def counted(self, metric: str) -> dict[str, int]:
        """What a counter holds, by its first label; one without labels by ""."""
        series = self.memory.metrics.series()
        return {"".join(each.labels[:1]): values[0] for each, values in series if each.metric.name == metric}


class Names:
    """A resolver that knows these names, each with its addresses; others have none."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self.names = dict(names)
        self._found: dict[tuple[str, int], Endpoint] = {}
        self._answers: dict[tuple[Endpoint, ...], tuple[Endpoint, ...]] = {}

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        """While the addresses are the same, the same object: so it is with the product's, and others go by it."""
        found = tuple(self._endpoint(address, port) for address in self.names.get(host.decode(), ()))
        return self._answers.setdefault(found, found)

    def _endpoint(self, address: str, port: int) -> Endpoint:
        """The same each time: it has idle connections."""
        return self._found.setdefault((address, port), Endpoint(address, port))


class Carrier:
    """What the fixture `carrier` gives: it starts proxies over one way to carry exchanges."""

    def __init__(self, make: Callable[..., Ends]) -> None:
        self._make = make
        self._shared = lru_cache(maxsize=64)(self.proxy)

    def shared(self, text: str) -> Run:
        """As `proxy`, one for all tests that ask for the same text: they must leave nothing behind."""
        run = self._shared(text)
        if run.memory not in leaks.of_thread():  # it was made by another test
            leaks.made(run.memory)
        return run

    def proxy(self, text: str, calls: Calls | None = None, rows: Sequence[Row] | None = None) -> Run:
        """A new proxy with this standalone file; `calls` answers the calls of its policies instead of endpoints; `rows`
        in place of the registry of policies."""
        return Run(self._make(text, calls) if rows is None else self._make(text, calls, rows))
