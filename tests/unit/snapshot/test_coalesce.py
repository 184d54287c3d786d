"""When changes are published: the leading edge at once, bursts together, after 50 ms at most; each Gateway alone."""

from __future__ import annotations

import itertools

import pytest

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Change, Coalescer


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def change(name: str, content: bytes | None = b"", gateway: str = "shop/web") -> Change:
    return (gateway, RESOURCE_TYPE, name, content)


def taken(coalescer: Coalescer) -> tuple[Change, ...]:
    """What is due of the one Gateway that there is."""
    (batch,) = coalescer.take()
    return batch


def names(coalescer: Coalescer) -> list[str]:
    return [name for _, _, name, _ in taken(coalescer)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_pending(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([])
    assert (coalescer.wait(), coalescer.take(), len(coalescer)) == (None, [], 0)


def test_first_change_after_quiet_is_published_at_once(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    assert coalescer.wait() == 0.0
    assert coalescer.take() == [(change("a"),)]
    assert coalescer.wait() is None


def test_what_follows_soon_waits_for_a_pause(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.004
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 0.006
    coalescer.add([change("c")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 0.010
    assert coalescer.wait() == pytest.approx(0.0)
    assert names(coalescer) == ["b", "c"]


def test_pause_makes_the_next_change_leading(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.0101
    coalescer.add([change("b")])
    assert coalescer.wait() == 0.0


def test_ten_milliseconds_are_a_pause_and_a_gateway_is_forgotten_then(clock: Clock) -> None:
    clock.now = 0.0
    coalescer = Coalescer(clock)
    coalescer.add([change("a"), change("z", gateway="shop/other")])
    coalescer.take()
    clock.now = 0.010
    coalescer.add([change("b")])
    assert coalescer.wait() == 0.0
    coalescer.take()
    assert [*coalescer._waiting] == ["shop/web"]


def test_unending_changes_are_published_after_fifty_milliseconds(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.005
    started = clock.now
    coalescer.add([change("b0")])
    for number in range(1, 100):
        clock.now += 0.005
        coalescer.add([change(f"b{number}")])
        if coalescer.wait() == 0.0:
            break
    assert clock.now - started == pytest.approx(0.050, abs=0.006)


def answered(coalescer: Coalescer, clock: Clock, after: float) -> None:
    """A change is published, and all proxies have it so many seconds later."""
    coalescer.add([change("before")])
    assert names(coalescer) == ["before"]
    coalescer.published("shop/web")
    clock.now += after
    coalescer.answered("shop/web")


def test_what_follows_soon_goes_when_the_proxies_have_answered_and_rested(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    answered(coalescer, clock, 0.002)
    clock.now += 0.001
    coalescer.add([change("a")])
    assert coalescer.wait() == pytest.approx(0.001)  # as long as they took
    clock.now += 0.001
    assert names(coalescer) == ["a"]
    coalescer.published("shop/web")
    clock.now += 0.003
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)  # they have not answered
    coalescer.answered("shop/web")
    assert coalescer.wait() == pytest.approx(0.003)
    clock.now += 0.001
    coalescer.answered("shop/web")  # one of them once more: nothing new
    assert coalescer.wait() == pytest.approx(0.002)


def test_who_answers_late_is_not_waited_for(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    answered(coalescer, clock, 0.009)
    coalescer.add([change("a")])
    assert coalescer.wait() == pytest.approx(0.009)
    clock.now += 0.004
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.005)
    clock.now += 0.005
    assert names(coalescer) == ["a", "b"]


def test_an_answer_to_the_state_before_says_nothing_of_what_is_being_published(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    coalescer.answered("shop/web")
    coalescer.published("shop/web")
    clock.now += 0.001
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)


def test_what_is_unfinished_waits_whoever_has_answered(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("before")])
    coalescer.take()
    coalescer.published("shop/web")
    clock.now += 0.002
    add(coalescer, change("route", b"unfinished"))
    coalescer.answered("shop/web")
    assert coalescer.wait() == pytest.approx(0.050)


def test_answers_of_a_gateway_concern_no_other(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a"), change("z", gateway="shop/other")])
    coalescer.take()
    for gateway in ("shop/web", "shop/other", "shop/none"):
        coalescer.published(gateway)
    clock.now += 0.001
    coalescer.answered("shop/other")
    coalescer.answered("shop/none")
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)
    coalescer.add([change("y", gateway="shop/other")])
    assert coalescer.wait() == pytest.approx(0.001)


def test_a_gateway_that_never_rests_delays_no_other(clock: Clock) -> None:
    """One changes every 5 ms; another one's changes are published in the moment that they come."""
    coalescer = Coalescer(clock)
    published: list[tuple[float, set[str]]] = []
    for number in range(200):
        coalescer.add([change("a", b"%d" % number)])
        if number % 20 == 7:
            coalescer.add([change("z", b"%d" % number, "shop/other")])
            assert coalescer.wait() == 0.0
        if coalescer.wait() == 0.0:
            published.append((clock.now, {batch[0][0] for batch in coalescer.take()}))
        clock.now += 0.005
    others = [moment for moment, gateways in published if "shop/other" in gateways]
    assert others == [pytest.approx(100.0 + number * 0.005) for number in range(7, 200, 20)]
    own = [moment for moment, gateways in published if "shop/web" in gateways]
    assert all(0.045 < second - first < 0.066 for first, second in itertools.pairwise(own[1:]))


def test_what_is_not_due_stays(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    coalescer.take()
    clock.now += 0.001
    coalescer.add([change("b"), change("z", gateway="shop/other")])
    assert coalescer.take() == [(change("z", gateway="shop/other"),)]
    assert (coalescer.holds("shop/web"), coalescer.holds("shop/other"), coalescer.holds("shop/none")) == (
        True,
        False,
        False,
    )
    assert coalescer.wait() == pytest.approx(0.010)
    assert coalescer.take(early=True) == [(change("b"),)]
    assert (coalescer.wait(), len(coalescer)) == (None, 0)


def test_the_smallest_batch_is_first(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change(f"a{number}") for number in range(3)])
    coalescer.add([change("z", gateway="shop/other")])
    assert [len(batch) for batch in coalescer.take()] == [1, 3]


def test_a_gateway_that_is_at_rest_is_forgotten(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    for number in range(100):
        coalescer.add([change("a", gateway=f"shop/{number}")])
    coalescer.take()
    assert len(coalescer._waiting) == 100
    clock.now += 0.010
    coalescer.add([change("a")])
    coalescer.take()
    assert len(coalescer._waiting) == 1


def test_leading_edge_not_yet_taken_joins_the_burst(clock: Clock) -> None:
    """A caller that was late to publish gets one batch, still bounded."""
    coalescer = Coalescer(clock)
    coalescer.add([change("a")])
    clock.now += 0.003
    coalescer.add([change("b")])
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 5.0
    assert coalescer.wait() == 0.0


def test_last_content_of_a_resource_wins(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    coalescer.add([change("a", b"1"), change("b", b"1"), change("a", b"2")])
    coalescer.add([change("b", None)])
    clock.now += 0.010
    assert coalescer.take() == [(change("a", b"2"), change("b", None))]


def add(coalescer: Coalescer, *changes: Change) -> None:
    coalescer.add(changes, {each[:3] for each in changes if each[3] == b"unfinished"})


def test_what_is_unfinished_waits_for_what_completes_it(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("route", b"unfinished"))
    assert coalescer.wait() == pytest.approx(0.050)
    clock.now += 0.020
    add(coalescer, change("backend"))
    assert coalescer.wait() == pytest.approx(0.030)
    add(coalescer, change("route", b"whole"))
    assert coalescer.wait() == 0.0  # it waited for this alone
    assert {name: content for _, _, name, content in taken(coalescer)} == {"route": b"whole", "backend": b""}


def test_what_stays_unfinished_is_published_in_the_end_and_holds_the_next_anew(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("a", b"unfinished"))
    for name in "bcd":
        clock.now += 0.011
        add(coalescer, change(name, b"unfinished"))
    assert coalescer.wait() == pytest.approx(0.050 - 0.033)
    clock.now += 0.0171
    assert coalescer.wait() == pytest.approx(0.0, abs=1e-6)
    assert len(taken(coalescer)) == 4
    clock.now += 1
    add(coalescer, change("e"))
    assert coalescer.wait() == 0.0
    coalescer.take()
    clock.now += 1
    add(coalescer, change("f", b"unfinished"))
    assert coalescer.wait() == pytest.approx(0.050)


def test_a_removal_ends_the_wait(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("a", b"unfinished"))
    clock.now += 0.020
    add(coalescer, change("a", None))
    assert coalescer.wait() == 0.0


def test_what_is_completed_amid_other_changes_waits_for_their_pause(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("before"))
    taken(coalescer)
    clock.now += 0.005
    add(coalescer, change("route", b"unfinished"))
    clock.now += 0.001
    add(coalescer, change("route", b"whole"))
    assert coalescer.wait() == pytest.approx(0.010)
    clock.now += 0.010
    assert len(taken(coalescer)) == 1


def test_what_is_unfinished_amid_other_changes_holds_them_no_longer_than_they_would_be_held_anyhow(
    clock: Clock,
) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("before"))
    taken(coalescer)
    clock.now += 0.005
    add(coalescer, change("a"))
    clock.now += 0.008
    add(coalescer, change("route", b"unfinished"))
    assert coalescer.wait() == pytest.approx(0.042)


def test_what_was_unfinished_when_it_was_published_does_not_hold_what_follows(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("route", b"unfinished"))
    clock.now += 0.045
    add(coalescer, change("other"))
    clock.now += 0.0051
    assert len(taken(coalescer)) == 2
    clock.now += 0.001
    add(coalescer, change("last"))
    assert coalescer.wait() == pytest.approx(0.010)


# --- beside what is unfinished

RULE = "route/httproute/shop/cart/1"
BACKEND = "backend/service/shop/cart/80"


def test_what_is_complete_does_not_wait_beside_a_rule_that_is_not(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("route/httproute/shop/first/0"), change(RULE, b"unfinished"))
    assert (coalescer.wait(), names(coalescer)) == (0.0, ["route/httproute/shop/first/0"])
    assert coalescer.wait() == pytest.approx(0.050) and coalescer.holds("shop/web") and len(coalescer) == 1
    clock.now += 0.002
    add(coalescer, change("route/httproute/shop/other/0"))
    assert coalescer.wait() == pytest.approx(0.010), "after the first, as ever"


@pytest.mark.parametrize("name", ["listener/gateway/shop/web/http", "bind/shop/web/8080", "policy/shop/limit/cors"])
@pytest.mark.parametrize("is_later", [True, False])
def test_what_decides_who_meets_a_rule_does_not_come_before_it(clock: Clock, name: str, is_later: bool) -> None:
    """A listener would serve the rule that its author had replaced by then."""
    coalescer = Coalescer(clock)
    both = [change(RULE, b"unfinished"), change(name)]
    for each in both if is_later else reversed(both):
        add(coalescer, each)
    add(coalescer, change("route/httproute/other/all/0"))  # nor is it met by the listeners of before
    assert coalescer.take() == []
    clock.now += 0.0501
    assert sorted(names(coalescer)) == sorted([name, RULE, "route/httproute/other/all/0"])
    add(coalescer, change(RULE, b"unfinished"), change("route/httproute/other/all/0", b"new"))
    clock.now += 0.0101
    assert names(coalescer) == ["route/httproute/other/all/0"]


def test_the_rules_of_one_route_are_one_change(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("route/httproute/shop/cart/0"), change(RULE, b"unfinished"))
    assert coalescer.take() == []
    clock.now += 0.0501
    assert sorted(names(coalescer)) == ["route/httproute/shop/cart/0", RULE]


def test_what_comes_just_after_a_rule_that_is_unfinished_is_published_at_once(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change(RULE, b"unfinished"))
    assert coalescer.take() == []
    clock.now += 0.002
    add(coalescer, change("route/httproute/other/all/0"))
    assert (coalescer.wait(), names(coalescer)) == (0.0, ["route/httproute/other/all/0"])
    clock.now += 0.0481
    assert names(coalescer) == [RULE]
    assert coalescer.wait() is None


def test_what_completes_it_is_published_with_it(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change(RULE, b"unfinished"))
    clock.now += 0.020
    add(coalescer, change(BACKEND), change(RULE, b"whole"))
    assert coalescer.wait() == 0.0 and sorted(names(coalescer)) == [BACKEND, RULE]
    assert coalescer.wait() is None


@pytest.mark.parametrize("is_before", [True, False])
def test_a_removal_waits_with_it_since_what_is_in_force_may_need_what_goes(clock: Clock, is_before: bool) -> None:
    coalescer = Coalescer(clock)
    both = [change(BACKEND, None), change(RULE, b"unfinished")]
    for each in both if is_before else reversed(both):
        add(coalescer, each)
    assert coalescer.take() == []
    add(coalescer, change(RULE, b"whole"))
    assert sorted(names(coalescer)) == [BACKEND, RULE]


def test_what_names_an_unfinished_backend_waits_with_it(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    others = change("route/httproute/shop/other/0", b"other"), (*change("endpoint")[:1], ENDPOINT_TYPE, "a", b"there")
    add(coalescer, change(BACKEND, b"unfinished"), change(RULE, b"to " + BACKEND.encode()), *others)
    assert names(coalescer) == [others[0][2], "a"]
    clock.now += 0.0501
    assert sorted(names(coalescer)) == [BACKEND, RULE]


def test_nothing_goes_before_a_policy_that_is_unfinished(clock: Clock) -> None:
    """It refuses what it guards when it comes; until then what it guards must not be there."""
    coalescer = Coalescer(clock)
    add(coalescer, change("policy/shop/guard/ext_auth", b"unfinished"), change(RULE))
    assert coalescer.take() == [] and coalescer.wait() == pytest.approx(0.050)
    clock.now += 0.010
    add(coalescer, change("route/httproute/other/all/0"))
    assert coalescer.take() == []
    clock.now += 0.0401
    assert len(names(coalescer)) == 3


def test_an_early_end_takes_what_waits_too(clock: Clock) -> None:
    coalescer = Coalescer(clock)
    add(coalescer, change("route/httproute/shop/first/0"), change(RULE, b"unfinished"))
    ((*both,),) = coalescer.take(early=True)
    assert [name for _, _, name, _ in both] == [RULE, "route/httproute/shop/first/0"]
    assert coalescer.wait() is None and not len(coalescer)
