"""External authorization over gRPC from YAML to exchange: what the server is asked, and what its answers do."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer, CallRequest
from dataplane.http.heads import Head
from gatewright.wire.external import ext_authz_pb2 as pb
from gatewright.wire.external.status_pb2 import Status
from tests.carriers import Answer, Carrier, Received, Request, Response
from tests.fakes.calls import FakeCalls, failed
from tests.fakes.tokens import ISSUER, Issuer

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
{policies}
        extAuthz:
{policy}
      backends:
      - host: 127.0.0.1:9000
"""
PLAIN = """
host: 127.0.0.1:9001
protocol:
  grpc: {}
"""
UP = Response(200, (("x-up", "up"),), b"up")
DENIES = Status(code=7)


def file(policy: str, policies: str = "") -> str:
    return FILE.format(
        policy=textwrap.indent(policy.strip("\n"), " " * 10), policies=textwrap.indent(policies, " " * 8)
    )


def grpc(message: bytes, trailers: bytes = b"grpc-status: 0") -> CallAnswer:
    """An answer whose status stands in its head, which a call of the tests has no trailers for."""
    head = Head(b"\r\ncontent-type: application/grpc\r\n" + trailers + b"\r\n")
    return CallAnswer(200, head, b"\0" + len(message).to_bytes(4, "big") + message if message is not None else b"")


def says(**fields: Any) -> CallAnswer:
    return grpc(pb.CheckResponse(**fields).SerializeToString())


def allows(**fields: Any) -> CallAnswer:
    return says(ok_response=pb.OkHttpResponse(**fields))


def denies(**fields: Any) -> CallAnswer:
    return says(status=DENIES, denied_response=pb.DeniedHttpResponse(**fields))


def option(name: str, value: str, action: int = 0, **more: Any) -> pb.HeaderValueOption:
    return pb.HeaderValueOption(header={"key": name, "value": value}, append_action=action, **more)


class Asking:
    """A proxy with the policy, and a server that answers as the test says."""

    def __init__(self, carrier: Carrier, policy: str = PLAIN, outcome: Any = None, policies: str = "") -> None:
        self.calls = FakeCalls(otherwise=says() if outcome is None else outcome)
        self.run = carrier.proxy(file(policy, policies), self.calls)
        self.answer = Answer()

    def send(
        self, *headers: tuple[str, str], method: str = "GET", target: str = "/shop/1?id=7", body: bytes = b""
    ) -> Received | None:
        """What the backend gets of a request, None when it gets nothing."""
        before = len(self.run.arrivals)
        request = Request(method, target, headers, body, authority="shop.example")
        self.answer = self.run.ask(request, UP)
        arrivals = self.run.arrivals[before:]
        return arrivals[0].received if arrivals else None

    @property
    def asked(self) -> pb.AttributeContext:
        call: CallRequest = self.calls.last
        assert (call.method, call.target) == (b"POST", b"/envoy.service.auth.v3.Authorization/Check")
        return pb.CheckRequest.FromString(call.body[5:]).attributes


def headers_of(received: Received | None) -> Any:
    assert received is not None
    return received.headers


# What is asked.


def test_the_server_is_asked_about_the_request_as_it_goes_on(carrier: Carrier) -> None:
    it = Asking(carrier)
    assert it.send(("x-a", "1"), ("x-a", "2"), ("cookie", "a=1"), target="/shop/./1?id=7") is not None
    http = it.asked.request.http
    assert (http.method, http.path, http.host, http.scheme) == ("GET", "/shop/1?id=7", "shop.example", "http")
    assert (http.headers["x-a"], http.headers["cookie"], "host" in http.headers) == ("1,2", "a=1", False)
    pseudo = {name: http.headers[name] for name in (":method", ":path", ":authority", ":scheme")}
    assert pseudo == {":method": "GET", ":path": "/shop/1?id=7", ":authority": "shop.example", ":scheme": "http"}
    assert (http.id, http.id != "") == (http.headers["x-request-id"], True)
    assert (http.size, http.body, http.raw_body) == (0, "", b"")


def test_both_ends_of_the_connection_are_named(carrier: Carrier) -> None:
    it = Asking(carrier)
    it.send()
    source = it.asked.source
    assert source.address.socket_address.address and source.address.socket_address.port_value
    assert (source.principal, source.certificate, it.asked.HasField("tls_session")) == ("", "", False)
    assert it.asked.request.HasField("time")


EXTENDED = """
host: 127.0.0.1:9001
protocol:
  grpc:
    contextExtensions: {tier: gold}
    requestMetadata:
      shop: '{"path": request.path, "n": 1}'
      text: request.method
      broken: request.headers["x-none"]
"""


def test_context_extensions_and_metadata_go_with_it(carrier: Carrier) -> None:
    it = Asking(carrier, EXTENDED)
    it.send()
    assert dict(it.asked.context_extensions) == {"tier": "gold"}
    sent = it.asked.metadata_context.filter_metadata
    assert {name: dict(value) for name, value in sent.items()} == {
        "shop": {"path": "/shop/1", "n": 1.0},
        "text": {"value": "GET"},
    }


NESTED = """
host: 127.0.0.1:9001
failureMode: FailOpen
protocol:
  grpc:
    requestMetadata:
      client: json(request.headers["x-json"])
      ours: request.method
"""
ODD = {"half of a pair": r'{"a": "\ud800"}', "17 levels": '{"a": ' * 17 + "1" + "}" * 17, "no json": "{"}


@pytest.mark.parametrize("name", ODD)
def test_values_that_no_message_can_hold_are_absent(carrier: Carrier, name: str) -> None:
    it = Asking(carrier, NESTED)
    it.send(("x-json", ODD[name]))
    assert list(it.asked.metadata_context.filter_metadata) == ["ours"]


def test_values_of_sixteen_levels_are_sent(carrier: Carrier) -> None:
    it = Asking(carrier, NESTED)
    it.send(("x-json", '{"a": ' * 16 + "1" + "}" * 16))
    assert sorted(it.asked.metadata_context.filter_metadata) == ["client", "ours"]


def jwt(issuer: Issuer) -> str:
    """A policy that accepts the issuer's tokens."""
    return "jwtAuthentication: " + json.dumps({"providers": [{"issuer": ISSUER, "jwks": {"inline": issuer.key_set()}}]})


def test_claims_of_a_token_go_where_servers_for_envoy_look(carrier: Carrier) -> None:
    issuer = Issuer()
    it = Asking(carrier, policies=jwt(issuer))
    it.send(("authorization", f"Bearer {issuer.token()}"))
    (name,) = it.asked.metadata_context.filter_metadata
    assert name == "envoy.filters.http.jwt_authn"
    payload = it.asked.metadata_context.filter_metadata[name]["jwt_payload"]
    assert payload["iss"] == ISSUER and "rawToken" not in payload


def test_a_claim_that_is_a_number_of_any_size_leaves_the_others(carrier: Carrier) -> None:
    issuer = Issuer()
    it = Asking(carrier, policies=jwt(issuer))
    assert it.send(("authorization", f"Bearer {issuer.token(n=10**350)}")) is not None
    (claims,) = it.asked.metadata_context.filter_metadata.values()
    assert claims["jwt_payload"]["iss"] == ISSUER


BODY = PLAIN + "forwardBody: {maxSize: 4}\n"


@pytest.mark.parametrize(
    ("body", "text", "raw"), [(b"text", "text", b""), (b"\xff\0", "", b"\xff\0"), (b"", "", b"")], ids=repr
)
def test_a_body_is_text_where_it_is_text(carrier: Carrier, body: bytes, text: str, raw: bytes) -> None:
    it = Asking(carrier, BODY)
    received = it.send(method="POST", body=body)
    http = it.asked.request.http
    assert received is not None and received.body == body
    assert (http.body, http.raw_body, http.size) == (text, raw, len(body))
    assert http.headers["x-envoy-auth-partial-body"] == "false"


def test_of_a_larger_body_nobody_is_asked(carrier: Carrier) -> None:
    it = Asking(carrier, BODY)
    assert it.send(method="POST", body=b"12345") is None
    assert it.answer.status == 413 and not it.calls.received


def test_without_forward_body_none_is_sent(carrier: Carrier) -> None:
    it = Asking(carrier)
    it.send(method="POST", body=b"12345")
    http = it.asked.request.http
    assert (http.body, http.raw_body, http.size) == ("", b"", 5)


# What answers do.

A, ABSENT, O, EXISTS = 0, 1, 2, 3  # noqa: E741
ACTIONS: dict[str, tuple[pb.HeaderValueOption, list[str], list[str]]] = {
    # what the server says, what the backend gets of a client without and with `x-a: c`
    "no action": (option("x-a", "s"), ["s"], ["s"]),
    "append": (option("x-a", "s", append={"value": True}), ["s"], ["c", "s"]),
    "append false": (option("x-a", "s", append={"value": False}), ["s"], ["s"]),
    "append before its action": (option("x-a", "s", ABSENT, append={"value": False}), ["s"], ["s"]),
    "if absent": (option("x-a", "s", ABSENT), ["s"], ["c"]),
    "overwrite or add": (option("x-a", "s", O), ["s"], ["s"]),
    "overwrite if there": (option("x-a", "s", EXISTS), [], ["s"]),
    "an empty value": (option("x-a", ""), [], []),
    "an empty value that is kept": (option("x-a", "", keep_empty_value=True), [""], [""]),
    "bytes": (pb.HeaderValueOption(header={"key": "X-A", "raw_value": b"s"}), ["s"], ["s"]),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_headers_by_their_append_action(carrier: Carrier, name: str) -> None:
    given, without, beside = ACTIONS[name]
    it = Asking(carrier, outcome=allows(headers=[given]))
    for sent, expected in (((), without), ((("x-a", "c"),), beside)):
        assert headers_of(it.send(*sent)).all("x-a") == expected


def test_headers_are_removed_but_those_of_routing_and_connection(carrier: Carrier) -> None:
    it = Asking(carrier, outcome=allows(headers_to_remove=["X-User", "host", ":path", "content-length", "a b"]))
    received = it.send(("x-user", "eve"), ("x-other", "1"), method="POST", body=b"abc")
    assert received is not None and received.body == b"abc" and received.target == "/shop/1?id=7"
    assert "x-user" not in received.headers and received.headers["x-other"] == "1"


QUERIES = {
    "/p?a=1&b=2": "/p?b=2&c=3",
    "/p?%61=1&b=2": "/p?b=2&c=3",  # another spelling of the name
    "/p?c=old&c=older": "/p?c=3",
    "/p": "/p?c=3",
    "/p?b=%26&&d": "/p?b=%26&d&c=3",
    "/p?b=1;a=2&d=1": "/p?d=1&c=3",  # some readers take `;` for `&`
    "/p?b=1;c=2": "/p?c=3",
    "/p?b=1;d=2": "/p?b=1;d=2&c=3",
}


@pytest.mark.parametrize("target", QUERIES)
def test_parameters_of_the_query_are_set_and_removed(carrier: Carrier, target: str) -> None:
    answer = allows(query_parameters_to_remove=["a"], query_parameters_to_set=[{"key": "c", "value": "3"}])
    received = Asking(carrier, outcome=answer).send(target=target)
    assert received is not None and received.target == QUERIES[target]


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a b&c=d#", "a%20b%26c=d%23"),
        ("1;x=2", "1%3Bx=2"),
        ("a%20b", "a%20b"),
        ("100%", "100%25"),
        ("\r\nx: 1", "%0D%0Ax:%201"),
    ],
)
def test_values_of_parameters_cannot_end_the_query(carrier: Carrier, value: str, sent: str) -> None:
    answer = allows(query_parameters_to_set=[{"key": "k", "value": value}])
    received = Asking(carrier, outcome=answer).send(target="/p")
    assert received is not None and received.target == f"/p?k={sent}"


def test_the_path_may_be_the_servers(carrier: Carrier) -> None:
    received = Asking(carrier, outcome=allows(headers=[option(":path", "/other?x=1")])).send()
    assert received is not None and received.target == "/other?x=1"


def test_a_path_that_cannot_be_denies(carrier: Carrier) -> None:
    it = Asking(carrier, outcome=allows(headers=[option(":path", "no path")]))
    assert it.send() is None and it.answer.status == 403


def test_headers_for_the_client_are_on_the_response(carrier: Carrier) -> None:
    given = [option("x-new", "1"), option("x-up", "2"), option("x-new", "3", O)]
    it = Asking(carrier, outcome=allows(response_headers_to_add=given))
    it.send()
    assert it.answer.headers.all("x-new") == ["3"] and it.answer.headers.all("x-up") == ["up", "2"]


def test_a_denial_has_its_own_status_headers_and_body(carrier: Carrier) -> None:
    headers = [
        *(option("set-cookie", "a=1"), option("set-cookie", "b=2"), option("content-type", "text/html")),
        *(option("content-length", "99"), option("transfer-encoding", "chunked")),
    ]
    it = Asking(carrier, outcome=denies(status={"code": 401}, headers=headers, body="<p>no"))
    assert it.send() is None
    assert (it.answer.status, it.answer.body, it.answer.headers["content-type"]) == (401, b"<p>no", "text/html")
    assert it.answer.headers.all("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("outcome", "status", "body"),
    [
        (says(status=DENIES), 403, b"external authorization failed"),
        (denies(), 403, b""),
        (denies(status={"code": 101}), 403, b""),
        (denies(status={"code": 204}, body="x"), 204, b""),
        (says(denied_response=pb.DeniedHttpResponse(status={"code": 402})), 402, b""),
        (says(status=DENIES, ok_response=pb.OkHttpResponse()), 403, b"external authorization failed"),
        (says(error_response=pb.DeniedHttpResponse(status={"code": 503}, body="later")), 503, b"later"),
    ],
    ids=[
        "without a response",
        "without a status",
        "no final status",
        "no body",
        "denied and ok",
        "ok and denied",
        "its error",
    ],
)
def test_what_denies(carrier: Carrier, outcome: CallAnswer, status: int, body: bytes) -> None:
    it = Asking(carrier, outcome=outcome)
    assert it.send() is None and (it.answer.status, it.answer.body) == (status, body)


NO_ANSWERS: dict[str, Any] = {
    "nobody there": failed("connect"),
    "too late": failed("timeout"),
    "no gRPC": CallAnswer(404, Head(b"\r\n"), b""),
    "a status of gRPC": CallAnswer(200, Head(b"\r\ngrpc-status: 7\r\n"), b""),
    "garbage": grpc(b"\xff\xff\xff"),
    "a header that cannot be": allows(headers=[option("x-a", "1\r\nx-b: 2")]),
    "a name that cannot be": allows(headers=[option("x a", "1")]),
    "an action that is not known": allows(headers=[option("x-a", "1", 9)]),
    "a pseudo-header of a response": allows(response_headers_to_add=[option(":path", "/")]),
    "a denial that cannot be sent": denies(headers=[option("x-a", "1\n2")]),
    "its own error": says(error_response=pb.DeniedHttpResponse()),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_no_answer_denies_unless_the_policy_fails_open(carrier: Carrier, name: str) -> None:
    closed, opened = (
        Asking(carrier, PLAIN, NO_ANSWERS[name]),
        Asking(carrier, PLAIN + "failureMode: FailOpen", NO_ANSWERS[name]),
    )
    assert closed.send() is None and closed.answer.status == 403
    received = opened.send(("x-a", "c"))
    assert received is not None and received.headers["x-a"] == "c" and opened.answer.status == 200


BLAMES: dict[str, CallAnswer] = {
    **{f"gRPC {n}": CallAnswer(200, Head(b"\r\ngrpc-status: %d\r\n" % n), b"") for n in (3, 8, 11)},
    **{f"HTTP {n}": CallAnswer(n, Head(b"\r\n"), b"") for n in (400, 413, 414, 431)},
    "an answer that is too large": denies(body="x" * 1_048_577),
}


@pytest.mark.parametrize("name", BLAMES)
def test_a_server_that_blames_the_request_denies_in_both_modes(carrier: Carrier, name: str) -> None:
    """A client could have it blamed at will, by a header of a megabyte."""
    for mode in ("FailClosed", "FailOpen"):
        it = Asking(carrier, f"{PLAIN}failureMode: {mode}", BLAMES[name])
        assert it.send() is None
        assert (it.answer.status, it.answer.body) == (403, b"external authorization failed")


LATER = """transformation:
  request:
    set:
    - {name: x-team, value: extauthz.team}
    - {name: x-both, value: 'string(extauthz.n == 2.0 && extauthz.list[0] == "a" && extauthz.deep.b)'}
"""


def test_dynamic_metadata_is_read_by_later_expressions(carrier: Carrier) -> None:
    answer = pb.CheckResponse(ok_response=pb.OkHttpResponse())
    answer.dynamic_metadata.update({"team": "red", "list": ["a"], "deep": {"b": True}})
    answer.ok_response.dynamic_metadata.update({"team": "older", "n": 2})
    it = Asking(carrier, outcome=grpc(answer.SerializeToString()), policies=LATER)
    headers = headers_of(it.send())
    assert (headers["x-team"], headers["x-both"]) == ("red", "true")


# The cache.

CACHED = PLAIN + "cache: {key: ['request.path'], ttl: 'duration(extauthz.ttl)'}\n"


def kept(**fields: Any) -> CallAnswer:
    answer = pb.CheckResponse(**fields)
    answer.dynamic_metadata.update({"ttl": "60s"})
    return grpc(answer.SerializeToString())


def test_an_answer_is_kept_with_all_that_it_does(carrier: Carrier) -> None:
    ok = pb.OkHttpResponse(headers=[option("x-a", "s")], response_headers_to_add=[option("x-new", "1")])
    it = Asking(carrier, CACHED, kept(ok_response=ok))
    for _ in range(2):
        assert headers_of(it.send())["x-a"] == "s" and it.answer.headers["x-new"] == "1"
    assert len(it.calls.received) == 1


def test_denials_are_kept_errors_are_not(carrier: Carrier) -> None:
    denied = Asking(carrier, CACHED, kept(status=DENIES, denied_response=pb.DeniedHttpResponse(body="no")))
    erring = Asking(carrier, CACHED, kept(error_response=pb.DeniedHttpResponse(body="no")))
    for it, calls in ((denied, 1), (erring, 2)):
        for _ in range(2):
            assert it.send() is None and it.answer.body == b"no"
        assert len(it.calls.received) == calls


def test_what_is_kept_acts_after_the_policies_were_loaded_again(carrier: Carrier) -> None:
    it = Asking(carrier, CACHED, kept(ok_response=pb.OkHttpResponse(response_headers_to_add=[option("x-new", "1")])))
    it.send()
    it.run.load(file(CACHED, LATER))
    it.send()
    assert it.answer.headers["x-new"] == "1" and len(it.calls.received) == 1


CONDITIONAL = """
conditional:
- condition: request.method == "POST"
  policy:
    host: 127.0.0.1:9001
    protocol:
      grpc: {contextExtensions: {which: post}}
- policy:
    host: 127.0.0.1:9001
    protocol:
      grpc: {contextExtensions: {which: others}}
"""


def test_the_first_condition_that_is_true_says_how_it_is_asked(carrier: Carrier) -> None:
    it = Asking(carrier, CONDITIONAL, allows(response_headers_to_add=[option("x-new", "1")]))
    for method, which in (("POST", "post"), ("GET", "others")):
        it.send(method=method)
        assert dict(it.asked.context_extensions) == {"which": which} and it.answer.headers["x-new"] == "1"
