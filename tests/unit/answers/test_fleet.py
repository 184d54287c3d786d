"""What the fleet says of its proxies as they come, answer, refuse and go."""

from __future__ import annotations

from collections.abc import ItemsView

import pytest

from controlplane.answers.fleet import Fleet
from controlplane.answers.nacks import Refusal, Refusals
from controlplane.answers.proxies import NOTHING, Proxy, Refuser
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.derive import Change

WEB = "shop/web"


class Now:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def now() -> Now:
    return Now()


class Watching:
    """Notes what it hears: the sequence of what was acknowledged for the first time, Gateways whose view changed."""

    def __init__(self) -> None:
        self.acknowledged_first: list[int] = []
        self.heard: list[str] = []

    def acknowledged(self, proxy: Proxy) -> None:
        self.acknowledged_first.append(proxy.acknowledged)

    def answered(self, gateway: str) -> None:
        self.heard.append(gateway)

    def completed(self) -> None:
        self.heard.append("completed")


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def fleet(now: Now, watching: Watching) -> Fleet:
    return Fleet(now, watcher=watching)


def join(fleet: Fleet, instance: str, gateway: str = WEB) -> Proxy:
    return fleet.connect(f"{gateway}/{instance}", gateway, "unix:")


def test_empty_gateway(fleet: Fleet) -> None:
    view = fleet.view(WEB)
    assert (view.connected, view.acknowledged_by(0), dict(view.refusals)) == (0, 0, {})


def test_connected_is_not_acknowledged(fleet: Fleet) -> None:
    join(fleet, "one")
    join(fleet, "two", "shop/other")
    view = fleet.view(WEB)
    assert (view.connected, view.acknowledged_by(0), view.answered_by(0)) == (1, 0, 0)


def test_acknowledged_sequences(fleet: Fleet) -> None:
    one, two = join(fleet, "one"), join(fleet, "two")
    fleet.acknowledge(one, 3, "v3")
    fleet.acknowledge(two, 2, "v2")
    view = fleet.view(WEB)
    assert [view.acknowledged_by(sequence) for sequence in (1, 2, 3, 4)] == [2, 2, 1, 0]


def test_only_a_newer_state_is_news(fleet: Fleet, watching: Watching) -> None:
    """An answer may come again: how long a state took is measured once."""
    one = join(fleet, "one")
    for sequence in (3, 3, 2, 4, 4):
        fleet.acknowledge(one, sequence, f"v{sequence}")
    assert watching.acknowledged_first == [3, 4]


def test_refusal_is_kept_by_key_and_ends_with_a_later_answer(fleet: Fleet) -> None:
    one, two = join(fleet, "one"), join(fleet, "two")
    fleet.acknowledge(one, 1, "v1")
    fleet.refuse(one, 2, "v2", Refusals([Refusal("a", "bad"), Refusal("b", "bad")]), complete=True)
    fleet.refuse(two, 2, "v2", Refusals([Refusal("a", "worse")]), complete=True)
    view = fleet.view(WEB)
    assert view.refusals == {
        "a": (Refuser("shop/web/one", "bad", 2, "v2"), Refuser("shop/web/two", "worse", 2, "v2")),
        "b": (Refuser("shop/web/one", "bad", 2, "v2"),),
    }
    assert (view.acknowledged_by(1), view.acknowledged_by(2), view.answered_by(2)) == (1, 0, 2)
    fleet.refuse(one, 3, "v3", Refusals([Refusal("b", "bad")]), complete=True)
    fleet.acknowledge(two, 3, "v3")
    assert set(fleet.view(WEB).refusals) == {"b"}
    fleet.acknowledge(one, 4, "v4")
    assert fleet.view(WEB).refusals == {}


def test_refusal_of_a_part_adds_to_what_is_refused(fleet: Fleet) -> None:
    one = join(fleet, "one")
    fleet.refuse(one, 1, "v1", Refusals([Refusal("a", "bad")]), complete=True)
    fleet.refuse(one, 2, "v2", Refusals([Refusal("b", "bad")]), complete=False)
    view = fleet.view(WEB)
    assert set(view.refusals) == {"a", "b"}
    assert (view.answered_by(1), view.answered_by(2)) == (1, 0)


def test_leaving_takes_refusals_away(fleet: Fleet) -> None:
    one, two = join(fleet, "one"), join(fleet, "one")  # the same proxy, reconnected before its old stream was dropped
    fleet.refuse(one, 1, "v1", Refusals([Refusal("a", "bad")]), complete=True)
    fleet.disconnect(one)
    assert (fleet.view(WEB).connected, fleet.view(WEB).refusals) == (1, {})
    fleet.disconnect(two)
    assert fleet.view(WEB).connected == 0


def test_its_watcher_hears_of_every_change_of_a_view(fleet: Fleet, watching: Watching) -> None:
    one = join(fleet, "one")
    other = join(fleet, "two", "shop/other")
    fleet.acknowledge(one, 1, "v1")
    fleet.refuse(one, 2, "v2", Refusals([Refusal("a", "bad")]), complete=True)
    fleet.disconnect(one)
    fleet.disconnect(other)
    assert watching.heard == [WEB, "shop/other", WEB, WEB, WEB, "shop/other"]


def test_answers_are_counted(fleet: Fleet) -> None:
    one = join(fleet, "one")
    assert (fleet.acks, fleet.nacks) == (0, 0)
    fleet.acknowledge(one, 1, "v1")
    fleet.acknowledge(one, 2, "v2")
    fleet.refuse(one, 3, "v3", Refusals([Refusal("a", "bad")]), complete=True)
    assert (fleet.acks, fleet.nacks) == (2, 1)


def test_which_gateways_have_proxies_here(fleet: Fleet) -> None:
    one = join(fleet, "one")
    assert (fleet.serves(WEB), fleet.serves("shop/other")) == (True, False)
    fleet.disconnect(one)
    assert fleet.serves(WEB) is False


def test_what_is_given_out_of_a_proxy(fleet: Fleet) -> None:
    """The version that it has applied, with what it refuses; nothing while it has answered nothing or a part."""
    fleet.origin = "here"
    key = AnswerKey("here", WEB, "shop/web/one")
    refused = Refusals([Refusal("a", "bad")])
    one = join(fleet, "one")
    assert fleet.answers.present() == {key: Answer("")}
    fleet.acknowledge(one, 1, "v1")
    assert fleet.answers.present() == {key: Answer("v1")}
    fleet.refuse(one, 2, "v2", refused, complete=False)
    assert fleet.answers.present() == {key: Answer("v1", refused)}
    fleet.refuse(one, 2, "v2", refused, complete=True)
    assert fleet.answers.present() == {key: Answer("v2", refused)}
    again = join(fleet, "one")
    assert fleet.answers.present() == {key: Answer("")}, "the newest stream counts"
    fleet.disconnect(again)
    assert fleet.answers.present() == {key: Answer("v2", refused)}
    fleet.disconnect(one)
    assert fleet.answers.present() == {}


def elsewhere(name: str, answer: Answer | None, gateway: str = WEB) -> Change[AnswerKey, Answer]:
    return Change(AnswerKey("there", gateway, f"{gateway}/{name}"), None, answer)


def test_proxies_of_another_controller_count_as_they_answered() -> None:
    fleet = Fleet(lambda: 0.0, sequence_of=lambda _gateway, version: int(version[1:]))
    fleet.hear(
        "there",
        [
            elsewhere("a", Answer("v3")),
            elsewhere("b", Answer("v3", Refusals([Refusal("x", "bad")]))),
            elsewhere("c", Answer("")),
        ],
    )
    view = fleet.view(WEB)
    assert (view.connected, view.answered_by(3), view.acknowledged_by(3)) == (3, 2, 1)
    assert (view.answered, view.acknowledged) == ((3, 3, NOTHING), (3, NOTHING, NOTHING))
    assert view.refusals == {"x": (Refuser("shop/web/b", "bad", NOTHING, "v3"),)}
    assert not fleet.serves(WEB) and fleet.proxies(lambda _: 0) == ()
    listed = [(origin, proxy.node_id, proxy.answered_version, [*proxy.refusals]) for origin, proxy in fleet.elsewhere()]
    assert listed == [
        ("there", "shop/web/a", "v3", []),
        ("there", "shop/web/b", "v3", ["x"]),
        ("there", "shop/web/c", "", []),
    ]
    fleet.connect("shop/web/a", WEB, "")
    assert fleet.view(WEB).answered_by(3) == 1, "who is connected here as well is known better"
    assert [proxy.node_id for _, proxy in fleet.elsewhere()] == ["shop/web/b", "shop/web/c"]
    fleet.forget("there")
    assert fleet.elsewhere() == ()


def test_states_that_are_not_known_here_are_none(fleet: Fleet) -> None:
    fleet.hear("there", [elsewhere("a", Answer("v3"))])
    assert fleet.view(WEB).answered == (NOTHING,)


def test_its_watcher_hears_when_all_are_known_and_which_gateways_are_concerned(
    fleet: Fleet, watching: Watching
) -> None:
    heard = watching.heard
    fleet.expect("there")
    fleet.expect("there")
    fleet.expect("nowhere")
    fleet.hear("there", [elsewhere("a", Answer("v1"), "shop/b"), elsewhere("a", Answer("v1"))])
    assert (heard, fleet.view(WEB).complete) == (["completed", "shop/b", WEB], False)
    fleet.forget("nowhere")
    assert (heard[3:], fleet.view(WEB).complete) == (["completed"], True)
    fleet.forget("there")
    assert heard[4:] == ["shop/b", WEB]
    fleet.forget("there")
    assert len(heard) == 6


def test_list_for_people(fleet: Fleet, now: Now) -> None:
    two, one = join(fleet, "two"), join(fleet, "one")
    now.time = 1010.0
    fleet.acknowledge(one, 3, "v3")
    now.time = 1020.0
    fleet.refuse(one, 5, "v5", Refusals([Refusal("a", "bad")]), complete=True)
    first, second = fleet.proxies(lambda gateway: {WEB: 7}[gateway])
    assert (first.node_id, first.gateway, first.address, first.connected_since) == ("shop/web/one", WEB, "unix:", 1000)
    assert (first.acknowledged_version, first.acknowledged_at, first.lag) == ("v3", 1010.0, 4)
    assert (first.refusals, first.refused_version, first.refused_at) == ((Refusal("a", "bad"),), "v5", 1020.0)
    assert (second.node_id, second.acknowledged_version, second.lag) == (two.node_id, "", 7)
    assert (second.refusals, second.refused_version, second.refused_at) == ((), "", None)


class Counted(Refusals):
    """Knows how often somebody goes through it."""

    __slots__ = ("looks",)

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(refusals)
        self.looks = 0

    def items(self) -> ItemsView[str, Refusal]:  # type: ignore[override]
        self.looks += 1
        return super().items()


def test_a_view_names_sixteen_that_refuse_a_resource_and_counts_all(fleet: Fleet) -> None:
    names = [f"{number:02}" for number in range(40)]
    answers = [Counted(Refusal("a", "bad"), *[Refusal("b", "worse")][: number == 17]) for number in range(40)]
    for name, answer in zip(names, answers, strict=True):
        fleet.refuse(join(fleet, name), 1, "v1", answer, complete=True)
    view = fleet.view(WEB)
    assert dict(view.refused_by) == {"a": 40, "b": 1}
    assert [refuser.node_id for refuser in view.refusals["a"]] == [f"shop/web/{name}" for name in names[:16]]
    assert [refuser.node_id for refuser in view.refusals["b"]] == ["shop/web/17"]
    assert [answer.looks for answer in answers] == [1] * 18 + [0] * 22, "and looks no further than it has to"


def test_proxies_that_share_an_answer_are_counted_each(fleet: Fleet) -> None:
    shared = Refusals([Refusal("a", "bad"), Refusal("b", "bad")])
    for name in ("one", "two"):
        fleet.refuse(join(fleet, name), 1, "v1", shared, complete=True)
    fleet.refuse(join(fleet, "three"), 1, "v1", Refusals([Refusal("b", "bad")]), complete=True)
    assert dict(fleet.view(WEB).refused_by) == {"a": 2, "b": 3}


def test_who_has_the_newest_state_is_not_behind(fleet: Fleet) -> None:
    fleet.acknowledge(join(fleet, "one"), 3, "v3")
    for newest, lag in ((2, 0), (3, 0), (4, 1)):
        (row,) = fleet.proxies({WEB: newest}.__getitem__)
        assert row.lag == lag


def test_whoever_is_gone_has_answered_nothing(fleet: Fleet) -> None:
    one, two, three = (join(fleet, name) for name in ("one", "two", "three"))
    assert (fleet.answered(WEB, NOTHING), fleet.have_all_answered(WEB, 3)) == (3, False)
    for proxy in (one, two):
        fleet.acknowledge(proxy, 3, "v3")
    assert (fleet.answered(WEB, 3), fleet.have_all_answered(WEB, 3)) == (2, False)
    fleet.disconnect(three)
    assert fleet.have_all_answered(WEB, 3)
    fleet.disconnect(two)
    assert (fleet.answered(WEB, 3), fleet.have_all_answered(WEB, 3)) == (1, True)
    fleet.disconnect(one)
    assert (fleet.answered(WEB, 3), fleet.have_all_answered(WEB, 3)) == (0, True)


def test_one_that_comes_back_with_a_new_credential_counts_as_it_was(fleet: Fleet) -> None:
    one = join(fleet, "one")
    fleet.acknowledge(one, 3, "v3")
    one.is_expected_back = True
    assert fleet.view(WEB).answered_by(3) == 1
    again = join(fleet, "one")
    view = fleet.view(WEB)
    assert (view.connected, view.acknowledged_by(3), view.answered_by(3)) == (1, 1, 1)
    assert fleet.have_all_answered(WEB, 3)
    fleet.disconnect(one)  # when its time is over
    assert fleet.view(WEB).connected == 1
    fleet.disconnect(again)
    assert fleet.view(WEB).connected == 0
    assert fleet.answered(WEB, 3) == 0


def test_one_that_was_not_expected_back_begins_anew(fleet: Fleet) -> None:
    one = join(fleet, "one")
    fleet.acknowledge(one, 3, "v3")
    again = join(fleet, "one")
    assert fleet.view(WEB).answered_by(3) == 1
    assert again.answered == NOTHING
