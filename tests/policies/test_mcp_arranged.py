"""What a client has arranged in its session is there in the one that takes its place, or the client is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.mcp.policies import MCP
from tests.carriers import Carrier, Received, Response
from tests.fakes.mcp_toys import Client, Toy
from tests.policies.test_mcp import FIRST, ONE, SECOND, TWO
from tests.policies.test_mcp_renewed import pair

ABLE = {"tools": {}, "logging": {}, "resources": {"subscribe": True, "listChanged": True}}
KEPT = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")


class Able(Toy):
    """A server with levels of logs and subscriptions: what each of its sessions has arranged, in its order."""

    def __init__(self, able: Any = ABLE) -> None:
        super().__init__(["add"], resources=["x://1", "x://2"])
        self.able = able
        self.has: dict[str, list[str]] = {}
        self.refuses: set[str] = set()

    def __call__(self, received: Received) -> Response:
        answer = super().__call__(received)
        message = json.loads(received.body) if received.body else {}
        method, session = message.get("method"), received.headers.get("mcp-session-id")
        if method == "initialize" and answer.status == 200:
            assert isinstance(answer.body, bytes)
            found = json.loads(answer.body)
            found["result"]["capabilities"] = self.able
            return Response(200, answer.headers, json.dumps(found).encode())
        if method in KEPT and answer.status == 200:
            if method in self.refuses:
                return self._answered(message, {"error": {"code": -32602, "message": "no"}})
            self.has.setdefault(str(session), []).extend(message["params"].values())
        return answer

    def forgets(self) -> None:
        self.sessions.clear()
        self.has.clear()

    @property
    def arranged(self) -> list[list[str]]:
        """In each session that is open."""
        return [self.has.get(each, []) for each in self.sessions]


def client_of(carrier: Carrier, several: bool, more: str = "", toy: Able | None = None) -> tuple[Client, Able]:
    toy = toy or Able()
    toy.methods["resources/unsubscribe"] = lambda params: {}
    toys: dict[str, Toy] = {FIRST: toy, SECOND: Toy(["add"])}
    client = Client(carrier.proxy((TWO if several else ONE) % more), toys)
    client.initialize()
    return client, toy


def arrange(client: Client, several: bool) -> None:
    prefix = "one+" if several else ""
    for number in (1, 2):
        assert client.result("resources/subscribe", {"uri": f"{prefix}x://{number}"}) == {}
    assert client.result("resources/unsubscribe", {"uri": f"{prefix}x://1"}) == {}
    for level in ("info", "debug"):
        assert client.result("logging/setLevel", {"level": level}) == {}


@pytest.mark.parametrize("several", [False, True])
def test_it_is_arranged_again_unnoticed(several: bool, carrier: Carrier) -> None:
    client, toy = client_of(carrier, several)
    arrange(client, several)
    for _ in range(2):
        toy.forgets()
        assert client.request("ping").status == 200
        assert toy.arranged == [["x://2", "debug"]]


def test_another_worker_knows_of_it(carrier: Carrier) -> None:
    one, other = pair(carrier)
    toy = Able()
    toy.methods["resources/unsubscribe"] = lambda params: {}
    one.toys[FIRST] = other.toys[FIRST] = toy
    one.session = ""
    one.initialize()
    other.session = one.session
    arrange(one, several=False)
    assert other.result("logging/setLevel", {"level": "error"}) == {}
    toy.forgets()
    assert one.request("ping").status == 200 and toy.arranged == [["x://2", "error"]]


def test_a_server_that_takes_it_no_more_ends_the_session(carrier: Carrier) -> None:
    client, toy = client_of(carrier, False)
    arrange(client, False)
    toy.forgets()
    toy.refuses = {"resources/subscribe"}
    answer = client.request("ping")
    assert (answer.status, answer.body) == (404, b"session not found")
    (line,) = [each for each in client.run.log_lines() if "reason=McpSessionUnknown" in each]
    assert "it has forgotten the session, and takes resources/subscribe no more" in line
    client.run.serve(client.answering)
    assert toy.sessions == [], "nobody uses it"
    assert client.request("ping").status == 404


def test_with_several_servers_it_ends_at_all_of_them(carrier: Carrier) -> None:
    client, toy = client_of(carrier, True, more="failureMode: FailOpen")
    arrange(client, True)
    toy.forgets()
    toy.refuses = {"logging/setLevel"}
    client.request("tools/list")
    client.run.serve(client.answering)
    assert client.request("ping").status == 404
    assert toy.sessions == client.toys[SECOND].sessions == []


@pytest.mark.parametrize("way", ["another replica", "too much", "made place"])
def test_what_nobody_knows_is_not_taken_for_nothing(way: str, carrier: Carrier) -> None:
    client, toy = client_of(carrier, False)
    memory = client.run.memory.context.of_kind(MCP).memory
    if way == "another replica":
        memory.arrangements._is_alone = False
    elif way == "too much":
        toy.resources = ["x://" + "1" * 1000]
        assert client.result("resources/subscribe", {"uri": toy.resources[0]}) == {}
    else:
        for number in range(1, 6):
            memory.arrangements.note(b"same" + bytes([0, 0, 0, number]), "one", "logging/setLevel", "info", 2**40)
    toy.forgets()
    assert client.request("ping").status == 404


@pytest.mark.parametrize("able", [{}, {"tools": {}, "resources": {}}, {"resources": {"subscribe": False}}])
def test_where_nothing_can_be_arranged_nothing_is_lost(able: Any, carrier: Carrier) -> None:
    client, toy = client_of(carrier, False, toy=Able(able))
    client.run.memory.context.of_kind(MCP).memory.arrangements._is_alone = False
    toy.forgets()
    assert client.request("ping").status == 200


def test_nothing_was_arranged(carrier: Carrier) -> None:
    client, toy = client_of(carrier, False)
    toy.forgets()
    assert client.request("ping").status == 200 and toy.arranged == [[]]


def test_a_server_that_was_lost_from_the_beginning_gets_the_level_when_it_is_there(carrier: Carrier) -> None:
    toy = Able()
    toy.down = True
    client, _ = client_of(carrier, True, "failureMode: FailOpen", toy)
    assert client.result("logging/setLevel", {"level": "debug"}) == {}
    toy.down = False
    assert client.request("tools/list").status == 200
    assert toy.arranged == [["debug"]]


def test_one_that_fails_while_it_is_arranged_is_tried_again(carrier: Carrier) -> None:
    client, toy = client_of(carrier, False)
    arrange(client, False)
    toy.forgets()
    toy.methods["resources/subscribe"] = lambda params: {}
    whole = client.toys[FIRST]

    def failing(received: Received) -> Response:
        return Response(503) if b"gw-again" in received.body else whole(received)

    client.toys[FIRST] = failing  # type: ignore[assignment]
    assert client.request("ping").status == 502
    client.toys[FIRST] = whole
    client.run.serve(client.answering)
    assert client.request("ping").status == 200
    assert toy.arranged == [["x://2", "debug"]], "what was made in vain has ended"
