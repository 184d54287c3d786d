"""Limits that a service counts, from YAML to exchange: what it is asked and when, what its answers do."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer, CallRequest
from dataplane.http.heads import Head
from gatewright.wire.external import rate_limit_pb2 as pb
from tests.carriers import Answer, Carrier, Received, Request, Response
from tests.fakes.calls import FakeCalls, failed

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
{policies}
        rateLimit:
{policy}
      backends:
      - host: 127.0.0.1:9000
"""
BY_TIER = """
global:
  host: 127.0.0.1:9001
  domain: shop
  descriptors:
  - entries:
    - {name: tier, expression: 'request.headers["x-tier"]'}
"""
UP = Response(200, (("x-up", "up"),), b"up")
OK, OVER = pb.RateLimitResponse.OK, pb.RateLimitResponse.OVER_LIMIT
GOLD = ("x-tier", "gold")


def grpc(message: bytes, head: bytes = b"grpc-status: 0") -> CallAnswer:
    return CallAnswer(200, Head(b"\r\n" + head + b"\r\n"), b"\0" + len(message).to_bytes(4, "big") + message)


def says(code: Any = OK, **fields: Any) -> CallAnswer:
    return grpc(pb.RateLimitResponse(overall_code=code, **fields).SerializeToString())


class Limited:
    """A proxy with the policy, and a service that answers as the test says."""

    def __init__(self, carrier: Carrier, policy: str = BY_TIER, outcome: Any = None, policies: str = "") -> None:
        self.calls = FakeCalls(otherwise=says() if outcome is None else outcome)
        below = textwrap.indent(policies, " " * 8)
        self.run = carrier.proxy(FILE.format(policy=textwrap.indent(policy, " " * 10), policies=below), self.calls)
        self.answer = Answer()

    def send(self, *headers: tuple[str, str], body: bytes = b"", up: Response = UP) -> Received | None:
        """What the backend gets of a request, None when it gets nothing."""
        before = len(self.run.arrivals)
        method = "POST" if body else "GET"
        self.answer = self.run.ask(Request(method, "/shop", headers, body, authority="shop.example"), up)
        arrivals = self.run.arrivals[before:]
        return arrivals[0].received if arrivals else None

    @property
    def asked(self) -> list[pb.RateLimitRequest]:
        found = []
        for each in self.calls.received:
            call: CallRequest = each.request
            assert (call.method, call.target) == (
                b"POST",
                b"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            )
            found.append(pb.RateLimitRequest.FromString(call.body[5:]))
        return found


def entries(descriptor: pb.RateLimitDescriptor) -> dict[str, str]:
    return {each.key: each.value for each in descriptor.entries}


def hits(descriptor: pb.RateLimitDescriptor) -> int | None:
    return descriptor.hits_addend.value if descriptor.HasField("hits_addend") else None


# --- what it is asked


def test_the_service_is_asked_by_domain_and_descriptors(carrier: Carrier) -> None:
    it = Limited(carrier)
    assert it.send(GOLD) is not None and it.answer.status == 200
    (asked,) = it.asked
    (descriptor,) = asked.descriptors
    assert (asked.domain, entries(descriptor), hits(descriptor)) == ("shop", {"tier": "gold"}, None)
    assert asked.hits_addend == 0 and not descriptor.HasField("limit")


VALUES = {
    "source.address": "192.0.2.7",
    "request.method": "GET",
    "7": "7",
    "true": "true",
    "1.5": "1.5",
    "b'\\xff'": "\ufffd",
    "''": "",
}


@pytest.mark.parametrize("expression", VALUES)
def test_values_are_sent_as_text(carrier: Carrier, expression: str) -> None:
    it = Limited(carrier, BY_TIER.replace('request.headers["x-tier"]', expression.replace("'", "''")))
    it.send()
    assert entries(it.asked[0].descriptors[0]) == {"tier": VALUES[expression]}


def test_a_value_that_is_long_is_sent_as_its_digest(carrier: Carrier) -> None:
    """A client must not make the service refuse to count by the length of a header."""
    it = Limited(carrier)
    it.send(("x-tier", "a" * 1025))
    it.send(("x-tier", "a" * 1024))
    first, second = (entries(each.descriptors[0])["tier"] for each in it.asked)
    assert first.startswith("sha256:") and len(first) == 71 and second == "a" * 1024


KEYS = 'apiKeyAuthentication: {secretRef: {a: {value: \'{"key": "k1", "metadata": {"budget": 5, "id": "ann"}}\'}}}'


def test_a_secret_is_told_apart_but_not_sent(carrier: Carrier) -> None:
    it = Limited(carrier, BY_TIER.replace('request.headers["x-tier"]', "apiKey.key"), policies=KEYS)
    assert it.send(("authorization", "Bearer k1")) is not None
    (value,) = entries(it.asked[0].descriptors[0]).values()
    assert value.startswith("sha256:") and "k1" not in value


TWO = """
global:
  host: 127.0.0.1:9001
  domain: shop
  descriptors:
  - entries:
    - {name: tier, expression: 'request.headers["x-tier"]'}
  - entries:
    - {name: client, expression: source.address}
    - {name: path, expression: request.path}
    cost: 'int(request.headers["x-cost"])'
"""


def test_a_descriptor_of_which_an_expression_fails_is_dropped_and_counted(carrier: Carrier) -> None:
    it = Limited(carrier, TWO)
    it.send(("x-cost", "3"))
    (one,) = it.asked[0].descriptors
    assert (entries(one), hits(one)) == ({"client": "192.0.2.7", "path": "/shop"}, 3)
    assert it.run.counted("rate_limit_descriptors_dropped_total") == {"": 1}


def test_without_a_descriptor_nobody_is_asked(carrier: Carrier) -> None:
    it = Limited(carrier, TWO, failed("connect"))
    assert it.send() is not None and it.answer.status == 200 and it.asked == []


COSTS = {"0": 0, "1": 1, "2.1": 3, "7u": 7, "-1": None, "0.0/0.0": None, "1.0/0.0": None, "'a'": None, "1e300": 2**53}


@pytest.mark.parametrize("cost", COSTS)
def test_a_cost_is_a_number_of_hits(carrier: Carrier, cost: str) -> None:
    it = Limited(
        carrier, TWO.replace("""int(request.headers["x-cost"])'""", f"dyn({cost.replace(chr(39), chr(39) * 2)})'")
    )
    it.send(GOLD)
    found = [hits(each) for each in it.asked[0].descriptors[1:]]
    assert found == ([] if COSTS[cost] is None else [COSTS[cost]])


OVERRIDE = BY_TIER.rstrip() + "\n    limitOverride: {requestsPerUnit: apiKey.budget, unit: Months}\n"


@pytest.mark.parametrize(("budget", "limit"), [(5, 5), (2.9, 2), (-3, 0), (0, 0), (2**40, 2**32 - 1)])
def test_the_limit_may_come_with_the_request(carrier: Carrier, budget: object, limit: int) -> None:
    it = Limited(carrier, OVERRIDE, policies=KEYS.replace("5", str(budget)))
    it.send(GOLD, ("authorization", "Bearer k1"))
    found = it.asked[0].descriptors[0].limit
    assert (found.requests_per_unit, found.unit) == (limit, pb.MONTH)


UNITS = ("Seconds", "Minutes", "Hours", "Days", "Months", "Years")


@pytest.mark.parametrize("unit", UNITS)
def test_the_limit_of_a_request_may_be_in_any_unit(unit: str, carrier: Carrier) -> None:
    it = Limited(carrier, OVERRIDE.replace("Months", unit), policies=KEYS)
    it.send(GOLD, ("authorization", "Bearer k1"))
    assert pb.RateLimitUnit.Name(it.asked[0].descriptors[0].limit.unit) == unit.upper().removesuffix("S")


def test_a_limit_without_a_value_drops_its_descriptor(carrier: Carrier) -> None:
    it = Limited(carrier, OVERRIDE, policies=KEYS.replace('"budget": 5, ', ""))
    assert it.send(GOLD, ("authorization", "Bearer k1")) is not None and it.asked == []


def test_an_expression_may_read_the_body(carrier: Carrier) -> None:
    it = Limited(carrier, BY_TIER.replace('request.headers["x-tier"]', "json(request.body).user"))
    received = it.send(body=b'{"user": "ann"}')
    assert received is not None and received.body == b'{"user": "ann"}'
    assert entries(it.asked[0].descriptors[0]) == {"tier": "ann"}


# --- what its answers do


def test_over_the_limit_the_client_waits(carrier: Carrier) -> None:
    status = pb.RateLimitResponse.DescriptorStatus(code=OVER, current_limit={"requests_per_unit": 10, "unit": "DAY"})
    status.duration_until_reset.FromMilliseconds(7200)
    other = pb.RateLimitResponse.DescriptorStatus(code=OVER, current_limit={"requests_per_unit": 1, "unit": "SECOND"})
    other.duration_until_reset.FromSeconds(1)
    it = Limited(carrier, outcome=says(OVER, statuses=[other, status]))
    assert it.send(GOLD) is None
    assert (it.answer.status, it.answer.body) == (429, b"rate limit exceeded")
    names = ("retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
    assert [it.answer.headers[name] for name in names] == ["8", "10", "0", "8"]


def test_the_services_own_words_are_the_answer(carrier: Carrier) -> None:
    headers = [
        *({"key": "Retry-After", "value": "60"}, {"key": "content-type", "value": "application/json"}),
        *({"key": "x-a", "raw_value": b"1"}, {"key": "content-length", "value": "5"}),
    ]
    it = Limited(carrier, outcome=says(OVER, raw_body=b'{"wait": 1}', response_headers_to_add=headers))
    assert it.send(GOLD) is None
    assert (it.answer.status, it.answer.body) == (429, b'{"wait": 1}')
    assert (it.answer.headers["content-type"], it.answer.headers["x-a"]) == ("application/json", "1")
    assert it.answer.headers.all("retry-after") == ["60"]


def test_headers_go_to_backend_and_client(carrier: Carrier) -> None:
    it = Limited(
        carrier,
        outcome=says(
            request_headers_to_add=[{"key": "x-left", "value": "3"}],
            response_headers_to_add=[{"key": "x-ratelimit-remaining", "value": "3"}, {"key": "x-up", "value": "2"}],
        ),
    )
    received = it.send(GOLD)
    assert received is not None and received.headers["x-left"] == "3"
    assert it.answer.headers["x-ratelimit-remaining"] == "3" and it.answer.headers.all("x-up") == ["up", "2"]


NO_ANSWERS: dict[str, Any] = {
    "nobody there": failed("connect"),
    "too late": failed("timeout"),
    "no gRPC": CallAnswer(503, Head(b"\r\n"), b""),
    "a status of gRPC": CallAnswer(200, Head(b"\r\ngrpc-status: 14\r\n"), b""),
    "garbage": grpc(b"\xff\xff\xff"),
    "no code": says(pb.RateLimitResponse.UNKNOWN),
    "a header that cannot be": says(response_headers_to_add=[{"key": "x-a", "value": "1\r\nx-b: 2"}]),
    "a name that cannot be": says(request_headers_to_add=[{"key": "x a", "value": "1"}]),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_no_answer_follows_the_failure_mode(carrier: Carrier, name: str) -> None:
    closed = Limited(carrier, outcome=NO_ANSWERS[name])
    assert closed.send(GOLD) is None
    assert (closed.answer.status, closed.answer.body) == (500, b"rate limit failed")
    opened = Limited(carrier, BY_TIER + "  failureMode: FailOpen\n", NO_ANSWERS[name])
    assert opened.send(GOLD) is not None and opened.answer.status == 200


@pytest.mark.parametrize("status", [3, 8, 11])
def test_a_service_that_blames_the_request_refuses_in_both_modes(carrier: Carrier, status: int) -> None:
    blames = CallAnswer(200, Head(b"\r\ngrpc-status: %d\r\n" % status), b"")
    it = Limited(carrier, BY_TIER + "  failureMode: FailOpen\n", blames)
    assert it.send(GOLD) is None and (it.answer.status, it.answer.body) == (500, b"rate limit failed")


def test_local_limits_come_first(carrier: Carrier) -> None:
    it = Limited(carrier, "local: [{requests: 1, unit: Hours}]" + BY_TIER)
    assert [it.send(GOLD) is not None for _ in range(2)] == [True, False]
    assert it.answer.status == 429 and len(it.asked) == 1


CONDITIONAL = """
conditional:
- condition: request.headers["x-tier"] == "gold"
  policy:
    global:
      host: 127.0.0.1:9001
      domain: gold
      descriptors: [{entries: [{name: a, expression: "'b'"}]}]
- policy:
    global:
      host: 127.0.0.1:9001
      domain: others
      descriptors: [{entries: [{name: a, expression: "'b'"}]}]
"""


def test_the_first_condition_that_holds_says_what_is_asked(carrier: Carrier) -> None:
    it = Limited(carrier, CONDITIONAL, says(response_headers_to_add=[{"key": "x-new", "value": "1"}]))
    for headers in ([GOLD], []):
        it.send(*headers)
        assert it.answer.headers["x-new"] == "1"
    assert [each.domain for each in it.asked] == ["gold", "others"]


# --- what is known at the end


TOKENS = BY_TIER.rstrip() + "\n    unit: Tokens\n"
BY_BODY = TOKENS + "    cost: int(json(response.body).cost)\n"


def paid(cost: int) -> Response:
    return Response(200, (), b'{"cost": %d}' % cost)


def test_tokens_are_asked_for_before_and_reported_at_the_end(carrier: Carrier) -> None:
    it = Limited(carrier, TOKENS + "    cost: response.code\n")
    it.send(GOLD)
    before, after = it.asked
    assert [hits(each.descriptors[0]) for each in (before, after)] == [0, 200]
    assert [entries(each.descriptors[0]) for each in (before, after)] == [{"tier": "gold"}] * 2
    assert after.domain == "shop"


def test_what_cost_nothing_or_has_no_value_is_not_reported(carrier: Carrier) -> None:
    for cost in ("", "    cost: llm.cost.total\n", "    cost: '0'\n"):
        it = Limited(carrier, TOKENS + cost)
        assert it.send(GOLD) is not None and len(it.asked) == 1


def test_a_request_that_was_refused_is_not_reported(carrier: Carrier) -> None:
    it = Limited(carrier, TOKENS + "    cost: response.code\n", says(OVER))
    assert it.send(GOLD) is None and len(it.asked) == 1


def test_what_the_service_could_not_hear_is_added_up_and_sent_when_it_is_back(carrier: Carrier) -> None:
    it = Limited(carrier, TOKENS + "    cost: response.code\n  failureMode: FailOpen\n", failed("connect"))
    for _ in range(3):
        assert it.send(GOLD) is not None
    before = len(it.asked)
    it.calls.otherwise = says()
    it.run.advance(1)
    (report,) = it.asked[before:]
    assert hits(report.descriptors[0]) == 600
    it.run.advance(5)
    assert len(it.asked) == before + 1, "and no more"


def test_what_the_service_may_have_heard_is_not_sent_again(carrier: Carrier) -> None:
    it = Limited(carrier, TOKENS + "    cost: response.code\n  failureMode: FailOpen\n", failed("timeout"))
    it.send(GOLD)
    it.calls.otherwise = says()
    it.run.advance(5)
    assert len(it.asked) == 2, "one before, one at the end"
