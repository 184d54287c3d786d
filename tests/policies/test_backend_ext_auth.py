"""`backend.extAuth`: a server decides about the requests to one backend, on each try, over HTTP and gRPC alike."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fakes.both_planes import OK, BothPlanes
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
