"""`backend.transformation`: what one backend gets and answers, on each try, at every place of the specification."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.fakes.web_objects import WEB

OBJECTS: Final = (
    WEB
    + """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: one}
spec:
  static: {host: 10.0.0.1, port: 9000}
  OWN
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: two}
spec:
  static: {host: 10.0.0.2, port: 9000}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
    - name: pay
      FILTERS
      backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: one}]
    - matches: [{path: {type: Exact, value: /two}}]
      backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: two}]
"""
)
POLICY: Final = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{target}]
  {part}: {settings}
"""
ROUTE: Final = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
ONE: Final = "{group: gatewright.dev, kind: GatewayBackend, name: one}"
PLACES: Final = {
    "Gateway": "{group: gateway.networking.k8s.io, kind: Gateway, name: web}",
    "listener": "{group: gateway.networking.k8s.io, kind: Gateway, name: web, sectionName: http}",
    "route": ROUTE,
    "rule": "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: pay}",
    "backend": ONE,
}
FIRST, SECOND = "10.0.0.1:9000", "10.0.0.2:9000"
BUSY: Final = b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy"
RETRY: Final = "retry: {attempts: 2, codes: [503], backoff: 50ms}"


def policy(target: str, settings: str, name: str = "p", part: str = "backend") -> str:
    return POLICY.format(name=name, target=target, part=part, settings=settings)


def run(*policies: str, own: str = "", filters: str = "") -> BothPlanes:
    objects = OBJECTS.replace("OWN", own and f"policies: {own}").replace("FILTERS", filters)
    return BothPlanes(objects + "".join(policies))


def of(request: str = "", response: str = "") -> str:
    sides = [f"{name}: {{{side}}}" for name, side in (("request", request), ("response", response)) if side]
    return f"{{transformation: {{{', '.join(sides)}}}}}"


def header(text: str, name: str) -> list[str]:
    lines = text.partition("\r\n\r\n")[0].split("\r\n")
    return [value for each, _, value in (line.partition(": ") for line in lines) if each.lower() == name]


def body(text: str) -> str:
    return text.partition("\r\n\r\n")[2]


MARK: Final = of("set: [{name: x-mark, value: \"'made'\"}]", "set: [{name: x-back, value: \"'made'\"}]")


@pytest.mark.parametrize("place", [*PLACES, "own"])
def test_it_acts_from_every_place(place: str) -> None:
    proxy = run(own=MARK) if place == "own" else run(policy(PLACES[place], MARK))
    _, headers, _ = proxy.response("/")
    (found,) = proxy.taken()
    assert (header(found[1], "x-mark"), headers.get("x-back")) == (["made"], "made")
    _, headers, _ = proxy.response("/two")
    ((_, other),) = proxy.taken()
    covers = place in ("Gateway", "listener", "route")
    assert (header(other, "x-mark") == ["made"], "x-back" in headers) == (covers, covers)


def test_the_nearest_to_the_backend_takes_the_place_of_others_as_a_whole() -> None:
    proxy = run(policy(PLACES["Gateway"], MARK), own=of("set: [{name: x-own, value: '1'}]"))
    _, headers, _ = proxy.response("/")
    ((_, found),) = proxy.taken()
    assert (header(found, "x-mark"), header(found, "x-own"), headers.get("x-back")) == ([], ["1"], None)


def test_an_empty_one_takes_their_place_too() -> None:
    proxy = run(policy(PLACES["Gateway"], MARK), own="{transformation: {request: {}}}")
    proxy.response("/")
    ((_, found),) = proxy.taken()
    assert header(found, "x-mark") == []


def test_it_runs_behind_the_steps_of_the_route_and_its_answers_before_theirs() -> None:
    of_route = of(
        "set: [{name: x-path, value: request.path}, {name: x-trail, value: \"'route'\"}]",
        "add: [{name: x-trail, value: \"response.headers['x-back'] + ',route'\"}]",
    )
    own = of(
        "set: [{name: ':path', value: \"'/v2' + request.path\"}, {name: x-trail, value:"
        " \"request.headers['x-trail'] + ',backend'\"}]",
        "set: [{name: x-back, value: \"'backend'\"}]",
    )
    proxy = run(policy(ROUTE, of_route, "r", "traffic"), own=own)
    _, headers, _ = proxy.response("/a?b=1")
    ((_, found),) = proxy.taken()
    assert found.startswith("GET /v2/a HTTP/1.1\r\n")
    assert (header(found, "x-path"), header(found, "x-trail")) == (["/a"], ["route,backend"])
    assert headers["x-trail"] == "backend,route"


ADDS: Final = (
    "add: [{name: x-n, value: '1'}], set: [{name: ':path', value: \"request.path + '/x'\"},"
    " {name: ':method', value: \"'PUT'\"}, {name: ':authority', value: \"'n.' + request.host\"}]"
)


def test_each_try_begins_with_what_the_route_left() -> None:
    proxy = run(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=of(ADDS))
    proxy.answers[FIRST] = BUSY
    assert proxy.ask("/a", "x-n: 0", method="POST", body="abc")[0] == 503
    tries = [text for _, text in proxy.taken()]
    assert len(tries) == 3
    for number, text in enumerate(tries):
        assert text.startswith("PUT /a/x HTTP/1.1\r\n")
        assert (header(text, "x-n"), header(text, "host")) == (["0", "1"], ["n.shop.example.com"])
        assert header(text, "x-retry-attempt") == ([str(number)] if number else [])
        assert body(text) == "abc"


BODIES: Final = {
    "made of the old one": ("body: \"request.body + b'!'\"", "abc!", {"content-length": "4"}),
    "made of nothing": ("body: \"'new'\"", "new", {"content-length": "3"}),
    "the old one": ("body: request.body", "abc", {"content-length": "3"}),
    "none": ("body: \"''\"", "", {"content-length": "0"}),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("retried", [False, True])
def test_content_is_made_anew_for_each_try(name: str, retried: bool) -> None:
    edits, wanted, _ = BODIES[name]
    proxy = run(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=of(edits))
    if retried:
        proxy.answers[FIRST] = BUSY
    proxy.ask("/a", method="POST", body="abc")
    tries = [text for _, text in proxy.taken()]
    assert len(tries) == (3 if retried else 1)
    assert [(body(text), header(text, "content-length")) for text in tries] == [(wanted, [str(len(wanted))])] * len(
        tries
    )


@pytest.mark.parametrize("edits", ["body: \"request.body + b'!'\"", "body: \"'abcdef!'\""])
def test_content_that_comes_late_is_waited_for_where_another_try_may_need_it(edits: str) -> None:
    proxy = run(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=of(edits))
    proxy.answers[FIRST] = BUSY
    client = proxy.connect()
    client.send(b"POST /a HTTP/1.1\r\nhost: shop\r\ncontent-length: 6\r\n\r\nabc")
    proxy.endpoints_answer()
    assert proxy.taken() == []
    client.send(b"def")
    proxy.endpoints_answer()
    assert [body(text) for _, text in proxy.taken()] == ["abcdef!"] * 3
    client.lose()


def test_a_request_without_content_gets_some_on_each_try() -> None:
    proxy = run(policy(ROUTE, f"{{{RETRY}}}", "r", "traffic"), own=of("body: \"'made of ' + request.path\""))
    proxy.answers[FIRST] = BUSY
    proxy.ask("/a")
    tries = [text for _, text in proxy.taken()]
    assert [body(text) for text in tries] == ["made of /a"] * 3
    assert [header(text, "content-length") for text in tries] == [["10"]] * 3


def test_a_body_without_a_value_is_an_error_and_nothing_is_sent() -> None:
    proxy = run(own=of("body: json(request.body).a"))
    assert proxy.ask("/a", method="POST", body="{}") == (500, "request transformation failed")
    assert proxy.taken() == []


def test_answers_are_read_and_replaced_before_the_route_sees_them() -> None:
    own = of("", "body: \"response.body + b'!'\"")
    proxy = run(policy(ROUTE, of("", "body: \"response.body + b'?'\""), "r", "traffic"), own=own)
    assert proxy.ask("/") == (200, "ok!?")


def test_a_failing_answer_is_ours() -> None:
    proxy = run(own=of("", "body: json(response.body).a"))
    assert proxy.ask("/") == (502, "response transformation failed")


def test_a_mirror_gets_what_the_route_left() -> None:
    mirror = (
        "filters: [{type: RequestMirror, requestMirror: {backendRef:"
        " {group: gatewright.dev, kind: GatewayBackend, name: two}}}]"
    )
    edits = "set: [{name: x-own, value: '1'}], body: \"request.body + b'!'\""
    proxy = run(own=of(edits), filters=mirror)
    proxy.ask("/a", method="POST", body="abc")
    found = dict(proxy.taken())
    assert (header(found[FIRST], "x-own"), body(found[FIRST])) == (["1"], "abc!")
    assert (header(found[SECOND], "x-own"), body(found[SECOND])) == ([], "abc")


def test_what_it_finds_out_can_be_read_behind_it() -> None:
    own = of("metadata: {who: \"request.headers['x-who']\"}", "set: [{name: x-who, value: metadata.who}]")
    proxy = run(own=own)
    assert proxy.response("/", "x-who: ann")[1]["x-who"] == "ann"


def test_routes_of_the_file_have_one_of_requests_and_their_backends_one_of_their_own() -> None:
    from tests.fakes.memory_proxy import MemoryProxy

    text = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      policies: {transformation: {request: {add: [{name: x-n, value: "'route'"}]}}}
      backends:
      - host: 127.0.0.1:9000
        policies: {transformation: {request: {add: [{name: x-n, value: "'backend'"}]}}}
"""
    proxy = MemoryProxy(text)
    proxy.connect().send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    found = proxy.connector.upstream.received.decode()
    assert header(found, "x-n") == ["route", "backend"]
