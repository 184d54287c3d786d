"""Who may connect: rules of several policies on one bind, decided for a peer."""

from __future__ import annotations

from itertools import permutations

import pytest

from dataplane.chain import network
from dataplane.chain.filter import Env, Origin, Refused
from dataplane.chain.network import NetworkGate
from dataplane.chain.rules import Rule
from dataplane.filters.frontend import network_authorization
from dataplane.http.messages import Peer
from gatewright.cel.errors import CelError
from gatewright.wire.v1 import traffic_pb2

PEER = Peer("198.51.100.7", local=b"192.0.2.1:8080", port=4711)
MATCHES = "source.address == '198.51.100.7'"
OTHER = "cidr('10.0.0.0/8').containsIP(source.address)"
FAILS = "source.subject == 'CN=a'"


def rule(action: str, *expressions: str, name: str = "p") -> Rule:
    config = traffic_pb2.Authorization(
        policy=traffic_pb2.AuthorizationRule(match_expressions=expressions), action=f"ACTION_{action.upper()}"
    )
    origin = Origin(f"GatewayPolicy default/{name}", "network_authorization")
    return network_authorization.build(config, Env(lambda: 0.0, lambda: 0.0, origin=origin))


def refuses(*rules: Rule, peer: Peer = PEER) -> str:
    return NetworkGate(rules, "bind/default/gw/8080", None).refuses(peer)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ([("Allow", MATCHES)], ""),
        ([("Allow", OTHER)], "no Allow rule matches"),
        ([("Allow", OTHER), ("Allow", MATCHES)], ""),
        ([("Allow", MATCHES, OTHER)], "no Allow rule matches"),
        ([("Allow", FAILS)], "no Allow rule matches"),
        ([("Deny", MATCHES)], "a Deny rule matches"),
        ([("Deny", OTHER)], ""),
        ([("Deny", FAILS)], ""),
        ([("Deny", MATCHES), ("Allow", MATCHES)], "a Deny rule matches"),
        ([("Require", MATCHES)], ""),
        ([("Require", OTHER)], "a Require rule does not match"),
        ([("Require", FAILS)], "a Require rule does not match"),
        ([("Require", MATCHES), ("Require", OTHER), ("Allow", MATCHES)], "a Require rule does not match"),
        ([("Require", MATCHES), ("Allow", OTHER)], "no Allow rule matches"),
    ],
)
def test_rules_add_up_in_any_order(rules: list[tuple[str, ...]], why: str) -> None:
    made = [rule(*each) for each in rules]
    for order in permutations(made):
        answer = refuses(*order)
        assert answer.startswith(why) and bool(answer) == bool(why)


def test_a_refusal_names_the_policy_and_no_expression() -> None:
    assert refuses(rule("Deny", MATCHES, name="office")) == (
        "a Deny rule matches: GatewayPolicy default/office networkAuthorization"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "source.port == 4711 && source.rawPort == 4711 && source.rawAddress == '198.51.100.7'",
        "destination.address == '192.0.2.1' && destination.port == 8080",
        "proxy.bind == 'bind/default/gw/8080'",
        "env.podName != ''",
        "cidr('198.51.100.0/24').containsIP(source.address)",
        "!has(source.subject) && !has(source.identity) && source.?certificate == optional.none()",
    ],
)
def test_what_expressions_may_read(expression: str) -> None:
    assert refuses(rule("Require", expression)) == ""


def test_ipv6() -> None:
    peer = Peer("2001:db8::7", local=b"[2001:db8::1]:443", port=1)
    both = "cidr('2001:db8::/32').containsIP(source.address)", "destination.address == '2001:db8::1'"
    assert refuses(rule("Require", *both), peer=peer) == ""
    assert refuses(rule("Require", *both))


@pytest.mark.parametrize("expression", ["request.path == '/'", "source.addres == ''", "1 +"])
def test_what_does_not_exist_by_then_is_refused(expression: str) -> None:
    with pytest.raises(Refused, match=r"policy.matchExpressions\[0\]: "):
        rule("Allow", expression)


def test_one_that_costs_too_much_denies() -> None:
    heavy = "[1,2,3,4,5,6,7,8,9,10].all(a, " * 6 + "source.port > 0" + ")" * 6
    assert refuses(rule("Deny", heavy)).startswith("a Deny rule costs too much to evaluate")
    assert refuses(rule("Allow", heavy)).startswith("no Allow rule matches")


def test_one_that_cannot_be_applied_refuses_everybody() -> None:
    assert refuses(rule("Allow", MATCHES), network.closed("GatewayPolicy default/p: broken")) == (
        "a Deny rule matches: GatewayPolicy default/p: broken"
    )


def test_equal_rules_count_once() -> None:
    one = rule("Allow", MATCHES)
    assert NetworkGate([one, one], "bind", None).rules == (one,)


def test_a_connection_is_closed_by_a_rule_in_place_of_one_that_cannot_be_applied() -> None:
    assert network.closed("why") == Rule("Deny", (), "why", 0)
    assert refuses(network.closed("why")) == "a Deny rule matches: why"


def test_all_rules_of_a_connection_have_the_time_of_one() -> None:
    arrival = network.Arrival(PEER, "bind", None)
    assert (arrival.evaluations_end(10.0, 0.5), arrival.evaluations_end(10.4, 0.5)) == (10.5, 10.5)
    error = CelError("took too long")
    assert arrival.cut_off(error) is error
