"""404 of an MCP server: the end of a session where that is gone, and nothing of the kind elsewhere."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Carrier, Received, Response
from tests.fakes.mcp_toys import Client, Toy
from tests.policies.test_backend_mcp import opened, rule
from tests.policies.test_mcp import FIRST, SECOND

JSON = [("content-type", "application/json")]


class Odd(Toy):
    """A server that answers 404 to `GET`, and with `odd` to what that names."""

    odd: dict[str, Response | int]

    def __call__(self, received: Received) -> Response:
        if received.method == "GET":
            return Response(404, (), b"Cannot GET /mcp")
        message = json.loads(received.body) if received.body else {}
        answer = self.odd.get(message.get("method", ""))
        if isinstance(answer, int):
            error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": answer, "message": "no"}}
            return Response(404, JSON, json.dumps(error).encode())
        return answer or super().__call__(received)


def of_odd(carrier: Carrier, several: bool, policy: str = "{}", **odd: Response | int) -> tuple[Client, Odd]:
    client = opened(carrier, policy, several=several)
    toy = Odd(["add"])
    toy.odd = {name.replace("_", "/"): answer for name, answer in odd.items()}
    toy.sessions = client.toys[FIRST].sessions
    client.toys[FIRST] = toy
    return client, toy


@pytest.mark.parametrize("policy", ["{}", rule("true")], ids=["as it is", "with rules"])
@pytest.mark.parametrize("several", [False, True])
def test_a_server_without_a_route_for_get_keeps_its_session(several: bool, policy: str, carrier: Carrier) -> None:
    client, toy = of_odd(carrier, several, policy)
    before = list(toy.sessions)
    for _ in range(2):
        answer = client.ask("GET", ("accept", "text/event-stream"))
        assert (answer.status, answer.headers["allow"]) == (405, "POST, DELETE")
    assert toy.sessions == before and "initialize" not in toy.methods_got()
    assert client.request("ping").status == 200


def test_one_that_has_no_sessions_at_all_does_not_end_ours(carrier: Carrier) -> None:
    client = opened(carrier, "{}")
    toy = Odd(["add"], gives_sessions=False)
    toy.odd = {}
    client.toys[FIRST] = toy
    client.session = ""
    client.initialize()
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405
    assert toy.methods_got().count("ping") == 0, "there is no session that could be asked after"


def test_a_session_that_is_gone_is_renewed_for_get_as_well(carrier: Carrier) -> None:
    client, toy = of_odd(carrier, False)
    (before,) = toy.sessions
    toy.sessions.clear()
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405
    assert len(toy.sessions) == 1 and toy.sessions != [before]


@pytest.mark.parametrize("several", [False, True])
def test_an_error_with_status_404_is_the_answer_to_its_request(several: bool, carrier: Carrier) -> None:
    client, toy = of_odd(carrier, several, tools_call=-32602)
    before = list(toy.sessions)
    name = "one_add" if several else "add"
    assert client.error("tools/call", {"name": name}) == (200, -32602, "no")
    assert toy.sessions == before and toy.methods_got() == ["ping"]


@pytest.mark.parametrize("policy", ["{}", rule("true")], ids=["as it is", "with rules"])
@pytest.mark.parametrize("several", [False, True])
def test_a_list_that_a_server_does_not_know_is_empty_of_it(several: bool, policy: str, carrier: Carrier) -> None:
    client, toy = of_odd(carrier, several, policy, prompts_list=-32601)
    answer = client.request("prompts/list")
    assert answer.status == 200 and toy.methods_got() == ["ping"]


@pytest.mark.parametrize(
    "content", [b"<html>", b"", b'{"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": ""}}']
)
def test_any_other_404_of_a_session_that_is_there_is_a_failure(content: bytes, carrier: Carrier) -> None:
    client, toy = of_odd(carrier, False, tools_call=Response(404, JSON, content))
    assert client.error("tools/call", {"name": "add"})[:2] == (502, -32603)
    assert "it answered 404 within a session that it has" in client.run.log_lines()[-1]
    assert client.request("ping").status == 200 and len(toy.sessions) == 1


def test_a_notification_that_is_answered_so_is_a_failure_too(carrier: Carrier) -> None:
    client, _ = of_odd(carrier, False, notifications_cancelled=Response(404))
    assert client.post({"jsonrpc": "2.0", "method": "notifications/cancelled"}).status == 502
    assert client.request("ping").status == 200


def test_where_nobody_answers_the_question_after_the_session_it_is_left_alone(carrier: Carrier) -> None:
    client, toy = of_odd(carrier, False, ping=Response(503))
    before = list(toy.sessions)
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405
    assert toy.sessions == before


def test_a_server_that_does_not_know_ping_and_says_404_to_that_has_its_session(carrier: Carrier) -> None:
    client, toy = of_odd(carrier, False, ping=-32601)
    before = list(toy.sessions)
    assert client.ask("GET", ("accept", "text/event-stream")).status == 405
    assert toy.sessions == before


def test_the_other_server_is_not_asked(carrier: Carrier) -> None:
    client, _ = of_odd(carrier, True)
    client.ask("GET", ("accept", "text/event-stream"))
    assert "ping" not in client.toys[SECOND].methods_got()
