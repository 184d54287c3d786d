"""Header modifiers from the standalone file to the bytes of a head."""

from __future__ import annotations

import pytest

from dataplane.chain import header_edits
from dataplane.chain.filter import Env, Refused
from dataplane.filters import header_modifiers
from gatewright.api import http_filters
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, problems
from tests.fakes.table_state import exchange

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

SENT = b"X-set: old\r\naccept: text/html\r\nx-gone: 1\r\nX-Add: mine\r\nx-keep: 1\r\nX-GONE: 2\r\nx-set: older\r\n"


def test_request() -> None:
    x = exchange(headers=SENT)
    assert PolicyRun(BOTH).request(x) is None
    expected = b"\r\nHost: a.example\r\nX-Add: mine\r\nx-keep: 1\r\nx-add: a, b\r\nX-Set: new\r\nAccept: */*\r\n"
    assert x.request.block == expected
    assert x.request.low == expected.lower()


def test_response() -> None:
    x = PolicyRun(BOTH).respond(200, b"Server: x\r\nX-Internal: 1\r\ncontent-length: 0\r\nx-added: 0\r\n")
    assert x.response is not None
    assert x.response.block == b"\r\ncontent-length: 0\r\nx-added: 0\r\nX-Added: 1\r\nserver: gw\r\n"
    assert x.response.low == x.response.block.lower()


def test_no_header_at_all() -> None:
    x = PolicyRun(BOTH).respond(204)
    assert x.response is not None and x.response.items() == [(b"x-added", b"1"), (b"server", b"gw")]


def test_setting_the_host_changes_the_authority() -> None:
    run = PolicyRun("policies: {headerModifiers: {request: {set: [{name: Host, value: 'Other.example:81'}]}}}")
    x = exchange()
    run.request(x)
    assert (x.authority, x.host) == (b"Other.example:81", b"other.example")
    assert x.request.get_all(b"host") == [b"Other.example:81"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("set: [{name: Content-Length, value: '1'}]", "Content-Length belongs to the connection and cannot be edited"),
        ("add: [{name: te, value: '1'}]", "te belongs to the connection and cannot be edited"),
        ("remove: [Transfer-Encoding]", "Transfer-Encoding belongs to the connection and cannot be edited"),
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
        ({"set": ["Content-Length=0"]}, "Content-Length belongs to the connection"),
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


def edited(headers: bytes, **lists: list[str]) -> list[tuple[bytes, bytes]]:
    made = build(**lists)
    assert made is not None
    x = exchange(headers=headers)
    made.request(x)  # type: ignore[attr-defined]
    return x.request.items()[1:]


@pytest.mark.parametrize(
    ("lists", "headers", "expected"),
    [
        ({"add": ["a=1"], "set": ["A=2"]}, b"a: 0\r\n", [(b"a", b"2")]),  # add, then set
        ({"set": ["a=1"], "remove": ["A"]}, b"a: 0\r\n", []),  # then remove
        ({"add": ["a=1"], "remove": ["a"]}, b"a: 0\r\n", []),
        ({"set": ["a=1", "A=2"]}, b"", [(b"a", b"1")]),  # the first of a name
        ({"add": ["a=1", "A=2"]}, b"a: 0\r\n", [(b"a", b"0"), (b"a", b"1")]),
        ({"remove": ["a"]}, b"aa: 1\r\nb: a: 1\r\nA: 2\r\n", [(b"aa", b"1"), (b"b", b"a: 1")]),
        ({"set": ["a="]}, b"a: 1\r\n", [(b"a", b"")]),
        ({"set": ["a=\u00e9"]}, b"", [(b"a", "\u00e9".encode())]),
    ],
)
def test_operations(lists: dict[str, list[str]], headers: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert edited(headers, **lists) == expected


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


def test_those_of_a_listener_of_the_file_act_first() -> None:
    proxy = MemoryProxy("""
binds:
- port: 8080
  listeners:
  - policies: {headerModifiers: {response: {set: [{name: x-from, value: listener}], add: [{name: x-way, value: a}]}}}
    routes:
    - policies:
        directResponse: {status: 204}
        headerModifiers: {response: {set: [{name: x-from, value: route}], add: [{name: x-way, value: b}]}}
""")
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    lines = client.take().split(b"\r\n")
    assert [line for line in lines if line.startswith(b"x-")] == [b"x-way: a", b"x-way: b", b"x-from: route"]
