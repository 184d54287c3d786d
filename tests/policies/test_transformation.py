"""Transformations from the standalone file to the bytes on both sides."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters import transformation
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.policy_run import PolicyRun, problems
from tests.fakes.table_state import exchange

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
GET = b"GET /shop/a?b=c HTTP/1.1\r\nHost: a.example\r\nx-name: Bo\r\nx-many: 1\r\nx-many: 2\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def proxy(fields: str) -> MemoryProxy:
    return MemoryProxy(FILE.format(fields=textwrap.indent(textwrap.dedent(fields).strip("\n"), " " * 10)))


def request_of(run: MemoryProxy, request: bytes = GET) -> tuple[FakeTransport, bytes]:
    """The client, and what the endpoint got of it."""
    client = run.connect()
    client.send(request)
    return client, run.upstream.take() if run.connector.upstreams else b""


def answer_of(run: MemoryProxy, answer: bytes = OK, request: bytes = GET) -> bytes:
    """What the client gets for an answer."""
    client, _ = request_of(run, request)
    run.upstream.answer(answer)
    return client.take()


def edited(fields: str, side: str = "request", headers: bytes = b"") -> list[tuple[bytes, bytes]]:
    """The headers after an edit of these."""
    run = PolicyRun(f"policies: {{transformation: {{{side}: {{{fields}}}}}}}\nbackends: [{{host: '127.0.0.1:1'}}]")
    if side == "response":
        response = run.respond(200, headers).response
        assert response is not None and response.low == response.block.lower()
        return response.items()
    x = exchange(path="/p", headers=headers)
    assert run.request(x) is None
    assert x.request.low == x.request.block.lower()
    return x.request.items()[1:]


class TestHeaders:
    @pytest.mark.parametrize("side", ["request", "response"])
    @pytest.mark.parametrize(
        ("fields", "headers", "expected"),
        [
            ("set: [{name: x-a, value: \"'1'\"}]", b"X-A: 0\r\nx-a: 2\r\nb: 1\r\n", b"b: 1\r\nx-a: 1\r\n"),
            ("set: [{name: X-A, value: '1 + 2'}]", b"x-a: 0\r\n", b"x-a: 3\r\n"),
            ("set: [{name: x-a, value: request.path}]", b"x-a: 0\r\nx-aa: 1\r\n", b"x-aa: 1\r\nx-a: /p\r\n"),
            ("add: [{name: x-a, value: request.path}]", b"x-a: 0\r\n", b"x-a: 0\r\nx-a: /p\r\n"),
            ("add: [{name: x-a, value: '2'}]", b"x-a: 0\r\n", b"x-a: 0\r\nx-a: 2\r\n"),
            ("remove: [X-A, x-c]", b"x-a: 0\r\nx-b: 1\r\nX-a: 2\r\n", b"x-b: 1\r\n"),
            # metadata, add, set, remove, each of them sees what came before
            ("add: [{name: x-a, value: '1'}], set: [{name: x-a, value: '2'}]", b"x-a: 0\r\n", b"x-a: 2\r\n"),
            ("set: [{name: x-a, value: '2'}], remove: [x-a]", b"x-a: 0\r\n", b""),
            ("metadata: {k: \"'v'\"}, set: [{name: x-a, value: metadata.k}]", b"", b"x-a: v\r\n"),
            ("metadata: {a: '1', b: 'metadata.a + 1'}, set: [{name: x-a, value: metadata.b}]", b"", b"x-a: 2\r\n"),
            # values
            ("set: [{name: x-a, value: 'true'}, {name: x-b, value: '1.5'}]", b"", b"x-a: true\r\nx-b: 1.5\r\n"),
            ("set: [{name: x-a, value: \"'\\u00e9'\"}]", b"", b"x-a: \xc3\xa9\r\n"),
            ("set: [{name: x-a, value: \"' a b\\t'\"}]", b"", b"x-a: a b\r\n"),
            ("set: [{name: x-a, value: \"''\"}]", b"x-a: 0\r\n", b"x-a: \r\n"),
            ("set: [{name: x-a, value: \"b'xyz'\"}]", b"", b"x-a: xyz\r\n"),
        ],
    )
    def test_edits(self, side: str, fields: str, headers: bytes, expected: bytes) -> None:
        if side == "response":
            fields = fields.replace("request.path", "\"'/p'\"")
        pairs = [line.split(b": ") for line in expected.split(b"\r\n")[:-1]]
        assert edited(fields, side, headers) == [(name, value) for name, value in pairs]

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
            "[1, 2]",
            "null",
        ],
    )
    def test_without_a_value_a_clients_own_does_not_pass_for_it(self, side: str, operation: str, value: str) -> None:
        config = traffic_pb2.Transformation()
        getattr(getattr(config, side), operation).add(name="X-User", value=value)
        x = exchange(headers=b"x-user: root\r\nX-USER: admin\r\nx-zero: 0\r\n")
        x.response = exchange(headers=b"x-user: root\r\nX-USER: admin\r\n").request
        made = built(config)
        assert (made.request or made.response)(x) is None
        head = x.request if side == "request" else x.response
        assert head.get_all(b"x-user") == [] and b"evil" not in head.block
        assert head.low == head.block.lower()

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
        ("name", "value", "line"),
        [
            (":method", "'POST'", b"POST /shop/a?b=c HTTP/1.1"),
            (":path", "'/x'", b"GET /x HTTP/1.1"),
            (":path", "'/x?y=1'", b"GET /x?y=1 HTTP/1.1"),
            (":path", "'/x?'", b"GET /x? HTTP/1.1"),
            (":path", "'/x' + request.pathAndQuery", b"GET /x/shop/a?b=c HTTP/1.1"),
            (":path", "'/x/../%61/./b%2fc'", b"GET /a/b%2Fc HTTP/1.1"),
        ],
    )
    def test_request_line(self, name: str, value: str, line: bytes) -> None:
        _, sent = request_of(proxy(self.sets(name, value)))
        assert sent.startswith(line + b"\r\n")

    @pytest.mark.parametrize("name", [":authority", "host", "Host"])
    def test_authority(self, name: str) -> None:
        _, sent = request_of(proxy(self.sets(name, "'B.Example:81'")))
        assert b"\r\nhost: B.Example:81\r\n" in sent
        assert sent.lower().count(b"\r\nhost:") == 1
        assert b"\r\nx-forwarded-host: a.example\r\n" in sent

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
    def test_without_a_value_the_request_is_refused(self, name: str, value: str) -> None:
        run = proxy(self.sets(name, value))
        client, sent = request_of(run)
        assert sent == b""
        assert client.received.startswith(b"HTTP/1.1 500 ")
        assert client.received.endswith(b"\r\n\r\nrequest transformation failed")
        client.lose()
        (line,) = run.log_lines()
        assert "reason=RequestTransformationFailed" in line

    def test_head_stays_head(self) -> None:
        client, _ = request_of(proxy(self.sets(":method", "'GET'")), GET.replace(b"GET", b"HEAD"))
        assert client.received.startswith(b"HTTP/1.1 500 ")
        _, sent = request_of(proxy(self.sets(":method", "'HEAD'")), GET.replace(b"GET", b"HEAD"))
        assert sent.startswith(b"HEAD /shop/a")

    def test_all_places_agree(self) -> None:
        fields = [
            "':path', value: \"'/b/../n?m=1'\"",
            "':authority', value: \"'B.Example:81'\"",
            "':scheme', value: \"'https'\"",
        ]
        entries = ", ".join(f"{{name: {field}}}" for field in fields)
        run = PolicyRun(f"policies: {{transformation: {{request: {{set: [{entries}]}}}}}}")
        x = exchange(path="/p")
        assert run.request(x) is None
        assert (x.path, x.query, x.target) == (b"/n", b"m=1", b"/n?m=1")
        assert (x.authority, x.host) == (b"B.Example:81", b"b.example")
        assert x.request_uri == "https://B.Example:81/n?m=1"

    @pytest.mark.parametrize(
        ("value", "rewritten"), [("/shop/b", b"GET /new/b "), ("/shopping", b""), ("/shop", b"GET /new ")]
    )
    def test_the_matched_prefix_counts_only_while_it_is_there(self, value: str, rewritten: bytes) -> None:
        text = FILE.format(fields=f"          request: {{set: [{{name: ':path', value: \"'{value}'\"}}]}}").replace(
            "      policies:",
            "      matches: [{path: {type: PathPrefix, value: /shop}}]\n"
            "      policies:\n        urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}",
        )
        client, sent = request_of(MemoryProxy(text))
        assert sent.startswith(rewritten) if rewritten else client.received.startswith(b"HTTP/1.1 503 ")

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ("'404'", b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok"),
            ("response.code + 1", b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
            ("204", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ],
    )
    def test_status(self, answer: str, expected: bytes) -> None:
        run = proxy(f"response: {{set: [{{name: ':status', value: \"{answer}\"}}]}}")
        assert answer_of(run) == expected

    @pytest.mark.parametrize("value", ["'abc'", "99", "101", "600", "'2 00'", "response.headers['x-none']"])
    def test_status_that_is_none(self, value: str) -> None:
        run = proxy(f"response: {{set: [{{name: ':status', value: \"{value}\"}}]}}")
        received = answer_of(run)
        assert received.startswith(b"HTTP/1.1 502 ")
        assert received.endswith(b"\r\n\r\nresponse transformation failed")

    def test_status_of_our_own_answers(self) -> None:
        run = proxy("response: {set: [{name: ':status', value: '404'}]}")
        run.connector.refuse = "refused"
        client, _ = request_of(run)
        assert client.received.startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert client.received.endswith(b"\r\n\r\nupstream connection failed")


class TestBodies:
    POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: x\r\nETag: 1\r\nContent-Length: 7\r\n\r\n"
    JSON = b'{"a":1}'
    ADDS = "request: {body: \"{'a': json(request.body).a, 'b': 2}\"}"

    def test_of_requests(self) -> None:
        run = proxy(self.ADDS)
        client = run.connect()
        client.send(self.POST)
        client.send(self.JSON)
        sent = run.upstream.received
        assert sent.endswith(b'content-length: 13\r\n\r\n{"a":1,"b":2}')
        assert b"ncoding" not in sent and b"ETag" not in sent

    @pytest.mark.parametrize("came", [b"", b"no json"])
    def test_of_requests_without_a_value(self, came: bytes) -> None:
        request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(came), came)
        client, sent = request_of(proxy(self.ADDS), request)
        assert sent == b""
        assert client.received.startswith(b"HTTP/1.1 500 ")

    def test_of_requests_that_are_too_large(self) -> None:
        client, _ = request_of(proxy(self.ADDS), self.POST.replace(b": 7", b": 2097153"))
        assert client.received.startswith(b"HTTP/1.1 413 ")

    def test_a_header_about_a_body_that_is_too_large_is_absent(self) -> None:
        run = proxy("request: {set: [{name: x-size, value: size(request.body)}]}")
        _, sent = request_of(run, self.POST.replace(b": 7", b": 2097153\r\nx-size: 1"))
        assert b"x-size" not in sent and b"Content-Length: 2097153" in sent

    def test_headers_that_are_set_beside_a_body_stay(self) -> None:
        run = proxy("request: {set: [{name: content-encoding, value: \"'y'\"}], body: \"'new'\"}")
        _, sent = request_of(run, self.POST + self.JSON)
        assert sent.count(b"ncoding: ") == 1 and b"content-encoding: y\r\n" in sent

    def test_the_same_body_changes_nothing(self) -> None:
        run = proxy("request: {body: request.body}\nresponse: {body: response.body}")
        client, sent = request_of(run, self.POST + self.JSON)
        assert b"Content-Encoding: x\r\nETag: 1\r\nContent-Length: 7\r\n" in sent
        run.upstream.answer(OK)
        assert client.take() == OK

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
    def test_of_responses(self, expression: str, expected: bytes) -> None:
        run = proxy(f"request: {{metadata: {{m: \"'M'\"}}}}\nresponse:\n  body: |\n    {expression}")
        received = answer_of(run)
        assert received == b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(expected), expected)

    def test_of_responses_that_read_the_request(self) -> None:
        run = proxy("response: {body: request.body + response.body}")
        received = answer_of(run, OK, self.POST + self.JSON)
        assert received.endswith(b'\r\n\r\n{"a":1}ok')

    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2097153\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
        ],
    )
    def test_of_responses_that_cannot_be_held(self, answer: bytes) -> None:
        received = answer_of(proxy("response: {body: \"string(response.body) + '!'\"}"), answer)
        assert received.startswith(b"HTTP/1.1 502 ")
        assert received.endswith(b"\r\n\r\nresponse transformation failed")

    def test_a_stream_passes_where_only_a_header_asks_for_it(self) -> None:
        run = proxy("response: {set: [{name: x-size, value: size(response.body)}]}")
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-size: 1\r\nContent-Length: 99\r\n\r\ndata"
        assert answer_of(run, answer) == answer.replace(b"x-size: 1\r\n", b"")

    def test_what_head_and_304_say_of_a_body_is_taken_out(self) -> None:
        run = proxy("response: {body: \"string(response.body) + '!'\"}")
        head = GET.replace(b"GET", b"HEAD")
        assert (
            answer_of(run, b"HTTP/1.1 200 OK\r\nETag: 1\r\nContent-Length: 9\r\n\r\n", head)
            == b"HTTP/1.1 200 OK\r\n\r\n"
        )
        assert answer_of(run, b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n") == b"HTTP/1.1 304 Not Modified\r\n\r\n"
        assert answer_of(run, b"HTTP/1.1 204 No Content\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"


class TestMetadata:
    def test_is_there_for_later_steps_and_the_response(self) -> None:
        run = proxy("""
        request: {metadata: {who: "request.headers['x-name']", bad: "request.headers['x-none']"}}
        response: {set: [{name: x-who, value: metadata.who}, {name: x-bad, value: has(metadata.bad)}]}
        """)
        assert b"x-who: Bo\r\nx-bad: false\r\n" in answer_of(run)

    def test_a_key_without_a_value_is_absent_although_it_was_there(self) -> None:
        run = proxy("""
        request: {metadata: {who: "'a'"}}
        response: {metadata: {who: "response.headers['x-none']"}, set: [{name: x-has, value: has(metadata.who)}]}
        """)
        assert b"x-has: false\r\n" in answer_of(run)


class TestConditions:
    POLICY = """
    conditional:
    - condition: request.path == '/a'
      policy: {request: {set: [{name: x-is, value: "'a'"}]}, response: {body: "'A'"}}
    - condition: string(request.body) == 'b'
      policy: {response: {set: [{name: x-is, value: "'b'"}]}}
    """

    def test_the_first_that_holds_acts_on_both_sides(self) -> None:
        run = proxy(self.POLICY)
        client, sent = request_of(run, GET.replace(b"/shop/a", b"/a"))
        assert b"x-is: a\r\n" in sent
        run.upstream.answer(OK)
        assert client.take().endswith(b"\r\n\r\nA")
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb")
        assert b"x-is" not in run.upstream.take()
        run.upstream.answer(OK)
        assert client.take() == OK.replace(b"\r\n\r\n", b"\r\nx-is: b\r\n\r\n")

    def test_none_holds(self) -> None:
        assert answer_of(proxy(self.POLICY)) == OK


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


def test_before_routing_it_decides_the_route() -> None:
    sets = ["':path', value: \"'/new'\"", "':authority', value: \"'b.example'\"", "':method', value: \"'PUT'\""]
    client, _ = request_of(MemoryProxy(GATEWAY % ", ".join(f"{{name: {one}}}" for one in sets)))
    assert client.received.endswith(b"\r\n\r\nnew")


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
    assert made.silent and not made.may_wait and not made.response_body and made.response is None


def test_answers_of_steps_are_answers() -> None:
    made = built(traffic_pb2.Transformation(request={"set": [{"name": ":path", "value": "'x'"}]}))
    x: Exchange = exchange()
    answer = made.request(x)
    assert isinstance(answer, Reply) and not made.silent


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 4\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"]
)
def test_what_it_makes_of_a_body_is_what_is_tried_again_and_mirrored(begun: bytes) -> None:
    text = FILE.format(fields="          request: {body: \"'new'\"}") + (
        "        retry: {codes: [503], backoff: 10ms}\n        requestMirror: {host: '127.0.0.1:9001'}\n"
    )
    run = MemoryProxy(text)
    client = run.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\n" + begun)
    if begun.startswith(b"Content"):
        assert not run.connector.upstreams, "it waits for a body that it may keep the connection for"
        client.send(b"cd")
    first = run.connector.upstreams[:]
    assert all(each.take().endswith(b"content-length: 3\r\n\r\nnew") for each in first)
    assert len(first) == 2
    for each in first:
        each.answer(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    run.advance(1.0)
    again = b"".join(each.take() for each in run.connector.upstreams)
    assert again.count(b"POST / ") == 1 and again.endswith(b"\r\n\r\nnew")
