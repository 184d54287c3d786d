"""Local rate limits from the standalone file to the answer, with a clock that is moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dataplane.chain.filter import Env, Origin, Refused
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.filters.steps import rate_limit
from dataplane.link.buckets import Buckets
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Request, Run
from tests.fakes.policy_run import served
from tests.fakes.table_state import exchange

GET = Request()


def limited(limits: str) -> str:
    return served(f"policies: {{rateLimit: {limits}}}")


def statuses(run: Run, count: int) -> list[int | None]:
    """What so many requests are answered; those that pass reach the backend, and no others."""
    reached = len(run.arrivals)
    found = [run.ask(GET).status for _ in range(count)]
    assert len(run.arrivals) - reached == found.count(200)
    return found


# --- requests, in YAML


# requests, unit, burst: how many pass at once, and seconds until the next one
RATES = [
    (1, "Seconds", 0, 1, 1.0),
    (4, "Seconds", 0, 4, 0.25),
    (4, "Seconds", 3, 7, 0.25),
    (30, "Minutes", 0, 30, 2.0),
    (2, "Hours", 1, 3, 1800.0),
]


@pytest.mark.parametrize(("requests", "unit", "burst", "at_once", "next_after"), RATES)
def test_a_bucket_holds_rate_and_burst_and_fills_all_the_time(
    requests: int, unit: str, burst: int, at_once: int, next_after: float, carrier: Carrier
) -> None:
    run = carrier.proxy(limited(f"{{local: [{{requests: {requests}, unit: {unit}, burst: {burst}}}]}}"))
    assert statuses(run, at_once + 2) == [200] * at_once + [429] * 2
    run.advance(next_after * 0.9)
    assert statuses(run, 1) == [429]
    run.advance(next_after * 0.1)
    assert statuses(run, 2) == [200, 429]
    run.advance(next_after * at_once * 3)  # full, and no fuller
    assert statuses(run, at_once + 1) == [200] * at_once + [429]


@pytest.mark.claims("errors: Local or global rate limit exceeded")
def test_what_the_client_gets(refused: Callable[..., None], carrier: Carrier) -> None:
    run = carrier.proxy(limited("{local: [{requests: 6, unit: Minutes, burst: 2}]}"))
    assert statuses(run, 8) == [200] * 8
    run.advance(1.0)
    seen = run.carry(GET)
    refused(seen.answer)
    assert seen.answer.headers["retry-after"] == "9"
    assert seen.answer.headers.starting("x-ratelimit-") == {
        "x-ratelimit-limit": "8",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "79",
    }
    assert (seen.reason, seen.error) == ("RateLimited", "rateLimit local[0]")


def test_the_wait_is_at_least_a_second(carrier: Carrier) -> None:
    run = carrier.proxy(limited("{local: [{requests: 100, unit: Seconds}]}"))
    assert statuses(run, 100) == [200] * 100
    assert run.ask(GET).headers["retry-after"] == "1"


def test_of_several_limits_all_are_checked_before_any_is_taken(carrier: Carrier) -> None:
    run = carrier.proxy(limited("{local: [{requests: 100, unit: Hours}, {requests: 2, unit: Seconds}]}"))
    assert statuses(run, 60) == [200] * 2 + [429] * 58
    seen = run.carry(GET)
    assert seen.answer.headers["x-ratelimit-limit"] == "2" and "local[1]" in seen.error
    for _ in range(49):
        run.advance(1.0)
        assert statuses(run, 2) == [200, 200]
    assert run.ask(GET).headers["x-ratelimit-limit"] == "2"
    run.advance(1.0)  # 100 of an hour have passed, and one more that came back meanwhile
    assert statuses(run, 2) == [200, 429]
    assert run.ask(GET).headers["x-ratelimit-limit"] == "100"  # the longest wait


# --- one for each policy and target, over swaps


def test_counts_outlive_a_swap_and_begin_anew_when_the_policy_changes(carrier: Carrier) -> None:
    text = limited("{local: [{requests: 2, unit: Hours}]}")
    run = carrier.proxy(text)
    assert statuses(run, 3) == [200, 200, 429]
    run.load(text.replace("routes:", "routes:\n    - {name: other, matches: [{path: {type: Exact, value: /x}}]}"))
    assert statuses(run, 1) == [429]
    run.load(text)
    assert statuses(run, 1) == [429]
    run.load(text.replace("requests: 2", "requests: 3"))
    assert statuses(run, 4) == [200, 200, 200, 429]


def test_routes_with_equal_policies_count_for_themselves(carrier: Carrier) -> None:
    head, route = limited("{local: [{requests: 1, unit: Hours}]}").split("    - name: r\n")
    match = "    - name: {0}\n      matches: [{{path: {{type: Exact, value: /{0}}}}}]\n"
    run = carrier.proxy(head + "".join(match.format(name) + route for name in "ab"))
    assert [run.ask(GET.to(path)).status for path in ("/a", "/b", "/a", "/b")] == [200, 200, 429, 429]


# --- conditional


def test_the_first_condition_that_holds_says_which_limits(carrier: Carrier) -> None:
    run = carrier.proxy(
        limited(
            """{conditional: [
              {condition: "request.headers['x-tier'] == 'gold'", policy: {local: [{requests: 3, unit: Hours}]}},
              {policy: {local: [{requests: 1, unit: Hours}]}}]}""".replace("\n", " ")
        )
    )
    gold = GET.plus(("x-tier", "gold"))
    assert [run.ask(each).status for each in (GET, gold, GET, gold, gold, gold)] == [200, 200, 429, 200, 200, 429]


# --- tokens


class Limited:
    """A built filter, and a clock to move."""

    def __init__(self, *limits: traffic_pb2.LocalRateLimit, buckets: Buckets | None = None) -> None:
        self.now = 1000.0
        self.env = Env(
            clock=lambda: self.now,
            random=lambda: 0.0,
            buckets=buckets or Buckets.local(),
            origin=Origin("GatewayPolicy default/p", "rate_limit", "HTTPRoute default/r"),
        )
        if limits:
            self.build(traffic_pb2.RateLimit(local=limits))

    def build(self, config: traffic_pb2.RateLimit) -> None:
        made = rate_limit.build(config, self.env)
        assert made is not None
        self.filter = made

    def ask(self, tokens: object = None, path: str = "/") -> Reply | None:
        """One request, from its beginning to its end; the model's backend leaves this number."""
        x = exchange(path=path)
        assert self.filter.request is not None
        answer = self.filter.request(x)
        assert answer is None or isinstance(answer, Reply)
        if tokens is not None and answer is None:
            x.leave("llm", {"totalTokens": tokens})
        if self.filter.end is not None:
            self.filter.end(x)
        return answer


TOKENS = traffic_pb2.LocalRateLimit(tokens=60, unit=traffic_pb2.UNIT_MINUTES, burst=40)


def test_tokens_are_taken_at_the_end_and_may_be_owed() -> None:
    limited = Limited(TOKENS)
    assert limited.ask(99) is None  # 1 of 100 is left
    assert limited.ask(50) is None  # 49 are owed
    answer = limited.ask()
    assert answer is not None and (answer.status, answer.body) == (429, REPLIES["RateLimited"].body)
    assert b"retry-after: 50\r\nx-ratelimit-limit: 100\r\nx-ratelimit-remaining: 0\r\n" in answer.headers
    assert b"x-ratelimit-reset: 149\r\n" in answer.headers
    limited.now += 49.9
    assert limited.ask() is not None
    limited.now += 0.1
    assert limited.ask() is None


def test_requests_that_used_no_tokens_cost_none() -> None:
    limited = Limited(TOKENS)
    assert [limited.ask() for _ in range(500)] == [None] * 500


@pytest.mark.parametrize("left", [0, -5, "7", 1.5, None])
def test_what_is_no_number_of_tokens_costs_nothing(left: object) -> None:
    limited = Limited(traffic_pb2.LocalRateLimit(tokens=1, unit=traffic_pb2.UNIT_HOURS))
    assert [limited.ask(left), limited.ask(left)] == [None, None]


def test_requests_and_tokens_in_one_list() -> None:
    limited = Limited(TOKENS, traffic_pb2.LocalRateLimit(requests=2, unit=traffic_pb2.UNIT_SECONDS))
    assert [limited.ask(10) is None for _ in range(3)] == [True, True, False]
    limited.now += 1.0
    assert limited.ask(300) is None
    answer = limited.ask()
    assert answer is not None and "local[0]" in answer.detail


def test_tokens_of_the_item_that_was_chosen() -> None:
    """Each item of `conditional` has its own bucket, and what a request came to is taken from that of its item."""
    limited = Limited()
    item, rest = traffic_pb2.ConditionalRateLimit(), traffic_pb2.ConditionalRateLimit()
    item.condition = "request.path == '/a'"
    for each in (item, rest):
        each.policy.local.add(tokens=10, unit=traffic_pb2.UNIT_HOURS)
    limited.build(traffic_pb2.RateLimit(conditional=[item, rest]))
    assert limited.ask(50, "/a") is None
    assert limited.ask(5, "/b") is None
    assert limited.ask(50, "/a") is not None
    assert limited.ask(50, "/b") is None
    assert limited.ask(50, "/b") is not None


def test_only_limits_of_tokens_have_an_end_hook() -> None:
    assert Limited(traffic_pb2.LocalRateLimit(requests=2, unit=traffic_pb2.UNIT_SECONDS)).filter.end is None


def test_two_filters_of_one_policy_and_target_count_together() -> None:
    """As in two workers, or before and after a swap."""
    buckets = Buckets.local()
    limit = traffic_pb2.LocalRateLimit(requests=3, unit=traffic_pb2.UNIT_HOURS)
    first, second = Limited(limit, buckets=buckets), Limited(limit, buckets=buckets)
    assert [each.ask() is None for each in (first, second, first, second)] == [True, True, True, False]


# --- what cannot be built


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (traffic_pb2.LocalRateLimit(unit=traffic_pb2.UNIT_HOURS), r"local\[1\]: requests or tokens must be at least 1"),
        (traffic_pb2.LocalRateLimit(requests=0, unit=traffic_pb2.UNIT_HOURS), r"local\[1\]: requests or tokens"),
        (traffic_pb2.LocalRateLimit(tokens=1), r"local\[1\].unit: 0 is not known"),
    ],
)
def test_what_cannot_be_built_is_refused(limit: traffic_pb2.LocalRateLimit, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Limited(TOKENS, limit)


def test_without_memory_to_count_in_it_is_refused() -> None:
    with pytest.raises(Refused, match="nothing to count in"):
        rate_limit.build(traffic_pb2.RateLimit(local=[TOKENS]), Env(clock=lambda: 0.0, random=lambda: 0.0))


def test_no_limits_are_no_step() -> None:
    assert rate_limit.build(traffic_pb2.RateLimit(), Env(clock=lambda: 0.0, random=lambda: 0.0)) is None


# --- keys


def asked(run: Run, *requests: Request) -> list[int | None]:
    return [run.ask(request).status for request in requests]


def named(name: str) -> Request:
    return GET.plus(("x-user", name))


def test_each_value_of_a_key_has_the_limit_for_itself(carrier: Carrier) -> None:
    key = "request.headers['x-user']"
    run = carrier.proxy(limited(f'{{local: [{{requests: 2, unit: Hours, key: "{key}"}}]}}'))
    ann, bob = named("ann"), named("bob")
    assert asked(run, ann, ann, ann, bob, ann, bob, bob) == [200, 200, 429, 200, 429, 200, 429]
    run.advance(1800.0)
    assert asked(run, ann, ann, bob) == [200, 429, 200]
    seen = run.carry(bob)
    assert (seen.reason, seen.error) == ("RateLimited", "rateLimit local[0]")
    assert seen.answer.headers.starting("x-ratelimit-") == {
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "3600",
    }
    assert seen.answer.headers["retry-after"] == "1799"  # a thousandth of a request may be missing


def test_the_address_of_a_client_is_a_key(carrier: Carrier) -> None:
    """What it invents in headers makes no other client of it."""
    run = carrier.proxy(limited("{local: [{requests: 2, unit: Hours, key: source.address}]}"))
    forged = [GET.plus(("x-forwarded-for", f"192.0.2.{number}")) for number in range(4)]
    assert asked(run, *forged) == [200, 200, 429, 429]


# Keys without a value: the header is absent, the value is no text, the expression costs too much.
WITHOUT_VALUE = [
    "request.headers['x-user']",
    "json(request.headers['x-json'])",
    "dyn(request.headers[?'x-user'])",
    "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, "
    "[1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a))))).size() > 0 ? request.path : 'x'",
]


@pytest.mark.parametrize("key", WITHOUT_VALUE)
def test_requests_without_a_key_share_a_bucket_of_their_own(key: str, carrier: Carrier) -> None:
    run = carrier.proxy(limited(f'{{local: [{{requests: 2, unit: Hours, key: "{key}"}}]}}'))
    values = ["[]", "{}", "null", "nonsense"]
    without = [GET.to(f"/{value}").plus(("x-json", value)) for value in values]
    assert asked(run, *without) == [200, 200, 429, 429]


def test_no_value_is_the_bucket_of_those_without(carrier: Carrier) -> None:
    run = carrier.proxy(limited("{local: [{requests: 1, unit: Hours, key: \"request.headers['x-user']\"}]}"))
    assert asked(run, GET, GET, named(""), named(""), named("="), named("=")) == [200, 429] * 3


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        ("request.headers['x-user']", "ann", "bob"),
        ("bytes(request.headers['x-user'])", "ann", "bob"),
        ("size(request.headers['x-user'])", "ann", "anna"),
        ("request.headers['x-user'] == 'ann'", "ann", "bob"),
        ("ip(request.headers['x-user'])", "192.0.2.1", "2001:db8::1"),
        ("cidr(request.headers['x-user'] + '/64').masked()", "2001:db8::1", "2001:db8:0:1::1"),
        ("double(request.headers['x-user'])", "1.5", "2.5"),
        ("dyn(request.headers[?'x-user'])", "ann", "bob"),
        ("json(request.headers['x-user'])", "3", "[]"),
    ],
)
def test_what_can_be_a_key(key: str, first: str, second: str, carrier: Carrier) -> None:
    run = carrier.proxy(limited(f'{{local: [{{requests: 1, unit: Hours, key: "{key}"}}]}}'))
    assert asked(run, named(first), named(first), named(second), named(second)) == [200, 429, 200, 429]


def test_a_network_of_clients_is_a_key(carrier: Carrier) -> None:
    """As the page advises for clients that have 2**64 addresses each."""
    key = r"source.address.contains(\":\") ? string(cidr(source.address + \"/64\").masked()) : source.address"
    of_header = key.replace("source.address", r"request.headers[\"x-user\"]")
    run = carrier.proxy(limited(f'{{local: [{{requests: 1, unit: Hours, key: "{of_header}"}}]}}'))
    names = ("192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    assert asked(run, *map(named, names)) == [200, 429, 200, 200, 429, 200]
    run = carrier.proxy(limited(f'{{local: [{{requests: 1, unit: Hours, key: "{key}"}}]}}'))
    assert asked(run, GET, GET) == [200, 429]


def test_limits_with_and_without_a_key_are_checked_before_any_is_taken(carrier: Carrier) -> None:
    keyed = "requests: 2, unit: Hours, key: \"request.headers['x-user']\""
    run = carrier.proxy(limited(f"{{local: [{{{keyed}}}, {{requests: 5, unit: Hours}}]}}"))
    ann, bob, eve = map(named, ("ann", "bob", "eve"))
    assert asked(run, *[ann] * 9) == [200] * 2 + [429] * 7
    assert run.ask(ann).headers["x-ratelimit-limit"] == "2"
    assert asked(run, bob, bob, bob, eve, eve) == [200, 200, 429, 200, 429]  # 5 in all
    assert run.carry(eve).error == "rateLimit local[1]"
    run.advance(720.0)  # one of all comes back; eve's second was not taken
    assert asked(run, eve, eve) == [200, 429]


def test_limits_with_several_keys(carrier: Carrier) -> None:
    limits = ", ".join(
        f"{{requests: {count}, unit: Hours, key: \"request.headers['{name}']\"}}"
        for count, name in ((3, "x-user"), (2, "x-tenant"), (4, "x-user"))
    )
    run = carrier.proxy(limited(f"{{local: [{limits}]}}"))
    red, blue = (named("ann").plus(("x-tenant", tenant)) for tenant in ("red", "blue"))
    bob = named("bob").plus(("x-tenant", "blue"))
    assert asked(run, red, red, red, blue, blue, bob, bob) == [200, 200, 429, 200, 429, 200, 429]


def test_counts_of_keys_outlive_a_swap_and_belong_to_a_target(carrier: Carrier) -> None:
    head, route = limited("{local: [{requests: 1, unit: Hours, key: source.address}]}").split("    - name: r\n")
    match = "    - name: {0}\n      matches: [{{path: {{type: Exact, value: /{0}}}}}]\n"
    text = head + "".join(match.format(name) + route for name in "ab")
    run = carrier.proxy(text)
    assert asked(run, *map(GET.to, ("/a", "/a", "/b", "/b"))) == [200, 429, 200, 429]
    run.load(text.replace("/b", "/c"))
    assert asked(run, *map(GET.to, ("/a", "/c"))) == [429, 429]
    run.load(text.replace("requests: 1", "requests: 2"))
    assert asked(run, *map(GET.to, ("/a", "/a", "/a"))) == [200, 200, 429]


def test_items_of_a_condition_count_keys_for_themselves(carrier: Carrier) -> None:
    limit = "policy: {local: [{requests: 1, unit: Hours, key: source.address}]}"
    condition = "\"request.headers['x-user'] == 'ann'\""
    run = carrier.proxy(limited(f"{{conditional: [{{condition: {condition}, {limit}}}, {{{limit}}}]}}"))
    assert asked(run, named("ann"), GET, named("ann"), GET) == [200, 200, 429, 429]


def test_a_key_may_read_the_body(carrier: Carrier) -> None:
    run = carrier.proxy(limited('{local: [{requests: 1, unit: Hours, key: "json(request.body).user"}]}'))
    bodies = [b'{"user": "ann"}', b'{"user": "bob"}', b'{"user": "ann", "more": 1}', b"nonsense", b"[]"]
    assert asked(run, *(Request("POST", body=body) for body in bodies)) == [200, 200, 429, 200, 429]


def test_a_secret_key_stands_for_itself(carrier: Carrier) -> None:
    keys = '{one: {value: \'{"key": "k-one"}\'}, two: {value: \'{"key": "k-two"}\'}}'
    policies = (
        f"apiKeyAuthentication: {{secretRef: {keys}, location: {{header: {{name: x-key}}}}}}, "
        "rateLimit: {local: [{requests: 1, unit: Hours, key: apiKey.key}]}"
    )
    run = carrier.proxy(served(f"policies: {{{policies}}}"))
    one, two = (GET.plus(("x-key", key)) for key in ("k-one", "k-two"))
    assert asked(run, one, one, two, two) == [200, 429, 200, 429]


KEYED = traffic_pb2.LocalRateLimit(requests=1, unit=traffic_pb2.UNIT_HOURS, key="request.path")


def test_a_limit_of_tokens_beside_one_with_a_key() -> None:
    limited = Limited(TOKENS, KEYED)
    assert [limited.ask(10, path) is None for path in ("/a", "/a", "/b")] == [True, False, True]
    assert limited.ask(300, "/c") is None
    answer = limited.ask(path="/d")
    assert answer is not None and "local[0]" in answer.detail


KEYED_TOKENS = traffic_pb2.LocalRateLimit(tokens=60, unit=traffic_pb2.UNIT_MINUTES, burst=40, key="request.path")


def test_tokens_of_each_key_are_owed_by_that_key() -> None:
    limited = Limited(KEYED_TOKENS)
    assert limited.ask(160, "/a") is None
    answer = limited.ask(path="/a")
    assert answer is not None and b"retry-after: 61\r\nx-ratelimit-limit: 100\r\n" in answer.headers
    assert limited.ask(10, "/b") is None and limited.ask(10, "/b") is None
    limited.now += 60.9
    assert limited.ask(path="/a") is not None
    limited.now += 0.1
    assert limited.ask(path="/a") is None


def test_a_debt_of_a_key_outlives_the_time_in_which_its_bucket_fills() -> None:
    """Others may take over a table whose buckets are all full: one that owes is not."""
    limited = Limited(KEYED_TOKENS)
    assert limited.ask(100 + 6000, "/a") is None  # 6000 seconds' worth more than there was
    limited.now += 5000
    for number in range(200):
        other = Limited(buckets=limited.env.buckets)
        other.now = limited.now
        other.env = replace(other.env, origin=Origin(f"p{number}", "rate_limit", "r"))
        limit = traffic_pb2.LocalRateLimit(tokens=1, unit=traffic_pb2.UNIT_HOURS, key="'x'")
        other.build(traffic_pb2.RateLimit(local=[limit]))
        assert other.ask(5) is None
    assert limited.ask(path="/a") is not None


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (traffic_pb2.LocalRateLimit(requests=1, unit=traffic_pb2.UNIT_HOURS, key="1 +"), r"local\[1\].key: "),
        (traffic_pb2.LocalRateLimit(tokens=1, unit=traffic_pb2.UNIT_HOURS, key="nothing"), r"local\[1\].key: "),
    ],
)
def test_a_key_that_cannot_be_built_is_refused(limit: traffic_pb2.LocalRateLimit, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Limited(KEYED, limit)
