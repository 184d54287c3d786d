"""Policies and Secrets in the table: what a request meets, at which place, and what a swap keeps."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter, Refused, Row
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright import revisions
from gatewright.wire.v1 import policy_pb2, resource_pb2
from tests.fakes.calls import FakeCalls, answered
from tests.fakes.memory_proxy import ROUTES, MemoryProxy
from tests.fakes.policy_run import policies_of
from tests.fakes.table_state import TableRun, bind, change, exchange, gone, header, listener, route

GATEWAY, HTTP = ("Gateway", "gw", ""), ("Gateway", "gw", "http")


def place(kind: str, name: str, section: str = "") -> tuple[str, str, str]:
    return kind, name, section


def policy(
    name: str,
    where: Iterable[tuple[str, str, str]],
    fill: Callable[[policy_pb2.Policy], object],
    *,
    override: bool = False,
    early: bool = False,
    order: str = "",
    revision: int = revisions.NEWEST,
) -> Change:
    """A policy of namespace default; `where`: kind, name and section of its places."""
    message = policy_pb2.Policy(order=order or f"default/{name}")
    message.source.kind, message.source.namespace, message.source.name = "GatewayPolicy", "default", name
    for kind, target, section in where:
        made = message.places.add(section=section)
        made.object.kind, made.object.namespace, made.object.name = kind, "default", target
    if override:
        message.inheritance = policy_pb2.INHERITANCE_OVERRIDE
    if early:
        message.phase = policy_pb2.PHASE_PRE_ROUTING
    fill(message)
    key = f"policy/default/{name}/{message.WhichOneof('field')}"
    return change(resource_pb2.Resource(key=key, min_revision=revision, policy=message))


def sets(value: str) -> Callable[[policy_pb2.Policy], object]:
    return lambda message: message.header_modifiers.request.set.add(name="x-who", value=value)


def removes(name: str) -> Callable[[policy_pb2.Policy], object]:
    return lambda message: message.header_modifiers.request.remove.append(name)


def times_out(milliseconds: int) -> Callable[[policy_pb2.Policy], object]:
    def fill(message: policy_pb2.Policy) -> None:
        message.timeouts.request_ms = milliseconds

    return fill


@pytest.fixture
def run() -> TableRun:
    table = TableRun()
    table.apply(bind(), listener("http"), listener("other", "other.example"), *routes())
    return table


def routes() -> list[Change]:
    named = resource_pb2.Resource.FromString(route("named", prefix="/named").value or b"")
    named.route.rule = "main"
    return [route("shop", prefix="/shop", listeners=("http", "other")), change(named)]


def ran(table: TableRun, path: str = "/shop", host: str = "a.example") -> tuple[Exchange, Reply | None]:
    """A request through the gateway phase and the steps of its rule."""
    x = exchange(host=host, path=path)
    plan = table.plan(x)
    assert plan is not None
    x.policies = policies_of(x, plan)
    for chain in (x.listener.chain, x.policies.chain):
        answer = None if chain.request is None else chain.request(x)
        if isinstance(answer, Reply):
            return x, answer
    return x, None


def who(table: TableRun, path: str = "/shop", host: str = "a.example") -> list[str]:
    x, answer = ran(table, path, host)
    assert answer is None
    return [value.decode() for value in x.request.get_all(b"x-who")]


def test_a_policy_acts_below_its_place_only(run: TableRun) -> None:
    run.apply(policy("p", [HTTP], sets("listener")))
    assert who(run) == ["listener"] and who(run, host="other.example") == []
    run.apply(policy("p", [GATEWAY], sets("gateway")))
    assert who(run) == ["gateway"] and who(run, host="other.example") == ["gateway"]
    run.apply(policy("p", [place("HTTPRoute", "shop")], sets("route")))
    assert who(run) == ["route"] and who(run, "/named") == []
    run.apply(policy("p", [place("HTTPRoute", "named", "main")], sets("rule")))
    assert who(run) == [] and who(run, "/named") == ["rule"]
    run.apply(gone("policy/default/p/header_modifiers"))
    assert who(run) == [] and who(run, "/named") == []
    assert not run.applier.store.policies_at


def test_the_most_specific_wins_and_an_override_locks(run: TableRun) -> None:
    run.apply(
        policy("g", [GATEWAY], sets("gateway")),
        policy("l", [HTTP], sets("listener")),
        policy("r", [place("HTTPRoute", "shop")], sets("route")),
    )
    assert who(run) == ["route"] and who(run, "/named") == ["listener"] and who(run, host="other.example") == ["route"]
    run.apply(policy("g", [GATEWAY], sets("locked"), override=True))
    assert who(run) == ["locked"] and who(run, "/named") == ["locked"]


def allows(text: str) -> Callable[[policy_pb2.Policy], object]:
    def fill(message: policy_pb2.Policy) -> None:
        message.authorization.policy.match_expressions.append(text)

    return fill


def test_nobody_opens_what_an_override_closes(run: TableRun) -> None:
    run.apply(
        policy("g", [GATEWAY], allows("request.path == '/shop/open'")),
        policy("r", [place("HTTPRoute", "shop")], allows("true")),
    )
    assert ran(run)[1] is None, "rules of defaults add up"
    run.apply(policy("g", [GATEWAY], allows("request.path == '/shop/open'"), override=True))
    assert ran(run)[1] is not None and ran(run, "/shop/open")[1] is None
    run.apply(policy("older", [GATEWAY], allows("request.path == '/shop/more'"), order="default/a"))
    assert ran(run, "/shop/more")[1] is None, "rules of the level of the lock add up"
    assert ran(run)[1] is not None
    run.apply(gone("policy/default/g/authorization"))
    assert ran(run)[1] is None


def test_an_older_default_does_not_take_a_lock_away(run: TableRun) -> None:
    run.apply(
        policy("older", [GATEWAY], sets("older"), order="default/a"),
        policy("lock", [GATEWAY], sets("locked"), order="default/b", override=True),
        policy("r", [place("HTTPRoute", "shop")], sets("route")),
    )
    assert who(run) == ["locked"]


def test_the_rules_own_filter_acts_after_the_policy(run: TableRun) -> None:
    own = header("x-who", "own")
    run.apply(route("shop", prefix="/shop", policies=[own]), policy("g", [GATEWAY], removes("x-who")))
    assert who(run) == ["own"]
    run.apply(policy("g", [GATEWAY], sets("gateway"), override=True))
    assert who(run) == ["own"]


def test_a_policy_that_goes_acts_nowhere_any_more(run: TableRun) -> None:
    """Each alone at its place, so that it is the last policy that goes."""
    for place_of in ([GATEWAY], [HTTP], [place("HTTPRoute", "shop")]):
        for early in (False, True) if place_of != [place("HTTPRoute", "shop")] else (False,):
            run.apply(policy("p", place_of, sets("p"), early=early))
            assert who(run) == ["p"]
            run.apply(gone("policy/default/p/header_modifiers"))
            assert who(run) == []
            run.apply(policy("p", place_of, sets("again"), early=early))
            assert who(run) == ["again"]
            run.apply(gone("policy/default/p/header_modifiers"))
            assert who(run) == []


def test_settings_are_merged_as_steps_are(run: TableRun) -> None:
    run.apply(policy("g", [GATEWAY], times_out(9000)), policy("r", [place("HTTPRoute", "shop")], times_out(2000)))
    assert ran(run)[0].policies.timeouts.request == 2
    assert ran(run, "/named")[0].policies.timeouts.request == 9
    run.apply(gone("policy/default/r/timeouts"))
    assert ran(run)[0].policies.timeouts.request == 9


def test_the_two_phases_are_merged_apart(run: TableRun) -> None:
    run.apply(
        policy("early", [GATEWAY], sets("early"), early=True, override=True), policy("late", [HTTP], sets("late"))
    )
    x = exchange(path="/shop")
    assert run.plan(x) is not None and x.listener.chain.request is not None
    x.listener.chain.request(x)
    assert x.request.get(b"x-who") == b"early"
    assert who(run) == ["late"]


@pytest.mark.parametrize("late", ["listener", "route", "policy"])
def test_the_order_of_arrival_does_not_matter(late: str) -> None:
    parts = {"listener": [bind(), listener("http")], "route": routes(), "policy": [policy("g", [GATEWAY], sets("g"))]}
    table = TableRun()
    table.apply(*(each for name, changes in parts.items() if name != late for each in changes))
    table.apply(*parts[late])
    assert who(table) == ["g"]


def test_of_two_at_one_place_the_smaller_order_counts(run: TableRun) -> None:
    run.apply(
        policy("young", [GATEWAY], sets("young"), order="2026 default/young"),
        policy("old", [GATEWAY], sets("old"), order="2025 default/old"),
    )
    assert who(run) == ["old"]


def test_rules_without_policies_of_their_own_share_what_they_inherit(run: TableRun) -> None:
    run.apply(policy("g", [GATEWAY], sets("g")))
    assert ran(run)[0].policies is ran(run, "/named")[0].policies
    assert ran(run)[0].policies is ran(run, host="other.example")[0].policies


def test_what_no_listener_inherits_any_more_is_forgotten(run: TableRun) -> None:
    run.apply(
        route("shop", prefix="/shop", policies=[header("x", "1")], listeners=("http", "other")),
        route("attached", prefix="/attached"),
        policy("a", [place("HTTPRoute", "attached")], times_out(1000)),
    )
    for number in range(5):
        run.apply(policy("g", [GATEWAY], sets(str(number))))
        gc.collect()
    run.apply(route("named", prefix="/named"))
    for path in ("/shop", "/named", "/attached"):
        plan = run.plan(exchange(path=path))
        assert plan is not None and plan.policies.under is not None and len(plan.policies.under) <= 2


def test_an_unchanged_policy_keeps_its_filter(run: TableRun) -> None:
    run.apply(policy("g", [GATEWAY], sets("g")))
    before = ran(run)[0].policies.chain
    run.apply(policy("g", [GATEWAY], sets("g")), policy("other", [place("HTTPRoute", "named")], times_out(1)))
    assert ran(run)[0].policies.chain is before


# A bad policy.


def test_a_bad_policy_keeps_its_last_good_version(run: TableRun) -> None:
    run.apply(policy("g", [GATEWAY], sets("good")))
    run.apply(policy("g", [GATEWAY], removes("a b")))
    assert "is not a header name" in run.refused["policy/default/g/header_modifiers"]
    assert who(run) == ["good"]


def counting(name: str, **options: Any) -> tuple[Row, list[Env]]:
    """A row whose builder notes what it is given, and refuses the realm "bad"."""
    seen: list[Env] = []

    def build(config: Any, env: Env) -> Filter:
        seen.append(env)
        if config.realm == "bad":
            raise Refused("realm: is bad")
        return Filter(name, request=lambda x: x.leave("state", env.carryover.kept(env.origin.key, State)))

    return Row(name, build, "step", "a test's", refuses=True, **options), seen


class State:
    """What a filter remembers."""


def guard(realm: str, secret: str = "") -> Callable[[policy_pb2.Policy], object]:
    def fill(message: policy_pb2.Policy) -> None:
        message.basic_authentication.realm, message.basic_authentication.secret = realm, secret

    return fill


def guarded(**options: Any) -> tuple[TableRun, list[Env]]:
    row, seen = counting("basic_authentication", **options)
    table = TableRun((row, *(each for each in ROWS if each.name != row.name)))
    table.apply(bind(), listener("http"), *routes())
    return table, seen


def test_a_security_policy_that_cannot_be_built_refuses_what_it_covers_and_is_named() -> None:
    table, _ = guarded()
    table.apply(policy("g", [place("HTTPRoute", "shop")], guard("good")))
    assert ran(table)[1] is None
    table.apply(policy("g", [place("HTTPRoute", "shop")], guard("bad")))
    answer = ran(table)[1]
    assert answer is not None and (answer.status, answer.reason) == (503, "PolicyUnusable")
    assert answer.detail == "GatewayPolicy default/g basicAuthentication: realm: is bad"
    assert table.refused == {"policy/default/g/basic_authentication": "basic_authentication: realm: is bad"}
    assert ran(table, "/named")[1] is None
    table.apply(route("more", prefix="/more"))
    assert "policy/default/g/basic_authentication" in table.applier.outcome.standing
    table.apply(policy("g", [place("HTTPRoute", "shop")], guard("good")))
    assert ran(table)[1] is None and not table.applier.outcome.standing


def test_inline_policies_refuse_their_rule_alone() -> None:
    table, _ = guarded()
    own = policy_pb2.Policy()
    own.basic_authentication.realm = "bad"
    table.apply(route("shop", prefix="/shop", policies=[own]))
    answer = ran(table)[1]
    assert answer is not None and answer.status == 503
    assert table.refused == {"route/httproute/default/shop/0": "basic_authentication: realm: is bad"}
    assert ran(table, "/named")[1] is None
    table.apply(route("shop", prefix="/shop", policies=[own]))  # it comes again as it was
    assert table.refused == {"route/httproute/default/shop/0": "basic_authentication: realm: is bad"}


def test_an_inline_policy_that_is_invalid_never_passes_for_one_that_reads_like_the_reason() -> None:
    table, _ = guarded()
    good, invalid = policy_pb2.Policy(), policy_pb2.Policy()
    good.basic_authentication.realm = "good"
    invalid.basic_authentication.SetInParent()
    invalid.invalid = good.basic_authentication.SerializeToString().decode()
    table.apply(route("named", prefix="/named", policies=[good]), route("shop", prefix="/shop", policies=[invalid]))
    assert ran(table, "/named")[1] is None
    answer = ran(table)[1]
    assert answer is not None and answer.status == 503


def test_what_the_sender_could_not_honour_refuses_requests_and_is_no_refusal_of_the_proxy() -> None:
    table, seen = guarded()

    def fill(message: policy_pb2.Policy) -> None:
        guard("good")(message)
        message.invalid = "Secret default/users does not exist"

    table.apply(policy("g", [GATEWAY], fill))
    answer = ran(table)[1]
    assert answer is not None and answer.status == 503 and "Secret default/users" in answer.detail
    assert not seen and not table.refused and not table.applier.outcome.standing


def test_a_policy_of_a_newer_language_never_fails_open() -> None:
    table, _ = guarded()
    newer = revisions.NEWEST + 1
    table.apply(policy("g", [place("HTTPRoute", "shop")], guard("good"), revision=newer))
    answer = ran(table)[1]
    assert answer is not None and answer.status == 503
    assert "needs a newer proxy" in table.refused["policy/default/g/basic_authentication"]
    table.apply(policy("h", [GATEWAY], sets("h"), revision=newer))
    assert who(table, "/named") == []  # not for security: there is no last good version, so nothing
    unknown = resource_pb2.Resource.FromString(policy("u", [GATEWAY], sets("u")).value or b"")
    unknown.key, unknown.min_revision = "policy/default/u/frobnication", newer
    unknown.policy.ClearField("header_modifiers")
    table.apply(Change(RESOURCE_TYPE, unknown.key, unknown.SerializeToString()))
    assert ran(table, "/named")[1] is not None


# State, Secrets.


def state(table: TableRun, path: str = "/shop") -> Any:
    x, _ = ran(table, path)
    assert x.attributes is not None
    return x.attributes["state"]


def test_state_survives_swaps_until_its_policy_changes() -> None:
    table, _ = guarded()
    table.apply(policy("g", [GATEWAY], guard("one")))
    first = state(table)
    table.apply(policy("other", [GATEWAY], sets("x")), route("shop", prefix="/shop"))
    table.apply(policy("g", [GATEWAY, HTTP], guard("one")))
    assert state(table) is first
    table.apply(policy("g", [GATEWAY], guard("two")))
    assert state(table) is not first


def test_a_policy_is_built_once_for_all_its_targets_and_equal_ones_inline_are_one() -> None:
    table, seen = guarded()
    table.apply(policy("g", [place("HTTPRoute", "shop"), place("HTTPRoute", "named")], guard("one")))
    assert len(seen) == 1 and state(table) is state(table, "/named")
    own = policy_pb2.Policy()
    own.basic_authentication.realm = "two"
    table.apply(route("shop", prefix="/shop", policies=[own]), route("named", prefix="/named", policies=[own]))
    assert state(table) is state(table, "/named")


def test_what_counts_per_target_is_built_for_each() -> None:
    table, seen = guarded(per_target=True)
    table.apply(policy("g", [place("HTTPRoute", "shop"), place("HTTPRoute", "named")], guard("one")))
    assert [env.origin.target for env in seen] == ["HTTPRoute default/shop", "HTTPRoute default/named"]
    assert state(table) is not state(table, "/named")


def test_inline_policies_that_count_per_target_are_not_shared() -> None:
    table, _ = guarded(per_target=True)
    own = policy_pb2.Policy()
    own.basic_authentication.realm = "one"
    table.apply(route("shop", prefix="/shop", policies=[own]), route("named", prefix="/named", policies=[own]))
    assert state(table) is not state(table, "/named")
    before = state(table)
    both = [own, header("x", "1")]
    table.apply(route("shop", prefix="/shop", policies=both), route("named", prefix="/named", policies=both))
    assert state(table) is before and state(table, "/named") is not before


def secret(name: str, **data: bytes) -> Change:
    resource = resource_pb2.Resource(key=f"secret/default/{name}")
    resource.secret.namespace, resource.secret.name = "default", name
    for key, value in data.items():
        resource.secret.data[key] = value
    return change(resource)


def reading(inline: bool) -> tuple[TableRun, Change]:
    """A table with a policy that reads the Secret `users`, and the change that brings it."""

    def build(config: Any, env: Env) -> Filter:
        value = env.secret(config.secret)["entry"]
        return Filter("basic_authentication", request=lambda x: x.leave("state", value))

    row = Row("basic_authentication", build, "step", "a test's", refuses=True, secrets=lambda config: [config.secret])
    table = TableRun((row, *(each for each in ROWS if each.name != row.name)))
    table.apply(bind(), listener("http"), *routes())
    if not inline:
        return table, policy("g", [GATEWAY], guard("r", "secret/default/users"))
    own = policy_pb2.Policy()
    own.basic_authentication.secret = "secret/default/users"
    return table, route("shop", prefix="/shop", policies=[own])


@pytest.mark.parametrize("inline", [False, True])
def test_a_policy_is_built_anew_when_its_secret_changes(inline: bool) -> None:
    table, guarding = reading(inline)
    table.apply(guarding)
    answer = ran(table)[1]
    assert answer is not None and answer.status == 503 and "secret/default/users is not known" in answer.detail
    assert guarding.name in table.refused
    table.apply(secret("users", entry=b"1"))
    assert state(table) == b"1" and not table.applier.outcome.standing
    table.apply(secret("users", entry=b"2"), secret("unrelated", entry=b"x"))
    assert state(table) == b"2"
    table.apply(gone("secret/default/users"))
    assert ran(table)[1] is not None
    table.apply(gone(guarding.name))
    assert table.applier.store.secret_users.of("secret/default/users") == []


def test_a_policy_is_summed_up_without_its_content(run: TableRun) -> None:
    run.apply(policy("p", [GATEWAY, place("HTTPRoute", "shop", "main")], sets("quiet"), override=True))
    summary = run.applier.store.policies["policy/default/p/header_modifiers"].summary()
    assert summary == {
        "places": ["Gateway default/gw", "HTTPRoute default/shop main"],
        "phase": "PostRouting",
        "override": True,
        "refused": "",
    }


def test_secrets_are_not_shown() -> None:
    table, guarding = reading(inline=False)
    table.apply(guarding, secret("users", entry=b"hunter2"))
    assert "hunter2" not in f"{table.applier.store!r} {table.applier.store.secrets!r} {table.applier!r}"


def test_a_request_that_waits_in_the_gateway_phase_finds_its_policies_after_many_swaps() -> None:
    calls = FakeCalls(otherwise=answered())
    calls.hold = True
    proxy = MemoryProxy(calls=calls)
    gateway = [place("Gateway", "standalone")]

    def asks(message: policy_pb2.Policy) -> None:
        message.ext_auth.backend = "backend/service/default/auth/80"
        message.ext_auth.http.SetInParent()

    def swap(*changes: Change) -> None:
        list(proxy.applier.apply(changes))
        assert proxy.applier.outcome.refused == {}
        gc.collect()

    swap(policy("asks", gateway, asks, early=True), policy("p", gateway, sets("first")))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    for value in ("second", "third"):
        swap(policy("p", gateway, sets(value)))
    swap(gone("policy/default/p/header_modifiers"), gone("policy/default/asks/ext_auth"))
    proxy.load(ROUTES.replace("9000", "9009"))
    calls.release()
    assert b"\r\nx-who: first\r\n" in proxy.upstream.received and not client.received
