"""A2A agents from the standalone file to requests and cards, over each carrier."""

from __future__ import annotations

import gzip
import json
import textwrap
from typing import Any

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2

from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Refused
from dataplane.table import compile as compiler
from gatewright.wire.v1 import backend_pb2
from tests.carriers import CARRIERS, Carrier, Request, Response, Run
from tests.fakes.policy_run import text_of

AGENT = "backends: [{a2a: {host: 127.0.0.1, port: 9000}}]"
JSON = ("content-type", "application/json")
EVENTS = ("content-type", "text/event-stream")
GRPC_TYPE = ("content-type", "application/grpc")
CLIENT = "gw.example:8080"


def proxy(carrier: Carrier, route: str = "", log: str = "") -> Run:
    text = text_of(f"{textwrap.dedent(route)}\n{AGENT}" if route else AGENT)
    if carrier is CARRIERS["toy"]:  # it has no HTTP/2, which is what gRPC is sent over
        text = text.replace("port: 9000}", "port: 9000}, policies: {http: {version: HTTP1}}")
    return carrier.proxy(text + (f"frontendPolicies: {{accessLog: {{add: {log}}}}}\n" if log else ""))


def allowing(*rules: str, action: str = "Allow") -> str:
    return f"policies: {{authorization: {{action: {action}, policy: {{matchExpressions: {json.dumps(rules)}}}}}}}"


def rpc(method: str, params: Any = None, target: str = "/", **more: Any) -> Request:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **more}
    return Request("POST", target, [JSON], json.dumps(body).encode(), authority=CLIENT)


def get(target: str, *headers: tuple[str, str]) -> Request:
    return Request("GET", target, headers, authority=CLIENT)


def answering(value: Any, *headers: tuple[str, str]) -> Response:
    return Response(200, [JSON, *headers], json.dumps(value).encode())


# --- cards

PUBLIC = ("https://public.example/rpc", "public.example:443")
OLD = {
    "name": "a",
    "protocolVersion": "0.3.0",
    "url": "http://127.0.0.1:9000/rpc",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [
        {"url": "http://127.0.0.1:9000/rpc", "transport": "JSONRPC"},
        {"url": "http://127.0.0.1:9000/v1?x=1", "transport": "HTTP+JSON"},
        {"url": "127.0.0.1:50051", "transport": "GRPC"},
    ],
    "provider": {"organization": "o", "url": "http://127.0.0.1:9000/about"},
    "signatures": [{"protected": "e30", "signature": "x"}],
}
NEW = {
    "name": "a",
    "supportedInterfaces": [
        {"url": "https://elsewhere.test/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
        {"url": "http://127.0.0.1:9000", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ],
}


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
def test_the_card_leads_through_the_gateway(path: str, carrier: Carrier) -> None:
    run = proxy(carrier)
    seen = run.carry(get(path, ("accept-encoding", "gzip"), ("range", "bytes=0-5")), answering(OLD, ("etag", '"1"')))
    assert (seen.received.target, seen.received.authority) == (path, "127.0.0.1:9000")  # hostRewrite: Auto
    assert seen.received.passed == {}  # what is compressed, or a part, could not be rewritten
    card = json.loads(seen.answer.body)
    assert card["url"] == "http://gw.example:8080/rpc"
    assert [each["url"] for each in card["additionalInterfaces"]] == [
        "http://gw.example:8080/rpc",
        "http://gw.example:8080/v1?x=1",
        "gw.example:8080",
    ]
    assert card["provider"] == OLD["provider"]
    assert "signatures" not in card
    assert "etag" not in seen.answer.headers
    assert seen.answer.headers["content-length"] == str(len(seen.answer.body))
    assert " a2a.method=agent/getCard " in seen.line


@pytest.mark.parametrize("status", [201, 203, 299])
def test_a_card_is_rewritten_with_each_status_of_success(status: int, carrier: Carrier) -> None:
    response = Response(status, [JSON], json.dumps(OLD).encode())
    seen = proxy(carrier).carry(get("/.well-known/agent-card.json"), response)
    assert seen.answer.status == status
    assert json.loads(seen.answer.body)["url"] == "http://gw.example:8080/rpc"


def test_the_extended_card_as_a_stream_of_events_is_not_passed(carrier: Carrier) -> None:
    content = event(result(OLD))
    response = Response(200, [("content-type", "text/event-stream")], content)
    seen = proxy(carrier).carry(rpc("agent/getAuthenticatedExtendedCard"), response)
    assert (seen.answer.status, seen.reason) == (502, "AgentCardInvalid")


def test_a_card_of_version_1(carrier: Carrier) -> None:
    card = json.loads(proxy(carrier).carry(get("/.well-known/agent-card.json"), answering(NEW)).answer.body)
    first, second = card["supportedInterfaces"]
    assert first == {**NEW["supportedInterfaces"][0], "url": "http://gw.example:8080/a2a"}  # type: ignore[dict-item]
    assert second["url"] == "http://gw.example:8080"


def test_a_rewritten_prefix_is_put_back(carrier: Carrier) -> None:
    route = """
    matches: [{path: {type: PathPrefix, value: /agents/a}}]
    policies: {urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}
    """
    seen = proxy(carrier, route).carry(get("/agents/a/.well-known/agent-card.json"), answering(OLD))
    assert seen.received.target == "/.well-known/agent-card.json"
    assert json.loads(seen.answer.body)["url"] == "http://gw.example:8080/agents/a/rpc"


def test_a_prefix_is_one_of_whole_segments(carrier: Carrier) -> None:
    route = """
    matches: [{path: {type: PathPrefix, value: /agents/a}}]
    policies: {urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /v1}}}
    """
    card = {
        "supportedInterfaces": [{"url": f"http://agent{path}"} for path in ("/v1", "/v1/rpc", "/v10/rpc", "/other")]
    }
    seen = proxy(carrier, route).carry(get("/agents/a/.well-known/agent-card.json"), answering(card))
    urls = [each["url"] for each in json.loads(seen.answer.body)["supportedInterfaces"]]
    assert urls == [f"http://{CLIENT}{path}" for path in ("/agents/a", "/agents/a/rpc", "/v10/rpc", "/other")]


def test_an_answer_with_a_card_under_another_name_is_not_passed(carrier: Carrier) -> None:
    answer = answering({"jsonrpc": "2.0", "id": 1, "Result": OLD})
    seen = proxy(carrier).carry(rpc("GetExtendedAgentCard"), answer)
    assert (seen.answer.status, seen.reason) == (502, "AgentCardInvalid")


def test_policies_see_the_rewritten_card(carrier: Carrier) -> None:
    route = "policies: {transformation: {response: {set: [{name: x-url, value: 'json(response.body).url'}]}}}"
    seen = proxy(carrier, route).carry(get("/.well-known/agent-card.json"), answering(OLD))
    assert seen.answer.headers["x-url"] == "http://gw.example:8080/rpc"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://127.0.0.1:9000/rpc", "http://gw.example:8080/rpc"),
        ("HTTPS://Agent.Example/rpc", "http://gw.example:8080/rpc"),
        ("http://user:secret@agent.example:8000/rpc", "http://gw.example:8080/rpc"),
        ("http://[::1]:9000/rpc", "http://gw.example:8080/rpc"),
        ("http://[fe80::1%25eth0]/rpc", "http://gw.example:8080/rpc"),
        ("http://agent.example", "http://gw.example:8080"),
        ("http://agent.example/", "http://gw.example:8080/"),
        ("http:///rpc", "http://gw.example:8080/rpc"),
        ("http://agent.example/a?b=c&d#e", "http://gw.example:8080/a?b=c&d"),
        ("http://agent.example/%2e%2e/a b", "http://gw.example:8080/a%20b"),
        ("http://a@b@127.0.0.1:15000/x", "http://gw.example:8080/x"),
        ("agent.example:50051", "gw.example:8080"),
        ("[::1]:50051", "gw.example:8080"),
        ("agent_1", "gw.example:8080"),
        # what leads no client through the gateway
        ("/rpc", None),
        ("rpc", "gw.example:8080"),  # as gRPC's form of a host
        ("//agent.example/rpc", None),
        ("agent.example:50051/x", None),
        ("user@agent.example:50051", None),
        ("", None),
        ("ws://agent.example/rpc", None),
        ("dns:///agent.example:50051", None),
        ("javascript://%0aalert(1)", None),
        ("http:/\\agent.example/rpc", None),
        ("http\t://agent.example/rpc", "http://gw.example:8080/rpc"),  # as browsers take it
    ],
)
def test_every_spelling_of_a_url_leads_through_the_gateway(url: str, wanted: str | None, carrier: Carrier) -> None:
    for card in ({"url": url}, {"supportedInterfaces": [{"url": url}]}, {"additional_interfaces": [{"url": url}]}):
        seen = proxy(carrier).carry(get("/.well-known/agent-card.json"), answering(card))
        if wanted is None:
            assert (seen.answer.status, seen.reason) == (502, "AgentCardInvalid")
        else:
            assert (
                seen.answer.body
                == json.dumps(card, separators=(",", ":")).replace(json.dumps(url), json.dumps(wanted)).encode()
            )


@pytest.mark.parametrize(
    ("headers", "authority", "rpc_url", "grpc_url"),
    [
        ([], "gw.example", "http://gw.example/rpc", "gw.example:80"),
        ([], "[::1]:8080", "http://[::1]:8080/rpc", "[::1]:8080"),
        ([], "[::1]", "http://[::1]/rpc", "[::1]:80"),
        ([("x-forwarded-proto", "https"), ("x-forwarded-host", "public.example")], CLIENT, *PUBLIC),
        ([("x-forwarded-proto", "HTTPS"), ("x-forwarded-host", "public.example")], CLIENT, *PUBLIC),
        ([("x-forwarded-proto", "file"), ("x-forwarded-host", "a b, c")], CLIENT, f"http://{CLIENT}/rpc", CLIENT),
        ([("x-forwarded-host", "evil@public.example")], CLIENT, f"http://{CLIENT}/rpc", CLIENT),
    ],
)
def test_where_a_client_asked(
    headers: list[tuple[str, str]], authority: str, rpc_url: str, grpc_url: str, carrier: Carrier
) -> None:
    """What the proxies before us say counts where they are believed."""
    text = text_of(AGENT) + "frontendPolicies: {http: {ownedHeaders: [x-real-ip]}}\n"
    request = Request("GET", "/.well-known/agent-card.json", headers, authority=authority)
    card = json.loads(carrier.proxy(text).carry(request, answering(OLD)).answer.body)
    assert (card["url"], card["additionalInterfaces"][2]["url"]) == (rpc_url, grpc_url)


def test_clients_are_not_believed_where_they_asked(carrier: Carrier) -> None:
    request = get("/.well-known/agent-card.json", ("x-forwarded-host", "evil.test"), ("x-forwarded-proto", "https"))
    assert json.loads(proxy(carrier).carry(request, answering(OLD)).answer.body)["url"] == f"http://{CLIENT}/rpc"


OURS = {
    "name": "a",
    "url": f"http://{CLIENT}/rpc",
    "supportedInterfaces": [{"url": f"http://{CLIENT}/rpc"}, {"url": CLIENT}],
    "signatures": [{"protected": "e30", "signature": "x"}],
}


def test_a_card_that_leads_here_already_keeps_its_signatures(carrier: Carrier) -> None:
    """Its signature is about what clients get: whoever signs a card for the gateway's address can."""
    content = json.dumps(OURS, indent=2).encode()
    card = Response(200, [JSON], content)
    assert proxy(carrier).carry(get("/.well-known/agent-card.json"), card).answer.body == content
    answer = Response(200, [JSON], json.dumps({"jsonrpc": "2.0", "id": 1, "result": OURS}, indent=1).encode())
    assert proxy(carrier).carry(rpc("GetExtendedAgentCard"), answer).answer.body == answer.body
    other = {**OURS, "supportedInterfaces": [*OURS["supportedInterfaces"], {"url": "http://agent.example"}]}
    seen = proxy(carrier).carry(get("/.well-known/agent-card.json"), answering(other))
    assert "signatures" not in json.loads(seen.answer.body)


def test_an_extended_card_beside_json_rpc(carrier: Carrier) -> None:
    """The path that the SDKs of 0.3 have for it."""
    request = get("/agent/authenticatedExtendedCard")
    seen = proxy(carrier, allowing("a2a.method == 'agent/getAuthenticatedExtendedCard'")).carry(request, answering(OLD))
    assert json.loads(seen.answer.body)["url"] == f"http://{CLIENT}/rpc"


def test_the_name_of_ours_is_no_method_of_json_rpc_with_a_card(carrier: Carrier) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}
    assert json.loads(proxy(carrier).carry(rpc("agent/getCard"), answering(error)).answer.body) == error


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (Response(200, [JSON], b'{"url": "http://a", "SupportedInterfaces": []}'), "other letters"),
        (Response(200, [JSON], b'{"URL": "http://a"}'), "other letters"),
        (Response(200, [JSON], b'{"supportedInterfaces": [{"url": "http://a", "Url": "http://b"}]}'), "other letters"),
        (Response(200, [JSON], b"<html>"), "not JSON"),
        (Response(200, [JSON], b"[]"), "no JSON object"),
        (Response(200, [JSON], b'{"name": "a"}'), "no URL"),
        (Response(200, [JSON], b'{"url": 7}'), "no text"),
        (Response(200, [JSON], b'{"url": "file:///etc/passwd"}'), "neither http nor https"),
        (Response(200, [JSON], b'{"url": "http://["}'), "URL that is none"),
        (Response(200, [JSON], b'{"url": "a b"}'), "URL that is none"),
        (Response(200, [JSON], b'{"url": "http://a", "url": "http://b"}'), "name twice"),
        (Response(200, [JSON], b'{"url": "http://a", "supportedInterfaces": {}}'), "no list"),
        (Response(200, [JSON], b'{"supportedInterfaces": [7]}'), "no JSON object"),
        (Response(200, [JSON], json.dumps({"supportedInterfaces": [{"url": "http://a"}] * 65}).encode()), "no list"),
        (Response(200, [JSON], b'{"url": "http://a", "x": 1e999}'), "cannot be written"),
        (Response(200, [JSON], b'{"url": "http://a", "x": ' + b"[" * 100_000), "not JSON"),
        (Response(200, [JSON], b"x" * 262_145), "more than"),
        (Response(200, [JSON], [b"x" * 131_072] * 3, sized=False), "more than"),
        (
            Response(200, [JSON, ("content-encoding", "gzip")], gzip.compress(json.dumps(OLD).encode(), mtime=0)),
            "compressed",
        ),
        (Response(200, [("content-type", "Text/Event-Stream")], b"data: " + json.dumps(OLD).encode()), "events"),
        (Response(206, [JSON, ("content-range", "bytes 0-9/10")], json.dumps(OLD).encode()), "a part"),
        (Response(201, [JSON], b"[]"), "no JSON object"),
    ],
)
def test_a_card_that_cannot_be_rewritten_is_not_passed(response: Response, why: str, carrier: Carrier) -> None:
    seen = proxy(carrier).carry(get("/.well-known/agent-card.json"), response)
    assert (seen.answer.status, seen.answer.body, seen.reason) == (502, b"agent card is invalid", "AgentCardInvalid")
    assert why in seen.line


@pytest.mark.parametrize(("method", "status"), [("GET", 404), ("GET", 304), ("GET", 302), ("HEAD", 200)])
def test_what_is_no_card_passes(method: str, status: int, carrier: Carrier) -> None:
    request = Request(method, "/.well-known/agent-card.json", authority=CLIENT)
    body = b"" if method == "HEAD" or status == 304 else b"no"
    seen = proxy(carrier).carry(request, Response(status, [JSON, ("etag", '"1"')], body))
    assert (seen.answer.status, seen.answer.body) == (status, body)
    assert ("etag" in seen.answer.headers) is (method != "HEAD")


@pytest.mark.parametrize(
    ("request_", "wrap"),
    [
        (rpc("agent/getAuthenticatedExtendedCard"), True),
        (rpc("GetExtendedAgentCard"), True),
        (get("/extendedAgentCard"), False),
        (get("/v1/card"), False),
    ],
)
def test_the_extended_card(request_: Request, wrap: bool, carrier: Carrier) -> None:
    value = {"jsonrpc": "2.0", "id": 1, "result": OLD} if wrap else OLD
    seen = proxy(carrier).carry(request_, answering(value))
    found = json.loads(seen.answer.body)
    assert (found["result"] if wrap else found)["url"] == "http://gw.example:8080/rpc"
    assert " a2a.method=agent/getAuthenticatedExtendedCard " in seen.line


def test_an_error_in_place_of_the_extended_card_passes(carrier: Carrier) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32007, "message": "none"}}
    seen = proxy(carrier).carry(rpc("GetExtendedAgentCard"), answering(error))
    assert json.loads(seen.answer.body) == error


def test_other_backends_pass_cards_as_they_are(carrier: Carrier) -> None:
    run = carrier.shared(text_of("backends: [{host: '127.0.0.1:9000'}]"))
    seen = run.carry(get("/.well-known/agent-card.json", ("accept-encoding", "gzip")), answering(OLD))
    assert json.loads(seen.answer.body) == OLD
    assert seen.received.passed == {"accept-encoding": "gzip"}
    assert "a2a." not in seen.line


# --- policies by method

CONFIG = "TaskPushNotificationConfig"
MESSAGE = {"message": {"messageId": "m", "taskId": "t1", "contextId": "c1", "metadata": {"skillId": "translate"}}}


def frame(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def grpc(name: str, message: bytes = b"", service: str = "lf.a2a.v1.A2AService") -> Request:
    headers = [("content-type", "application/grpc"), ("te", "trailers")]
    return Request("POST", f"/{service}/{name}", headers, frame(message), authority=CLIENT)


def rest(method: str, target: str, body: Any = None) -> Request:
    return Request(method, target, [JSON], b"" if body is None else json.dumps(body).encode(), authority=CLIENT)


CALLS = [
    # request, method
    (rpc("message/send"), "message/send"),
    (rpc("SendMessage"), "message/send"),
    (rest("POST", "/v1/message:send", MESSAGE), "message/send"),
    (rest("POST", "/tenant/message%3Asend", MESSAGE), "message/send"),
    (grpc("SendMessage"), "message/send"),
    (grpc("SendMessage", service="a2a.v1.A2AService"), "message/send"),
    (rpc("SendStreamingMessage"), "message/stream"),
    (rest("POST", "/message:stream", MESSAGE), "message/stream"),
    (rpc("tasks/get"), "tasks/get"),
    (rest("GET", "/v1/tasks/t1"), "tasks/get"),
    (rest("GET", "/v1//tasks/t1/"), "tasks/get"),
    (rest("GET", "/tasks"), "tasks/list"),
    (rest("POST", "/tasks/t1:cancel"), "tasks/cancel"),
    (rest("POST", "/tasks/t1:cancel", {}), "tasks/cancel"),
    (rest("GET", "/tasks/t1:subscribe"), "tasks/resubscribe"),
    (grpc("TaskSubscription", service="a2a.v1.A2AService"), "tasks/resubscribe"),
    (rest("POST", "/tasks/t1/pushNotificationConfigs", {}), "tasks/pushNotificationConfig/set"),
    (rest("GET", "/tasks/t1/pushNotificationConfigs"), "tasks/pushNotificationConfig/list"),
    (rest("GET", "/tasks/t1/pushNotificationConfigs/c"), "tasks/pushNotificationConfig/get"),
    (rest("DELETE", "/tasks/t1/pushNotificationConfigs/c"), "tasks/pushNotificationConfig/delete"),
    (rpc("CreateTaskPushNotificationConfig"), "tasks/pushNotificationConfig/set"),
    (get("/.well-known/agent-card.json"), "agent/getCard"),
    (rpc("custom/method"), "custom/method"),
    (rest("POST", "/v1/tasks/t1:subscribe"), "tasks/resubscribe"),
    (rest("HEAD", "/tasks/t1"), "tasks/get"),
    (rest("GET", "/tasks/a:b"), "tasks/get"),
    (rest("POST", "/tasks/a:b:cancel"), "tasks/cancel"),
    (rest("GET", "/v1/card"), "agent/getAuthenticatedExtendedCard"),
    (get("/.well-known/agent.json"), "agent/getCard"),
    *(
        (request, method)
        for method, new, old in (
            # method, its name in gRPC and JSON-RPC of 1.0, in gRPC of 0.3
            ("message/send", "SendMessage", "SendMessage"),
            ("message/stream", "SendStreamingMessage", "SendStreamingMessage"),
            ("tasks/get", "GetTask", "GetTask"),
            ("tasks/list", "ListTasks", ""),
            ("tasks/cancel", "CancelTask", "CancelTask"),
            ("tasks/resubscribe", "SubscribeToTask", "TaskSubscription"),
            ("tasks/pushNotificationConfig/set", f"Create{CONFIG}", f"Create{CONFIG}"),
            ("tasks/pushNotificationConfig/get", f"Get{CONFIG}", f"Get{CONFIG}"),
            ("tasks/pushNotificationConfig/list", f"List{CONFIG}s", f"List{CONFIG}"),
            ("tasks/pushNotificationConfig/delete", f"Delete{CONFIG}", f"Delete{CONFIG}"),
            ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard", "GetAgentCard"),
        )
        for request in (
            rpc(new),
            rpc(method),
            grpc(new),
            *([grpc(old, service="a2a.v1.A2AService")] if old else []),
        )
    ),
]


@pytest.mark.parametrize(("request_", "method"), CALLS, ids=lambda value: getattr(value, "target", value))
def test_a_rule_by_method_holds_in_every_binding(request_: Request, method: str, carrier: Carrier) -> None:
    rule = f"a2a.method == '{method}'"
    answer = Response(200, [JSON], b"") if request_.method == "HEAD" else answering(OLD)
    assert proxy(carrier, allowing(rule)).carry(request_, answer).reason == ""
    denied = proxy(carrier, allowing(rule, action="Deny")).carry(request_)
    assert (denied.reason, denied.reached) == ("AuthorizationDenied", ())
    assert f" a2a.method={method} " in denied.line
    assert proxy(carrier, allowing("a2a.method == 'other'")).carry(request_).reason == "AuthorizationDenied"


OTHERWISE = [
    # the same calls, as a lenient agent takes them
    Request("PUT", "/rpc", [JSON], b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {}}'),
    Request("GET", "/rpc", [JSON], b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {}}'),
    Request("POST", "/rpc", [], b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {}}'),
    Request("POST", "/rpc", [("content-type", "text/plain")], b'{"method": "CancelTask"}'),
    Request("POST", "/rpc", [("content-type", "application/grpc")], b'{"method": "CancelTask"}'),
    Request("POST", "/tasks/t1:cancel", [("content-type", "application/grpc")], frame(b"")),
    rpc("tasks/cancel", {}, "/lf.a2a.v1.A2AService/"),
    Request("POST", "/rpc", [JSON], b'{"method": "tasks\\/can\\u0063el", "jsonrpc": "2.0"}'),
    Request("POST", "/rpc", [("content-type", "application/json; charset=UTF-8")], b'{"method": "CancelTask"}'),
    rest("POST", "/any/thing/tasks/t1:cancel"),
    rest("POST", "/tasks/t1%3Acancel"),
    rest("POST", "/%74asks/t1:c%61ncel"),
    rest("POST", "/v1/tasks%2Ft1:cancel"),
    rest("POST", "/x/../tasks/./t1:cancel"),
    rest("POST", "/tasks/t1:cancel;a=1"),
    rest("POST", "//tasks//t1:cancel//"),
    rest("POST", "/tasks/a:b:cancel?x=1"),
    grpc("CancelTask"),
    grpc("CancelTask", service="a2a.v1.A2AService"),
    grpc("CancelTask", service="tenant/lf.a2a.v1.A2AService"),
    grpc("CancelTask", service="%6Cf.a2a.v1.A2AService"),
    Request("POST", "/lf.a2a.v1.A2AService/CancelTask", [("content-type", "application/grpc-web+proto")], frame(b"")),
    Request("POST", "/lf.a2a.v1.A2AService/CancelTask", [("content-type", "application/grpc-web-text")], b"AAAAAAA="),
]


@pytest.mark.parametrize("request_", OTHERWISE, ids=repr)
def test_no_spelling_of_a_call_gets_past_a_rule(request_: Request, carrier: Carrier) -> None:
    rule = "a2a.method == 'tasks/cancel'"
    denied = proxy(carrier, allowing(rule, action="Deny")).carry(request_)
    assert (denied.reason, denied.reached) == ("AuthorizationDenied", ())
    required = proxy(carrier, allowing("a2a.method == 'message/send'", action="Require")).carry(request_)
    assert (required.reason, required.reached) == ("AuthorizationDenied", ())


@pytest.mark.parametrize(
    ("path", "kind", "target", "reason"),
    [
        # a prefix that is taken away
        ("/agents/a", "replacePrefixMatch: /", "/agents/a/lf.a2a.v1.A2AService/CancelTask", "AuthorizationDenied"),
        ("/agents/a", "replacePrefixMatch: /", "/agents/a/tasks/t1:cancel", "AuthorizationDenied"),
        # a path that is made another method's: it is not what was judged
        ("/t", "replacePrefixMatch: /tasks", "/t/t1:cancel", "AgentCallUnreadable"),
        ("/end", "replaceFullPath: /tasks/t1:cancel", "/end", "AgentCallUnreadable"),
        ("/a", "replaceFullPath: /tasks/t1:cancel", "/a/message:send", "AgentCallUnreadable"),
        ("/rpc", "replaceFullPath: /v1/rpc", "/rpc", ""),
    ],
)
def test_what_is_sent_is_what_was_judged(path: str, kind: str, target: str, reason: str, carrier: Carrier) -> None:
    name = "ReplacePrefixMatch" if "Prefix" in kind else "ReplaceFullPath"
    rule = """{authorization: {action: Deny, policy: {matchExpressions: ["a2a.method == 'tasks/cancel'"]}},"""
    route = f"""
    matches: [{{path: {{type: PathPrefix, value: {path}}}}}]
    policies: {rule} urlRewrite: {{path: {{type: {name}, {kind}}}}}}}
    """
    request = grpc("CancelTask", service=target[1:].rpartition("/")[0]) if "lf.a2a" in target else rest("POST", target)
    seen = proxy(carrier, route).carry(request)
    assert seen.reason == reason
    assert bool(seen.reached) is (not reason)


def test_a_path_that_becomes_two_calls_is_not_what_was_judged(carrier: Carrier) -> None:
    route = """
    matches: [{path: {type: PathPrefix, value: /api}}]
    policies:
      authorization: {action: Deny, policy: {matchExpressions: ["a2a.method == 'tasks/get'"]}}
      urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /tasks}}
    """
    seen = proxy(carrier, route).carry(rest("GET", "/api/tasks"))
    assert (seen.reason, seen.reached) == ("AgentCallUnreadable", ())


def in_message(name: bytes, value: bytes) -> bytes:
    """A `SendMessageRequest` of 1.0 whose message has this in its metadata."""
    found = value
    for tag in (b"\x1a", b"\x12"):
        found = tag + bytes([len(found)]) + found
    found = b"\x0a" + bytes([len(name)]) + name + found
    for tag in (b"\x0a", b"\x32", b"\x12"):
        found = tag + bytes([len(found)]) + found
    return found


NAMED = [
    # request, task, context, skill
    (rpc("message/send", MESSAGE), "t1", "c1", "translate"),
    (rest("POST", "/message:send", MESSAGE), "t1", "c1", "translate"),
    (rest("POST", "/message:send", {"message": {"task_id": "t1"}, "metadata": {"skill": "s"}}), "t1", None, "s"),
    (rpc("tasks/get", {"id": "t2"}), "t2", None, None),
    (rpc("GetTask", {"id": "t2"}), "t2", None, None),
    (rpc("tasks/pushNotificationConfig/get", {"id": "t2", "pushNotificationConfigId": "c"}), "t2", None, None),
    (rpc("GetTaskPushNotificationConfig", {"taskId": "t2", "id": "c"}), "t2", None, None),
    (rest("POST", "/tasks/t3:cancel"), "t3", None, None),
    (grpc("SendMessage", b"\x12\x08\x12\x02c1\x1a\x02t1"), "t1", "c1", None),
    (grpc("SendMessage", b"\x0a\x04\x1a\x02t1", "a2a.v1.A2AService"), "t1", None, None),
    (grpc("SendMessage", b"\x12\x13\x32\x11\x0a\x0f\x0a\x07skillId\x12\x04\x1a\x02tr"), None, None, "tr"),
    (grpc("GetTask", b"\x12\x02t2"), "t2", None, None),
    (grpc("GetTask", b"\x0a\x08tasks/t2", "a2a.v1.A2AService"), "t2", None, None),
    (grpc("GetTaskPushNotificationConfig", b"\x12\x02t2\x1a\x01c"), "t2", None, None),
    (grpc("SendMessage", in_message(b"skill", b"tr")), None, None, "tr"),
    (grpc("GetTask", b"\x0a\x08other/t2", "a2a.v1.A2AService"), None, None, None),
    (rpc("tasks/cancel", {}, "/tasks/t2:cancel"), "t2", None, None),
    (rest("POST", "/message:send", {"id": "t1"}), None, None, None),
    (rest("GET", "/tasks?pageSize=1&contextId=c1"), None, "c1", None),
    (rest("GET", "/v1/tasks?contextId=c%31"), None, "c1", None),
    (rest("GET", "/tasks/t1?id=t1&historyLength=1"), "t1", None, None),
    (rpc("tasks/list", {"contextId": "c1"}, "/rpc?contextId=c2"), None, "c1", None),
]


@pytest.mark.parametrize(("request_", "task", "context", "skill"), NAMED)
def test_what_a_call_names(
    request_: Request, task: str | None, context: str | None, skill: str | None, carrier: Carrier
) -> None:
    sets = ", ".join(
        f"{{name: {name}, value: '{value}'}}"
        for name, value in (("x-task", "a2a.task.id"), ("x-context", "a2a.contextId"), ("x-skill", "a2a.skill"))
    )
    route = f"policies: {{transformation: {{request: {{set: [{sets}]}}}}}}"
    received = proxy(carrier, route).carry(request_).received
    assert [received.headers.get(name) for name in ("x-task", "x-context", "x-skill")] == [task, context, skill]


@pytest.mark.parametrize("kind", ["1.0", "0.3"])
def test_each_method_of_grpc_names_its_task(kind: str, carrier: Carrier) -> None:
    """Requests are made by the SDK's own classes: fields have other numbers in each of them."""
    route = """policies: {transformation: {request: {set: [
        {name: x-task, value: a2a.task.id}, {name: x-context, value: a2a.contextId},
        {name: x-skill, value: a2a.skill}]}}}
    """
    run = proxy(carrier, route)
    for service, name, message, wanted in grpc_requests(kind):
        received = run.carry(grpc(name, message, service)).received
        assert tuple(received.headers.get(each) for each in ("x-task", "x-context", "x-skill")) == wanted, name


def grpc_requests(kind: str) -> list[tuple[str, str, bytes, tuple[str | None, ...]]]:
    """(service, method, request, what it names: task, context, skill) of each method that names something."""
    about = ("t1", None, None)
    if kind == "1.0":
        service = "lf.a2a.v1.A2AService"
        message = a2a_pb2.Message(task_id="t1", context_id="c1")
        message.metadata.update({"skillId": "s1", "other": {"skillId": "no"}})
        of_request = a2a_pb2.SendMessageRequest(tenant="t", message=a2a_pb2.Message(message_id="m"))
        of_request.metadata.update({"a": 1.5, "skill": "s2"})
        made: list[tuple[str, Any, tuple[str | None, ...]]] = [
            ("SendMessage", a2a_pb2.SendMessageRequest(tenant="t", message=message), ("t1", "c1", "s1")),
            ("SendStreamingMessage", of_request, (None, None, "s2")),
            ("GetTask", a2a_pb2.GetTaskRequest(tenant="t", id="t1"), about),
            ("ListTasks", a2a_pb2.ListTasksRequest(tenant="t", context_id="c1"), (None, "c1", None)),
            ("CancelTask", a2a_pb2.CancelTaskRequest(tenant="t", id="t1"), about),
            ("SubscribeToTask", a2a_pb2.SubscribeToTaskRequest(tenant="t", id="t1"), about),
            (f"Create{CONFIG}", a2a_pb2.TaskPushNotificationConfig(tenant="t", id="c", task_id="t1"), about),
            (f"Get{CONFIG}", a2a_pb2.GetTaskPushNotificationConfigRequest(tenant="t", id="c", task_id="t1"), about),
            (f"List{CONFIG}s", a2a_pb2.ListTaskPushNotificationConfigsRequest(tenant="t", task_id="t1"), about),
            (f"Delete{CONFIG}", a2a_pb2.DeleteTaskPushNotificationConfigRequest(id="c", task_id="t1"), about),
        ]
    else:
        service = "a2a.v1.A2AService"
        old = a2a_v0_3_pb2.Message(task_id="t1", context_id="c1")
        old.metadata.update({"skillId": "s1"})
        of_old = a2a_v0_3_pb2.SendMessageRequest(request=a2a_v0_3_pb2.Message(message_id="m"))
        of_old.metadata.update({"skill_id": "s2"})
        one = "tasks/t1/pushNotificationConfigs/c"
        made = [
            ("SendMessage", a2a_v0_3_pb2.SendMessageRequest(request=old), ("t1", "c1", "s1")),
            ("SendStreamingMessage", of_old, (None, None, "s2")),
            ("GetTask", a2a_v0_3_pb2.GetTaskRequest(name="tasks/t1"), about),
            ("CancelTask", a2a_v0_3_pb2.CancelTaskRequest(name="tasks/t1"), about),
            ("TaskSubscription", a2a_v0_3_pb2.TaskSubscriptionRequest(name="tasks/t1"), about),
            (f"Create{CONFIG}", a2a_v0_3_pb2.CreateTaskPushNotificationConfigRequest(parent="tasks/t1"), about),
            (f"Get{CONFIG}", a2a_v0_3_pb2.GetTaskPushNotificationConfigRequest(name=one), about),
            (f"List{CONFIG}", a2a_v0_3_pb2.ListTaskPushNotificationConfigRequest(parent="tasks/t1"), about),
            (f"Delete{CONFIG}", a2a_v0_3_pb2.DeleteTaskPushNotificationConfigRequest(name=one), about),
        ]
    return [(service, name, value.SerializeToString(), wanted) for name, value, wanted in made]


@pytest.mark.parametrize(
    ("request_", "task", "skill"),
    [
        # what protobuf's parsers make of a field that is there twice, in parts, or in another kind
        (grpc("GetTask", b"\x12\x02t1\x12\x02t2"), "t2", None),
        (grpc("GetTask", b"\x12\x02t1\x10\x05"), "t1", None),
        (grpc("GetTask", b"\x12\x02t1\x11abcdefgh"), "t1", None),
        (grpc("GetTask", b"\x12\x02t1\x15abcd"), "t1", None),
        (grpc("GetTask", b"\x92\x80\x80\x00\x02t1"), "t1", None),
        (grpc("SendMessage", b"\x12\x04\x1a\x02t1" + b"\x12\x02\x32\x00"), "t1", None),
        (grpc("SendMessage", b"\x12\x13\x32\x11\x0a\x0f\x0a\x07skillId\x12\x04\x1a\x02tr\x12\x02\x32\x00"), None, "tr"),
    ],
)
def test_a_message_of_grpc_is_read_as_parsers_do(
    request_: Request, task: str | None, skill: str | None, carrier: Carrier
) -> None:
    for name, value in (("task.id", task), ("skill", skill)):
        if value is not None:
            rule = f"a2a.{name} == '{value}'"
            assert proxy(carrier, allowing(rule, action="Deny")).carry(request_).reason == "AuthorizationDenied"
            assert proxy(carrier, allowing(rule)).carry(request_).reason == ""


TWICE = b'{"jsonrpc": "2.0", "method": "tasks/get", "method": "message/send", "id": 1}'


RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}'


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "/", [JSON], TWICE),
        Request("POST", "/", [JSON], b"[" + json.dumps({"method": "message/send"}).encode() + b"]"),
        Request("POST", "/", [JSON], '{"method": "message/send"}'.encode("utf-16")),
        Request("POST", "/", [JSON], b"{method: 1}"),
        Request(
            "POST", "/", [JSON, ("content-encoding", "gzip")], gzip.compress(b'{"method": "message/send"}', mtime=0)
        ),
        rpc("message/send", target="/tasks/t1:cancel"),
        rest("POST", "/message:send", {"message": {"taskId": "a", "task_id": "b"}}),
        rpc("message/send", {"message": {}, "request": {}}),
        # readers of Go and .NET take names in other letters for the protocol's
        Request(
            "POST", "/", [JSON], b'{"jsonrpc": "2.0", "method": "message/send", "Method": "tasks/cancel", "id": 1}'
        ),
        Request("POST", "/", [JSON], b'{"jsonrpc": "2.0", "METHOD": "message/send", "id": 1}'),
        Request("POST", "/", [JSON], b'{"JsonRpc": "2.0", "Method": "message/send", "id": 1}'),
        Request("POST", "/", [JSON], '{"jsonrpc": "2.0", "method": "a", "param\u017f": {}, "id": 1}'.encode()),
        rpc("message/send", {"message": {"taskId": "a", "TaskId": "b"}}),
        rpc("message/send", {"message": {"taskId": "a"}, "Message": {"taskId": "b"}}),
        Request("POST", "/lf.a2a.v1.A2AService/GetTask", [("content-type", "application/grpc")], b"\1\0\0\0\1a"),
        # methods, paths and services in other letters: readers of ASP.NET do not look at their case
        rpc("Message/Send"),
        rpc("message/send "),
        rpc("sendMESSAGE"),
        rest("POST", "/Message:Send", MESSAGE),
        rest("POST", "/v1/message:SEND", MESSAGE),
        rest("GET", "/.WELL-KNOWN/agent-card.json"),
        rest("POST", "/message:send%20", MESSAGE),
        rest("POST", "/message:send.", MESSAGE),
        rest("POST", "/%256Dessage:send", MESSAGE),
        rest("GET", "/Tasks"),
        rest("GET", "/ExtendedAgentCard"),
        grpc("SendMessage", service="LF.A2A.V1.A2AService"),
        grpc("SENDMESSAGE"),
        # Connect has JSON at the paths of gRPC; some servers of gRPC look at no content type
        rest("POST", "/lf.a2a.v1.A2AService/SendMessage", MESSAGE),
        rest("GET", "/lf.a2a.v1.A2AService/ListTasks"),
        Request("POST", "/lf.a2a.v1.A2AService/SendMessage", [], frame(b"")),
        # content of another kind than its head says
        Request("POST", "/rpc", [JSON, JSON], RPC),
        Request("POST", "/rpc", [("content-type", "application/json; charset=utf-7")], RPC),
        Request("POST", "/rpc", [("content-type", 'application/json;Charset="GBK"')], RPC),
        Request("POST", "/rpc", [JSON, ("content-encoding", "identity"), ("content-encoding", "deflate")], RPC),
        Request("POST", "/rpc", [JSON, ("content-encoding", "identity, br")], RPC),
        Request(
            "POST", "/lf.a2a.v1.A2AService/GetTask", [("content-type", "application/grpc+json")], frame(b'{"id":"t"}')
        ),
        Request("PUT", "/rpc", [JSON], b"no JSON"),
        # another HTTP method than the request's
        Request("POST", "/tasks/t/pushNotificationConfigs/c", [("x-http-method-override", "DELETE")]),
        Request("GET", "/tasks/t", [("X-Method-Override", "POST")]),
        Request("GET", "/tasks/t", [("x-http-method", "POST")]),
        # a tenant, or a task, of the name of a collection
        rest("GET", "/tasks/tasks"),
        rest("GET", "/tasks/extendedAgentCard"),
        rest("GET", "/v1/tasks/tasks/pushNotificationConfigs"),
        # parameters that are read elsewhere, or by some
        rest("GET", "/tasks", {"contextId": "c1"}),
        rest("DELETE", "/tasks/t/pushNotificationConfigs/c", {}),
        rest("GET", "/tasks?contextId=a&contextId=b"),
        rest("GET", "/tasks?contextId=a&context_id=a"),
        rest("GET", "/tasks?ContextID=a"),
        rest("GET", "/tasks/t1?id=t2"),
        rest("GET", "/tasks/t1?taskId=t2"),
        rest("GET", "/tasks?" + "a&" * 1001),
        # one task here, another there
        rpc("tasks/get", {"id": "a", "taskId": "b"}),
        rpc("tasks/pushNotificationConfig/get", {"id": "a", "taskId": "b"}),
        rest("POST", "/tasks/a:cancel", {"id": "b"}),
        rpc("message/send", {"message": {"metadata": {"skill": "a"}}, "metadata": {"skill": "b"}}),
        rpc("message/send", {"message": {"metadata": {"skill": "a", "skillId": "b"}}}),
        grpc("GetTask", b"\x92\x80\x80\x80\x10\x02t1"),  # a number that some readers cut off
        grpc("GetTask", b"\x02\x02t1"),
        grpc("GetTask", b"\x12\x02\xff\xfe"),
        grpc("SendMessage", b"\x12\x16\x32\x14\x0a\x12\x0a\x07skillId\x12\x07\x1a\x02tr\x22\x01\x20"),
        grpc("SendMessage", in_message(b"skillId", b"a") + in_message(b"skill", b"a")),
        grpc("GetTask", b"\x12\x03t1"),
        Request("POST", "/lf.a2a.v1.A2AService/GetTask", [GRPC_TYPE], b"\1\0\0\0\4\x12\x02t1"),
        Request("POST", "/lf.a2a.v1.A2AService/GetTask", [GRPC_TYPE], frame(b"\x12\x02t1") * 2),
        Request("POST", "/lf.a2a.v1.A2AService/GetTask", [("content-type", "application/grpc+json")], frame(b"")),
        Request("POST", "/lf.a2a.v1.A2AService/GetTask", [("content-type", "application/grpc-web-text")], b"AAAA!AAA="),
        Request("POST", "/", [JSON], b'{"jsonrpc": "2.0", "method": "message/send", "params": {"x": NaN}}'),
    ],
    ids=repr,
)
@pytest.mark.parametrize("action", ["Allow", "Deny", "Require"])
def test_what_two_readers_may_read_differently_is_refused(request_: Request, action: str, carrier: Carrier) -> None:
    rule = "a2a.method == 'message/send'"
    seen = proxy(carrier, allowing(rule, action=action)).carry(request_)
    assert (seen.answer.status, seen.reason, seen.reached) in (
        (400, "AgentCallUnreadable", ()),
        (200, "AgentCallUnreadable", ()),  # gRPC has its own status
    )
    alone = proxy(carrier).carry(request_, answering({}))
    assert alone.reason != "AgentCallUnreadable"  # without a policy that asks, it passes
    assert alone.reached or "web-text" in str(request_.headers)  # what is no base64 cannot be sent as gRPC


def test_too_many_keys_are_refused(carrier: Carrier) -> None:
    request = rpc("message/send", {"message": {"parts": [0] * 20_000}})
    assert proxy(carrier, allowing("a2a.method == 'tasks/get'", action="Deny")).carry(request).reason == "JsonTooLarge"


def test_a_body_that_is_too_large_to_be_judged_is_refused(carrier: Carrier) -> None:
    request = rpc("message/send", {"message": "x" * 2_200_000})
    assert proxy(carrier, allowing("a2a.method == 'tasks/get'", action="Deny")).carry(request).reason == "BodyTooLarge"


def test_bodies_for_other_backends_are_not_held(carrier: Carrier) -> None:
    """A rule of a listener about agents leaves other routes of it alone."""
    rule = allowing("a2a.method == 'tasks/cancel'", action="Deny")
    run = carrier.proxy(text_of(f"{rule}\nbackends: [{{host: '127.0.0.1:9000'}}]"))
    asked = run.begin(Request("POST", "/", [JSON, ("content-length", "9")]))
    asked.content(b"{")
    assert run.arrival.received.body == b"{"
    asked.content(b"garbage}")
    asked.end()
    run.serve()
    assert asked.answer.status == 200


# --- what came of it


def task(state: str, **more: Any) -> dict[str, Any]:
    return {"id": "t9", "contextId": "c9", "status": {"state": state}, **more}


def event(value: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(value).encode()


def result(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": value}


ANSWERS = [
    (answering(result(task("completed", kind="task"))), "completed"),
    (answering(result({"task": task("TASK_STATE_INPUT_REQUIRED")})), "input-required"),
    (answering(task("TASK_STATE_CANCELED")), "canceled"),
    (answering(result({"task": task("TASK_STATE_CANCELLED")})), "canceled"),
    (
        Response(
            200,
            [EVENTS],
            [
                event(result(task("submitted", kind="task"))),
                b": ping\n\n",
                event(result({"taskId": "t9", "kind": "status-update", "status": {"state": "working"}}))[:20],
                event(result({"taskId": "t9", "kind": "status-update", "status": {"state": "working"}}))[20:],
                event(result({"statusUpdate": {"taskId": "t9", "status": {"state": "TASK_STATE_FAILED"}}})),
            ],
            sized=False,
        ),
        "failed",
    ),
]


@pytest.mark.parametrize(("response", "state"), ANSWERS)
def test_the_log_has_the_last_state_of_the_task(response: Response, state: str, carrier: Carrier) -> None:
    seen = proxy(carrier, log="{state: a2a.task.state}").carry(rpc("message/stream"), response)
    body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
    assert seen.answer.body == body  # nothing is changed
    assert f" a2a.method=message/stream a2a.task.id=t9 a2a.task.state={state} " in seen.line
    assert seen.line.endswith(f" state={state}")


def test_the_log_has_the_code_of_an_error(carrier: Carrier) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no such task"}}
    assert " a2a.error.code=-32001 " in proxy(carrier).carry(rpc("tasks/get"), answering(error)).line


def test_the_state_in_messages_of_grpc(carrier: Carrier) -> None:
    status = b"\x08\x03"
    done = b"\x0a\x02t9\x1a" + bytes([len(status)]) + status
    update = frame(b"\x1a" + bytes([len(done)]) + done)
    response = Response(
        200, [("content-type", "application/grpc")], [update[:3], update[3:]], [("grpc-status", "0")], False
    )
    seen = proxy(carrier).carry(grpc("SendStreamingMessage", b"\x12\x04\x1a\x02t1"), response)
    assert seen.answer.body == update
    assert " a2a.method=message/stream " in seen.line
    assert " a2a.task.state=completed " in seen.line


def grpc_update(state: int) -> bytes:
    """A message of a stream of 1.0: news of a task."""
    return frame(b"\x1a\x08\x0a\x02t9\x1a\x02\x08" + bytes([state]))


@pytest.mark.parametrize(
    ("pieces", "state"),
    [
        ([grpc_update(2) + grpc_update(3)], "completed"),
        ([grpc_update(3), frame(b"\x22\x02ab")], "completed"),
        ([grpc_update(2) + frame(b"x" * 70_000), frame(b"")], "working"),
        ([frame(b"x" * 70_000) + grpc_update(4)], "failed"),
        ([frame(b"x" * 70_000)[:9], frame(b"x" * 70_000)[9:] + grpc_update(4)], "failed"),
        ([b"\1" + grpc_update(3)[1:] + grpc_update(2)], "working"),  # compressed
        ([grpc_update(99) + grpc_update(0)], None),
        ([grpc_update(5) + frame(b"") * 31], "canceled"),
    ],
)
def test_the_last_state_in_a_stream_of_grpc(pieces: list[bytes], state: str | None, carrier: Carrier) -> None:
    response = Response(200, [GRPC_TYPE], pieces, [("grpc-status", "0")], False)
    seen = proxy(carrier).carry(grpc("SubscribeToTask", b"\x12\x02t9"), response)
    assert seen.answer.body == b"".join(pieces)
    assert (f" a2a.task.state={state} " in seen.line) if state else (" a2a.task.state=" not in seen.line)


@pytest.mark.parametrize("method", ["GetTask", "CancelTask"])
def test_the_state_of_a_task_of_grpc(method: str, carrier: Carrier) -> None:
    response = Response(200, [GRPC_TYPE], frame(b"\x0a\x02t9\x1a\x02\x08\x05"), [("grpc-status", "0")], False)
    assert " a2a.task.state=canceled " in proxy(carrier).carry(grpc(method, b"\x12\x02t9"), response).line
    sent = Response(200, [GRPC_TYPE], frame(b"\x0a\x08\x0a\x02t9\x1a\x02\x08\x06"), [("grpc-status", "0")], False)
    assert " a2a.task.state=input-required " in proxy(carrier).carry(grpc("SendMessage"), sent).line


def events(*values: Any) -> Response:
    return Response(200, [EVENTS], [event(value) for value in values], sized=False)


FAULT = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (events(result({"artifactUpdate": {"taskId": "t9", "contextId": "c9"}})), " a2a.task.id=t9 "),
        (events(result({"message": {"taskId": "t9", "contextId": "c9"}})), " a2a.task.id=t9 "),
        (events(result({"kind": "artifact-update", "taskId": "t9", "contextId": "c9"})), " a2a.task.id=t9 "),
        (events(result({"msg": {"taskId": "t9", "contextId": "c9"}})), " a2a.task.id=t9 "),  # REST of 0.3
        (events(result(task("working")), FAULT), " a2a.task.state=working a2a.error.code=-32603 "),
        (events(FAULT), " a2a.error.code=-32603 "),
        (events(result(task("working")), result({"taskId": "t9", "status": {"state": "failed"}})), " context=c9"),
        (Response(200, [("content-type", "application/a2a+json")], json.dumps(task("working")).encode()), "=working "),
        (Response(200, [("content-type", "Application/JSON; a=b")], json.dumps(task("working")).encode()), "=working "),
    ],
)
def test_what_answers_say_is_in_the_log(response: Response, shown: str, carrier: Carrier) -> None:
    seen = proxy(carrier, log="{context: a2a.contextId}").carry(rpc("message/stream"), response)
    assert shown in f"{seen.line} "


@pytest.mark.parametrize(
    "response",
    [
        answering({"jsonrpc": "2.0", "id": 1, "error": {"code": True}}),
        answering(result({"id": "t" * 257, "status": {"state": "working"}})),
        answering(result({"id": "", "taskId": "", "contextId": ""})),
        Response(200, [("content-type", "application/notjson")], json.dumps(result(task("working"))).encode()),
        Response(200, [("content-type", "text/plain")], json.dumps(result(task("working"))).encode()),
    ],
)
def test_what_is_no_name_or_code_is_not_in_the_log(response: Response, carrier: Carrier) -> None:
    line = proxy(carrier).carry(rpc("message/send"), response).line
    assert "a2a.task.id" not in line and "a2a.error" not in line


def test_the_log_has_the_call_that_was_sent(carrier: Carrier) -> None:
    """A step behind the rule has written another one."""
    body = json.dumps(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t7"}}))
    rule = {"action": "Deny", "policy": {"matchExpressions": ["a2a.method == 'tasks/cancel'"]}}
    route = (
        f"policies: {{authorization: {json.dumps(rule)}, transformation: {{request: {{body: {json.dumps(body)}}}}}}}"
    )
    seen = proxy(carrier, route).carry(rpc("message/send"), answering(result({})))
    assert json.loads(seen.received.body)["method"] == "tasks/get"
    assert " a2a.method=tasks/get a2a.task.id=t7 " in seen.line


def test_a_card_leads_to_the_host_that_was_asked_for(carrier: Carrier) -> None:
    """A step has written another host, and taken out what the gateway says of the client's."""
    route = """policies:
      urlRewrite: {hostname: inner.example}
      headerModifiers: {request: {remove: [x-forwarded-host, x-forwarded-proto]}}
    """
    seen = proxy(carrier, route).carry(get("/.well-known/agent-card.json"), answering(OLD))
    assert seen.received.authority == "inner.example"
    assert json.loads(seen.answer.body)["url"] == f"http://{CLIENT}/rpc"


def test_a_card_that_is_asked_for_again_is_rewritten(carrier: Carrier) -> None:
    """The connection that was kept had been closed."""
    run = proxy(carrier)
    assert run.ask(get("/other"), answering({})).status == 200
    asked = run.send(get("/.well-known/agent-card.json"))
    run.arrival.refuse()
    run.arrival.answer(answering(OLD))
    assert json.loads(asked.answer.body)["url"] == f"http://{CLIENT}/rpc"


def test_an_answer_without_content_has_no_card(carrier: Carrier) -> None:
    seen = proxy(carrier).carry(rpc("GetExtendedAgentCard"), Response(204))
    assert (seen.answer.status, seen.reason) == (204, "")


def test_of_a_large_request_a_bounded_part_is_looked_at(carrier: Carrier) -> None:
    body = b'{"params": {"x": "%b"}, "jsonrpc": "2.0", "id": 1, "method": "message/send"}' % (b"x" * 100_000)
    seen = proxy(carrier).carry(Request("POST", "/", [JSON], [body[:70_000], body[70_000:]]), answering({}))
    assert seen.received.body == body and "a2a.method" not in seen.line


def test_trailers_end_a_call_and_its_answer(carrier: Carrier) -> None:
    run = proxy(carrier)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}).encode()
    asked = run.send(Request("POST", "/", [JSON], [body], [("x-end", "1")], CLIENT, sized=False))
    run.arrival.reset()
    assert asked.answer.status == 502
    assert " a2a.method=tasks/get " in run.new_lines()[0]
    answer = Response(200, [JSON], [json.dumps(result(task("working"))).encode()], [("x-end", "1")], False)
    assert " a2a.task.state=working " in run.carry(rpc("tasks/get"), answer).line


def test_the_card_over_grpc_passes_as_it_is(carrier: Carrier) -> None:
    content = frame(b"\x0a\x01a")
    response = Response(200, [GRPC_TYPE], content, [("grpc-status", "0")], False)
    seen = proxy(carrier).carry(grpc("GetExtendedAgentCard"), response)
    assert (seen.answer.body, seen.reason) == (content, "")


def test_a_method_that_is_no_text_is_left_out(carrier: Carrier) -> None:
    seen = proxy(carrier).carry(Request("POST", "/", [JSON], b'{"method": "\\q", "params": {'), answering({}))
    assert (seen.answer.status, seen.reason) == (200, "") and "a2a.method" not in seen.line


@pytest.mark.parametrize(
    "response",
    [
        Response(200, [JSON], b"{" * 200_000),
        Response(200, [JSON], [b'{"result": "' + b"x" * 200_000, b"x" * 200_000 + b'"}'], sized=False),
        Response(
            200,
            [EVENTS],
            [b"data: " + b"x" * 60_000, b"y" * 60_000, b"\n\n", event(result(task("completed")))],
            sized=False,
        ),
        Response(
            200,
            [EVENTS],
            [event({"result": [{"status": 7}]}), event(7), event(None), event({"error": []})],
            sized=False,
        ),
        Response(200, [JSON, ("content-encoding", "gzip")], gzip.compress(b"{}", mtime=0)),
        answering(result({"id": 7, "status": {"state": "owned\n"}})),
    ],
)
def test_hostile_answers_pass_and_say_nothing(response: Response, carrier: Carrier) -> None:
    seen = proxy(carrier).carry(rpc("message/send"), response)
    assert seen.answer.body == (response.body if isinstance(response.body, bytes) else b"".join(response.body))
    assert "a2a.task" not in seen.line


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ('"a b"', ' a2a.task.id="a b" '),
        ('"a\\n reason=no"', ' a2a.task.id="a\\n reason=no" '),
        ('"\\ud800"', ' a2a.task.id="\\ud800" '),
        ('"' + "x" * 9000 + '"', "x" * 8192 + "...+808"),
        ("7", " a2a.method=tasks/get "),
        ('["a"]', " a2a.method=tasks/get "),
        ("null", " a2a.method=tasks/get "),
    ],
)
@pytest.mark.parametrize("route", ["", allowing("a2a.method == 'tasks/get'")])
def test_what_clients_name_cannot_write_a_line(task: str, shown: str, route: str, carrier: Carrier) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": %b}}' % task.encode()
    seen = proxy(carrier, route).carry(Request("POST", "/", [JSON], body), answering(result({})))
    assert seen.answer.status == 200
    assert shown in seen.line
    assert " reason=" not in seen.line.replace('\\n reason=no"', "")
    assert len(seen.line) < 10_000


def test_half_a_character_is_no_header(carrier: Carrier) -> None:
    route = "policies: {transformation: {request: {set: [{name: x-task, value: a2a.task.id}]}}}"
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "\\ud800"}}'
    request = Request("POST", "/", [JSON, ("x-task", "client")], body)
    assert "x-task" not in proxy(carrier, route).carry(request, answering(result({}))).received.headers


def test_a_large_request_streams_and_its_method_is_in_the_log(carrier: Carrier) -> None:
    run = proxy(carrier)
    asked = run.begin(Request("POST", "/", [JSON]))
    asked.content(b'{"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"x": "')
    assert run.arrival.received.body  # it is not held
    for _ in range(9):
        asked.content(b"x" * 10_000)
    asked.content(b'"}}')
    asked.end()
    run.serve(answering(result(task("working"))))
    assert asked.answer.status == 200
    assert " a2a.method=message/send a2a.task.id=t9 a2a.task.state=working " in run.new_lines()[0]


def test_each_try_is_observed(carrier: Carrier) -> None:
    run = proxy(carrier, "policies: {retry: {codes: [503], backoff: 1ms}}")
    asked = run.send(rpc("message/send", MESSAGE))
    run.arrival.answer(Response(503, last=True))
    run.advance(1.0)
    run.arrival.answer(answering(result(task("working"))))
    assert json.loads(asked.answer.body) == result(task("working"))
    assert " a2a.task.state=working " in run.new_lines()[0]


def test_expressions_know_that_it_is_an_agent(carrier: Carrier) -> None:
    run = proxy(carrier, log="{protocol: backend.protocol, binding: a2a.binding}")
    assert run.carry(rpc("tasks/get"), answering({})).line.endswith(" protocol=a2a binding=JSONRPC")
    assert run.carry(get("/tasks")).line.endswith(" protocol=a2a binding=HTTP+JSON")
    listed = proxy(carrier, log="{context: a2a.contextId}").carry(get("/tasks?contextId=c1"))
    assert listed.line.endswith(" context=c1")
    assert run.carry(grpc("GetTask")).line.endswith(" protocol=a2a binding=GRPC")


def test_a_failed_try_says_nothing_of_the_next(carrier: Carrier) -> None:
    run = proxy(carrier, "policies: {retry: {codes: [503], backoff: 1ms}}")
    asked = run.send(rpc("message/send", MESSAGE))
    failure = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603}, "result": task("failed")}
    run.arrival.answer(Response(503, [JSON], json.dumps(failure).encode()))
    run.advance(1.0)
    run.arrival.answer(answering(result({"kind": "message"})))
    assert asked.answer.status == 200
    (line,) = run.new_lines()
    assert "a2a.method=message/send" in line and "a2a.error.code" not in line and "a2a.task.state" not in line
    assert counted(run) == {("message/send", "", "answered"): 1}


def test_a_service_is_an_agent_where_its_port_says_so() -> None:
    for protocol, application in (("gatewright.dev/a2a", "a2a"), ("Gatewright.dev/A2A", "a2a"), ("http", "")):
        service = backend_pb2.ServiceBackend(namespace="n", name="s", port=80, app_protocol=protocol, empty=True)
        plan = compiler.backend_plan("backend/service/n/s/80", backend_pb2.Backend(service=service), KINDS, ())
        assert (plan.application, plan.renames, plan.kind) == (application, False, "service")


@pytest.mark.parametrize("address", [{}, {"host": "a", "unix_path": "/b"}, {"host": "a", "port": 70_000}])
def test_an_address_that_is_none_is_refused(address: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        KINDS["a2a"].check(backend_pb2.StaticBackend(**address))


def counted(run: Run) -> dict[tuple[str, ...], int]:
    series = run.memory.metrics.series()
    return {each.labels: values[0] for each, values in series if each.metric.name == "a2a_requests_total" and values[0]}


def test_the_metric_has_method_state_and_outcome(carrier: Carrier) -> None:
    run = proxy(carrier, allowing("a2a.method == 'tasks/cancel' && a2a.binding == 'JSONRPC'", action="Deny"))
    run.carry(rpc("message/stream"), ANSWERS[-1][0])
    run.carry(rpc("SendMessage"), answering(result(task("completed"))))
    run.carry(rpc("message/send"), answering(result(task("completed"))))
    run.carry(rpc("tasks/get"), answering({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}}))
    run.carry(rest("GET", "/tasks/t1"), Response(404, [JSON], b"{}"))
    run.carry(rest("GET", "/tasks/t1"), Response(400, [JSON], b"{}"))
    run.carry(rpc("tasks/cancel"))
    run.carry(rpc("custom/method"), answering(result({})))
    run.carry(get("/other"))
    run.carry(grpc("GetTask", b"\x12\x02t1"), Response(200, [GRPC_TYPE], frame(b""), [("grpc-status", "5")], False))
    run.carry(grpc("CancelTask", b"\x12\x02t1"), Response(200, [GRPC_TYPE], frame(b""), sized=False))
    run.carry(grpc("ListTasks"), Response(200, [GRPC_TYPE], frame(b""), [("grpc-status", "0")], False))
    asked = run.send(rpc("tasks/list"))
    run.arrival.reset()
    assert asked.answer.status == 502
    assert counted(run) == {
        ("message/stream", "failed", "answered"): 1,
        ("message/send", "completed", "answered"): 2,
        ("tasks/get", "", "error"): 4,
        ("tasks/cancel", "", "failed"): 1,
        ("tasks/list", "", "answered"): 1,
        ("tasks/cancel", "", "denied"): 1,
        ("other", "", "answered"): 1,
        ("", "", "answered"): 1,
        ("tasks/list", "", "failed"): 1,
    }


def test_the_metric_has_a_call_that_its_client_left(carrier: Carrier) -> None:
    run = proxy(carrier)
    asked = run.send(rpc("message/stream"))
    run.arrival.head(Response(200, [EVENTS], sized=False))
    run.arrival.content(event(result(task("working"))))
    asked.cancel()
    run.send(rpc("tasks/get")).cancel()  # before there was an answer
    assert counted(run) == {("message/stream", "working", "failed"): 1, ("tasks/get", "", "failed"): 1}


def test_other_backends_are_not_in_the_metric(carrier: Carrier) -> None:
    run = carrier.proxy(text_of("backends: [{host: '127.0.0.1:9000'}]"))
    run.carry(rpc("message/send"), answering(result(task("completed"))))
    assert counted(run) == {}
