"""Random histories of policies: merge and outcome agree with a second, naive merge after every change.

The index of winners is kept as the control plane keeps it: a change touches the places of the policy that changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.attach.merge import Attached, Merged, merge, split, winner
from gatewright.attach.outcome import Claim, Outcome, Setting, outcome, winners
from gatewright.attach.places import Level, ListenerPosition, Phase, PlaceKey, rule_places
from tests.unit.attach.naive import ACCUMULATES, Document, Spot, Target, Verdict, acts, verdict

EDGE, OTHER, SET = ("infra", "edge"), ("infra", "other"), ("team", "extra")
CART, PAGES = ("HTTPRoute", "shop", "cart"), ("HTTPRoute", "shop", "pages")
LISTENERS = [ListenerPosition(EDGE, "web"), ListenerPosition(EDGE, "web", SET), ListenerPosition(OTHER, "web")]
RULES = [(CART, "pay"), (CART, ""), (PAGES, "all")]
SPOTS = [Spot(on.gateway, on.listener, on.listener_set, route, rule) for on in LISTENERS for route, rule in RULES]
"""Every route is on every listener."""

TARGETS: list[Target] = [
    ("Gateway", *EDGE, ""),
    ("Gateway", *EDGE, "web"),
    ("Gateway", *OTHER, ""),
    ("ListenerSet", *SET, ""),
    ("ListenerSet", *SET, "web"),
    (*CART, ""),
    (*CART, "pay"),
    (*PAGES, ""),
    (*PAGES, "all"),
    (*PAGES, "none"),
]
FIELDS = ["cors", "timeouts", ACCUMULATES]
PHASES = {"PreRouting": Phase.PRE_ROUTING, "PostRouting": Phase.POST_ROUTING}


@st.composite
def documents(draw: st.DrawFn) -> Document:
    phase = draw(st.sampled_from(["PostRouting", "PostRouting", "PreRouting"]))
    places = TARGETS if phase == "PostRouting" else TARGETS[:5]
    return Document(
        name=draw(st.sampled_from("abcdefgh")),
        targets=tuple(draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True))),
        phase=phase,
        override=draw(st.booleans()),
        fields=tuple(draw(st.lists(st.sampled_from(FIELDS), min_size=0, max_size=3, unique=True))),
    )


def claims_of(document: Document) -> Iterator[Claim[str]]:
    for field in document.fields:
        for target in document.targets:
            setting = Setting(PHASES[document.phase], field)
            yield Claim(document.name, PlaceKey(*target), setting, document.name, document.override)


class World:
    """Claims and winners by place."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.claims: dict[PlaceKey, list[Claim[str]]] = defaultdict(list)
        self.winners: dict[PlaceKey, dict[Setting, Claim[str]]] = {}

    def put(self, document: Document) -> None:
        """A document without fields is a deletion."""
        touched = {PlaceKey(*target) for target in document.targets}
        known = self.documents.pop(document.name, None)
        touched |= {PlaceKey(*target) for target in known.targets} if known else set()
        for place in touched:
            self.claims[place] = [claim for claim in self.claims[place] if claim.policy != document.name]
        for claim in claims_of(document):
            self.claims[claim.place].append(claim)
        for place in touched:
            self.winners[place] = winners(self.claims[place])
        if document.fields:
            self.documents[document.name] = document

    def merged(self, spot: Spot, phase: str) -> Merged[str]:
        places = [
            *ListenerPosition(spot.gateway, spot.listener, spot.listener_set).places(),
            *rule_places(*spot.route, spot.rule),
        ]
        found = [
            (each.setting.phase, Attached(each.setting.field, level, each.order, each.override, each.policy))
            for level, place in places
            for each in self.claims.get(place, ())
        ]
        return merge(split(found)[PHASES[phase]])

    def outcome(self, name: str) -> Outcome[str]:
        claims = claims_of(self.documents[name])
        return outcome(claims, lambda place: self.winners.get(place, {}), ways)


def ways(place: PlaceKey) -> Iterator[list[PlaceKey]]:
    """What is above a place, for each listener that it is on."""
    if place.section == "none":
        return
    if place.kind == "HTTPRoute":
        above = [PlaceKey(*place[:3])] if place.section else []
        for listener in LISTENERS:
            yield [*(each for _, each in listener.places()), *above]
    else:
        for listener in LISTENERS:
            every = [each for _, each in listener.places()]
            if place in every:
                yield every[: every.index(place)]


def said(merged: Merged[str], field: str) -> Verdict:
    def pairs(found: list[tuple[Attached[str], Attached[str]]]) -> set[tuple[str, str]]:
        return {(loser.value, winner.value) for loser, winner in found if loser.field == field}

    acting = [each.value for each in merged.effective.get(field, ())]
    return Verdict(acting, pairs(merged.conflicted), pairs(merged.overridden))


def check_outcomes(world: World) -> None:
    """What is told of each policy is what the naive merge finds of it over all spots."""
    known = list(world.documents.values())
    for document in known:
        told = world.outcome(document.name)
        for field in document.fields:
            found = [(spot, verdict(known, spot, document.phase, field)) for spot in SPOTS]
            overridden = {w for _, each in found for loser, w in each.locked_out if loser == document.name}
            assert {each.winner for each in told.overridden if each.setting.field == field} == overridden
            conflicts = {w for _, each in found for loser, w in each.lost if loser == document.name}
            seen = [each for each in told.conflicts if each.setting.field == field]
            assert {each.winner for each in seen if each.place.section != "none"} == conflicts
            here = {t for t in document.targets if any(spot.specificity(t) != -1 for spot in SPOTS)}
            acting = {PlaceKey(*t) for t in here if any(acts(known, spot, document, t, field) for spot in SPOTS)}
            assert {
                place for place, setting in told.acts if setting.field == field and place.section != "none"
            } == acting


@settings(max_examples=100)
@given(st.lists(documents(), min_size=1, max_size=14))
def test_merge_agrees_with_the_naive_one(history: list[Document]) -> None:
    world = World()
    for document in history:
        world.put(document)
    known = list(world.documents.values())
    for spot in SPOTS:
        for phase in PHASES:
            merged = world.merged(spot, phase)
            assert {field: said(merged, field) for field in FIELDS} == {
                field: verdict(known, spot, phase, field) for field in FIELDS
            }, spot


@settings(max_examples=60)
@given(st.lists(documents(), min_size=1, max_size=10))
def test_outcomes_agree_after_every_change(history: list[Document]) -> None:
    world = World()
    for document in history:
        world.put(document)
        check_outcomes(world)


def at(level: Level, value: str, *, override: bool = False) -> Attached[str]:
    return Attached("backend_mcp", level, value, override, value)


@pytest.mark.parametrize(
    ("found", "wins"),
    [
        ([at(Level.GATEWAY, "a")], "a"),
        ([at(Level.GATEWAY, "a"), at(Level.ROUTE, "b")], "b"),  # the most specific
        ([at(Level.GATEWAY, "a"), at(Level.ROUTE, "b"), at(Level.ROUTE, "c")], "b"),  # of equal ones the first
        ([at(Level.GATEWAY, "a"), at(Level.GATEWAY, "b"), at(Level.ROUTE, "c")], "c"),
        ([at(Level.GATEWAY, "a", override=True), at(Level.ROUTE, "b")], "a"),
        ([at(Level.GATEWAY, "a"), at(Level.ROUTE, "b", override=True), at(Level.ROUTE, "c", override=True)], "b"),
    ],
)
def test_which_of_several_would_be_alone(found: list[Attached[str]], wins: str) -> None:
    assert winner(found).value == wins


def test_what_runs_in_another_phase_is_merged_apart() -> None:
    early, late = at(Level.GATEWAY, "early"), at(Level.ROUTE, "late")
    last, first = Phase.POST_ROUTING, Phase.PRE_ROUTING
    found = split([(last, late), (first, early), (last, early)])
    assert {phase: each for phase, each in found.items() if each} == {first: [early], last: [late, early]}
    assert [*split([])] == [*Phase] and {*map(len, split([]).values())} == {0}
