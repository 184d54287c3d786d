"""Session persistence: requests of a session stay at their endpoint, as long as both last (GEP-1619)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import session_persistence
from dataplane.upstream import persistence
from dataplane.upstream.endpoint import INITIAL_LATENCY
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import OK, Answer, Carrier, Names, Request, Response, Run
from tests.carriers.values import Received
from tests.fakes.policy_run import problems, text_of

NAME: Final = "origin.test"
ONE, TWO, THREE = "10.0.0.1", "10.0.0.2", "10.0.0.3"
COOKIE: Final = "{cookie: {name: stay}}"
HEADER: Final = "{type: Header, header: {name: X-Session}}"
ENV: Final = Env(clock=lambda: 0.0, random=lambda: 0.0)


def proxy_with(carrier: Carrier, fields: str = COOKIE, *addresses: str, others: str = "") -> Run:
    text = f"policies: {{sessionPersistence: {fields}{others}}}\nbackends: [{{host: '{NAME}:9000'}}]"
    run = carrier.proxy(text_of(text))
    run.resolve(Names({NAME: addresses or (ONE, TWO, THREE)}))
    return run


def asked(run: Run, *cookies: str, answer: Response | Callable[[Received], Response] = OK) -> tuple[str, Answer]:
    """The address that a request of a new client went to, and what it got. Without a session it is always the first of
    those that may be chosen: all are as fast, and chance is always 0."""
    for arrival in run.arrivals:
        arrival.endpoint.latency = INITIAL_LATENCY
    headers = [("cookie", each) for each in cookies]
    seen = run.carry(Request(headers=headers), answer)
    return run.arrival.endpoint.address, seen.answer


def session(answer: Answer) -> str:
    """The pair of the cookie that an answer sets."""
    return answer.headers["set-cookie"].partition(";")[0]


def elsewhere(carrier: Carrier, address: str, fields: str = COOKIE) -> str:
    """A session at an address that no request without one would go to."""
    only = proxy_with(carrier, fields, address)
    return session(asked(only)[1])


def test_requests_of_a_session_go_to_its_endpoint(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    address, answer = asked(run)
    assert address == ONE
    assert re.fullmatch(r"stay=[\w-]+; Path=/; HttpOnly; SameSite=Strict", answer.headers["set-cookie"])
    there = elsewhere(carrier, TWO)
    for _ in range(50):
        address, answer = asked(run, there)
        assert address == TWO and "set-cookie" not in answer.headers


def test_a_session_of_a_header(carrier: Carrier) -> None:
    only = proxy_with(carrier, HEADER, THREE)
    given = asked(only)[1].headers["x-session"]
    run = proxy_with(carrier, HEADER)
    answer = run.carry(Request(headers=[("x-session", given)])).answer
    assert run.arrival.endpoint.address == THREE and "x-session" not in answer.headers
    assert run.arrival.received.headers["x-session"] == given  # GEP-1619: it is forwarded


def test_a_backends_header_of_that_name_does_not_pass_for_a_session(carrier: Carrier) -> None:
    answer = asked(proxy_with(carrier, HEADER), answer=Response(200, [("X-Session", "its own")]))[1]
    assert answer.headers["x-session"] != "its own"


def test_the_cookies_of_a_backend_stay_beside_it(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    answer = asked(run, answer=Response(200, [("set-cookie", "stay=backend"), ("set-cookie", "b=2")]))[1]
    assert [each.partition(";")[0][:12] for each in answer.headers.all("set-cookie")[:2]] == ["stay=backend", "b=2"]
    assert len(answer.headers.all("set-cookie")) == 3


@pytest.mark.parametrize(
    "cookies",
    [
        ("a=1; stay=not-one; {}",),
        ("stay=; {}; z=2",),
        ('stay="x"', "{}"),
        ("a=1;{}",),
    ],
)
def test_it_is_found_among_other_cookies(cookies: tuple[str, ...], carrier: Carrier) -> None:
    there = elsewhere(carrier, TWO)
    assert asked(proxy_with(carrier), *(each.format(there) for each in cookies))[0] == TWO


def changed(text: str) -> str:
    return text[:-5] + ("A" if text[-5] != "A" else "B") + text[-4:]


@pytest.mark.parametrize(
    "spoilt",
    [changed, lambda text: text[:-1], lambda text: text + "A", lambda text: "stay=" + "A" * 9000, lambda text: "stay="],
)
def test_what_was_not_sealed_here_is_no_session(spoilt: Callable[[str], str], carrier: Carrier) -> None:
    there = elsewhere(carrier, TWO)
    address, answer = asked(proxy_with(carrier), spoilt(there))
    assert address == ONE and session(answer) not in ("", there)


def test_a_session_of_one_name_is_none_of_another(carrier: Carrier) -> None:
    there = elsewhere(carrier, TWO).replace("stay=", "other=")
    assert asked(proxy_with(carrier, "{cookie: {name: other}}"), there)[0] == ONE


def test_more_cookies_of_the_name_than_are_looked_at(carrier: Carrier) -> None:
    there = elsewhere(carrier, TWO)
    many = "; ".join(["stay=no"] * session_persistence.MAX_READ)
    assert asked(proxy_with(carrier), f"{many}; {there}")[0] == ONE


def test_an_endpoint_that_is_gone_gives_another_one_and_a_new_session(carrier: Carrier) -> None:
    there = elsewhere(carrier, "10.0.0.9")
    run = proxy_with(carrier)
    address, answer = asked(run, there)
    assert address == ONE
    assert asked(run, session(answer))[0] == ONE


def test_an_evicted_endpoint_gives_another_one_and_a_new_session(carrier: Carrier) -> None:
    run = proxy_with(carrier, others=", health: {eviction: {}}")
    there = elsewhere(carrier, TWO)
    assert asked(run, there, answer=Response(500))[0] == TWO
    address, answer = asked(run, there)
    assert address == ONE and "set-cookie" in answer.headers
    run.advance(3.1)
    assert asked(run, session(answer))[0] == ONE, "the new session stays"
    assert asked(run, there)[0] == TWO


def test_an_endpoint_that_cannot_be_connected_to_ends_no_session(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    there = elsewhere(carrier, TWO)
    run.memory.connector.refused.add(f"{TWO}:9000")
    address, answer = asked(run, there)
    assert address == ONE and answer.status == 200
    assert asked(run, session(answer))[0] == ONE


def test_one_that_could_be_reached_by_nobody_is_answered_once(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    run.refuse_connections()
    seen = run.carry(Request(headers=[("cookie", elsewhere(carrier, TWO))]))
    assert seen.answer.status == 503 and "set-cookie" not in seen.answer.headers


def test_another_try_goes_elsewhere_and_takes_the_session_along(carrier: Carrier) -> None:
    run = proxy_with(carrier, others=", retry: {attempts: 1, codes: [500], backoff: 1ms}")
    there = elsewhere(carrier, TWO)
    asking = run.begin(Request(headers=[("cookie", there)]))
    assert run.arrival.endpoint.address == TWO
    run.arrival.answer(Response(500))
    run.advance(1.0)
    assert run.arrival.endpoint.address == ONE
    run.arrival.answer(OK)
    assert asked(run, session(asking.answer))[0] == ONE


@pytest.mark.parametrize(
    ("fields", "attributes"),
    [
        ("{absoluteTimeout: 5m, cookie: {name: stay, lifetimeType: Permanent}}", "Path=/; Max-Age=300; HttpOnly"),
        ("{absoluteTimeout: 1500ms, cookie: {name: stay, lifetimeType: Permanent}}", "Path=/; Max-Age=2; HttpOnly"),
        ("{absoluteTimeout: 5m, cookie: {name: stay}}", "Path=/; HttpOnly"),
        ("{cookie: {name: stay, path: /shop}}", "Path=/shop; HttpOnly"),
        ("{cookie: {name: stay, path: ''}}", "Path=/; HttpOnly"),
    ],
)
def test_attributes(fields: str, attributes: str, carrier: Carrier) -> None:
    answer = asked(proxy_with(carrier, fields))[1]
    assert answer.headers["set-cookie"].partition("; ")[2] == f"{attributes}; SameSite=Strict"


@pytest.mark.parametrize("lifetime", ["Session", "Permanent"])
def test_a_session_ends_with_its_time_wherever_the_client_keeps_it(lifetime: str, carrier: Carrier) -> None:
    fields = f"{{absoluteTimeout: 5m, cookie: {{name: stay, lifetimeType: {lifetime}}}}}"
    there = elsewhere(carrier, TWO, fields)
    run = proxy_with(carrier, fields)
    run.advance(299.0)
    assert asked(run, there)[0] == TWO
    run.advance(2.0)
    address, answer = asked(run, there)
    assert address == ONE
    run.advance(299.0)
    assert "set-cookie" not in asked(run, session(answer))[1].headers


def test_a_cookie_without_a_name_has_that_of_its_route(carrier: Carrier) -> None:
    pair = session(asked(proxy_with(carrier, "{cookie: {}}"))[1])
    assert re.fullmatch(r"gatewright-session-[0-9a-f]{16}=[\w-]+", pair)
    assert asked(proxy_with(carrier, "{cookie: {}}"), elsewhere(carrier, TWO, "{cookie: {}}"))[0] == TWO


SPLIT: Final = text_of(
    f"policies: {{sessionPersistence: {COOKIE}}}\n"
    "backends: [{host: 'a.test:9000', weight: 70}, {host: 'b.test:9000', weight: 30}]"
)


def test_weights_decide_and_each_backend_has_its_endpoint(carrier: Carrier) -> None:
    """GEP-1619, Traffic Splitting: a session does not override which backend is chosen."""
    run = carrier.proxy(SPLIT)
    run.resolve(Names({"a.test": (ONE, TWO), "b.test": ("10.1.0.1", "10.1.0.2")}))
    jar = session(asked(run)[1])
    run.random(0.99)
    address, answer = asked(run, jar)
    assert address == "10.1.0.1"
    both = session(answer)
    for draw, expected in ((0.0, ONE), (0.99, "10.1.0.1"), (0.69, ONE), (0.71, "10.1.0.1")):
        run.random(draw)
        address, answer = asked(run, both)
        assert address == expected and "set-cookie" not in answer.headers


def test_an_answer_of_ours_begins_no_session(carrier: Carrier) -> None:
    run = carrier.proxy(text_of(f"policies: {{sessionPersistence: {COOKIE}, directResponse: {{status: 200}}}}"))
    assert "set-cookie" not in run.carry(Request()).answer.headers


def test_a_mirror_has_no_session(carrier: Carrier) -> None:
    text = f"policies: {{sessionPersistence: {COOKIE}, requestMirror: {{host: 'm.test:9'}}}}\n"
    run = carrier.proxy(text_of(text + f"backends: [{{host: '{NAME}:9000'}}]"))
    run.resolve(Names({NAME: (ONE, TWO), "m.test": ("10.2.0.1", "10.2.0.2")}))
    there = elsewhere(carrier, TWO)
    run.send(Request(headers=[("cookie", there)]))
    assert TWO in {each.endpoint.address for each in run.arrivals}


def test_a_swap_ends_no_session(carrier: Carrier) -> None:
    run = proxy_with(carrier)
    there = elsewhere(carrier, TWO)
    assert asked(run, there)[0] == TWO
    fields = "{absoluteTimeout: 1h, cookie: {name: stay}}"
    run.load(text_of(f"policies: {{sessionPersistence: {fields}}}\nbackends: [{{host: '{NAME}:9000'}}]"))
    address, answer = asked(run, there)
    assert address == TWO and "set-cookie" not in answer.headers


# --- what a session is


def test_pins_are_bounded_and_the_newest_stay() -> None:
    pins = [persistence.Pin(persistence.digest(f"b{i}"), persistence.digest("e"), i) for i in range(40)]
    found = persistence.Session(pins)
    found.backend = persistence.digest("new")
    made = found.renewed("10.0.0.1:1", 99)
    assert made is not None and len(made) == persistence.MAX_PINS
    assert made[-1].backend == found.backend and min(each.begun for each in made) == 25
    assert persistence.read(persistence.written(made)) == made


@pytest.mark.parametrize("content", [b"", b"\x02" + bytes(24), b"\x01" + bytes(23), b"\x01"])
def test_what_another_version_wrote_is_no_session(content: bytes) -> None:
    assert persistence.read(content) == ()


# --- what is refused


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"cookie": {"name": "a b"}}, "cookie.name: 'a b' is no name"),
        ({"cookie": {"path": "/a;b"}}, "cookie.path: '/a;b' is no path"),
        ({"cookie": {"path": "/a\r\nx: y"}}, "cookie.path: "),
        ({"header": {"name": "connection"}}, "header.name: connection belongs"),
        ({"header": {"name": ""}}, "header.name: '' is not"),
    ],
)
def test_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        session_persistence.build(traffic_pb2.SessionPersistence(**config), ENV)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("{}", "is required when type is Cookie"),
        ("{type: Header}", "is required when type is Header"),
        ("{cookie: {}, header: {name: a}}", "must be absent when type is Cookie"),
        ("{cookie: {lifetimeType: Permanent}}", "is required when cookie.lifetimeType is Permanent"),
        ("{absoluteTimeout: 0s, cookie: {}}", "must be longer than 0s"),
        ("{cookie: {path: shop}}", 'must begin with "/"'),
        ("{cookie: {path: '/;x'}}", 'must begin with "/"'),
        ("{type: Header, header: {name: Set-Cookie}}", "must not be Set-Cookie"),
        ("{type: Header, header: {name: host}}", "must not be host"),
    ],
)
def test_what_the_file_refuses(fields: str, reason: str) -> None:
    assert any(reason in each for each in problems(f"policies: {{sessionPersistence: {fields}}}"))
