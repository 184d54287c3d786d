"""What expressions see of an exchange: every variable, and what is there when nothing is known yet."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.a2a import Call
from dataplane.http.heads import Head
from dataplane.http.messages import Peer
from dataplane.http.rules import HttpRules
from dataplane.tls.names import Names
from dataplane.variables import Unread, Variables, client_connection, place
from dataplane.variables.facts import KEPT
from gatewright.cel.errors import CelError, TooMany
from gatewright.cel.values import Timestamp


class Moment(Variables):
    """An exchange as policies meet it; keywords are what differs."""

    is_for_agent = False

    def __init__(self, **known: Any) -> None:
        self.attributes = self.response_body = self.backend_plan = self.buffer = self.body = None
        self.grpc = self.listener = self.plan = self.response = None
        self.authority, self.method, self.path, self.target = b"a.example", b"GET", b"/p", b"/p?q=1"
        self.scheme, self.version, self.bind, self.peer = b"https", b"HTTP/1.1", "bind/a", "192.0.2.1"
        self.client = Peer("192.0.2.1", b"https", b"198.51.100.1:8443", 50000)
        self.request = Head(b"\r\nHost: a.example\r\n")
        self.has_body, self.started, self.status = False, 0.0, 0
        self.agent_call, self.replied = None, False
        for name, value in known.items():
            setattr(self, name, value)


LISTENER = SimpleNamespace(key="listener/ns/gw/web", name="web", gateway="ns/gw", port=8443)
ROUTE = SimpleNamespace(key="route/httproute/shop/orders/3", kind="HTTPRoute", rule="third")
SERVICE = SimpleNamespace(key="backend/service/shop/api/80", type="service", protocol="http")


def clocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """It is 5 s by the clock of the loop, and 1000 s after the epoch."""
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    return SimpleNamespace(clock=lambda: 5.0)


def test_all_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "POD_NAME", "pod-1")
    monkeypatch.setattr(place, "POD_NAMESPACE", "")
    x = Moment(
        listener=LISTENER,
        plan=ROUTE,
        backend_plan=SERVICE,
        status=201,
        response=Head(b"\r\ngrpc-status: 7\r\n"),
        response_body=b"answer",
        context=clocks(monkeypatch),
        started=2.5,
        took=1.5,
    )
    found = x.variables()
    request = found["request"]
    assert request.pop("headers")["host"] == "a.example"
    assert request == {
        "method": "GET",
        "uri": "https://a.example/p?q=1",
        "host": "a.example",
        "scheme": "https",
        "path": "/p",
        "pathAndQuery": "/p?q=1",
        "version": "HTTP/1.1",
        "body": b"",
        "bodyPrefix": b"",
        "startTime": Timestamp(997_500_000_000),
        "endTime": Timestamp(999_000_000_000),
    }
    response = found["response"]
    assert response.pop("headers")["grpc-status"] == "7"
    assert response == {"code": 201, "grpcStatus": 7, "body": b"answer", "bodyPrefix": b"answer"}
    assert found["source"] == {
        "address": "192.0.2.1",
        "port": 50000,
        "rawAddress": "192.0.2.1",
        "rawPort": 50000,
    }
    assert found["destination"] == {"address": "198.51.100.1", "port": 8443}
    assert found["proxy"] == {
        "bind": "bind/a",
        "gateway": {"namespace": "ns", "name": "gw"},
        "listener": {"name": "web"},
        "route": {"namespace": "shop", "name": "orders", "kind": "HTTPRoute", "rule": "third"},
    }
    assert found["env"] == {"podName": "pod-1", "namespace": "ns", "gateway": "gw"}
    assert found["backend"] == {"name": "shop/api/80", "type": "service", "protocol": "http"}


def test_where_nothing_is_known_yet() -> None:
    x = Moment()
    assert (x.response_code, x.response_header("a"), x.response_headers, x.response_grpc_status) == (
        None,
        None,
        {},
        None,
    )
    assert (x.proxy_gateway_namespace, x.proxy_gateway_name, x.proxy_listener_name) == ("", "", "")
    assert (x.proxy_route, x.proxy_route_namespace, x.proxy_route_name, x.proxy_route_kind) == (None,) * 4
    assert (x.proxy_route_rule, x.backend, x.backend_name, x.backend_type, x.backend_protocol) == (None,) * 5
    assert (x.request_end_time, x.jwt_raw_token) == (None, None)


@pytest.mark.parametrize(
    ("local", "address", "port"),
    [(b"[2001:db8::1]:443", "2001:db8::1", 443), (b"10.0.0.1:80", "10.0.0.1", 80), (b"", "", 0), (b"x:unix", "x", 0)],
)
def test_where_a_client_connected_to(local: bytes, address: str, port: int) -> None:
    x = Moment(client=Peer("", local=local))
    assert (x.destination_address, x.destination_port) == (address, port)


@pytest.mark.parametrize(
    ("text", "status"),
    [(b"0", 0), (b"16", 16), (b"999999999", 999_999_999), (b"9999999999", None), (b"-1", None), (b"", None)],
)
def test_the_status_of_a_call(text: bytes, status: int | None) -> None:
    assert Moment(response=Head(b"\r\ngrpc-status: %b\r\n" % text)).response_grpc_status == status


def test_a_body_is_known_when_it_was_kept_or_when_there_is_none() -> None:
    body = SimpleNamespace(beginning=lambda: b"begin")
    for known, whole, prefix in (
        ({}, b"", b""),
        ({"has_body": True}, None, None),
        ({"has_body": True, "buffer": body}, None, b"begin"),
        ({"has_body": True, "buffer": body, "body": b"all of it"}, b"all of it", b"all of it"),
    ):
        x = Moment(**known)
        assert (x.request_body, x.request_body_prefix) == (whole, prefix)


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (b"", None),
        (b"b: 1\r\n", None),
        (b"ab: 1\r\n", None),
        (b"a:\r\n", ""),
        (b"A: \t 1 2 \r\n", "1 2"),
        (b"a: 1\r\nb: 2\r\na:3\r\n", "1, 3"),
        (b"a: \xc3\xa9\r\n", "\u00e9"),
        (b"a: \xe9\r\n", "\u00e9"),
    ],
)
def test_the_value_of_a_header(lines: bytes, value: str | None) -> None:
    assert Moment(request=Head(b"\r\n" + lines)).request_header("a") == value


def test_the_namespace_is_that_of_the_pod_before_that_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "POD_NAMESPACE", "pods")
    assert Moment(listener=LISTENER).env_namespace == "pods"
    monkeypatch.setattr(place, "POD_NAMESPACE", "")
    assert Moment(listener=LISTENER).env_namespace == "ns"


def test_what_policies_leave_is_there_for_later_expressions() -> None:
    x = Moment()
    x.leave("jwt", {"rawToken": "t", "sub": "ann"})
    x.leave("apiKey", {"key": "k"})
    assert (x.jwt_raw_token, x.api_key_key, x.basic_auth_username) == ("t", "k", None)
    assert x.whole("jwt")["sub"] == "ann"
    x.leave("jwt", {"sub": "bob"})
    assert (x.jwt_raw_token, x.api_key_key) == (None, "k")


def test_a_rule_without_a_name_is_none() -> None:
    x = Moment(plan=SimpleNamespace(key="route/httproute/ns/r/0", kind="HTTPRoute", rule=""), context=SimpleNamespace())
    assert x.proxy_route == {"namespace": "ns", "name": "r", "kind": "HTTPRoute"}


def test_parts_of_what_policies_leave_whole() -> None:
    x = Moment(attributes={"source.unverifiedWorkload": {"name": "cart", "namespace": "shop"}})
    assert (x.source_unverified_workload_name, x.source_unverified_workload_namespace) == ("cart", "shop")
    assert x.source_unverified_workload_service_account is None
    assert Moment().source_unverified_workload_name is None


# --- calls of agents


def test_what_is_known_of_a_call_of_an_agent() -> None:
    call = Call("message/send", "JSONRPC", "task-1", "context-1", "skill-1", "working", -32001)
    assert Moment(agent_call=call).a2a == {
        "method": "message/send",
        "binding": "JSONRPC",
        "skill": "skill-1",
        "contextId": "context-1",
        "task": {"id": "task-1", "state": "working"},
        "errorCode": -32001,
    }


PARTS = (
    *("a2a", "a2a_method", "a2a_binding", "a2a_skill", "a2a_context_id"),
    *("a2a_task", "a2a_task_id", "a2a_task_state", "a2a_error_code"),
)


@pytest.mark.parametrize("call", [None, Call()], ids=["no call", "nothing known of it"])
def test_what_is_not_known_of_a_call_has_no_value(call: Call | None) -> None:
    assert [getattr(Moment(agent_call=call), name) for name in PARTS] == [None] * len(PARTS)


@pytest.mark.parametrize(
    ("known", "is_read"),
    [
        ({"is_for_agent": True}, True),
        ({}, False),
        ({"is_for_agent": True, "replied": True}, False),
        ({"is_for_agent": True, "backend_plan": SERVICE}, False),
    ],
)
def test_a_call_is_read_while_the_request_is_judged(known: dict[str, Any], is_read: bool) -> None:
    """Of a request that is on its way its carrier says which call it is."""
    x = Moment(method=b"POST", path=b"/", query=b"", body=RPC, has_body=True, ended=False, **known)
    x.request = Head(b"\r\ncontent-type: application/json\r\n")
    assert x.a2a_method == ("tasks/get" if is_read else None)
    assert (x.agent_call is not None) == is_read


def test_a_call_is_read_once_for_each_path_and_body() -> None:
    x = Moment(method=b"POST", path=b"/", query=b"", body=RPC, has_body=True, ended=False, is_for_agent=True)
    x.request = Head(b"\r\ncontent-type: application/json\r\n")
    assert x.a2a_task_id == "t1" and x.agent_call is not None
    x.agent_call.task = "as it was read"
    assert x.a2a_task_id == "as it was read"
    x.body = RPC.replace(b"t1", b"t2")
    assert x.a2a_task_id == "t2"
    before, x.path = x.agent_call, b"/rpc"
    assert x.a2a_task_id == "t2" and x.agent_call is not before
    x.body = RPC + b"}"
    with pytest.raises(Unread) as refused:
        _ = x.a2a_method
    assert refused.value.reason == "AgentCallUnreadable"


RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}'


# --- bodies as JSON, and what was read once


def with_body(body: bytes, **known: Any) -> Moment:
    return Moment(has_body=True, body=body, ended=False, **known)


def test_json_is_parsed_once_for_each_body() -> None:
    x = with_body(b'{"a": 1}')
    first = x.request_json
    assert first == {"a": 1} and x.request_json is first and x.request_prefix_json is first
    x.body = b'{"a": 2}'
    assert x.request_json == {"a": 2}
    x.response_body = b"[3]"
    assert (x.response_json, x.response_prefix_json, x.request_json) == ([3], [3], {"a": 2})


@pytest.mark.parametrize(("size", "is_kept"), [(KEPT, True), (KEPT + 1, False)])
def test_what_was_parsed_of_a_large_body_is_let_go(size: int, is_kept: bool) -> None:
    x = with_body(b'["%b"]' % (b"a" * (size - 4)), response_body=b'["%b"]' % (b"b" * (size - 4)))
    first, second = x.request_json, x.response_json
    x.forget_json()
    assert (x.request_json is first, x.response_json is second) == (is_kept, is_kept)


def test_a_body_that_is_not_known_has_no_json() -> None:
    x = Moment(has_body=True)
    for name, path in (
        ("request_json", "request.body"),
        ("request_prefix_json", "request.bodyPrefix"),
        ("response_json", "response.body"),
        ("response_prefix_json", "response.bodyPrefix"),
    ):
        with pytest.raises(CelError, match=f"no such value: {path}$"):
            getattr(x, name)


FEW = SimpleNamespace(http=HttpRules(max_json_keys=1, max_query_parameters=1))


@pytest.mark.parametrize(
    ("name", "known", "reason"),
    [
        ("request_json", {"body": b'{"a": 1, "b": 2}'}, "JsonTooLarge"),
        ("request_query", {"query": b"a=1&b=2"}, "TooManyParameters"),
    ],
)
@pytest.mark.parametrize("answered", [{}, {"replied": True}, {"ended": True}, {"response": Head(b"\r\n")}])
def test_what_has_too_many_parts_ends_the_request_while_it_can(
    name: str, known: dict[str, bytes], reason: str, answered: dict[str, Any]
) -> None:
    x = Moment(**{"has_body": True, "ended": False, "listener": FEW, **known, **answered})
    with pytest.raises(TooMany if answered else Unread) as refused:
        getattr(x, name)
    if not answered:
        assert isinstance(refused.value, Unread) and refused.value.reason == reason


def test_a_query_and_headers_are_read_once_for_each_that_there_is() -> None:
    x = Moment(query=b"a=1", ended=False)
    query, headers = x.request_query, x.request_headers
    assert query == {b"a": b"1"} and headers["host"] == "a.example"
    assert x.request_query is query and x.request_headers is headers
    x.query, x.request = b"a=2", Head(b"\r\nhost: b.example\r\n")
    assert x.request_query == {b"a": b"2"} and x.request_headers["host"] == "b.example"


# --- time


ENDPOINT = SimpleNamespace(label="10.0.0.1:80")


@pytest.mark.parametrize(
    ("known", "makers"),
    [
        ({"response": None, "endpoint": None}, ("192.0.2.1",)),
        ({"response": None, "endpoint": ENDPOINT}, ("192.0.2.1",)),
        ({"response": Head(b"\r\n"), "endpoint": None}, ("192.0.2.1",)),
        ({"response": Head(b"\r\n"), "endpoint": ENDPOINT}, ("192.0.2.1", "10.0.0.1:80")),
    ],
)
def test_whose_input_expressions_read(known: dict[str, Any], makers: tuple[str, ...]) -> None:
    """An endpoint's too, as soon as there is a response: an answer of our own is none of its."""
    assert Moment(**known).makers() == makers


class SharedTurn:
    """The turn of the loop, as far as it is asked."""

    def __init__(self) -> None:
        self.number = 1
        self.is_full_now = False
        self.asked: list[tuple[str, ...]] = []

    def compute(self, *makers: str) -> int:
        self.asked.append(makers)
        return self.number

    def is_full(self, *makers: str) -> bool:
        return self.is_full_now


def test_all_expressions_of_one_turn_have_the_time_of_one() -> None:
    turn = SharedTurn()
    x = Moment(context=SimpleNamespace(turns=turn), endpoint=None, ended=False)
    assert x.evaluations_end(10.0, 0.5) == 10.5
    assert x.evaluations_end(10.4, 0.5) == 10.5
    turn.number = 2
    assert x.evaluations_end(11.0, 0.5) == 11.5 and turn.asked == [("192.0.2.1",)] * 2
    turn.number, turn.is_full_now = 3, True
    assert x.evaluations_end(12.0, 0.5) == 12.5  # steps of a request wait for their turn before
    x.replied, turn.number = True, 4
    assert x.evaluations_end(13.0, 0.5) == 13.0


@pytest.mark.parametrize("answered", [{}, {"replied": True}, {"ended": True}, {"response": Head(b"\r\n")}])
def test_an_expression_that_is_cut_off_refuses_a_request(answered: dict[str, Any]) -> None:
    error = CelError("took too long")
    given = Moment(**{"ended": False, **answered}).cut_off(error)
    if answered:
        assert given is error
    else:
        assert isinstance(given, Unread) and (given.reason, str(given)) == ("ExpressionsTooCostly", str(error))


# --- who the client has proven to be


PROVEN = Names("CN=a,O=b", "a", "CN=ca", ("a.example", "spiffe://t/ns/n/sa/s"), ("spiffe://t/ns/n/sa/s",), "PEM")
OF_CLIENT = {
    "source_identity": {"trustDomain": "t", "namespace": "n", "serviceAccount": "s"},
    "source_identity_trust_domain": "t",
    "source_identity_namespace": "n",
    "source_identity_service_account": "s",
    "source_spiffe_id": "spiffe://t/ns/n/sa/s",
    "source_subject_alt_names": ["a.example", "spiffe://t/ns/n/sa/s"],
    "source_issuer": "CN=ca",
    "source_subject": "CN=a,O=b",
    "source_subject_cn": "a",
    "source_certificate": "PEM",
}


@pytest.mark.parametrize("proven", [True, False, None])
def test_what_a_certificate_says_counts_where_it_was_verified(
    proven: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_connection, "names_of", lambda certificate: PROVEN)
    tls: Any = None if proven is None else SimpleNamespace(certificate=b"", is_proven=proven, sni=b"a.example")
    x = Moment(client=Peer("192.0.2.1", tls=tls))
    assert {name: getattr(x, name) for name in OF_CLIENT} == (OF_CLIENT if proven else dict.fromkeys(OF_CLIENT))
    assert x.destination_hostname == (None if tls is None else "a.example")


def test_a_certificate_may_say_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "names_of", lambda certificate: Names("O=b", pem="PEM"))
    tls: Any = SimpleNamespace(certificate=b"", is_proven=True, sni=b"")
    x = Moment(client=Peer("192.0.2.1", tls=tls))
    assert (x.source_subject, x.source_subject_cn, x.source_identity, x.destination_hostname) == ("O=b",) + (None,) * 3


def test_the_address_before_that_of_a_proxy() -> None:
    plain, behind = Peer("192.0.2.1", port=5), Peer("192.0.2.1", port=5, raw_address="10.0.0.1", raw_port=7)
    assert (Moment(client=plain).source_raw_address, Moment(client=plain).source_raw_port) == ("192.0.2.1", 5)
    assert (Moment(client=behind).source_raw_address, Moment(client=behind).source_raw_port) == ("10.0.0.1", 7)


def test_the_headers_of_the_connect_that_opened_a_connection() -> None:
    x = Moment(client=Peer("192.0.2.1", connect=Head(b"\r\nX-Team: blue\r\n")))
    assert x.source_connect_header("x-team") == "blue" and x.source_connect_header("x-none") is None
    assert x.source_connect_headers is not None and x.source_connect_headers["x-team"] == "blue"
    assert (Moment().source_connect_headers, Moment().source_connect_header("x-team")) == (None, None)
