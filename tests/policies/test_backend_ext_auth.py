"""`backend.extAuth`: a server decides about the requests to one backend, on each try, over HTTP and gRPC alike."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import pytest

from tests.carriers import Carrier, Request, Response
from tests.fakes.both_planes import OK, BothPlanes
from tests.fakes.calls import FakeCalls
from tests.fakes.forward_proxy import listening
from tests.fakes.socket_proxy import serving
from tests.policies.test_backend_transformation import (
    BUSY,
    FIRST,
    ONE,
    PLACES,
    RETRY,
    ROUTE,
    SECOND,
    body,
    header,
    policy,
    run,
)
from tests.policies.test_ext_auth_grpc import allows, denies, option

TWO: Final = "{group: gatewright.dev, kind: GatewayBackend, name: two}"
ASK: Final = (
    f"{{extAuth: {{backendRef: {TWO}, http: {{allowedRequestHeaders: [x-who], allowedResponseHeaders: [x-user],"
    " responseMetadata: {user: \"response.headers['x-user']\"}}}}"
)
ALLOWED: Final = b"HTTP/1.1 200 OK\r\nx-user: ann\r\ncontent-length: 0\r\n\r\n"
DENIED: Final = b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"
TEXT: Final = "external authorization failed"


def asking(*policies: str, own: str = "", answer: bytes = ALLOWED) -> BothPlanes:
    proxy = run(*policies, own=own)
    proxy.answers[SECOND] = answer
    return proxy


@pytest.mark.parametrize("place", [*PLACES, "own"])
def test_it_acts_from_every_place(place: str) -> None:
    proxy = asking(own=ASK) if place == "own" else asking(policy(PLACES[place], ASK))
    assert proxy.ask("/a", "x-user: mallory")[0] == 200
    (server, question), (backend, sent) = proxy.taken()
    assert (server, backend) == (SECOND, FIRST)
    assert question.startswith("GET /a HTTP/1.1\r\n")
    assert header(sent, "x-user") == ["ann"]
    proxy.answers[SECOND] = DENIED
    assert proxy.ask("/a") == (403, TEXT)
    assert proxy.reached() == [SECOND]


def test_the_server_is_not_asked_about_itself_by_what_stands_above_it() -> None:
    """Of levels above a call takes how to connect, alone."""
    proxy = asking(policy(PLACES["Gateway"], ASK), policy(ROUTE, ASK, "r", "traffic"))
    assert proxy.ask("/")[0] == 200
    assert proxy.reached() == [SECOND, SECOND, FIRST]  # for the route, for the backend


def test_each_try_asks() -> None:
    proxy = asking(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=ASK)
    proxy.answers[FIRST] = BUSY
    assert proxy.ask("/a")[0] == 503
    assert proxy.reached() == [SECOND, FIRST] * 3


def test_a_denial_is_no_try_that_another_one_follows() -> None:
    proxy = asking(policy(ROUTE, "{retry: {attempts: 2, codes: [403]}}", "r", "traffic"), own=ASK, answer=DENIED)
    assert proxy.ask("/a") == (403, TEXT)
    assert proxy.reached() == [SECOND]


def test_it_decides_before_the_backends_transformation_which_reads_what_it_found() -> None:
    own = ASK[:-1] + ", transformation: {request: {set: [{name: x-who, value: extauthz.user}]}}}"
    proxy = asking(own=own)
    proxy.ask("/", "x-who: mallory")
    (_, question), (_, sent) = proxy.taken()
    assert (header(question, "x-who"), header(sent, "x-who")) == (["mallory"], ["ann"])


def test_it_reads_the_body_which_each_try_sends() -> None:
    own = ASK.replace("backendRef", "forwardBody: {maxSize: 4}, backendRef")
    proxy = asking(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=own)
    proxy.answers[FIRST] = BUSY
    proxy.ask("/a", method="POST", body="abc")
    assert [body(text) for _, text in proxy.taken()] == ["abc"] * 6
    client = proxy.connect()
    client.send(b"POST /a HTTP/1.1\r\nhost: shop\r\ncontent-length: 5\r\n\r\nabcde")
    assert client.received.startswith(b"HTTP/1.1 413 ")
    assert proxy.reached() == []


@pytest.mark.parametrize("place", [*PLACES, "own"])
def test_a_server_that_is_not_there_denies(place: str) -> None:
    lost = ASK.replace("name: two", "name: nowhere")
    proxy = run(own=lost) if place == "own" else run(policy(PLACES[place], lost))
    status, text = proxy.ask("/")
    assert status in (403, 503) and text in (TEXT, "policy cannot be applied")
    assert proxy.reached() == []


@pytest.mark.parametrize("target", [PLACES["Gateway"], ONE])
@pytest.mark.parametrize("other", ["{tls: {insecureSkipVerify: All}}", "{http: {requestTimeout: 3s}}"])
def test_another_policy_of_the_backend_does_not_open_one_that_refuses(target: str, other: str) -> None:
    lost = ASK.replace("name: two", "name: nowhere")
    proxy = run(policy(target, lost, "zz"), policy(ONE, other, "aa"))
    assert proxy.ask("/")[0] in (403, 503)
    assert proxy.reached() == []


def test_one_that_fails_open_lets_pass() -> None:
    own = ASK.replace("backendRef", "failureMode: FailOpen, backendRef")
    proxy = asking(own=own, answer=b"nonsense\r\n\r\n")
    assert proxy.ask("/")[0] == 200


def test_verdicts_are_remembered_over_tries() -> None:
    own = ASK.replace("backendRef", "cache: {key: [request.path], ttl: 5m}, backendRef")
    proxy = asking(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=own)
    proxy.answers[FIRST] = BUSY
    proxy.ask("/a")
    assert proxy.reached() == [SECOND, FIRST, FIRST, FIRST]


def test_without_it_nobody_is_asked() -> None:
    proxy = asking()
    assert proxy.answers.get(FIRST, OK) == OK
    assert proxy.ask("/")[0] == 200
    assert proxy.reached() == [FIRST]


# --- over gRPC


def test_over_grpc_it_edits_requests_and_answers_of_each_try(carrier: Carrier) -> None:
    text = grpc_file("- host: 127.0.0.1:9000", "retry: {attempts: 1, codes: [503], backoff: 50ms}")
    edits = {"headers": [option("x-user", "ann")], "response_headers_to_add": [option("x-back", "1")]}
    calls = FakeCalls(otherwise=allows(**edits))
    run = carrier.proxy(text, calls)
    answer = run.ask(Request("GET", "/", (("x-user", "mallory"),)), Response(200))
    (arrival,) = run.arrivals
    assert (arrival.received.headers["x-user"], answer.headers["x-back"]) == ("ann", "1")


def test_over_grpc_a_denial_is_given_as_the_server_has_it(carrier: Carrier) -> None:
    calls = FakeCalls(otherwise=denies(status={"code": 401}, body="who are you?"))
    run = carrier.proxy(grpc_file("- host: 127.0.0.1:9000"), calls)
    answer = run.ask(Request("GET", "/"), Response(200))
    assert (answer.status, answer.body, run.arrivals) == (401, b"who are you?", [])


def grpc_file(backend: str, policies: str = "") -> str:
    return f"""
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies: {{{policies}}}
      backends:
      {backend}
        policies: {{extAuthz: {{host: '127.0.0.1:9001', protocol: {{grpc: {{}}}}}}}}
"""


# --- on calls


CALLED: Final = (
    "{extAuth: {backendRef: {group: gatewright.dev, kind: GatewayBackend, name: one},"
    " http: {allowedResponseHeaders: [x-user]}}}"
)
"""Of the route to `two`: the server that decides is `one`."""


def test_a_call_whose_backend_denies_it_fails_as_one_that_finds_nobody() -> None:
    """`one` decides about requests; whether it may be asked is decided by `two`."""
    proxy = asking(policy(ROUTE, CALLED, "r", "traffic"), own=ASK, answer=DENIED)
    assert proxy.ask("/two") == (403, TEXT)
    assert proxy.reached() == [SECOND]
    proxy.answers[SECOND] = ALLOWED
    assert proxy.ask("/two")[0] == 200
    assert proxy.reached() == [SECOND, FIRST, SECOND]


ANSWERS: Final = {
    "a header": ("set: [{name: x-user, value: \"'made'\"}]", "made"),
    "of the call": ("set: [{name: x-user, value: request.path}]", "/two"),
    "of its client": ("set: [{name: x-user, value: source.address}]", "10.0.0.5"),
    "of its answer": ("set: [{name: x-user, value: string(response.body)}]", "ok"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_of_a_call_is_transformed_before_it_is_read(name: str) -> None:
    edits, wanted = ANSWERS[name]
    own = f"{{transformation: {{response: {{{edits}}}}}}}"
    proxy = run(policy(ROUTE, CALLED, "r", "traffic"), own=own)
    assert proxy.ask("/two")[0] == 200
    (_, (_, sent)) = proxy.taken()
    assert header(sent, "x-user") == ([wanted] if name != "of its client" else header(sent, "x-forwarded-for"))


def test_the_status_of_a_call_s_answer_may_be_another() -> None:
    own = "{transformation: {response: {set: [{name: ':status', value: '403'}]}}}"
    proxy = run(policy(ROUTE, CALLED, "r", "traffic"), own=own)
    assert proxy.ask("/two") == (403, TEXT)


def test_what_a_call_s_steps_find_out_is_not_the_request_s() -> None:
    own = "{transformation: {request: {metadata: {who: \"'call'\"}, set: [{name: x-who, value: metadata.who}]}}}"
    behind = "{transformation: {request: {set: [{name: x-who, value: metadata.who}]}}, " + CALLED[1:]
    proxy = run(policy(ROUTE, behind, "r", "traffic"), own=own)
    proxy.ask("/two", "x-who: ann")
    (_, question), (_, sent) = proxy.taken()
    assert (header(question, "x-who"), header(sent, "x-who")) == (["call"], [])


def test_an_answer_of_a_call_that_its_steps_cannot_change_is_none() -> None:
    own = "{transformation: {response: {body: json(response.body).a}}}"
    proxy = run(policy(ROUTE, CALLED, "r", "traffic"), own=own)
    assert proxy.ask("/two") == (403, TEXT)


def test_a_mirror_of_a_backend_with_steps_is_judged_as_well() -> None:
    mirror = (
        "filters: [{type: RequestMirror, requestMirror: {backendRef:"
        " {group: gatewright.dev, kind: GatewayBackend, name: two}}}]"
    )
    to_two = ASK.replace("name: two", "name: one").replace("{extAuth", "{extAuth")
    proxy = run(policy(TWO, to_two), filters=mirror)
    proxy.ask("/a")
    asked = [label for label, text in proxy.taken()]
    assert sorted(asked) == [FIRST, FIRST, SECOND]
    proxy.answers[FIRST] = DENIED
    proxy.ask("/a")
    assert SECOND not in proxy.reached()


RAW: Final = {
    "a TCP route": "protocol: TCP, tcpRoutes: [{backends: [{backend: own}]}]",
    "the proxy of a tunnel": (
        "protocol: HTTP, routes: [{backends: [{host: 'shop.example:80', policies: {tunnel: {backend: own}}}]}]"
    ),
}


@pytest.mark.parametrize("way", RAW)
@pytest.mark.parametrize("asks", [False, True])
async def test_what_is_no_request_does_not_pass_a_backend_with_a_server_that_decides(way: str, asks: bool) -> None:
    """It would be asked about nothing."""
    seen = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1))

    async with listening(serve) as port:
        policies = "extAuthz: {host: '127.0.0.1:1', protocol: {http: {}}}" if asks else ""
        text = f"""
backends: [{{name: own, host: '127.0.0.1:{port}', policies: {{{policies}}}}}]
binds: [{{port: 8080, listeners: [{{name: main, {RAW[way]}}}]}}]
"""
        async with serving(text) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            with contextlib.suppress(ConnectionError), contextlib.closing(writer):
                writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
                await reader.read()
            assert bool(seen) is not asks
            assert not asks or "its extAuth decides about requests" in proxy.log_line()


LOOPS: Final = {"of one": ("one", "one"), "of two": ("two", "one")}


@pytest.mark.parametrize("name", LOOPS)
def test_servers_that_decide_about_each_other_deny(name: str) -> None:
    """Each would be asked about the question to the other, for ever."""
    first, second = LOOPS[name]
    proxy = run(policy(ONE, ASK.replace("name: two", f"name: {first}"), "a"))
    if first != second:
        proxy.load(policy(TWO, ASK.replace("name: two", f"name: {second}"), "b"))
    assert proxy.ask("/a") == (403, TEXT)
    assert proxy.reached() == []
    assert any("its steps lead back to it" in line for line in proxy.log_lines())
