"""Which call of A2A a path, a body or a message of gRPC is, whose URLs a card has, and what an answer says: the same in
every binding."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from dataplane.a2a import Call, Facts, Unreadable, methods, results
from dataplane.a2a.call import facts
from dataplane.a2a.calls import by_path, glance, read
from dataplane.a2a.cards import BadCard, Way, rewritten, rewritten_answer
from dataplane.a2a.documents import field, fields, number, parse, part, write
from dataplane.a2a.protobuf_calls import one_skill
from dataplane.http.heads import Head

PUSH = "tasks/pushNotificationConfig/"
CARD = "agent/getAuthenticatedExtendedCard"


@pytest.mark.parametrize(
    ("verb", "path", "found"),
    [
        ("GET", "/.well-known/agent-card.json", [("agent/getCard", None)]),
        ("HEAD", "/a/.well-known/agent.json", [("agent/getCard", None)]),
        ("POST", "/.well-known/agent.json", []),
        ("GET", "/agent.json", []),
        ("POST", "/v1/message:send", [("message/send", None)]),
        ("POST", "/message:stream", [("message/stream", None)]),
        ("GET", "/message:send", []),
        ("POST", "/messages:send", []),
        ("GET", "/x/tasks", [("tasks/list", None)]),
        ("HEAD", "/tasks", [("tasks/list", None)]),
        ("POST", "/tasks", []),
        ("GET", "/x/tasks/t1", [("tasks/get", "t1")]),
        ("POST", "/tasks/t1:cancel", [("tasks/cancel", "t1")]),
        ("GET", "/tasks/t1:cancel", [("tasks/get", "t1:cancel")]),
        ("POST", "/tasks/a:b:subscribe", [("tasks/resubscribe", "a:b")]),
        ("GET", "/tasks/t1:subscribe", [("tasks/resubscribe", "t1")]),
        ("DELETE", "/tasks/t1:subscribe", []),
        ("DELETE", "/tasks/t1", []),
        ("POST", "/x/tasks/t1/pushNotificationConfigs", [(f"{PUSH}set", "t1")]),
        ("GET", "/tasks/t1/pushNotificationConfigs", [(f"{PUSH}list", "t1")]),
        ("GET", "/x/tasks/t1/pushNotificationConfigs/c", [(f"{PUSH}get", "t1")]),
        ("DELETE", "/tasks/t1/pushNotificationConfigs/c", [(f"{PUSH}delete", "t1")]),
        ("DELETE", "/tasks/t1/pushNotificationConfigs", []),
        ("POST", "/tasks/t1/pushNotificationConfigs/c", []),
        ("POST", "/task/t1/pushNotificationConfigs", []),
        ("GET", "/tasks/t1/pushNotificationConfigs/c/d", []),
        ("GET", "/v1/card", [(CARD, None)]),
        ("GET", "/tenant/v1/card", [(CARD, None)]),
        ("GET", "/x/agent/authenticatedExtendedCard", [(CARD, None)]),
        ("GET", "/x/extendedAgentCard", [(CARD, None)]),
        ("POST", "/x/extendedAgentCard", []),
        ("GET", "/v2/card", []),
        ("GET", "/tasks/tasks", [("tasks/list", None), ("tasks/get", "tasks")]),
        ("GET", "/", []),
        ("GET", "//tasks//t1", [("tasks/get", "t1")]),
    ],
)
def test_the_calls_of_a_path(verb: str, path: str, found: list[tuple[str, str | None]]) -> None:
    assert methods.all_of_rest(verb, path) == found
    assert methods.of_rest(verb, path) == (found[0] if found else None)
    assert by_path(verb.encode(), path.encode()) == {method for method, _ in found}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/lf.a2a.v1.A2AService/GetTask", ("lf.a2a.v1.A2AService", "tasks/get")),
        ("/x/a2a.v1.A2AService/TaskSubscription", ("a2a.v1.A2AService", "tasks/resubscribe")),
        ("/a2a.v1.A2AService/Other", None),
        ("/other.A2AService/GetTask", None),
        ("/GetTask", None),
        ("/a2aservice", None),
    ],
)
def test_the_methods_of_grpc(path: str, found: tuple[str, str] | None) -> None:
    assert methods.of_grpc(path) == found
    if found is not None:
        assert by_path(b"POST", path.encode()) == {found[1]}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        *(("SendMessage", "message/send"), ("SendStreamingMessage", "message/stream"), ("GetTask", "tasks/get")),
        *(("ListTasks", "tasks/list"), ("CancelTask", "tasks/cancel"), ("SubscribeToTask", "tasks/resubscribe")),
        *(("CreateTaskPushNotificationConfig", f"{PUSH}set"), ("SetTaskPushNotificationConfig", f"{PUSH}set")),
        *(("GetTaskPushNotificationConfig", f"{PUSH}get"), ("ListTaskPushNotificationConfigs", f"{PUSH}list")),
        *(("ListTaskPushNotificationConfig", f"{PUSH}list"), ("DeleteTaskPushNotificationConfig", f"{PUSH}delete")),
        *(("GetExtendedAgentCard", CARD), ("GetAgentCard", CARD), ("tasks/get", "tasks/get"), ("mine", "mine")),
    ],
)
def test_a_method_has_one_name(name: str, ours: str) -> None:
    assert methods.of_json_rpc(name) == ours
    assert not methods.is_misspelled(name)
    assert methods.is_misspelled(f" {name.upper()} ") is (name != "mine")


@pytest.mark.parametrize(
    ("path", "usual"),
    [
        ("/V1/Message:SEND", "v1/message:send"),
        ("/Tasks./t1 :Cancel. /", "tasks/t1 :cancel"),
        ("/TASKS/T1/pushnotificationconfigs", "tasks/T1/pushNotificationConfigs"),
        ("/.Well-Known/Agent.json", ".well-known/agent.json"),
        ("/A2A.v1.a2aservice/gettask", "a2a.v1.A2AService/GetTask"),
        ("/%54asks//x", "tasks/x"),
    ],
)
def test_paths_in_the_letters_of_the_protocol(path: str, usual: str) -> None:
    assert methods.in_usual_letters(path) == usual


# --- calls


def rpc(method: Any, params: Any = None, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}).encode()


def said(call: Call) -> tuple[Any, ...]:
    return call.method, call.binding, call.task, call.context, call.skill


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (Facts("POST", "/", rpc("tasks/get", {"id": "t"})), ("tasks/get", "JSONRPC", "t", None, None)),
        (Facts("POST", "/", rpc("GetTask", {"taskId": "t"})), ("tasks/get", "JSONRPC", "t", None, None)),
        (Facts("POST", "/", rpc("GetTask", {"taskId": "t", "id": "t"})), ("tasks/get", "JSONRPC", "t", None, None)),
        (Facts("POST", "/", rpc(f"{PUSH}get", {"id": "t"})), (f"{PUSH}get", "JSONRPC", "t", None, None)),
        (
            Facts("POST", "/", rpc("GetTaskPushNotificationConfig", {"taskId": "t", "id": "c"})),
            (f"{PUSH}get", "JSONRPC", "t", None, None),
        ),
        (
            Facts("POST", "/", rpc("GetTaskPushNotificationConfig", {"id": "c"})),
            (f"{PUSH}get", "JSONRPC", None, None, None),
        ),
        (
            Facts("POST", "/", rpc("SendMessage", {"message": {"taskId": "t", "context_id": "c"}, "id": "x"})),
            ("message/send", "JSONRPC", "t", "c", None),
        ),
        (Facts("POST", "/", rpc("SendMessage", {"id": "x"})), ("message/send", "JSONRPC", None, None, None)),
        (
            Facts("POST", "/", rpc("mine", {"contextId": "c", "metadata": {"skill": "s"}})),
            ("mine", "JSONRPC", None, "c", "s"),
        ),
        (
            Facts(
                "POST", "/", rpc("SendMessage", {"message": {"metadata": {"skillId": "s"}}, "metadata": {"skill": "s"}})
            ),
            ("message/send", "JSONRPC", None, None, "s"),
        ),
        (Facts("POST", "/", rpc(7)), (None, "JSONRPC", None, None, None)),
        (Facts("POST", "/", rpc("tasks/get", [1])), ("tasks/get", "JSONRPC", None, None, None)),
        (Facts("POST", "/", b'{"a":1}'), (None, "", None, None, None)),
        (Facts("POST", "/", b""), (None, "", None, None, None)),
        (Facts("POST", "/tasks/t:cancel", b""), ("tasks/cancel", "HTTP+JSON", "t", None, None)),
        (Facts("POST", "/tasks/t:cancel", b'{"id":"t"}'), ("tasks/cancel", "HTTP+JSON", "t", None, None)),
        (
            Facts("POST", "/message:send", b'{"message":{"taskId":"t"}}'),
            ("message/send", "HTTP+JSON", "t", None, None),
        ),
        (Facts("POST", "/tasks/t:cancel", rpc("CancelTask", {})), ("tasks/cancel", "JSONRPC", "t", None, None)),
        (
            Facts("GET", "/tasks", query="contextId=c&x=1&x=2"),
            ("tasks/list", "HTTP+JSON", None, "c", None),
        ),
        (Facts("GET", "/tasks/t", query="id=t"), ("tasks/get", "HTTP+JSON", "t", None, None)),
        (Facts("GET", "/tasks", query="id=t"), ("tasks/list", "HTTP+JSON", None, None, None)),
        (
            Facts("POST", "/", b"\x01rest", (b"application/grpc",)),
            (None, "", None, None, None),
        ),
    ],
)
def test_what_a_call_is(asked: Facts, found: tuple[Any, ...]) -> None:
    assert said(read(asked)) == said(glance(asked)) == found


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Facts("POST", "/", b"{}", (b"a/b", b"a/b")), "several content types"),
        (Facts("POST", "/", b"{}", (b"application/json; charset = 'utf-16'",)), "a character set other than UTF-8"),
        (Facts("POST", "/", b"{}", (), True), "a compressed body"),
        (Facts("POST", "/", b"{}", overrides=True), "a header with another HTTP method"),
        (Facts("GET", "/tasks/tasks"), "a path that agents may read as different calls"),
        (Facts("GET", "/Tasks"), "a path of A2A in other letters"),
        (Facts("POST", "/a2a.v1.A2AService/GetTask", b"{}"), "a method of gRPC, in another content than gRPC's"),
        (Facts("POST", "/", b"[]"), "a body that is no JSON object"),
        (Facts("POST", "/", b'{"Method":"x"}'), "a name in other letters than the protocol's"),
        (Facts("POST", "/", rpc("TASKS/get")), "a method of A2A in other letters"),
        (Facts("POST", "/", rpc("tasks/get", {"TaskId": "t"})), "a name in other letters than the protocol's"),
        (Facts("POST", "/", rpc("message/send", {"message": {"TASKID": 1}})), "a name in other letters"),
        (Facts("POST", "/", rpc("tasks/get", {"id": "a", "taskId": "b"})), "id and taskId of two tasks"),
        (Facts("POST", "/", rpc("tasks/get", {"task_id": "a", "taskId": "a"})), "taskId and task_id at once"),
        (Facts("POST", "/", rpc("message/send", {"message": {}, "request": {}})), "message and request at once"),
        (
            Facts("POST", "/", rpc("message/send", {"message": {"metadata": {"skill": "a", "skillId": "a"}}})),
            "skillId and skill_id and skill at once",
        ),
        (
            Facts(
                "POST", "/", rpc("message/send", {"message": {"metadata": {"skill": "a"}}, "metadata": {"skill": "b"}})
            ),
            "two skills at once",
        ),
        (Facts("POST", "/tasks/t:cancel", rpc("GetTask")), "a body of one call, at the path of another"),
        (
            Facts("POST", "/tasks/t:cancel", rpc("CancelTask", {"id": "u"})),
            "a body of one call, at the path of another",
        ),
        (Facts("POST", "/tasks/t:cancel", b'{"id":"u"}'), "a body about one task, at the path of another"),
        (Facts("GET", "/tasks", b"{}"), "content of a call that has none"),
        (Facts("GET", "/tasks", query="&".join(["a=1"] * 1001)), "more than 1000 parameters"),
        (Facts("GET", "/tasks", query="contextId=a&contextId=a"), "a parameter that is there twice"),
        (Facts("GET", "/tasks", query="ContextId=a"), "a parameter in other letters than the protocol's"),
        (Facts("GET", "/tasks", query="context_id=a"), "a parameter in other letters than the protocol's"),
        (Facts("GET", "/tasks/t", query="taskId=u"), "a query about one task, at the path of another"),
    ],
)
def test_what_two_readers_may_read_differently_is_no_call(asked: Facts, why: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(asked)
    assert why in str(refused.value)


def test_what_is_harmless_in_a_head() -> None:
    kinds = (b'application/json; charset="UTF-8"', b"text/plain;charset=us-ascii", b"")
    for kind in kinds:
        assert read(Facts("POST", "/", rpc("tasks/get", {"id": "t"}), (kind,))).task == "t"
    assert read(Facts("GET", "/tasks", query="&".join(["a="] * 1000))).method == "tasks/list"


@pytest.mark.parametrize(
    ("body", "method"),
    [
        (b'{"jsonrpc": "2.0", "id": null, "method": "GetTask", "params": {"x', "tasks/get"),
        (b'{"id":-7,"method":"mine","params"', "mine"),
        (b'{"method":"a\\u0062","x', "ab"),
        (b'{"method":"\\x","x', None),
        (b'{"method":7,"method":"b","x', "b"),
        (b'{"x":1,"method":"b","x', None),
        (b"", None),
    ],
)
def test_of_a_body_that_is_cut_off_the_log_has_the_method(body: bytes, method: str | None) -> None:
    found = glance(Facts("POST", "/", body))
    assert (found.method, found.binding) == (method, "JSONRPC" if method else "")


def test_of_a_call_that_cannot_be_read_the_log_has_its_path() -> None:
    found = glance(Facts("POST", "/a2a.v1.A2AService/GetTask", b"{}"))
    assert (found.method, found.binding) == ("tasks/get", "GRPC")
    found = glance(Facts("POST", "/tasks/t:cancel", b"{"))
    assert said(found) == ("tasks/cancel", "HTTP+JSON", "t", None, None)


def test_facts_of_a_request() -> None:
    head = Head(b"\r\ncontent-type: a/b\r\ncontent-type: c/d\r\ncontent-encoding: gzip\r\nx-http-method: GET\r\n")
    made = facts(b"POST", b"/\xe9", b"a=1", head, b"body")
    assert made == Facts("POST", "/\u00e9", b"body", (b"a/b", b"c/d"), True, "a=1", True)
    for line, overrides in (
        *((b"x-http-method-override: PUT", True), (b"x-method-override: PUT", True), (b"x-method: PUT", False)),
        (b"x-other: 1", False),
    ):
        assert facts(b"POST", b"/", b"", Head(b"\r\n" + line + b"\r\n"), b"").overrides is overrides


# --- gRPC


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(at: int, value: bytes) -> bytes:
    return varint(at << 3 | 2) + varint(len(value)) + value


def frame(message: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + len(message).to_bytes(4, "big") + message


def grpc(name: str, message: bytes, service: str = "lf.a2a.v1.A2AService", kind: bytes = b"application/grpc") -> Facts:
    return Facts("POST", f"/{service}/{name}", message, (kind,))


def struct(**entries: str) -> bytes:
    return b"".join(
        text(1, text(1, name.encode()) + text(2, text(3, value.encode()))) for name, value in entries.items()
    )


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (grpc("GetTask", b""), ("tasks/get", None, None, None)),
        (grpc("GetTask", frame(text(2, b"t"))), ("tasks/get", "t", None, None)),
        (grpc("GetTask", frame(text(2, b""))), ("tasks/get", None, None, None)),
        (grpc("GetTask", frame(text(2, b"a") + text(2, b"b"))), ("tasks/get", "b", None, None)),
        (grpc("CancelTask", frame(text(2, b"t"))), ("tasks/cancel", "t", None, None)),
        (grpc("SubscribeToTask", frame(text(2, b"t"))), ("tasks/resubscribe", "t", None, None)),
        (grpc("CreateTaskPushNotificationConfig", frame(text(3, b"t"))), (f"{PUSH}set", "t", None, None)),
        (grpc("GetTaskPushNotificationConfig", frame(text(2, b"t"))), (f"{PUSH}get", "t", None, None)),
        (grpc("ListTaskPushNotificationConfigs", frame(text(1, b"t"))), (f"{PUSH}list", "t", None, None)),
        (grpc("DeleteTaskPushNotificationConfig", frame(text(2, b"t"))), (f"{PUSH}delete", "t", None, None)),
        (grpc("ListTasks", frame(text(2, b"c"))), ("tasks/list", None, "c", None)),
        (grpc("GetExtendedAgentCard", frame(text(2, b"t"))), (CARD, None, None, None)),
        *(
            (grpc("GetTask", frame(text(1, name)), "a2a.v1.A2AService"), ("tasks/get", task, None, None))
            for name, task in (
                *((b"tasks/t", "t"), (b"tasks/t/pushNotificationConfigs/c", "t"), (b"tasks/", None), (b"tasks", None)),
                *((b"x/t", None), (b"", None)),
            )
        ),
        (
            grpc("SendMessage", frame(text(2, text(2, b"c") + text(3, b"t") + text(6, struct(skillId="s"))))),
            ("message/send", "t", "c", "s"),
        ),
        (
            grpc("SendStreamingMessage", frame(text(2, text(3, b"t")) + text(4, struct(skill="s", x="y")))),
            ("message/stream", "t", None, "s"),
        ),
        (
            grpc("SendMessage", frame(text(1, text(3, b"t")) + text(3, struct(skill_id="s"))), "a2a.v1.A2AService"),
            ("message/send", "t", None, "s"),
        ),
        (
            grpc("GetTask", base64.b64encode(frame(text(2, b"t"))), kind=b"application/grpc-web-text"),
            ("tasks/get", "t", None, None),
        ),
        (grpc("GetTask", frame(text(2, b"t")), kind=b"Application/gRPC+Proto ;x=1"), ("tasks/get", "t", None, None)),
    ],
)
def test_what_a_call_of_grpc_names(asked: Facts, found: tuple[Any, ...]) -> None:
    call = read(asked)
    assert (call.method, call.task, call.context, call.skill, call.binding) == (*found, "GRPC")


BROKEN = "a gRPC message that is compressed, cut off, or one of several"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (grpc("GetTask", frame(b"", 1)), BROKEN),
        (grpc("GetTask", b"\0\0\0\0"), BROKEN),
        (grpc("GetTask", frame(b"") + b"\0"), BROKEN),
        (grpc("GetTask", frame(text(2, b"t"))[:-1]), BROKEN),
        (grpc("GetTask", b"*", kind=b"application/grpc-web-text"), "text of gRPC-Web that is no base64"),
        (grpc("GetTask", frame(b""), kind=b"application/grpc+json"), "a gRPC message that is no protobuf"),
        (grpc("GetTask", frame(text(2, b"\xff"))), "text that is no UTF-8"),
        (grpc("SendMessage", frame(text(4, struct(skill="a", skillId="a")))), "skill and skillId at once"),
        (grpc("SendMessage", frame(text(2, text(6, struct(skill="a"))) + text(4, struct(skill="b")))), "two skills"),
        (
            grpc("SendMessage", frame(text(4, text(1, text(1, b"skill") + text(2, text(3, b"a") + text(4, b"b")))))),
            "a value of two kinds at once",
        ),
        (grpc("SendMessage", frame(text(4, struct(x="y") * 1025))), "a message with more than 1024 fields"),
    ],
)
def test_what_is_no_message_of_grpc(asked: Facts, why: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(asked)
    assert why in str(refused.value)


def test_a_skill_is_one() -> None:
    assert one_skill("a", None) == one_skill(None, "a") == one_skill("a", "a") == "a"
    assert one_skill(None, None) is None
    with pytest.raises(Unreadable):
        one_skill("a", "b")


# --- protobuf and JSON


def test_fields_are_read_in_their_order() -> None:
    message = (
        b"\x08\x96\x01"
        + text(2, b"ab")
        + b"\x1d1234"
        + b"\x2112345678"
        + b"\x08\x00"
        + varint((1 << 29) - 1 << 3)
        + b"\x01"
    )
    assert list(fields(message)) == [(1, 150), (2, b"ab"), (3, None), (4, None), (1, 0), ((1 << 29) - 1, 1)]
    assert (number(message, 1), number(message, 2), field(message, 2), field(message, 1)) == (0, None, b"ab", None)
    nested = text(1, text(2, b"a")) + b"\x08\x01" + text(1, text(2, b"b") + text(3, b"c"))
    assert (field(nested, 1, 2), field(nested, 1, 3), field(nested, 4, 2)) == (b"b", b"c", None)
    assert part(nested, 1) == text(2, b"a") + text(2, b"b") + text(3, b"c")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x00\x01", "a field without a number of protobuf"),
        (varint(1 << 32) + b"\x01", "a field without a number of protobuf"),
        (b"\x0a\x02a", "a message that is cut off"),
        (b"\x0d123", "a message that is cut off"),
        (b"\x091234567", "a message that is cut off"),
        (b"\x0b", "a message that is cut off"),
        (b"\x0f", "a message that is cut off"),
        (b"\x08", "a number that does not end"),
        (b"\x08\x80", "a number that does not end"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "a number that does not end"),
        (b"\x08\x01" * 4097, "a message with more than 4096 fields"),
    ],
)
def test_what_is_no_message_of_protobuf(message: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        list(fields(message))


def test_the_longest_messages_that_are_read() -> None:
    assert len(list(fields(b"\x08\x01" * 4096))) == 4096
    assert number(b"\x08" + b"\x80" * 9 + b"\x01", 1) == 1 << 63
    assert len(list(fields(b"\x08\x01" * 2, 2))) == 2
    with pytest.raises(Unreadable):
        list(fields(b"\x08\x01" * 3, 2))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        *((b'{"a":1,"a":2}', "a name twice"), (b'{"x":{"a":1,"a":1}}', "a name twice"), (b"{", "not JSON")),
        *((b"NaN", "not JSON: NaN"), (b"\xff", "not JSON"), (b"[" * 100_000, "not JSON")),
    ],
    ids=["twice", "twice within", "cut off", "no number", "no text", "deep"],
)
def test_what_is_no_json(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse(data)


def test_json_is_written_without_spaces() -> None:
    assert write({"a": [1, "\u00e9"]}) == b'{"a":[1,"\\u00e9"]}'
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (float("nan"), float("inf"), deep):
        with pytest.raises(Unreadable, match="cannot be written as JSON"):
            write(value)


# --- cards


WAY = Way("https", "gw.example", "/agents/a/card", "/a/card")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://agent:8000/a/rpc", "https://gw.example/agents/a/rpc"),
        ("http://agent:8000/rpc?x=1#f", "https://gw.example/agents/rpc?x=1"),
        ("https://agent", "https://gw.example/agents"),
        ("http://agent/a/../b/./rpc", "https://gw.example/agents/b/rpc"),
        ("http://agent/../../admin", "https://gw.example/agents/admin"),
        ("http://agent/%2e%2E/%61dmin", "https://gw.example/agents/admin"),
        ("http://agent/a/..", "https://gw.example/agents/"),
        ("http://agent/.%2e/admin", "https://gw.example/agents/admin"),
        ("http://agent/\t../\n../admin", "https://gw.example/agents/admin"),
        ("http://agent//x/../../../admin", "https://gw.example/agents/admin"),
        ("http://agent/a;/../../admin", "https://gw.example/agents/admin"),
        ("http:///../admin", "https://gw.example/agents/admin"),
        ("\x01http://agent/../admin", "https://gw.example/agents/admin"),
        ("http://agent\\..\\admin", "https://gw.example/agents"),
        # what is no dot segment to who makes paths normal: the gateway judges it when it is asked for
        ("http://agent/%2e%2e%2fadmin", "https://gw.example/agents/..%2Fadmin"),
        ("http://agent/%252e%252e/admin", "https://gw.example/agents/%252e%252e/admin"),
        ("http://agent/..;/admin", "https://gw.example/agents/..;/admin"),
        ("http://agent/\u00e9 b", "https://gw.example/agents/%C3%A9%20b"),
        ("agent:50051", "gw.example:443"),
        ("[::1]:50051", "gw.example:443"),
        ("agent", "gw.example:443"),
    ],
)
def test_a_url_of_an_agent_leads_through_the_gateway(url: str, seen: str) -> None:
    assert WAY.moved(url) == seen


def test_a_prefix_that_was_rewritten_is_put_back() -> None:
    way = Way("http", "gw:8080", "/x/y/card", "/z/card")
    assert way.moved("http://a/z/rpc") == "http://gw:8080/x/y/rpc"
    assert way.moved("http://a/z") == "http://gw:8080/x/y"
    assert way.moved("http://a/zz") == "http://gw:8080/zz"
    assert way.moved("a:1") == "gw:8080"
    assert Way("http", "[::1]", "/c", "/c").moved("a:1") == "[::1]:80"
    assert Way("http", "[::1]:81", "/c", "/c").moved("a:1") == "[::1]:81"
    assert Way("http", "gw", "/c", "/c").moved("http://a/b") == "http://gw/b"
    assert way.moved("http://a/z/../../x/y/rpc") == "http://gw:8080/x/y/rpc", "it is outside of what the rule leads to"
    for url in (
        "ftp://a/",
        "http://a/..\\..\\admin",
        "http://a/\0../admin",
        "http://a/..%00/admin",
        "http:/a/../admin",
        "a:80/../admin",
        "http://[",
        "a b",
        "",
        "a:123456",
        "/path",
        "http://a/..\\b",
        "http://a/%zz",
        "http://a/\ud800",
    ):
        with pytest.raises(BadCard):
            way.moved(url)


def test_cards_are_rewritten_and_lose_their_signatures() -> None:
    way = Way("http", "gw", "/c", "/c")
    card = {
        "name": "n",
        "url": "http://a/rpc",
        "additionalInterfaces": [{"url": "http://a/1", "transport": "GRPC"}],
        "supportedInterfaces": [{"url": "http://a/2"}],
        "supported_interfaces": [{"url": "http://a/3"}],
        "additional_interfaces": [{"url": "http://a/4"}],
        "documentationUrl": "http://a/docs",
        "signatures": [1],
    }
    made = json.loads(rewritten(json.dumps(card).encode(), way))
    moved = json.dumps({name: value for name, value in card.items() if name != "signatures"})
    assert made == json.loads(moved.replace("http://a/", "http://gw/").replace("http://gw/docs", "http://a/docs"))
    same = b'{ "url": "http://gw/rpc", "signatures": [1] }'
    assert rewritten(same, way) is same
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": card}).encode()
    assert json.loads(rewritten_answer(answer, way)) == {"jsonrpc": "2.0", "id": 1, "result": made}
    for untouched in (b'{"jsonrpc":"2.0","error":{}}', b'{"jsonrpc":"2.0", "result":' + same + b"}", same):
        assert rewritten_answer(untouched, way) is untouched
    assert json.loads(rewritten_answer(json.dumps(card).encode(), way)) == made


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ([], "it is no JSON object"),
        ({"name": "n"}, "it has no URL"),
        ({"supportedInterfaces": []}, "it has no URL"),
        ({"URL": "http://a/"}, "a name in other letters than the protocol's"),
        ({"url": 7}, "a URL that is no text"),
        ({"supportedInterfaces": {}}, "supportedInterfaces is no list of at most 64"),
        ({"supportedInterfaces": [{"url": "http://a/"}] * 65}, "supportedInterfaces is no list of at most 64"),
        ({"supportedInterfaces": [7]}, "supportedInterfaces has an item that is no JSON object"),
        ({"supportedInterfaces": [{"Url": "http://a/"}]}, "a name in other letters than the protocol's"),
        ({"supportedInterfaces": [{}]}, "a URL that is no text"),
        ({"url": "http://a/", "x": float("inf")}, "not JSON"),
    ],
)
def test_what_is_no_card(card: Any, why: str) -> None:
    with pytest.raises(BadCard, match=why):
        rewritten(json.dumps(card).encode(), WAY)
    if isinstance(card, dict):
        answer = json.dumps({"jsonrpc": "2.0", "result": card}).encode()
        with pytest.raises(BadCard):
            rewritten_answer(answer, WAY)


def test_cards_are_bounded() -> None:
    text = b'{"url":"http://a/","x":"%b"}'
    room = 262_144 - len(text) + 2
    assert rewritten(text % (b"a" * room), WAY)
    with pytest.raises(BadCard, match="more than 262144 bytes"):
        rewritten(text % (b"a" * (room + 1)), WAY)
    assert rewritten(json.dumps({"supportedInterfaces": [{"url": "http://a/"}] * 64}).encode(), WAY)


# --- what answers say


def watched(value: Any, method: str = methods.GET, media: bytes = b"application/json", *pieces: bytes) -> Call:
    call = Call(method)
    watcher = results.watcher(call, media)
    assert watcher is not None
    for each in pieces or (json.dumps(value).encode(),):
        watcher.content(each)
    watcher.end()
    return call


TASK = {"id": "t", "contextId": "c", "status": {"state": "working"}}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"result": TASK}, ("working", "t", "c", None)),
        (TASK, ("working", "t", "c", None)),
        ({"result": {"task": TASK}}, ("working", "t", "c", None)),
        *(
            ({name: {"taskId": "t", "contextId": "c"}}, (None, "t", "c", None))
            for name in ("artifactUpdate", "message")
        ),
        ({"msg": {"taskId": "t"}}, (None, "t", None, None)),
        (
            {"statusUpdate": {"taskId": "t", "id": "x", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}},
            ("input-required", "t", None, None),
        ),
        ({"status": {"state": "TASK_STATE_CANCELLED"}}, ("canceled", None, None, None)),
        ({"status": {"state": "unknown"}}, ("unknown", None, None, None)),
        ({"status": {"state": "other"}, "id": "t"}, (None, None, None, None)),
        ({"status": {"state": "working"}, "id": "x" * 256}, ("working", "x" * 256, None, None)),
        ({"status": {"state": "working"}, "id": "x" * 257}, ("working", None, None, None)),
        ({"status": {"state": "working"}, "id": ""}, ("working", None, None, None)),
        ({"status": "working", "id": "t"}, (None, None, None, None)),
        ({"error": {"code": -7}}, (None, None, None, -7)),
        ({"error": {"code": True}}, (None, None, None, None)),
        ({"error": {"code": "7"}}, (None, None, None, None)),
        ({"error": 7, "result": 7}, (None, None, None, None)),
        ([TASK], (None, None, None, None)),
    ],
)
def test_what_an_answer_says(value: Any, found: tuple[Any, ...]) -> None:
    call = watched(value)
    assert (call.state, call.task, call.context, call.error) == found
    events = b"data: " + json.dumps(value).encode() + b"\n\n"
    call = watched(None, methods.GET, b"Text/Event-Stream ; x", events[:9], events[9:])
    assert (call.state, call.task, call.context, call.error) == found


def test_what_a_request_named_stays() -> None:
    call = Call(methods.GET, task="mine", context="own")
    watcher = results.watcher(call, b"application/a2a+json")
    assert watcher is not None
    watcher.content(json.dumps(TASK).encode())
    watcher.end()
    assert (call.task, call.context, call.state) == ("mine", "own", "working")


def test_of_an_answer_that_is_too_large_nothing_counts() -> None:
    text = json.dumps(TASK).encode()
    assert watched(None, methods.GET, b"application/json", text, b" " * 262_144).state is None
    assert watched(None, methods.GET, b"application/json", text, b" " * 262_144, text).state is None
    assert watched(None, methods.GET, b"application/json", text, b"  ").state == "working"


STATES = ("submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required")


@pytest.mark.parametrize(("index", "state"), [*enumerate(STATES, 1), (0, None), (9, None)])
def test_states_of_grpc(index: int, state: str | None) -> None:
    status = b"\x08" + bytes([index])
    for method, message in (
        (methods.GET, text(3, status)),
        (methods.CANCEL, text(3, status)),
        (methods.SEND, text(1, text(3, status))),
        (methods.STREAM, text(3, text(3, status))),
        (methods.SUBSCRIBE, text(1, text(3, status))),
    ):
        assert watched(None, method, b"application/grpc", frame(message)).state == state
        assert watched(None, method, b"application/grpc", frame(message, 1)).state is None, "compressed"
        whole = frame(message)
        pieces = [whole[at : at + 1] for at in range(len(whole))]
        assert watched(None, method, b"application/grpc", *pieces).state == state
