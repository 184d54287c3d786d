"""MCP servers that mean no good, or are broken: answers to what was not asked, of another kind or status, late or
never; streams written in every way that is allowed; names and ids that are no good."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dataplane.backends.mcp import answers
from dataplane.backends.terminating.pump import MANY, EventPump
from dataplane.http.sse import EventReader
from dataplane.mcp import plans
from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import BOTH, HELLO, Client, Toy, response
from tests.policies.test_mcp import FIRST, SECOND, TWO, of_one, of_two, open_two
from tests.policies.test_mcp_notices import EVENTS, event

JSON = [("content-type", "application/json")]
OPEN = "failureMode: FailOpen"


def asked(client: Client, method: str, params: Any = None, number: Any = 5) -> Conversation:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()
    lines = [("accept", BOTH), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    return client.run.send(Request("POST", "/mcp", lines, body))


def result(number: Any = 5, **fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": fields}).encode()


def stream(client: Client) -> Conversation:
    return client.run.send(
        Request("GET", "/mcp", [("accept", "text/event-stream"), ("mcp-session-id", client.session)])
    )


# --- answers to what was not asked

TOOLS = {"tools": [{"name": "x", "inputSchema": {}}]}
WRONG: list[Response] = [
    Response(200, JSON, result(6, **TOOLS)),
    Response(200, JSON, result("5", **TOOLS)),
    Response(200, JSON, json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}).encode()),
    Response(200, JSON, json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}).encode()),
    Response(200, JSON, b"[" + result(5, **TOOLS) + b"]"),
    Response(200, JSON, b""),
    Response(200, EVENTS.headers, event({"id": 6, "result": TOOLS})),
    Response(200, EVENTS.headers, event({"id": 5, "method": "tools/list"})),
    Response(200, EVENTS.headers, b"data: " + result(5, **TOOLS)),
    Response(200, [("content-type", "text/html")], b"<html>"),
    Response(202),
    Response(204),
    Response(307, [("location", "http://127.0.0.9:1/mcp")]),
    Response(401, [("www-authenticate", "Bearer")], b"no"),
    Response(200, [*JSON, ("content-encoding", "gzip")], b"\x1f\x8b"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[str(index) for index in range(len(WRONG))])
def test_what_is_no_answer_to_a_list_is_none_of_its_parts(wrong: Response, carrier: Carrier) -> None:
    client = open_two(carrier, more=OPEN)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    one.answer(wrong)
    two.answer(client.toys[SECOND](two.received))
    assert [each["name"] for each in response(waits.answer)["result"]["tools"]] == ["two_add", "two_sub"]
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    one.answer(wrong)
    two.answer(client.toys[SECOND](two.received))
    assert waits.answer.status == 502 and response(waits.answer)["id"] == 5
    client.run.serve(client.answering)
    assert client.toys[FIRST].sessions == client.toys[SECOND].sessions == []
    assert client.request("ping").status == 404, "the session has failed"


@pytest.mark.parametrize("wrong", WRONG, ids=[str(index) for index in range(len(WRONG))])
def test_nor_of_an_initialize(wrong: Response, carrier: Carrier) -> None:
    client = of_two(carrier, more=OPEN)
    waits = asked(client, "initialize", HELLO)
    one, two = client.run.arrivals[-2:]
    one.answer(wrong)
    two.answer(client.toys[SECOND](two.received))
    client.session = waits.answer.headers["mcp-session-id"] or ""
    assert response(waits.answer)["result"]["serverInfo"]["name"] == "gatewright"
    assert client.names() == ["one_add", "two_add", "two_sub"], "the lost one was asked again"


def test_the_log_says_that_a_stream_had_no_answer(carrier: Carrier) -> None:
    client = open_two(carrier)
    asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    one.answer(Response(200, EVENTS.headers, event({"method": "notifications/message", "params": {}})))
    two.answer(client.toys[SECOND](two.received))
    client.run.serve(client.answering)
    assert any("its stream ended without an answer" in line for line in client.run.log_lines())


async def test_events_of_one_read_give_way_to_others_now_and_then() -> None:
    """Rules may be asked about each: thousands of them in one turn would hold up the worker."""
    turns = 0
    has_ended = False

    async def count() -> None:
        nonlocal turns
        while not has_ended:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    parts = [b"data:1\n\n" * 1000]

    class Call:
        async def receive(self) -> bytes:
            return parts.pop() if parts else b""

    pump, seen = EventPump(Call(), 1 << 20), list[int]()
    while await pump.next() is not None:
        seen.append(turns)
    has_ended = True
    await counting
    assert len(seen) == 1000
    assert seen.count(seen[0]) <= MANY and seen[-1] - seen[0] >= 1000 // MANY - 1
    assert max(map(seen.count, set(seen))) <= MANY


def test_an_error_without_an_id_is_that_of_the_request(carrier: Carrier) -> None:
    client = open_two(carrier, more=OPEN)
    waits = asked(client, "tools/list", number="mine")
    for each in client.run.arrivals[-2:]:
        each.answer(Response(200, JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}'))
    found = response(waits.answer)
    assert (found["id"], found["error"]["code"]) == ("mine", -32700)


def test_what_a_server_says_while_a_list_is_made_is_no_part_of_it(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    one.head(EVENTS)
    one.content(event({"id": 5, "method": "sampling/createMessage", "params": {}}))
    one.content(event({"id": 4, "result": {"tools": [{"name": "evil"}]}}))
    one.content(event({"method": "notifications/message", "params": {}}))
    twice = [event({"id": 5, "result": {"tools": [{"name": name}]}}) for name in ("first", "second")]
    one.content(b"".join(twice))
    names = [each["name"] for each in response(waits.answer)["result"]["tools"]]
    assert names == ["one_first", "two_add", "two_sub"] and one.is_cancelled


@pytest.mark.parametrize("method", ["tools/call", "tasks/get"])
def test_a_server_answers_no_request_that_another_one_got(method: str, carrier: Carrier) -> None:
    """Clients know their requests by ids alone, whichever stream brings an answer."""
    client = open_two(carrier)
    params = {"name": "one_add"} if method == "tools/call" else {"taskId": "one+t"}
    waits = asked(client, method, params)
    client.run.arrival.head(EVENTS)
    for answer in ({"result": {"content": ["stolen"]}}, {"error": {"code": 1, "message": "stolen"}}):
        client.run.arrival.content(event({"id": 6, **answer}))
    client.run.arrival.content(event({"id": 5, "result": {"content": []}}))
    client.run.arrival.end()
    assert b"stolen" not in waits.answer.body and response(waits.answer)["result"] == {"content": []}
    waits = asked(client, method, params)
    client.run.arrival.answer(Response(200, JSON, result(6, content=["stolen"])))
    assert waits.answer.status == 502
    client.run.serve(client.answering)


def test_nor_on_the_stream_of_what_it_has_to_say_unless_that_goes_on(carrier: Carrier) -> None:
    client = open_two(carrier)
    for last, passes in ((b"", False), (b"one:3", True)):
        lines = [("accept", "text/event-stream"), ("mcp-session-id", client.session)]
        before = len(client.run.arrivals)
        listens = client.run.send(
            Request("GET", "/mcp", [*lines, *([("last-event-id", last.decode())] if last else [])])
        )
        one, *others = client.run.arrivals[before:]
        for each in others:
            each.answer(Response(405))
        one.head(EVENTS)
        one.content(event({"id": 5, "result": {"content": ["late"]}}) + event({"method": "notifications/message"}))
        assert b"notifications/message" in listens.answer.body and (b"late" in listens.answer.body) is passes
        one.end()


# --- answers that do not come


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("method", ["tools/list", "ping", "logging/setLevel"])
def test_a_server_that_does_not_answer_is_not_waited_for_without_end(
    method: str, begins: bool, carrier: Carrier
) -> None:
    """`begins`: it gives a head, and says it is alive."""
    client = open_two(carrier, more=OPEN)
    waits = asked(client, method)
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    if begins:
        one.head(EVENTS)
        for _ in range(3):
            client.run.advance(9)
            one.content(b": alive\n\n")
    else:
        client.run.advance(27)
    assert not waits.answer.ended
    client.run.advance(4)
    assert waits.answer.status == 200 and "result" in response(waits.answer)
    assert one.is_cancelled


def test_nor_is_one_that_does_not_answer_initialize(carrier: Carrier) -> None:
    client = of_two(carrier)
    waits = asked(client, "initialize", HELLO)
    one, two = client.run.arrivals[-2:]
    one.head(EVENTS)
    one.content(b"id: 1\ndata:\n\n")
    two.answer(client.toys[SECOND](two.received))
    client.run.advance(16)
    assert waits.answer.status == 502 and one.is_cancelled
    assert "its answer was not whole in time" in client.run.log_lines()[-1]
    client.run.serve(client.answering)
    assert client.toys[SECOND].sessions == []


def test_a_call_may_take_as_long_as_it_takes(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/call", {"name": "one_add"})
    client.run.advance(3600)
    client.run.arrival.head(EVENTS)
    client.run.advance(3600)
    client.run.arrival.content(event({"id": 5, "result": {"content": []}}))
    client.run.arrival.end()
    assert response(waits.answer)["result"] == {"content": []}


def test_a_stream_of_all_begins_with_the_first_and_others_join(carrier: Carrier) -> None:
    """Some servers give the head of a stream with its first event."""
    client = open_two(carrier)
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    two.head(EVENTS)
    two.content(event({"method": "notifications/message", "params": {"data": "of two"}}))
    assert listens.answer.status == 200 and b"of two" in listens.answer.body
    one.head(EVENTS)
    one.content(event({"method": "notifications/message", "params": {"data": "of one"}}))
    assert b"of one" in listens.answer.body
    one.end()
    assert not listens.answer.ended
    two.end()
    assert listens.answer.ended and not listens.answer.reset


def lose(client: Client, arrival: Arrival) -> None:
    """Its server breaks off, and again when it is asked on a new connection."""
    before = len(client.run.arrivals)
    arrival.reset()
    for each in client.run.arrivals[before:]:
        each.reset()


@pytest.mark.parametrize("more", ["", OPEN])
def test_a_stream_that_one_server_fails(more: str, carrier: Carrier) -> None:
    client = open_two(carrier, more=more)
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    two.head(EVENTS)
    lose(client, one)
    assert listens.answer.reset is (not more), "with FailOpen the other one goes on"
    assert two.is_cancelled is (not more)
    if more:
        two.content(event({"method": "notifications/message", "params": {"data": "of two"}}))
        assert b"of two" in listens.answer.body
        two.reset()
        assert listens.answer.reset, "the last one is lost"


def test_a_stream_ends_as_the_last_of_them_does(carrier: Carrier) -> None:
    client = open_two(carrier, more=OPEN)
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    one.answer(Response(405))
    two.head(EVENTS)
    two.reset()
    assert listens.answer.reset, "it was the only one, and was lost"
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    one.head(EVENTS)
    two.head(EVENTS)
    two.reset()
    one.end()
    assert listens.answer.ended and not listens.answer.reset


def test_of_two_servers_one_fails_and_one_has_no_stream(carrier: Carrier) -> None:
    client = open_two(carrier)
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    two.answer(Response(405))
    lose(client, one)
    assert listens.answer.status == 502


def test_a_server_that_never_has_its_session_is_asked_once_more_and_no_more(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()
    before = len(client.run.arrivals)
    client.toys[FIRST] = lambda received: (  # type: ignore[assignment]  # a server that forgets at once
        toy(received) if b"initialize" in received.body else Response(404, (), b"gone")
    )
    assert client.request("tools/list").status == 502
    sent = [json.loads(each.received.body).get("method") for each in client.run.arrivals[before:]]
    assert sent == ["tools/list", "ping", "initialize", "notifications/initialized", "tools/list"]


@pytest.mark.parametrize("text", ["x" * 1025, "a\x80b", "\xad"])
def test_a_session_id_that_cannot_be_kept_fails_initialize(text: str, carrier: Carrier) -> None:
    client, toy = of_one(carrier)

    def answering(received: Any) -> Response:
        made = toy(received)
        return Response(made.status, [*JSON, ("mcp-session-id", text)], made.body)

    client.toys[FIRST] = answering  # type: ignore[assignment]
    assert client.request("initialize", HELLO).status == 502


def test_one_that_is_as_long_as_it_may_be_is_kept(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    text = "x" * 1024

    def answering(received: Any) -> Response:
        made = toy(received)
        toy.sessions[:] = [text]
        return Response(made.status, [*JSON, ("mcp-session-id", text)], made.body)

    client.toys[FIRST] = answering  # type: ignore[assignment]
    client.initialize()
    assert client.names() == ["add"]
    assert client.run.arrivals[-1].received.headers["mcp-session-id"] == text


def test_a_session_id_of_a_server_reaches_no_client(carrier: Carrier) -> None:
    client, toy = of_one(carrier)
    client.initialize()

    def answering(received: Any) -> Response:
        made = toy(received)
        return Response(made.status, [*JSON, ("mcp-session-id", "of-the-server"), ("x-other", "1")], made.body)

    client.toys[FIRST] = answering  # type: ignore[assignment]
    answer = client.request("tools/call", {"name": "add"})
    assert answer.headers.get("mcp-session-id") is None and answer.headers["x-other"] == "1"
    assert client.request("ping").status == 200


def test_a_redirect_is_not_followed(carrier: Carrier) -> None:
    client, _ = of_one(carrier)
    client.initialize()
    waits = asked(client, "tools/call", {"name": "add"})
    before = len(client.run.arrivals)
    client.run.arrival.answer(Response(307, [("location", "http://127.0.0.2:9001/mcp")]))
    assert waits.answer.status == 307 and len(client.run.arrivals) == before


# --- how a stream is written


def pieces(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


ANSWER = b'{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"t","inputSchema":{}}]}}'
SPLIT = ANSWER.replace(b",", b",\ndata: ")
WRITTEN = [
    b"data: %b\n\n" % ANSWER,
    b"data:%b\r\n\r\n" % ANSWER,
    b"data: %b\r\r" % ANSWER,
    b"\xef\xbb\xbfdata: %b\n\n" % ANSWER,
    b"data: %b\n\n" % SPLIT,
    b"data: %b\n\n" % SPLIT.replace(b"\n", b"\r"),
    b"data: %b\n\n" % SPLIT.replace(b"\n", b"\r\n"),
    b": hello\nid: a\0b\nevent: message\nretry: x\nunknown: 1\ndata\n\ndata: %b\n\n" % ANSWER,
    b"id: 1\n\n\n\nevent: other\ndata: %b\n\n" % ANSWER,
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 65_536])
@pytest.mark.parametrize("written", WRITTEN, ids=[str(index) for index in range(len(WRITTEN))])
def test_an_answer_is_found_however_its_stream_is_written(written: bytes, size: int, carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    one.head(Response(200, [("content-type", "Text/Event-Stream; charset=utf-8")]))
    for piece in pieces(written, size):
        if not one.is_cancelled:
            one.content(piece)
    assert [each["name"] for each in response(waits.answer)["result"]["tools"]] == ["one_t", "two_add", "two_sub"]


@pytest.mark.parametrize("size", [1, 5, 65_536])
@pytest.mark.parametrize("written", WRITTEN, ids=[str(index) for index in range(len(WRITTEN))])
def test_it_passes_as_the_same_events(written: bytes, size: int, carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/call", {"name": "one_add"})
    client.run.arrival.head(EVENTS)
    for piece in pieces(written, size):
        client.run.arrival.content(piece)
    client.run.arrival.end()
    found = [json.loads(each.data) for each in EventReader().feed(waits.answer.body) if each.data]
    assert found == [json.loads(ANSWER)]
    assert b"\0" not in waits.answer.body and b"\xef\xbb\xbf" not in waits.answer.body
    assert (b"id: one:1\n" in waits.answer.body) is written.startswith(b"id: 1")


# --- items


def test_items_that_are_none_are_left_out(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    tools = [
        7,
        None,
        [],
        {},
        {"name": 7},
        {"name": None},
        {"Name": "x"},
        {"name": ""},
        {"name": "a_b"},
        {"name": "\u00e9"},
    ]
    one.answer(Response(200, JSON, result(tools=tools, nextCursor=7, extra={"a": 1})))
    found = response(waits.answer)["result"]
    assert [each["name"] for each in found["tools"]] == ["one_", "one_a_b", "one_\u00e9", "two_add", "two_sub"]
    assert "nextCursor" not in found, "a cursor that is no text is none"


@pytest.mark.parametrize("wrong", [b'{"tools":7}', b'{"tools":{}}', b"[]", b"7", b"null", b'{"tools":"x"}'])
def test_a_list_that_is_none_fails_its_server(wrong: bytes, carrier: Carrier) -> None:
    client = open_two(carrier, more=OPEN)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    one.answer(Response(200, JSON, b'{"jsonrpc":"2.0","id":5,"result":%b}' % wrong))
    assert [each["name"] for each in response(waits.answer)["result"]["tools"]] == ["two_add", "two_sub"]


def test_a_resource_that_names_another_server_stays_its_own(carrier: Carrier) -> None:
    """A notice, and content, of a server whose URIs begin like those of another one."""
    client = open_two(carrier, Toy(resources=["two+file:///a"]))
    assert [each["uri"] for each in client.all("resources/list", "resources")] == ["one+two+file:///a"]
    found = client.result("resources/read", {"uri": "one+two+file:///a"})
    assert found["contents"][0]["uri"] == "one+two+file:///a"
    listens = stream(client)
    one, two = client.run.arrivals[-2:]
    two.answer(Response(405))
    one.head(EVENTS)
    one.content(event({"method": "notifications/resources/updated", "params": {"uri": "two+file:///a"}}))
    assert b'"one+two+file:///a"' in listens.answer.body
    one.end()


def last_of(arrival: Arrival) -> Any:
    return json.loads(arrival.received.body)


def test_a_cursor_of_a_server_is_given_back_to_it_alone_and_as_it_was(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    odd = 'a"\u00e9\n\u0000' + "x" * 500
    one.answer(Response(200, JSON, result(tools=[{"name": "a"}], nextCursor=odd)))
    two.answer(Response(200, JSON, result(tools=[{"name": "b"}])))
    cursor = response(waits.answer)["result"]["nextCursor"]
    before = len(client.run.arrivals)
    waits = asked(client, "tools/list", {"cursor": cursor, "other": 1})
    (again,) = client.run.arrivals[before:]
    assert again.received.authority == FIRST and last_of(again)["params"] == {"cursor": odd, "other": 1}
    again.answer(Response(200, JSON, result(tools=[{"name": "c"}])))
    assert response(waits.answer)["result"] == {"tools": [{"name": "one_c"}]}


@pytest.mark.parametrize(("size", "counts"), [(plans.MAX_ANSWER - 1000, True), (plans.MAX_ANSWER, False)])
@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_that_is_read_has_its_bound(size: int, counts: bool, streams: bool, carrier: Carrier) -> None:
    client = open_two(carrier, more=OPEN)
    waits = asked(client, "tools/list")
    one, two = client.run.arrivals[-2:]
    two.answer(client.toys[SECOND](two.received))
    filler = b"x" * (size // 64)
    one.head(EVENTS if streams else Response(200, JSON))
    lines = [b": " + filler + b"\n"] * 64 if streams else [b" " * len(filler)] * 64
    for line in lines:
        if not one.is_cancelled:
            one.content(line)
    if not one.is_cancelled:
        one.content(event({"id": 5, "result": TOOLS}) if streams else result(5, **TOOLS))
    if not one.is_cancelled:
        one.end()
    names = [each["name"] for each in response(waits.answer)["result"]["tools"]]
    assert names == (["one_x"] if counts else []) + ["two_add", "two_sub"]


@pytest.mark.parametrize(("size", "is_refused"), [(plans.MAX_ANSWER - 1000, False), (plans.MAX_ANSWER, True)])
def test_so_has_one_for_a_client_that_takes_events_alone(size: int, is_refused: bool, carrier: Carrier) -> None:
    """It is read whole, to become an event."""
    client, _ = of_one(carrier)
    client.initialize()
    lines = [("accept", "text/event-stream"), ("content-type", "application/json"), ("mcp-session-id", client.session)]
    body = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"add"}}'
    waits = client.run.send(Request("POST", "/mcp", lines, body))
    assert not waits.answer.ended, waits.answer
    one = client.run.arrival
    one.head(Response(200, JSON))
    for _ in range(64):
        if not one.is_cancelled:
            one.content(b" " * (size // 64))
    if not one.is_cancelled:
        one.content(result(5, content=[]))
    if not one.is_cancelled:
        one.end()
    assert waits.answer.status == 200
    assert (b'"code":-32603,"message":"MCP server one: its answer has more than' in waits.answer.body) is is_refused


def test_all_answers_that_are_read_for_one_request_have_one_bound(carrier: Carrier) -> None:
    targets = ", ".join(f"{{name: t{n}, static: {{host: 127.0.1.{n}, port: 9001}}}}" for n in range(6))
    text = TWO.replace("targets:", f"targets: [{targets}]\n          failureMode: FailOpen").partition(
        "          - {name: one"
    )[0]
    client = Client(carrier.proxy(text), {f"127.0.1.{n}:9001": Toy() for n in range(6)})
    client.initialize()
    waits = asked(client, "tools/list")
    for each in client.run.arrivals[-6:]:
        each.answer(Response(200, JSON, result(5, **TOOLS) + b" " * 3_000_000))
    assert len(response(waits.answer)["result"]["tools"]) == plans.MAX_ANSWER * answers.TOGETHER // 3_000_000


def test_of_cursors_that_are_too_long_to_keep_the_list_ends(carrier: Carrier) -> None:
    client = open_two(carrier)
    waits = asked(client, "tools/list")
    for each in client.run.arrivals[-2:]:
        each.answer(Response(200, JSON, result(tools=[{"name": "a"}], nextCursor="x" * 9000)))
    assert waits.answer.status in (200, 502)
    assert "nextCursor" not in response(waits.answer).get("result", {})
