"""Consistent hashing: which endpoint a key goes to, what moves when one comes or goes, and how much one carries."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_hash
from dataplane.upstream.endpoint import INITIAL_LATENCY, Endpoint
from dataplane.upstream.hashing import Hash, Ring
from gatewright.wire.v1 import backend_policy_pb2
from tests.carriers import OK, Carrier, Names, Request, Response, Run
from tests.fakes.policy_run import problems, text_of

NAME: Final = "origin.test"
ADDRESSES: Final = tuple(f"10.0.0.{number}" for number in range(1, 11))
ENV: Final = Env(clock=lambda: 0.0, random=lambda: 0.0)
KEYS: Final = [b"user-%d" % number for number in range(20_000)]


def ring(*addresses: str, max_load: float = 1.25) -> Ring:
    made = Ring(Hash(lambda x: None, max_load))
    made.place([Endpoint(each, 80) for each in addresses])
    return made


def placed(*addresses: str) -> dict[bytes, str]:
    made = ring(*addresses)
    return {key: made.chosen(key).address for key in KEYS}


# --- the ring


@pytest.mark.parametrize("new", ["10.0.0.11", "10.9.9.9", "fd00::1"])
def test_one_more_beside_ten_moves_at_most_15_percent_of_the_keys_and_all_of_them_to_itself(new: str) -> None:
    before, after = placed(*ADDRESSES), placed(*ADDRESSES, new)
    moved = {key for key in KEYS if before[key] != after[key]}
    assert 0.04 < len(moved) / len(KEYS) <= 0.15
    assert {after[key] for key in moved} == {new}


@pytest.mark.parametrize("gone", ADDRESSES)
def test_one_less_moves_its_own_keys_alone(gone: str) -> None:
    before, after = placed(*ADDRESSES), placed(*(each for each in ADDRESSES if each != gone))
    moved = {key for key in KEYS if before[key] != after[key]}
    assert moved == {key for key in KEYS if before[key] == gone}
    assert len(moved) / len(KEYS) <= 0.15


def test_keys_are_shared_out_evenly() -> None:
    counts = Counter(placed(*ADDRESSES).values())
    assert len(counts) == 10
    assert max(counts.values()) <= 1.5 * len(KEYS) / 10 and min(counts.values()) >= 0.4 * len(KEYS) / 10


def test_the_order_of_endpoints_does_not_matter() -> None:
    shuffled = [*ADDRESSES]
    random.Random(7).shuffle(shuffled)
    assert placed(*shuffled) == placed(*ADDRESSES)


@pytest.mark.parametrize("max_load", [1.01, 1.25, 3.0])
def test_load_stays_within_the_bound_when_all_ask_for_one_key(max_load: float) -> None:
    made = ring(*ADDRESSES, max_load=max_load)
    taken: Counter[Endpoint] = Counter()
    for number in range(1, 1001):
        endpoint = made.chosen(b"all the same")
        endpoint.pending += 1
        taken[endpoint] += 1
        assert endpoint.pending < max_load * number / 10 + 1
    assert max(taken.values()) <= max_load * 100 + 1


def test_what_goes_on_to_a_neighbour_comes_back_when_there_is_room() -> None:
    made = ring(*ADDRESSES)
    first = made.chosen(b"k")
    first.pending = 5
    second = made.chosen(b"k")
    assert second is not first and made.chosen(b"k") is second, "the neighbour is always the same"
    first.pending = 0
    assert made.chosen(b"k") is first


def test_another_try_goes_to_another_one() -> None:
    made = ring(*ADDRESSES)
    tried: list[Endpoint] = []
    for _ in ADDRESSES:
        tried.append(made.chosen(b"k", tried))
    assert len({each.address for each in tried}) == len(ADDRESSES)
    assert made.chosen(b"k", tried) is tried[0], "all were tried"


# --- through a proxy


def proxy_with(carrier: Carrier, fields: str, *addresses: str, others: str = "") -> Run:
    text = f"policies: {{hash: {fields}{others}}}\nbackends: [{{host: '{NAME}:9000'}}]"
    run = carrier.proxy(text_of(text))
    run.resolve(Names({NAME: addresses or ADDRESSES}))
    return run


def asked(run: Run, *headers: tuple[str, str], answer: Response = OK) -> str:
    """The address that a request went to. Without a key it is always the same: all are as fast, and chance is 0."""
    for arrival in run.arrivals:
        arrival.endpoint.latency = INITIAL_LATENCY
    run.carry(Request(headers=[*headers]), answer)
    return run.arrival.endpoint.address


PLACES: Final[dict[str, Callable[[str], tuple[str, str]]]] = {
    "{header: X-User}": lambda user: ("x-user", user),
    "{cookie: user}": lambda user: ("cookie", f"a=1; user={user}"),
    "{expression: \"request.headers['x-a'] + 'b'\"}": lambda user: ("x-a", user),
}


@pytest.mark.parametrize("fields", PLACES)
def test_a_key_stays_at_its_endpoint(fields: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, fields)
    users = [f"u{number}" for number in range(12)]
    first = {user: asked(run, PLACES[fields](user)) for user in users}
    assert len(set(first.values())) > 3
    assert {user: asked(run, PLACES[fields](user)) for user in users} == first


@pytest.mark.parametrize("fields", PLACES)
def test_a_request_without_a_key_goes_where_any_may(fields: str, carrier: Carrier) -> None:
    assert asked(proxy_with(carrier, fields)) == ADDRESSES[0]


def test_the_address_of_the_client(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{source: Address}")
    assert len({asked(run) for _ in range(5)}) == 1
    assert asked(run) != ADDRESSES[0]


@pytest.mark.parametrize(("more", "carry"), [("", 5), (", maxLoad: 1000", 1)])
def test_how_many_carry_what_one_key_asks_for_at_once(more: str, carry: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{header: x-user{more}}}")
    for _ in range(5):
        run.send(Request(headers=[("x-user", "ann")]))
    assert len({arrival.endpoint.address for arrival in run.arrivals}) == carry


def test_replicas_agree(carrier: Carrier) -> None:
    one, other = (proxy_with(carrier, "{header: x-user}") for _ in range(2))
    users = [("x-user", f"u{number}") for number in range(8)]
    assert [asked(one, user) for user in users] == [asked(other, user) for user in users]


def test_an_evicted_endpoint_is_passed_over_and_the_others_keep_their_keys(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{header: x-user}", others=", health: {eviction: {}}")
    users = [("x-user", f"u{number}") for number in range(12)]
    before = {user: asked(run, user) for user in users}
    gone = before[users[0]]
    asked(run, users[0], answer=Response(500))
    after = {user: asked(run, user) for user in users}
    assert gone not in after.values()
    assert {user: after[user] for user in users if before[user] != gone} == {
        user: before[user] for user in users if before[user] != gone
    }


def test_a_session_comes_before_a_key(carrier: Carrier) -> None:
    sticky = ", sessionPersistence: {cookie: {name: stay}}"
    only = proxy_with(carrier, "{header: x-user}", ADDRESSES[4], others=sticky)
    cookie = only.carry(Request()).answer.headers["set-cookie"].partition(";")[0]
    run = proxy_with(carrier, "{header: x-user}", others=sticky)
    assert {asked(run, ("x-user", f"u{number}"), ("cookie", cookie)) for number in range(6)} == {ADDRESSES[4]}


# --- what is refused


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "one of header, cookie, source and expression"),
        ({"header": "a b"}, "header: 'a b' is no name"),
        ({"cookie": "a;b"}, "cookie: 'a;b' is no name"),
        ({"source": "Port"}, "source: Port"),
        ({"expression": "1 +"}, "expression: "),
        ({"expression": "request.body"}, "expression: it cannot read request.body"),
        ({"header": "a", "max_load": 100}, "maxLoad: 100 is not above"),
    ],
)
def test_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        backend_hash.build(backend_policy_pb2.BackendHash(**config), ENV)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        "{}",
        "{header: a, cookie: b}",
        "{source: Port}",
        "{header: a, maxLoad: 100}",
        "{expression: request.body}",
        "{expression: '1 +'}",
    ],
)
def test_what_the_file_refuses(fields: str) -> None:
    assert problems(f"policies: {{hash: {fields}}}")
