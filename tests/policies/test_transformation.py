"""Transformations from the standalone file to what both sides get."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.steps import transformation
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import OK, Carried, Carrier, Headers, Request, Response, Run
from tests.carriers.values import Pairs
from tests.fakes.policy_run import problems, served
from tests.fakes.table_state import exchange
from tests.harness import yamls

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      backends: [{{host: 127.0.0.1:9000}}]
      policies:
        transformation:
{fields}
"""
GET = Request("GET", "/shop/a?b=c", [("x-name", "Bo"), ("x-many", "1"), ("x-many", "2")], authority="a.example")


def proxy(carrier: Carrier, fields: str) -> Run:
    return carrier.proxy(FILE.format(fields=textwrap.indent(textwrap.dedent(fields).strip("\n"), " " * 10)))


def refused_with(seen: Carried, status: int, text: bytes, reason: str) -> None:
    """A transformation failed."""
    assert (seen.answer.status, seen.answer.body, seen.answer.ended) == (status, text, True)
    assert seen.reason == reason


def of_request(seen: Carried) -> None:
    """The request was refused, and did not get any further."""
    refused_with(seen, 500, b"request transformation failed", "RequestTransformationFailed")
    assert seen.reached == ()


def of_response(seen: Carried) -> None:
    """The response was replaced."""
    refused_with(seen, 502, b"response transformation failed", "ResponseTransformationFailed")


def edited(carrier: Carrier, side: str, edits: dict[str, Any] | str, headers: Pairs) -> Headers:
    """The headers after an edit of these."""
    text = edits if isinstance(edits, str) else yamls.dump(edits, default_flow_style=True, width=9999)
    run = carrier.shared(served(f"policies: {{transformation: {{{side}: {{{text.strip().strip('{}')}}}}}}}"))
    if side == "request":
        return run.carry(Request("GET", "/p", headers)).received.passed
    answer = run.carry(Request("GET", "/p", [("x-zero", "0")]), Response(200, headers)).answer
    assert answer.status == 200
    return answer.headers.but("content-length")


class TestHeaders:
    @pytest.mark.parametrize("side", ["request", "response"])
    @pytest.mark.parametrize(
        ("fields", "headers", "expected"),
        [
            ("set: [{name: x-a, value: \"'1'\"}]", "x-a: 0, x-a: 2, b: 1", "b: 1, x-a: 1"),
            ("set: [{name: X-A, value: '1 + 2'}]", "x-a: 0", "x-a: 3"),
            ("set: [{name: x-a, value: request.path}]", "x-a: 0, x-aa: 1", "x-aa: 1, x-a: /p"),
            ("add: [{name: x-a, value: request.path}]", "x-a: 0", "x-a: 0, x-a: /p"),
            ("add: [{name: x-a, value: '2'}]", "x-a: 0", "x-a: 0, x-a: 2"),
            ("remove: [X-A, x-c]", "x-a: 0, x-b: 1, x-a: 2", "x-b: 1"),
            # metadata, add, set, remove, each of them sees what came before
            ("add: [{name: x-a, value: '1'}], set: [{name: x-a, value: '2'}]", "x-a: 0", "x-a: 2"),
            ("set: [{name: x-a, value: '2'}], remove: [x-a]", "x-a: 0", ""),
            ("metadata: {k: \"'v'\"}, set: [{name: x-a, value: metadata.k}]", "", "x-a: v"),
            ("metadata: {a: '1', b: 'metadata.a + 1'}, set: [{name: x-a, value: metadata.b}]", "", "x-a: 2"),
            # values
            ("set: [{name: x-a, value: 'true'}, {name: x-b, value: '1.5'}]", "", "x-a: true, x-b: 1.5"),
            ("set: [{name: x-a, value: \"'\\u00e9'\"}]", "", "x-a: \u00e9"),
            ("set: [{name: x-a, value: \"' a b\\t'\"}]", "", "x-a: a b"),
            ("set: [{name: x-a, value: \"''\"}]", "x-a: 0", "x-a: "),
            ("set: [{name: x-a, value: \"b'xyz'\"}]", "", "x-a: xyz"),
        ],
    )
    def test_edits(self, side: str, fields: str, headers: str, expected: str, carrier: Carrier) -> None:
        def pairs(text: str) -> Pairs:
            return [(name, value) for name, _, value in (line.partition(": ") for line in text.split(", ") if line)]

        assert edited(carrier, side, fields + " ", pairs(headers)) == Headers(pairs(expected))

    @pytest.mark.parametrize("side", ["request", "response"])
    @pytest.mark.parametrize("operation", ["set", "add"])
    @pytest.mark.parametrize(
        "value",
        [
            "request.headers['x-none']",
            "1 / int(request.headers['x-zero'])",
            r"'a\r\nx-evil: 1'",
            r"'a\nb'",
            r"'a\u0000b'",
            r"'\u007f'",
            "request.headers['x-zero'] + '\\r\\n'",
            "dyn([1, 2])",
            "dyn(null)",
        ],
    )
    def test_without_a_value_a_clients_own_does_not_pass_for_it(
        self, side: str, operation: str, value: str, carrier: Carrier
    ) -> None:
        came = [("x-user", "root"), ("x-user", "admin"), ("x-zero", "0")]
        edits = {operation: [{"name": "X-User", "value": value}]}
        assert edited(carrier, side, edits, came) == {"x-zero": "0"}

    def test_hop_and_framing_headers_are_not_editable(self) -> None:
        for fields in ("set: [{name: Content-Length, value: '1'}]", "remove: [transfer-encoding]"):
            (problem,) = problems(f"policies: {{transformation: {{request: {{{fields}}}}}}}")
            assert "belongs to the connection and cannot be edited" in problem


def built(config: traffic_pb2.Transformation) -> Any:
    made = transformation.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
    assert made is not None
    return made


class TestPseudoHeaders:
    @staticmethod
    def sets(name: str, value: str) -> str:
        return f"request: {{set: [{{name: '{name}', value: \"{value}\"}}]}}"

    @pytest.mark.parametrize(
        ("name", "value", "method", "target"),
        [
            (":method", "'POST'", "POST", "/shop/a?b=c"),
            (":path", "'/x'", "GET", "/x"),
            (":path", "'/x?y=1'", "GET", "/x?y=1"),
            (":path", "'/x?'", "GET", "/x?"),
            (":path", "'/x' + request.pathAndQuery", "GET", "/x/shop/a?b=c"),
            (":path", "'/x/../%61/./b%2fc'", "GET", "/a/b%2Fc"),
        ],
    )
    def test_request_line(self, name: str, value: str, method: str, target: str, carrier: Carrier) -> None:
        received = proxy(carrier, self.sets(name, value)).carry(GET).received
        assert (received.method, received.target) == (method, target)

    @pytest.mark.parametrize("name", [":authority", "host", "Host"])
    def test_authority(self, name: str, carrier: Carrier) -> None:
        received = proxy(carrier, self.sets(name, "'B.Example:81'")).carry(GET).received
        assert received.authority == "B.Example:81" and "host" not in received.headers
        assert received.headers["x-forwarded-host"] == "a.example"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            (":method", "'GET '+'/ HTTP/1.1'"),
            (":method", "'get'"),
            (":method", "'CONNECT'"),
            (":method", "'HEAD'"),  # the client waits for a body
            (":path", "'x'"),
            (":path", "'/x y'"),
            (":path", r"'/x\\r\\nEvil: 1'"),
            (":path", "'/%zz'"),
            (":path", "'/a#b'"),
            (":path", "'http://b/'"),
            (":path", "request.headers['x-none']"),
            (":authority", "'a b'"),
            (":authority", "''"),
            (":authority", "request.headers['x-none']"),
            (":scheme", "'ftp'"),
        ],
    )
    def test_without_a_value_the_request_is_refused(self, name: str, value: str, carrier: Carrier) -> None:
        of_request(proxy(carrier, self.sets(name, value)).carry(GET))

    def test_head_stays_head(self, carrier: Carrier) -> None:
        head = replace(GET, method="HEAD")
        assert proxy(carrier, self.sets(":method", "'GET'")).carry(head).answer.status == 500
        received = proxy(carrier, self.sets(":method", "'HEAD'")).carry(head).received
        assert (received.method, received.target) == ("HEAD", "/shop/a?b=c")

    def test_all_places_agree(self, carrier: Carrier) -> None:
        fields = [
            "':path', value: \"'/b/../n?m=1'\"",
            "':authority', value: \"'B.Example:81'\"",
            "':scheme', value: \"'https'\"",
        ]
        entries = ", ".join(f"{{name: {field}}}" for field in fields)
        route = f"policies: {{transformation: {{request: {{set: [{entries}]}}}}}}"
        log = "{uri: request.uri, path: request.path, host: request.host, scheme: request.scheme}"
        seen = carrier.proxy(served(route, log=log)).carry(Request("GET", "/p"))
        assert (seen.received.target, seen.received.authority) == ("/n?m=1", "B.Example:81")
        ending = "uri=https://B.Example:81/n?m=1 path=/n host=B.Example:81 scheme=https"
        assert sorted(seen.line.split()[-4:]) == sorted(ending.split())

    @pytest.mark.parametrize(("value", "rewritten"), [("/shop/b", "/new/b"), ("/shopping", None), ("/shop", "/new")])
    def test_the_matched_prefix_counts_only_while_it_is_there(
        self, value: str, rewritten: str | None, carrier: Carrier
    ) -> None:
        text = FILE.format(fields=f"          request: {{set: [{{name: ':path', value: \"'{value}'\"}}]}}").replace(
            "      policies:",
            "      matches: [{path: {type: PathPrefix, value: /shop}}]\n"
            "      policies:\n        urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}",
        )
        seen = carrier.proxy(text).carry(GET)
        assert [each.target for each in seen.reached] == ([rewritten] if rewritten else [])
        assert seen.answer.status == (200 if rewritten else 503)

    @pytest.mark.parametrize(
        ("value", "status", "headers", "body"),
        [
            ("'404'", 404, {"content-length": "2"}, b"ok"),
            ("response.code + 1", 201, {"content-length": "2"}, b"ok"),
            ("204", 204, {}, b""),
        ],
    )
    def test_status(self, value: str, status: int, headers: dict[str, str], body: bytes, carrier: Carrier) -> None:
        run = proxy(carrier, f"response: {{set: [{{name: ':status', value: \"{value}\"}}]}}")
        answer = run.carry(GET).answer
        assert (answer.status, answer.headers, answer.body, answer.ended) == (status, headers, body, True)

    @pytest.mark.parametrize("value", ["'abc'", "99", "101", "600", "'2 00'", "response.headers['x-none']"])
    def test_status_that_is_none(self, value: str, carrier: Carrier) -> None:
        run = proxy(carrier, f"response: {{set: [{{name: ':status', value: \"{value}\"}}]}}")
        of_response(run.carry(GET))

    def test_status_of_our_own_answers(self, carrier: Carrier) -> None:
        run = proxy(carrier, "response: {set: [{name: ':status', value: '404'}]}")
        run.refuse_connections()
        answer = run.carry(GET).answer
        assert (answer.status, answer.body) == (404, b"upstream connection failed")


class TestBodies:
    POST = Request("POST", "/", [("content-encoding", "x"), ("etag", "1")], b'{"a":1}')
    ADDS = "request: {body: \"{'a': json(request.body).a, 'b': 2}\"}"
    LARGE = Request("POST", "/", [("content-length", "2097153"), ("x-size", "1")])

    def test_of_requests(self, carrier: Carrier) -> None:
        received = proxy(carrier, self.ADDS).carry(replace(self.POST, body=[b'{"a":1}'])).received
        assert (received.passed, received.body) == ({"content-length": "13"}, b'{"a":1,"b":2}')

    @pytest.mark.parametrize("came", [b"", b"no json"])
    def test_of_requests_without_a_value(self, came: bytes, carrier: Carrier) -> None:
        request = Request("POST", headers=[("content-length", str(len(came)))], body=came)
        of_request(proxy(carrier, self.ADDS).carry(request))

    def test_of_requests_that_are_too_large(self, carrier: Carrier) -> None:
        run = proxy(carrier, self.ADDS)
        assert run.begin(self.LARGE).answer.status == 413 and not run.connections

    def test_a_header_about_a_body_that_is_too_large_is_absent(self, carrier: Carrier) -> None:
        run = proxy(carrier, "request: {set: [{name: x-size, value: size(request.body)}]}")
        run.begin(self.LARGE)
        assert run.arrival.received.passed == {"content-length": "2097153"}

    def test_headers_that_are_set_beside_a_body_stay(self, carrier: Carrier) -> None:
        run = proxy(carrier, "request: {set: [{name: content-encoding, value: \"'y'\"}], body: \"'new'\"}")
        received = run.carry(self.POST).received
        assert (received.passed, received.body) == ({"content-encoding": "y", "content-length": "3"}, b"new")

    def test_the_same_body_changes_nothing(self, carrier: Carrier) -> None:
        seen = proxy(carrier, "request: {body: request.body}\nresponse: {body: response.body}").carry(self.POST)
        assert seen.received.passed == {"content-encoding": "x", "etag": "1", "content-length": "7"}
        assert seen.received.body == b'{"a":1}'
        assert (seen.answer.status, seen.answer.headers, seen.answer.body) == (200, {"content-length": "2"}, b"ok")

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("'plain'", b"plain"),
            (r"b'\x00'", b"\x00"),
            ("[1, 'a', null]", b'[1,"a",null]'),
            ("string(response.body) + metadata.m", b"okM"),
            ("string(response.code) + request.path", b"200/shop/a"),
        ],
    )
    def test_of_responses(self, expression: str, expected: bytes, carrier: Carrier) -> None:
        fields = f"request: {{metadata: {{m: \"'M'\"}}}}\nresponse:\n  body: |\n    {expression}"
        answer = proxy(carrier, fields).carry(GET).answer
        assert (answer.status, answer.headers) == (200, {"content-length": str(len(expected))})
        assert answer.body == expected and answer.ended

    def test_of_responses_that_read_the_request(self, carrier: Carrier) -> None:
        run = proxy(carrier, "response: {body: request.body + response.body}")
        assert run.carry(self.POST).answer.body == b'{"a":1}ok'

    ADDS_MARK = "response: {body: \"string(response.body) + '!'\"}"

    def test_of_responses_that_cannot_be_buffered(self, carrier: Carrier) -> None:
        run = proxy(carrier, self.ADDS_MARK)
        asked = run.send(GET)
        run.arrival.head(Response(200, [("content-length", "2097153")]))
        assert (asked.answer.status, asked.answer.body) == (502, b"response transformation failed")
        asked = run.send(GET)
        run.arrival.head(Response(200, [("content-type", "text/event-stream")]))
        assert (asked.answer.status, asked.answer.body) == (502, b"response transformation failed")

    def test_a_stream_passes_where_only_a_header_asks_for_it(self, carrier: Carrier) -> None:
        run = proxy(carrier, "response: {set: [{name: x-size, value: size(response.body)}]}")
        asked = run.send(GET)
        headers = [("content-type", "text/event-stream"), ("content-length", "99")]
        run.arrival.head(Response(200, [*headers, ("x-size", "1")]))
        run.arrival.content(b"data")
        assert (asked.answer.status, asked.answer.headers, asked.answer.body) == (200, dict(headers), b"data")

    @pytest.mark.parametrize(
        ("method", "status", "headers"),
        [
            ("HEAD", 200, [("etag", "1"), ("content-length", "9")]),
            ("GET", 304, [("etag", "1")]),
            ("GET", 204, []),
        ],
    )
    def test_what_head_and_304_say_of_a_body_is_taken_out(
        self, method: str, status: int, headers: Pairs, carrier: Carrier
    ) -> None:
        seen = proxy(carrier, self.ADDS_MARK).carry(replace(GET, method=method), Response(status, headers))
        assert (seen.answer.status, seen.answer.headers, seen.answer.body) == (status, {}, b"")
        assert seen.answer.ended


class TestMetadata:
    def test_is_there_for_later_steps_and_the_response(self, carrier: Carrier) -> None:
        run = proxy(
            carrier,
            """
            request: {metadata: {who: "request.headers['x-name']", bad: "request.headers['x-none']"}}
            response: {set: [{name: x-who, value: metadata.who}, {name: x-bad, value: has(metadata.bad)}]}
            """,
        )
        assert run.carry(GET).answer.headers.starting("x-") == {"x-who": "Bo", "x-bad": "false"}

    def test_a_key_without_a_value_is_absent_although_it_was_there(self, carrier: Carrier) -> None:
        run = proxy(
            carrier,
            """
            request: {metadata: {who: "'a'"}}
            response: {metadata: {who: "response.headers['x-none']"}, set: [{name: x-has, value: has(metadata.who)}]}
            """,
        )
        assert run.carry(GET).answer.headers["x-has"] == "false"


class TestConditions:
    POLICY = """
    conditional:
    - condition: request.path == '/a'
      policy: {request: {set: [{name: x-is, value: "'a'"}]}, response: {body: "'A'"}}
    - condition: string(request.body) == 'b'
      policy: {response: {set: [{name: x-is, value: "'b'"}]}}
    """

    def test_the_first_that_holds_acts_on_both_sides(self, carrier: Carrier) -> None:
        run = proxy(carrier, self.POLICY)
        first = run.carry(GET.to("/a?b=c"))
        assert (first.received.headers["x-is"], first.answer.body) == ("a", b"A")
        assert "x-is" not in first.answer.headers
        second = run.carry(Request("POST", body=b"b"))
        assert "x-is" not in second.received.headers
        assert (second.answer.headers, second.answer.body) == ({"content-length": "2", "x-is": "b"}, b"ok")

    def test_none_holds(self, carrier: Carrier) -> None:
        seen = proxy(carrier, self.POLICY).carry(GET)
        assert (seen.answer.status, seen.answer.headers, seen.answer.body) == (200, {"content-length": "2"}, b"ok")


GATEWAY = """
binds:
- port: 8080
  listeners:
  - name: http
    policies: {phase: PreRouting, transformation: {request: {set: [%s]}}}
    routes:
    - name: old
      hostnames: [a.example]
      policies: {directResponse: {status: 200, body: old}}
    - name: new
      hostnames: [b.example]
      matches: [{path: {type: Exact, value: /new}, method: PUT}]
      policies: {directResponse: {status: 200, body: new}}
"""


def test_before_routing_it_decides_the_route(carrier: Carrier) -> None:
    sets = ["':path', value: \"'/new'\"", "':authority', value: \"'b.example'\"", "':method', value: \"'PUT'\""]
    run = carrier.proxy(GATEWAY % ", ".join(f"{{name: {one}}}" for one in sets))
    assert run.carry(GET).answer.body == b"new"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"request": {"set": [{"name": "a b", "value": "'1'"}]}}, "request.set: 'a b' is not a header name"),
        ({"request": {"set": [{"name": "TE", "value": "'1'"}]}}, "request.set: TE belongs to the connection"),
        ({"response": {"add": [{"name": "Upgrade", "value": "'1'"}]}}, "response.add: Upgrade belongs"),
        ({"request": {"add": [{"name": ":path", "value": "'1'"}]}}, "request.add: :path can be set, not added"),
        ({"request": {"add": [{"name": "Host", "value": "'1'"}]}}, "request.add: Host can be set, not added"),
        ({"request": {"remove": ["host"]}}, "request.remove: host can be set, not removed"),
        ({"response": {"remove": [":status"]}}, "response.remove: :status can be set, not removed"),
        ({"request": {"set": [{"name": ":status", "value": "'1'"}]}}, "request.set: ':status' is not a header name"),
        ({"response": {"set": [{"name": ":path", "value": "'1'"}]}}, "response.set: ':path' is not a header name"),
        ({"request": {"set": [{"name": "a", "value": "response.code"}]}}, "request.set[a]: "),
        ({"request": {"metadata": {"k": "nothing"}}}, "request.metadata[k]: "),
        ({"response": {"body": "("}}, "response.body: "),
    ],
)
def test_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        built(traffic_pb2.Transformation(**fields))
    assert reason in str(refused.value)


def test_nothing_to_do_is_no_filter() -> None:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    assert transformation.build(traffic_pb2.Transformation(), env) is None
    assert transformation.build(traffic_pb2.Transformation(request={}), env) is None


def test_header_edits_keep_a_chain_silent() -> None:
    config = traffic_pb2.Transformation(request={"set": [{"name": "a", "value": "request.path"}], "remove": ["b"]})
    made = built(config)
    assert made.silent and not made.response_body and made.response is None


def test_answers_of_steps_are_answers() -> None:
    made = built(traffic_pb2.Transformation(request={"set": [{"name": ":path", "value": "'x'"}]}))
    x: Exchange = exchange()
    answer = made.request(x)
    assert isinstance(answer, Reply) and not made.silent


@pytest.mark.parametrize("sized", [True, False])
def test_what_it_makes_of_a_body_is_what_is_tried_again_and_mirrored(sized: bool, carrier: Carrier) -> None:
    run = carrier.proxy(
        FILE.format(fields="          request: {body: \"'new'\"}")
        + "        retry: {codes: [503], backoff: 10ms}\n        requestMirror: {host: '127.0.0.1:9001'}\n"
    )
    if sized:
        asked = run.begin(Request("POST", headers=[("content-length", "4")]))
        asked.content(b"ab")
        assert not run.connections, "it waits for a body that it may keep the connection for"
        asked.content(b"cd")
        asked.end()
    else:
        asked = run.send(Request("POST", body=b"ab", sized=False))
    first = list(run.arrivals)
    assert [(each.received.headers["content-length"], each.received.body) for each in first] == [("3", b"new")] * 2
    for each in first:
        each.answer(Response(503))
    run.advance(1.0)
    (again,) = run.arrivals[2:]
    assert (again.received.method, again.received.body, again.received.ended) == ("POST", b"new", True)
    again.answer(OK)
    assert asked.answer.status == 200
