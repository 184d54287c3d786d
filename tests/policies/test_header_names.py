"""`-` and `_` are one name for policies: WSGI, CGI and PHP give an application both as one variable.

Origins and clients send names with `_` and other characters; each policy that sets, removes, reads or lists a header
has to take them for the name that an application would.
"""

from __future__ import annotations

import pytest

from tests.carriers import CARRIERS, Carrier, Headers, Request, Response
from tests.fakes.policy_run import served

SPELLINGS = ("x-user", "x_user", "x.user", "x~user")

SET_BY = {
    "modifier": "policies: {headerModifiers: {request: {set: [{name: x-user, value: ours}]}}}",
    "modifier, written with _": "policies: {headerModifiers: {request: {set: [{name: X_User, value: ours}]}}}",
    "transformation": "policies: {transformation: {request: {set: [{name: x-user, value: '\"ours\"'}]}}}",
    "transformation by what was sent": (
        'policies: {transformation: {request: {set: [{name: X_user, value: \'request.path == "" ? "":"ours"\'}]}}}'
    ),
}


KEPT = "frontendPolicies: {http: {headerUnderscores: Keep}}\n"
REJECTED = "frontendPolicies: {http: {headerUnderscores: Reject}}\n"


@pytest.mark.parametrize("names", ["", KEPT], ids=["Drop", "Keep"])
@pytest.mark.parametrize("policy", SET_BY.values(), ids=SET_BY)
def test_a_header_that_is_set_is_there_once(carrier: Carrier, policy: str, names: str) -> None:
    run = carrier.shared(served(policy) + names)
    for sent in SPELLINGS:
        seen = run.carry(Request(headers=[(sent, "evil"), ("accept", "a")]))
        assert [pair for pair in seen.received.passed.pairs() if pair[0] != "accept"] in (
            [("x-user", "ours")],
            [("x_user", "ours")],
        )


def test_unusual_names_are_dropped_unless_something_else_is_set(carrier: Carrier) -> None:
    sent = [("x_a", "1"), ("x.b", "2"), ("a!#$%&'*+^`|~z", "3"), ("x-c", "4_5"), ("_", "6"), ("cookie", "_ga=1; b_c=2")]
    for setting, passed in (("", [("x-c", "4_5"), ("cookie", "_ga=1; b_c=2")]), (KEPT, sent)):
        run = carrier.proxy(served("") + setting)
        for _ in range(3):  # what a connection remembers of a head is the same
            assert run.carry(Request(headers=sent)).received.passed == Headers(passed)


@pytest.mark.parametrize("version", ["http1", "http2"])  # the carriers of clients count, and the toy is none
def test_what_is_dropped_is_counted_and_logged_once(version: str, caplog: pytest.LogCaptureFixture) -> None:
    run = CARRIERS[version].proxy(served(""))
    counts = []
    for names in (["x-a"], ["x_a", "x.b", "x-c"], ["x_a", "x.b", "x-c"], ["accept"], ["_"]):
        run.carry(Request(headers=[(name, "1") for name in names]))
        series = run.memory.metrics.series()
        counts.append(sum(values[0] for each, values in series if each.metric.name == "request_headers_dropped_total"))
    assert counts == [0, 2, 4, 4, 5]
    assert len([each for each in caplog.messages if "headerUnderscores" in each]) == 1


def test_a_request_with_an_unusual_name_is_refused_where_it_is_set(carrier: Carrier) -> None:
    run = carrier.proxy(served("") + REJECTED)
    for name in ("x_a", "x.b", "_"):
        refused = run.carry(Request(headers=[(name, "1")]))
        assert (refused.answer.status, refused.answer.body) == (400, b"bad request")
    assert run.carry(Request(headers=[("x-a", "_")])).answer.status == 200


def test_a_listener_of_the_file_has_its_own_setting(carrier: Carrier) -> None:
    text = served("").replace("  - name: http\n", "  - name: http\n    http: {headerUnderscores: Keep}\n")
    seen = carrier.proxy(text + REJECTED).carry(Request(headers=[("x_a", "1")]))
    assert seen.received.passed == Headers([("x_a", "1")])


REMOVE = "policies: {headerModifiers: {request: {remove: [x-user]}}}"
GUARD = """
policies:
  authorization:
    action: Deny
    policy: {matchExpressions: ['request.headers["x-role"] == "guest"']}
"""
ROUTED = "matches: [{headers: [{name: x-role, value: guest}]}]"


@pytest.mark.parametrize("sent", SPELLINGS)
def test_what_is_kept_is_removed_under_each_spelling(carrier: Carrier, sent: str) -> None:
    seen = carrier.shared(served(REMOVE) + KEPT).carry(Request(headers=[(sent, "evil")]))
    assert seen.received.passed == Headers()


@pytest.mark.parametrize("sent", ["x-role", "x_role", "x.role"])
def test_what_is_kept_is_read_under_each_spelling(carrier: Carrier, sent: str) -> None:
    assert carrier.shared(served(GUARD) + KEPT).carry(Request(headers=[(sent, "guest")])).answer.status == 403
    assert carrier.shared(served(ROUTED) + KEPT).carry(Request(headers=[(sent, "guest")])).answer.status == 200


CLAIMS = ["x_forwarded_proto", "x.forwarded.proto", "x_forwarded.for", "x_request_id", "content_length"]


@pytest.mark.parametrize("sent", CLAIMS)
def test_what_is_kept_is_no_claim_of_a_client(carrier: Carrier, sent: str) -> None:
    headers = carrier.shared(served("") + KEPT).carry(Request(headers=[(sent, "6.6.6.6")])).received.headers
    assert sent not in headers
    assert headers["x-forwarded-proto"] == "http" and headers["x-forwarded-for"] == "192.0.2.7"
    assert headers["x-request-id"] != "6.6.6.6"


RESPONSE = """
policies:
  headerModifiers: {response: {remove: [x-internal], set: [{name: x_kind, value: ours}]}}
"""


@pytest.mark.parametrize("sent", ["x-internal", "x_internal", "x.internal"])
def test_a_header_that_an_origin_spells_otherwise_is_removed(carrier: Carrier, sent: str) -> None:
    came = [(sent, "1"), ("x-kind", "theirs"), ("x_other", "Stays_As_It_Is"), ("content-length", "0")]
    seen = carrier.shared(served(RESPONSE)).carry(Request(), Response(200, came))
    assert seen.answer.headers == Headers([("content-length", "0"), ("x_other", "Stays_As_It_Is"), ("x_kind", "ours")])


READ = """
policies:
  transformation:
    response:
      set:
      - {name: x-one, value: 'response.headers["x-kind"]'}
      - {name: x-two, value: 'response.headers.x_kind'}
      - {name: x-three, value: '"x_kind" in response.headers ? response.headers["x" + "_kind"] : "none"'}
      - {name: x-four, value: 'response.headers.exists(name, name == "x-kind") ? "seen" : "none"'}
"""


def test_expressions_read_each_spelling_under_each(carrier: Carrier) -> None:
    seen = carrier.shared(served(READ)).carry(Request(), Response(200, [("x_kind", "A_b"), ("content-length", "0")]))
    read = {name: value for name, value in seen.answer.headers.pairs() if name.startswith("x-")}
    assert read == {"x-one": "A_b", "x-two": "A_b", "x-three": "A_b", "x-four": "seen"}


def test_trailers_of_unusual_names_go_the_same_way(carrier: Carrier) -> None:
    sent = [("x-sum", "1"), ("x_user", "evil"), ("x.user", "evil")]
    for setting, passed in (("", [("x-sum", "1")]), (REJECTED, [("x-sum", "1")]), (KEPT, sent)):
        run = carrier.proxy(served("") + setting)
        seen = run.carry(Request("POST", body=[b"a", b"b"], trailers=sent, sized=False))
        assert (seen.received.body, seen.received.trailers) == (b"ab", Headers(passed))
