"""HTTP toward a backend: from what a user writes, at every level, to the version that the endpoint sees."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_http
from dataplane.table.store import Change
from dataplane.upstream.settings import Http, Settings, Tcp
from dataplane.upstream.versions import BY_REQUEST, HTTP1, HTTP2, RULE, chosen, configured, is_grpc
from gatewright.wire.v1 import backend_pb2, backend_policy_pb2, policy_pb2, resource_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import problems, text_of
from tests.fakes.table_state import SERVICE, TableRun, change, gone

V1, V2 = backend_policy_pb2.HTTP_VERSION_HTTP1, backend_policy_pb2.HTTP_VERSION_HTTP2


# The rule.


class Asked:
    def __init__(self, is_http2: bool, is_https: bool, is_grpc: bool) -> None:
        self.version = b"HTTP/2" if is_http2 else b"HTTP/1.1"
        self.scheme = b"https" if is_https else b"http"
        self.length = -1 if is_grpc else 0
        self.is_grpc = is_grpc


@pytest.mark.parametrize(("case", "version"), RULE, ids=str)
def test_a_row_of_the_rule(case: tuple[bool, bool, bool], version: int) -> None:
    is_http2, is_https, grpc = case
    expected = HTTP2 if grpc or (is_http2 and not is_https) else HTTP1  # as the specification puts it
    assert version == expected == chosen(Asked(*case))


def test_the_rule_has_every_case() -> None:
    assert len({case for case, _ in RULE}) == 8


def test_grpc_without_content_is_no_question() -> None:
    asked = Asked(False, False, True)
    asked.length = 0
    assert chosen(asked) == HTTP1


@pytest.mark.parametrize(
    ("policy", "app_protocol", "version"),
    [
        (BY_REQUEST, "", BY_REQUEST),
        (BY_REQUEST, "kubernetes.io/h2c", HTTP2),
        (BY_REQUEST, "Kubernetes.io/H2C", HTTP2),
        (BY_REQUEST, "grpc", HTTP2),
        (BY_REQUEST, "http", HTTP1),
        (BY_REQUEST, "kubernetes.io/ws", HTTP1),
        (BY_REQUEST, "example.com/own", BY_REQUEST),
        (HTTP1, "kubernetes.io/h2c", HTTP1),
        (HTTP2, "http", HTTP2),
    ],
)
def test_what_holds_for_all_requests(policy: int, app_protocol: str, version: int) -> None:
    assert configured(policy, app_protocol) == version


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"\r\ncontent-type: application/grpc\r\n", True),
        (b"\r\na: b\r\ncontent-type:application/grpc+proto\r\n", True),
        (b"\r\ncontent-type: application/grpc; charset=x\r\n", True),
        (b"\r\ncontent-type: application/grpc-web\r\n", False),
        (b"\r\ncontent-type: application/grpc-web+proto\r\n", False),
        (b"\r\nx-content-type: application/grpc\r\n", False),
        (b"\r\n", False),
    ],
)
def test_which_content_is_grpc(block: bytes, expected: bool) -> None:
    assert is_grpc(block) is expected


# The builder.


@pytest.mark.parametrize(("version", "built"), [(0, BY_REQUEST), (V1, HTTP1), (V2, HTTP2)])
def test_versions(version: backend_policy_pb2.HttpVersion, built: int) -> None:
    made = backend_http.build(backend_policy_pb2.BackendHttp(version=version), Env(lambda: 0.0, lambda: 0.0))
    assert made == Http(built)


def test_an_unknown_version_is_refused() -> None:
    config = backend_policy_pb2.BackendHttp()
    config.MergeFromString(b"\x08\x09")
    with pytest.raises(Refused, match="HTTP1 or HTTP2"):
        backend_http.build(config, Env(lambda: 0.0, lambda: 0.0))


# Over the table: places of policies, and who wins.

SHOP = "Service", "shop"
FAR = "GatewayBackend", "far"
BACKEND = "backend/gatewaybackend/default/far"


def placed(name: str, kind: str, thing: str, version: backend_policy_pb2.HttpVersion, section: str = "") -> Change:
    made = policy_pb2.Policy(order=f" default/{name}", backend_http=backend_policy_pb2.BackendHttp(version=version))
    made.source.CopyFrom(policy_pb2.ObjectRef(kind="GatewayPolicy", namespace="default", name=name))
    made.places.add(object=policy_pb2.ObjectRef(kind=kind, namespace="default", name=thing), section=section)
    return change(resource_pb2.Resource(key=f"policy/default/{name}/backend_http", policy=made))


def port(app_protocol: str = "") -> Change:
    made = backend_pb2.ServiceBackend(
        namespace="default", name="shop", port=80, app_protocol=app_protocol, port_name="web", empty=True
    )
    return change(resource_pb2.Resource(key=SERVICE, backend=backend_pb2.Backend(service=made)))


def far(own: backend_policy_pb2.HttpVersion | None = None) -> Change:
    made = backend_pb2.Backend(static=backend_pb2.StaticBackend(host="127.0.0.1", port=9000))
    if own is not None:
        made.policies.add(backend_http=backend_policy_pb2.BackendHttp(version=own))
    return change(resource_pb2.Resource(key=BACKEND, backend=made))


# Changes of one state, the backend, its version, and whether a route's policies count beside it.
PLACES: dict[str, tuple[list[Change], str, int, bool]] = {
    "nobody says": ([port()], SERVICE, BY_REQUEST, True),
    "the port says": ([port("kubernetes.io/h2c")], SERVICE, HTTP2, True),
    "at the Service": ([port(), placed("a", *SHOP, V2)], SERVICE, HTTP2, False),
    "at the port by name": ([port(), placed("a", *SHOP, V2, "web")], SERVICE, HTTP2, False),
    "at the port by number": ([port(), placed("a", *SHOP, V2, "80")], SERVICE, HTTP2, False),
    "at another port": ([port(), placed("a", *SHOP, V2, "admin")], SERVICE, BY_REQUEST, True),
    "at another Service": ([port(), placed("a", "Service", "other", V2)], SERVICE, BY_REQUEST, True),
    "the port wins over the Service": (
        [port(), placed("a", *SHOP, V2), placed("b", *SHOP, V1, "web")], SERVICE, HTTP1, False,
    ),
    "the policy wins over the port's appProtocol": (
        [port("kubernetes.io/h2c"), placed("a", *SHOP, V1)], SERVICE, HTTP1, False,
    ),
    "the smaller order wins": ([port(), placed("b", *SHOP, V1), placed("a", *SHOP, V2)], SERVICE, HTTP2, False),
    "at the GatewayBackend": ([far(), placed("a", *FAR, V2)], BACKEND, HTTP2, False),
    "its own": ([far(V2)], BACKEND, HTTP2, False),
    "its own wins": ([far(V1), placed("a", *FAR, V2)], BACKEND, HTTP1, False),
    "its own says nothing, and replaces a route's": ([far(0)], BACKEND, BY_REQUEST, False),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "version", "others"), PLACES.values(), ids=PLACES)
def test_a_backend(changes: list[Change], key: str, version: int, others: bool) -> None:
    table = TableRun()
    table.apply(*changes)
    plan = table.applier.current.table.backends[key]
    assert plan.version == version
    below = [plan.under(Settings(http=Http(each)), 0).version for each in (HTTP1, HTTP2)]
    assert below == ([HTTP1, HTTP2] if others else [version] * 2)
    assert plan.under(Settings(http=Http(HTTP2)), 0) is plan.under(Settings(http=Http(HTTP2)), 0), "made once"


def test_policies_that_come_and_go() -> None:
    table = TableRun()
    seen = []
    for step in (port(), placed("a", *SHOP, V2), placed("a", *SHOP, V1), gone("policy/default/a/backend_http")):
        table.apply(step)
        seen.append(table.applier.current.table.backends[SERVICE].version)
    assert seen == [BY_REQUEST, HTTP2, HTTP1, BY_REQUEST]


def test_a_policy_that_is_there_before_its_backend() -> None:
    table = TableRun()
    table.apply(placed("a", *SHOP, V2))
    table.apply(port())
    assert table.applier.current.table.backends[SERVICE].version == HTTP2
    table.apply(gone(SERVICE))
    table.apply(placed("a", *SHOP, V1))
    table.apply(port())
    assert table.applier.current.table.backends[SERVICE].version == HTTP1


def test_what_is_no_policy_of_a_backend_is_refused() -> None:
    made = backend_pb2.Backend(static=backend_pb2.StaticBackend(host="127.0.0.1", port=9000))
    made.policies.add().cors.SetInParent()
    table = TableRun()
    table.apply(change(resource_pb2.Resource(key=BACKEND, backend=made)))
    assert "not supported as a policy of a backend" in table.refused[BACKEND]


# From the file to the endpoint.

ROUTE = "policies: {http: {version: %s}}\nbackends: [{host: '127.0.0.1:9000'}]"


@pytest.mark.parametrize(("version", "begins"), [("HTTP1", b"GET / HTTP/1.1\r\n"), ("HTTP2", b"PRI * HTTP/2.0\r\n")])
def test_a_route_of_the_file(version: str, begins: bytes) -> None:
    proxy = MemoryProxy(text_of(ROUTE % version))
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.upstream.received.startswith(begins)


REFUSED = {
    "{http: {requestTimeout: 0s}}": "must be at least 1ms",
    "{http: {version: HTTP3}}": "must be one of HTTP1, HTTP2",
}


@pytest.mark.parametrize("policies", REFUSED)
def test_what_is_refused_by_name(policies: str) -> None:
    (message,) = problems(f"policies: {policies}\nbackends: [{{host: '127.0.0.1:9000'}}]")
    assert REFUSED[policies] in message


@pytest.mark.parametrize(
    ("backends", "begins"),
    [
        ("[{host: '127.0.0.1:9000', policies: {http: {version: HTTP2}}}]", b"PRI * HTTP/2.0\r\n"),
        ("[{host: '127.0.0.1:9000'}]", b"GET / HTTP/1.1\r\n"),
    ],
)
def test_own_policies_of_a_route_s_backend(backends: str, begins: bytes) -> None:
    proxy = MemoryProxy(text_of(f"backends: {backends}"))
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.upstream.received.startswith(begins)


NAMED = """
backends:
- {name: shop, host: "127.0.0.1:9000", policies: {http: {version: HTTP1}, tcp: {connectTimeout: 1s}}}
"""


def test_policies_of_a_reference_win_over_those_of_the_backend_that_it_names() -> None:
    proxy = MemoryProxy(text_of("backends: [{backend: shop, policies: {http: {version: HTTP2}}}]") + NAMED)
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.upstream.received.startswith(b"PRI * HTTP/2.0\r\n")
    plans = {plan.version: plan for plan in proxy.applier.current.table.backends.values()}
    assert sorted(plans) == [HTTP1, HTTP2], "the backend itself is as it was"
    assert plans[HTTP2].own.tcp == Tcp(connect_timeout=1.0), "what the reference does not say is the backend's"


# requestTimeout, of each kind of call.

SLOW = "policies: {%s}\nbackends: [{host: '127.0.0.1:9000', policies: {http: {requestTimeout: 1s}}}]"


def test_a_request_without_a_response_in_time() -> None:
    proxy = MemoryProxy(text_of(SLOW % ""))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.advance(0.9)
    assert not client.received
    proxy.advance(0.2)
    assert client.received.startswith(b"HTTP/1.1 504 ") and client.received.endswith(b"upstream call timeout")


def test_the_shorter_limit_counts() -> None:
    proxy = MemoryProxy(text_of(SLOW % "timeouts: {backendRequest: 500ms}"))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.advance(0.6)
    assert client.received.startswith(b"HTTP/1.1 504 ")


def test_a_response_that_began_in_time_may_take_long() -> None:
    proxy = MemoryProxy(text_of(SLOW % ""))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
    proxy.advance(5)
    proxy.upstream.answer(b"b")
    assert client.received.endswith(b"ab")


def test_a_call_of_a_policy_without_an_answer_in_time() -> None:
    auth = "extAuthz: {host: '127.0.0.1:9001', protocol: {http: {}}, policies: {http: {requestTimeout: 3s}}}"
    proxy = MemoryProxy(text_of(f"policies: {{{auth}}}\nbackends: [{{host: '127.0.0.1:9000'}}]"))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.advance(2.5)
    assert not client.received, "longer than the call's own 2 s"
    proxy.advance(1)
    assert client.received.startswith(b"HTTP/1.1 403 ")


def test_a_mirror_without_an_answer_in_time() -> None:
    mirror = "requestMirror: {host: '127.0.0.1:9001', policies: {http: {requestTimeout: 1s}}}"
    proxy = MemoryProxy(text_of(f"policies: {{{mirror}}}\nbackends: [{{host: '127.0.0.1:9000'}}]"))
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.context.mirrors.count == 1
    proxy.advance(1.1)
    assert proxy.context.mirrors.count == 0
