"""`sessionRouting`: a session stays at the endpoint of the server that began it, since others do not know it; without
sessions any endpoint will do."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dataplane.upstream.endpoint import Endpoint
from tests.carriers import Carrier, Received, Response
from tests.fakes.both_planes import TRIES, WAIT, BothPlanes
from tests.fakes.mcp_toys import BOTH, HELLO, Client, Toy
from tests.policies.test_mcp import ONE
from tests.policies.test_mcp_levels import OBJECTS, SERVICE

ADDRESSES = tuple(f"10.0.0.{number}" for number in range(1, 5))
POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: eviction}
spec:
  targetRefs: [{group: '', kind: Service, name: tools}]
  backend: {health: {eviction: {duration: 1m, consecutiveFailures: 5}}}
"""


def objects(routing: str = "Stateful", addresses: tuple[str, ...] = ADDRESSES, more: str = "") -> str:
    text = OBJECTS.replace("OWN", "").replace("TARGET", SERVICE)
    text = text.replace("    targets:", f"    sessionRouting: {routing}\n    targets:")
    endpoints = ", ".join(f"{{addresses: [{each}]}}" for each in addresses)
    return text.replace("endpoints: [{addresses: [10.0.0.1]}]", f"endpoints: [{endpoints}]") + more


class Servers(BothPlanes):
    """Each endpoint is a server of its own: it knows the sessions that it has begun, which have its name."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.context.leases.random = Random(7).random

    def endpoints_answer(self) -> None:
        for _ in range(TRIES):
            for upstream in self.connector.upstreams:
                if upstream.open and upstream.received:
                    label = upstream.protocol.endpoint.label
                    text = upstream.take().decode("latin-1")
                    self.asked.append((label, text))
                    upstream.answer(self.answered(label, text))
            self.advance(WAIT)

    def answered(self, label: str, text: str) -> bytes:
        head, _, body = text.partition("\r\n\r\n")
        message = json.loads(body) if body else {}
        if message.get("method") != "initialize" and f"mcp-session-id: of {label}\r\n" not in f"{head}\r\n".lower():
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
        if "id" not in message:
            return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2025-06-18"}}
        content = json.dumps(answer).encode()
        lines = f"content-type: application/json\r\nmcp-session-id: of {label}\r\ncontent-length: {len(content)}"
        return b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (lines.encode(), content)

    def message(self, method: str, session: str = "", params: Any = None) -> tuple[int, str, list[str]]:
        """Status, session, and who was asked what, in order."""
        before = len(self.asked)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}})
        lines = [f"accept: {BOTH}", "content-type: application/json"]
        lines += [f"mcp-session-id: {session}"] if session else []
        status, headers, _ = self.response("/mcp", *lines, method="POST", body=body)
        return status, headers.get("mcp-session-id", ""), [label for label, _ in self.asked[before:]]

    def begin(self) -> tuple[str, str]:
        """A session, and the endpoint that has begun it."""
        status, session, (label,) = self.message("initialize", params=HELLO)
        assert status == 200 and session
        return session, label


@pytest.mark.parametrize("more", ["", POLICY])
def test_a_session_stays_at_its_endpoint(more: str) -> None:
    proxy = Servers(objects(more=more))
    begun = [proxy.begin() for _ in range(12)]
    assert len({label for _, label in begun}) > 1, "sessions are spread"
    for session, label in begun * 2:
        assert proxy.message("tools/list", session) == (200, "", [label])


def test_another_replica_finds_the_endpoint_in_the_id() -> None:
    proxy, replica = Servers(objects()), Servers(objects())
    replica.context.session_key = proxy.context.session_key
    for _ in range(8):
        session, label = proxy.begin()
        assert replica.message("tools/list", session) == (200, "", [label])


def test_a_session_whose_endpoint_is_gone_is_opened_at_another_and_stays_there() -> None:
    proxy = Servers(objects())
    session, label = proxy.begin()
    left = tuple(each for each in ADDRESSES if f"{each}:" not in label)
    assert len(left) == len(ADDRESSES) - 1
    proxy.load(objects(addresses=left))
    status, _, asked = proxy.message("tools/list", session)
    assert status == 200 and label not in asked
    again = asked[-1]
    for _ in range(8):
        assert proxy.message("tools/list", session) == (200, "", [again])


def test_without_sessions_any_endpoint_will_do() -> None:
    proxy = Servers(objects("Stateless"))
    status, session, _ = proxy.message("initialize", params=HELLO)
    assert (status, session) == (200, "")
    asked = [proxy.message("tools/list") for _ in range(12)]
    assert {status for status, _, _ in asked} == {200}
    assert len({labels[-2] for _, _, labels in asked}) > 1


def test_within_one_request_without_sessions_the_endpoint_is_the_same() -> None:
    """`initialize`, `notifications/initialized`, the request and the end of its session."""
    proxy = Servers(objects("Stateless"))
    for _ in range(12):
        _, _, asked = proxy.message("tools/list")
        assert len(asked) == 4 and len(set(asked)) == 1, asked


class Names:
    """A resolver that knows several addresses of a name."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return self.known

    def __init__(self) -> None:
        self.known = tuple(Endpoint(address, 9001) for address in ADDRESSES)


def test_a_session_stays_at_one_address_of_a_name(carrier: Carrier) -> None:
    run = carrier.proxy((ONE % "").replace("host: 127.0.0.1", "host: tools.example"))
    run.resolve(Names())
    run.memory.context.leases.random = Random(7).random
    toys = {address: Toy() for address in ADDRESSES}

    def answering(received: Received) -> Response:
        return toys[run.arrival.endpoint.address](received)

    clients = []
    for _ in range(8):
        client = Client(run, {})
        client.answering = answering  # type: ignore[method-assign]  # by address: all have one name
        client.initialize()
        clients.append(client)
    assert sum(len(toy.sessions) > 0 for toy in toys.values()) > 1
    for client in clients * 2:
        assert client.names() == ["add"]
    assert sum(toy.methods_got().count("initialize") for toy in toys.values()) == 8, "none was opened anew"
