"""Edges of policies that a whole proxy shows slowly: just at a limit, and values of a newer language."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.filter import WHOLE, Env, Filter, Origin, Refused
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.frontend import frontend_http
from dataplane.filters.steps import (
    authorization,
    buffer,
    cors,
    ext_auth,
    ext_proc,
    rate_limit,
    request_redirect,
    transformation,
)
from dataplane.filters.steps.ext_auth.answer import KEEPABLE, Answered
from dataplane.filters.steps.jwt_authentication import PAUSES
from dataplane.http.connection_rules import FRAME_SIZES
from dataplane.http.heads import Head
from dataplane.http.rules import HttpRules
from dataplane.http.uri import MAX_ORIGIN
from dataplane.link.buckets import Buckets
from gatewright.wire.v1 import frontend_pb2, traffic_pb2
from tests.fakes.calls import FakeCalls, answered
from tests.fakes.memory_proxy import Pending
from tests.fakes.table_state import exchange


def env(clock: Callable[[], float] = lambda: 1000.0, **more: Any) -> Env:
    origin = Origin("HTTPRoute default/r", "policy", "route", "digest")
    return Env(clock, lambda: 0.0, origin=origin, wall_clock=clock, **more)


def ask(step: Filter | None, x: Exchange) -> Any:
    assert step is not None and step.request is not None
    return step.request(x)


def given(answer: Any) -> Any:
    """What a coroutine that never waits gives."""
    if answer is None or isinstance(answer, Reply):
        return answer
    with pytest.raises(StopIteration) as over:
        answer.send(None)
    return over.value.value


# --- buffer


@pytest.mark.parametrize(("size", "reason"), [(10, None), (11, "BodyTooLarge")])
def test_a_body_that_an_earlier_step_read_is_measured(size: int, reason: str | None) -> None:
    config = traffic_pb2.Buffer(request=traffic_pb2.BufferedBody(max_bytes=10))
    x = exchange("POST")
    x.has_body, x.body = True, b"x" * size
    answer = ask(buffer.build(config, env()), x)
    assert (None if answer is None else answer.reason) == reason


@pytest.mark.parametrize(("size", "reason"), [(10, None), (11, "ResponseTooLarge")])
def test_a_response_body_that_an_inner_step_made_is_measured(size: int, reason: str | None) -> None:
    step = buffer.build(traffic_pb2.Buffer(response=traffic_pb2.BufferedBody(max_bytes=10)), env())
    assert step is not None and step.response is not None and step.response_body == 10
    x = exchange()
    x.response_body = b"x" * size
    answer: Any = step.response(x)
    assert (None if answer is None else answer.reason) == reason


def test_a_response_buffer_of_nothing_still_reads() -> None:
    step = buffer.build(traffic_pb2.Buffer(response=traffic_pb2.BufferedBody(max_bytes=0)), env())
    assert step is not None and step.response_body == 1
    step = buffer.build(traffic_pb2.Buffer(response=traffic_pb2.BufferedBody()), env())
    assert step is not None and step.response_body == WHOLE


# --- what no proxy does yet, and words of a newer language


def test_a_processor_that_cannot_be_asked_is_refused() -> None:
    with pytest.raises(Refused, match="there is no processor"):
        ext_proc.build(traffic_pb2.ExtProc(), env())
    with pytest.raises(Refused, match="reaches no other services"):
        ext_proc.build(traffic_pb2.ExtProc(backend="b"), env())


NEWER: Any = 99


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"request_id": NEWER}, "requestId: 99"),
        ({"header_underscores": NEWER}, "headerUnderscores: 99"),
        ({"http1_header_case": NEWER}, "http1HeaderCase: 99"),
        ({"path": frontend_pb2.PathSpellings(escaped_backslashes=NEWER)}, "path.escaped_backslashes: 99"),
        ({"path": frontend_pb2.PathSpellings(escaped_slashes=NEWER)}, "path.escaped_slashes: 99"),
        ({"path": frontend_pb2.PathSpellings(parameters=NEWER)}, "path.parameters: 99"),
        ({"path": frontend_pb2.PathSpellings(repeated_slashes=NEWER)}, "path.repeated_slashes: 99"),
        ({"path": frontend_pb2.PathSpellings(case=NEWER)}, "path.case: 99"),
    ],
)
def test_a_word_that_is_not_known_refuses_a_listener_s_rules(config: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=f"^{why} is unknown to this proxy"):
        frontend_http.build(frontend_pb2.FrontendHttp(**config), env())


@pytest.mark.parametrize(
    ("size", "is_taken"),
    [
        (0, True),
        (FRAME_SIZES[0], True),
        (FRAME_SIZES[1], True),
        (FRAME_SIZES[0] - 1, False),
        (FRAME_SIZES[1] + 1, False),
    ],
)
def test_sizes_of_frames_are_those_of_the_protocol(size: int, is_taken: bool) -> None:
    config = frontend_pb2.FrontendHttp(http2_frame_size=size)
    if is_taken:
        assert frontend_http.build(config, env()).connection.frame_size == (size or None)
    else:
        with pytest.raises(Refused, match=f"http2FrameSize: {size} is not between"):
            frontend_http.build(config, env())


def test_what_a_listener_does_not_say_is_the_default() -> None:
    assert frontend_http.build(frontend_pb2.FrontendHttp(), env()) == HttpRules()


def test_a_rule_that_cannot_be_applied_serves_nobody() -> None:
    rules = frontend_http.closed("why")
    assert rules.refused == "why" and rules.hops is not None and not rules.hops.networks


# --- CORS


@pytest.mark.parametrize(("length", "is_due"), [(MAX_ORIGIN, True), (MAX_ORIGIN + 1, False)])
def test_an_origin_counts_up_to_the_longest(length: int, is_due: bool) -> None:
    origin = b"https://".ljust(length, b"a")
    x = exchange()
    x.request = Head(b"\r\norigin: %b\r\n" % origin)
    step = cors.build(traffic_pb2.Cors(allow_origins=["*"], allow_credentials=True), env())
    assert ask(step, x) is None and step.response is not None
    x.response = Head(b"\r\n")
    step.response(x)
    assert (b"access-control-allow-origin: %b\r\n" % origin in x.response.block) == is_due
    assert x.response.block.count(b"vary: Origin\r\n") == 1


# --- rate limits of tokens


@pytest.mark.parametrize(("used", "is_refused"), [(0, False), (1, True), (-1, False), (1.5, False), (None, False)])
def test_one_token_costs_one(used: object, is_refused: bool) -> None:
    limit = traffic_pb2.LocalRateLimit(tokens=1, unit=traffic_pb2.UNIT_HOURS)
    step = rate_limit.build(traffic_pb2.RateLimit(local=[limit]), env(buckets=Buckets.local()))
    assert step is not None and step.end is not None
    x = exchange()
    assert ask(step, x) is None
    if used is not None:
        x.leave("llm", {"totalTokens": used})
    step.end(x)
    assert (ask(step, exchange()) is not None) == is_refused


# --- transformation


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304)])
def test_a_head_alone_says_nothing_of_the_body_that_would_be_another(method: str, status: int) -> None:
    config = traffic_pb2.Transformation(response=traffic_pb2.Transform(body="'other'"))
    step = transformation.build(config, env())
    assert step is not None and step.response is not None
    x = exchange(method)
    x.status = status
    x.response = Head(b"\r\netag: a\r\ncontent-length: 5\r\nx-a: 1\r\n")
    assert step.response(x) is None
    assert x.response.block == b"\r\nx-a: 1\r\n" and not x.response_body_changed


@pytest.mark.parametrize(("body", "left"), [(b"same", b"etag: a\r\n"), (b"other", b"")])
def test_a_body_that_stays_as_it_is_stays_described(body: bytes, left: bytes) -> None:
    config = traffic_pb2.Transformation(response=traffic_pb2.Transform(body="'same'"))
    step = transformation.build(config, env())
    assert step is not None and step.response is not None
    x = exchange()
    x.status, x.response_body, x.response = 200, body, Head(b"\r\netag: a\r\n")
    assert step.response(x) is None
    assert (x.response.block, x.response_body) == (b"\r\n" + left, b"same")
    assert x.response_body_changed == (body != b"same")


def test_a_tunnel_has_no_body_to_make() -> None:
    step = transformation.build(traffic_pb2.Transformation(response=traffic_pb2.Transform(body="'other'")), env())
    assert step is not None and step.response is not None
    x = exchange()
    x.status, x.response = 101, Head(b"\r\netag: a\r\n")
    assert step.response(x) is None
    assert x.response.block == b"\r\netag: a\r\n" and not x.response_body_changed


# --- external authorization


class Server:
    """An authorization server and a policy that keeps its answers."""

    def __init__(self, ttl: str, key: str = "request.path", status: int = 200, **http: Any) -> None:
        self.now = 1000.0
        self.calls = FakeCalls(otherwise=answered(status))
        self.step = ext_auth.build(
            traffic_pb2.ExtAuth(
                backend="backend/auth",
                http=traffic_pb2.ExtAuthHttp(**http),
                cache=traffic_pb2.ExtAuthCache(key=[key], ttl=ttl),
            ),
            env(lambda: self.now, calls=self.calls, make_future=Pending),
        )

    def ask(self, x: Exchange | None = None) -> Any:
        return given(ask(self.step, x or exchange()))


@pytest.mark.parametrize(
    ("ttl", "later", "calls"), [("1s", 0.5, 1), ("1s", 1.0, 2), ("500ms", 0.25, 1), ("'1s'", 0.5, 1), ("0s", 0.0, 2)]
)
def test_an_answer_counts_for_less_than_its_time(ttl: str, later: float, calls: int) -> None:
    server = Server(ttl)
    assert server.ask() is None
    server.now += later
    assert server.ask() is None
    assert len(server.calls.received) == calls


@pytest.mark.parametrize("status", [200, 401, 403, 404, 503])
def test_only_decisions_are_kept(status: int) -> None:
    server = Server("1h", status=status)
    for _ in range(2):
        answer = server.ask()
        assert (answer is None) == (status == 200)
    assert len(server.calls.received) == (1 if status in KEEPABLE else 2)
    assert sorted(KEEPABLE) == [200, 401, 403]


def test_a_key_may_be_the_body() -> None:
    """Which is waited for then, so that it has a value."""
    server = Server("1h", "request.body")
    x = exchange("POST")
    x.has_body = True
    noted: list[Callable[..., Any]] = []

    class Coming:
        """A body that has not come."""

        complete = False

        def is_over(self, limit: int) -> bool:
            return False

        async def whole(self, limit: int) -> bytes:
            noted.append(self.whole)
            return b"the body"

    x.buffer = Coming()  # type: ignore[assignment]
    assert server.ask(x) is None and x.body == b"the body" and len(noted) == 1


def test_the_host_of_the_client_goes_to_the_server_where_it_is_asked_for() -> None:
    for http, authority in (
        ({}, b""),
        ({"allowed_request_headers": ["host"]}, b"shop.example"),
        ({"allowed_request_headers": ["host"], "add_request_headers": {":authority": "'a.example'"}}, b"a.example"),
        ({"add_request_headers": {":authority": "'a.example'"}}, b"a.example"),
    ):
        server = Server("1h", **http)
        x = exchange()
        x.authority = b"shop.example"
        assert server.ask(x) is None
        assert server.calls.received[0].request.authority == authority


# --- redirects, and paths that are read in several ways


@pytest.mark.parametrize(("port", "is_taken"), [(0, True), (65535, True), (65536, False)])
def test_a_redirect_goes_to_a_port_that_there_is(port: int, is_taken: bool) -> None:
    config = traffic_pb2.RequestRedirect(port=port)
    if is_taken:
        assert request_redirect.build(config, env()).request is not None
    else:
        with pytest.raises(Refused, match=f"port {port} is not between"):
            request_redirect.build(config, env())


@pytest.mark.parametrize(
    ("path", "readings", "is_denied"),
    [
        (b"/a", (), False),
        (b"/secret", (), True),
        (b"/a", (b"/secret",), True),
        (b"/a", (b"/b", b"/secret"), True),
        (b"/a", (b"/b",), False),
        (b"/secret", (b"/b",), True),
    ],
)
def test_a_rule_holds_for_each_reading_of_a_path(path: bytes, readings: tuple[bytes, ...], is_denied: bool) -> None:
    rule = traffic_pb2.AuthorizationRule(match_expressions=["request.path == '/secret'"])
    step = authorization.build(traffic_pb2.Authorization(policy=rule, action=traffic_pb2.ACTION_DENY), env())
    x = exchange(path=path.decode())
    x.readings = readings
    answer = ask(step, x)
    assert (answer is not None) == is_denied and x.path == path


def test_what_an_answer_is_read_with_costs_the_exchange_s_time() -> None:
    x: Any = SimpleNamespace(
        evaluations_end=lambda now, seconds: now + 2 * seconds, cut_off=lambda error: ("cut", error), peer="192.0.2.1"
    )
    context = Answered(x, answered(201, b"body", x_a="1"))
    assert (context.evaluations_end(1.0, 0.5), context.cut_off("e")) == (2.0, ("cut", "e"))  # type: ignore[arg-type, comparison-overlap]
    assert (context.response_code, context.response_body, context.response_header("x-a")) == (201, b"body", "1")
    assert context.source_address == "192.0.2.1"


@pytest.mark.parametrize("status", [0, 300, 301, 302, 303, 304, 305, 307, 308, 309])
def test_a_redirect_has_a_status_that_leads_elsewhere(status: int) -> None:
    config = traffic_pb2.RequestRedirect(status=status, hostname="other.example")
    if status not in (0, 301, 302, 303, 307, 308):
        with pytest.raises(Refused, match=f"status {status} must be one of"):
            request_redirect.build(config, env())
        return
    x = exchange(path="/a")
    x.listener = SimpleNamespace(port=80)
    answer = ask(request_redirect.build(config, env()), x)
    assert answer.status == (status or 302) and answer.headers == b"location: http://other.example/a\r\n"


def test_keys_of_issuers_are_asked_for_again_after_longer_and_longer_pauses() -> None:
    assert [round(later / sooner, 6) for sooner, later in pairwise(PAUSES)] == [2.0] * 4
    assert PAUSES[0] == 0.1
