"""Header modifiers from the standalone file to the headers on both sides."""

from __future__ import annotations

import pytest

from dataplane.chain import header_edits
from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import header_modifiers
from gatewright.api.routes import http_filters
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Headers, Request, Response
from tests.carriers.values import Pairs
from tests.fakes.both_planes import BothPlanes
from tests.fakes.policy_run import problems, served
from tests.fakes.table_state import exchange
from tests.fakes.web_objects import WEB
from tests.harness import yamls

BOTH = """
policies:
  headerModifiers:
    request:
      set: [{name: X-Set, value: new}, {name: Accept, value: "*/*"}]
      add: [{name: x-add, value: "a, b"}]
      remove: [X-Gone, x-absent]
    response:
      set: [{name: server, value: gw}]
      add: [{name: X-Added, value: "1"}]
      remove: [x-internal]
"""

SENT = [
    ("x-set", "old"),
    ("accept", "text/html"),
    ("x-gone", "1"),
    ("x-add", "mine"),
    ("x-keep", "1"),
    ("x-gone", "2"),
    ("x-set", "older"),
]


def test_request(carrier: Carrier) -> None:
    seen = carrier.shared(served(BOTH)).carry(Request(headers=SENT))
    assert seen.received.passed == Headers(
        [("x-add", "mine"), ("x-keep", "1"), ("x-add", "a, b"), ("x-set", "new"), ("accept", "*/*")]
    )


def test_response(carrier: Carrier) -> None:
    came = [("server", "x"), ("x-internal", "1"), ("content-length", "0"), ("x-added", "0")]
    seen = carrier.shared(served(BOTH)).carry(Request(), Response(200, came))
    assert seen.answer.headers == Headers(
        [("content-length", "0"), ("x-added", "0"), ("x-added", "1"), ("server", "gw")]
    )


def test_no_header_at_all(carrier: Carrier) -> None:
    seen = carrier.shared(served(BOTH)).carry(Request(), Response(204))
    assert (seen.answer.status, seen.answer.headers) == (204, {"x-added": "1", "server": "gw"})


def test_setting_the_host_changes_the_authority(carrier: Carrier) -> None:
    edit = "policies: {headerModifiers: {request: {set: [{name: Host, value: 'Other.example:81'}]}}}"
    seen = carrier.proxy(served(edit, log="{host: request.host}")).carry(Request(authority="a.example"))
    assert (seen.received.authority, seen.received.passed) == ("Other.example:81", {})
    assert seen.line.endswith("ms host=Other.example:81")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("set: [{name: Content-Length, value: '1'}]", "belongs to the connection and cannot be edited"),
        ("add: [{name: te, value: '1'}]", "belongs to the connection and cannot be edited"),
        ("remove: [Transfer-Encoding]", "belongs to the connection and cannot be edited"),
        ("remove: [host]", "host can be set, not added or removed"),
        ("remove: ['a b']", "must be a header name"),
    ],
)
def test_the_author_is_told(fields: str, reason: str) -> None:
    (problem,) = problems(f"policies: {{headerModifiers: {{request: {{{fields}}}}}}}")
    assert reason in problem


def test_reader_and_filter_refuse_the_same_names() -> None:
    assert {name.encode() for name in http_filters.CONNECTION_HEADERS} == header_edits.FRAMING


ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)


def build(side: str = "request", **lists: list[str]) -> object:
    """`name=value` in set and add, `name` in remove."""
    config = traffic_pb2.HeaderModifiers()
    edit = getattr(config, side)
    for operation, entries in lists.items():
        if operation == "remove":
            edit.remove.extend(entries)
        else:
            for entry in entries:
                name, _, value = entry.partition("=")
                getattr(edit, operation).add(name=name, value=value)
    return header_modifiers.build(config, ENV)


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ({"set": ["a b=1"]}, "request.set: 'a b' is not a header name"),
        ({"add": ["=1"]}, "request.add: '' is not a header name"),
        ({"remove": [":path"]}, "request.remove: ':path' is not a header name"),
        ({"set": ["a=1\r\nb: 2"]}, "request.set: the value of a is not a header value"),
        ({"set": ["a=x\0"]}, "the value of a is not a header value"),
        ({"set": ["a= x"]}, "the value of a is not a header value"),
        ({"set": ["Content-Length=0"]}, "belongs to the connection"),
        ({"remove": ["transfer-encoding"]}, "transfer-encoding belongs to the connection"),
        ({"add": ["Connection=close"]}, "Connection belongs to the connection"),
        ({"remove": ["Upgrade"]}, "Upgrade belongs to the connection"),
        ({"remove": ["host"]}, "request: host can be set, not added or removed"),
        ({"add": ["Host=a"]}, "request: host can be set, not added or removed"),
        ({"set": ["Host=a b"]}, "request.set: 'a b' is not a host"),
    ],
)
def test_refused(lists: dict[str, list[str]], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        build(**lists)
    assert reason in str(refused.value)


def test_response_framing_is_refused_too() -> None:
    with pytest.raises(Refused, match=r"response\.set: content-length belongs to the connection"):
        build("response", set=["content-length=1"])


def edited(carrier: Carrier, headers: Pairs, lists: dict[str, list[str]]) -> Headers:
    """What an endpoint gets of these headers; `name=value` in set and add, `name` in remove."""
    request: dict[str, object] = {}
    for operation, entries in lists.items():
        pairs = [entry.partition("=") for entry in entries]
        request[operation] = (
            entries if operation == "remove" else [{"name": name, "value": value} for name, _, value in pairs]
        )
    route = yamls.dump({"policies": {"headerModifiers": {"request": request}}})
    return carrier.proxy(served(route)).carry(Request(headers=headers)).received.passed


@pytest.mark.parametrize(
    ("lists", "headers", "expected"),
    [
        ({"add": ["a=1"], "set": ["A=2"]}, [("a", "0")], [("a", "2")]),  # add, then set
        ({"set": ["a=1"], "remove": ["A"]}, [("a", "0")], []),  # then remove
        ({"add": ["a=1"], "remove": ["a"]}, [("a", "0")], []),
        ({"set": ["a=1", "A=2"]}, [], [("a", "1")]),  # the first of a name
        ({"add": ["a=1", "A=2"]}, [("a", "0")], [("a", "0"), ("a", "1")]),
        ({"remove": ["a"]}, [("aa", "1"), ("b", "a: 1"), ("a", "2")], [("aa", "1"), ("b", "a: 1")]),
        ({"set": ["a=\u00e9"]}, [], [("a", "\u00e9")]),
    ],
)
def test_operations(lists: dict[str, list[str]], headers: Pairs, expected: Pairs, carrier: Carrier) -> None:
    assert edited(carrier, headers, lists) == Headers(expected)


def test_an_empty_value() -> None:
    """The standalone file and the API have none."""
    made = build(set=["a="])
    assert made is not None
    x = exchange(headers=b"a: 1\r\n")
    made.request(x)  # type: ignore[attr-defined]
    assert x.request.items()[1:] == [(b"a", b"")]


def test_nothing_to_do_is_no_filter() -> None:
    assert build() is None


def test_a_rule_has_the_last_word_on_both_ways() -> None:
    def modifiers(value: str, *sides: str) -> traffic_pb2.HeaderModifiers:
        config = traffic_pb2.HeaderModifiers()
        for side in sides:
            getattr(config, side).set.add(name="x-from", value=value)
            getattr(config, side).add.add(name="x-way", value=value)
        return config

    configs = [modifiers("policy", "request", "response"), modifiers("rule", "request"), modifiers("rule", "response")]
    filters = [built for config in configs if (built := header_modifiers.build(config, ENV)) is not None]
    both = header_modifiers.combine(filters)
    x = exchange()
    assert both.request is not None and both.response is not None
    x.response = x.request
    for hook in (both.request, both.response):
        x.request.remove(b"x-from")
        x.request.remove(b"x-way")
        hook(x)
        assert x.request.get_all(b"x-from") == [b"rule"]
        assert x.request.get_all(b"x-way") == [b"policy", b"rule"]


def test_those_of_a_listener_of_the_file_act_first(carrier: Carrier) -> None:
    run = carrier.proxy("""
binds:
- port: 8080
  listeners:
  - policies: {headerModifiers: {response: {set: [{name: x-from, value: listener}], add: [{name: x-way, value: a}]}}}
    routes:
    - policies:
        directResponse: {status: 204}
        headerModifiers: {response: {set: [{name: x-from, value: route}], add: [{name: x-way, value: b}]}}
""")
    headers = run.carry(Request()).answer.headers
    assert headers.starting("x-") == Headers([("x-way", "a"), ("x-way", "b"), ("x-from", "route")])


OF_A_REFERENCE = (
    WEB
    + """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: far}
spec:
  static: {host: 10.0.0.9, port: 9001}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
  - filters:
    - type: ResponseHeaderModifier
      responseHeaderModifier: {add: [{name: x-way, value: rule}]}
    backendRefs:
    - {group: gatewright.dev, kind: GatewayBackend, name: far, filters: [{type: ResponseHeaderModifier,
        responseHeaderModifier: {add: [{name: x-way, value: far}]}}]}
    - {group: gatewright.dev, kind: GatewayBackend, name: far, weight: 0, filters: [{type: ResponseHeaderModifier,
        responseHeaderModifier: {add: [{name: x-way, value: other}]}}]}
"""
)


def test_those_of_a_backend_reference_act_before_those_of_its_rule() -> None:
    proxy = BothPlanes(OF_A_REFERENCE)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    proxy.endpoints_answer()
    assert [line for line in client.received.split(b"\r\n") if b"x-way" in line] == [b"x-way: far", b"x-way: rule"]
