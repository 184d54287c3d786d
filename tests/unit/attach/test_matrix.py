"""Which policy is in effect: levels, fields, inheritance and phases, with what is expected written by hand.

Every policy is named for its place: G on the Gateway, S on the ListenerSet, L on the listener, R on the route, U on the
rule, I in the rule itself; B on the backend, P on its port, BI and PI in the backend and its section. "!" is an
Override; of two at one place an Override comes first, then the first in the alphabet. "-" is nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gatewright.attach.merge import Attached
from gatewright.attach.places import Level, ListenerPosition, Phase, PlaceKey, backend_places, level_of, rule_places
from gatewright.attach.policies import ALL, WITH_INLINE, of
from gatewright.attach.policies import TRAFFIC as TRAFFIC_PART
from tests.unit.attach.positions import BACKEND, ELSEWHERE, INLINE, PLACES, TRAFFIC, Policy, merged, outcomes, ways_at

WORDS = {
    "G": "gateway",
    "S": "set",
    "L": "listener",
    "R": "route",
    "U": "rule",
    "I": "inline",
    "B": "backend",
    "P": "section",
    "Q": "section by number",
    "BI": "backend inline",
    "PI": "section inline",
}

# Fields of traffic policies by how they merge.

ONE = [row.name for row in of(TRAFFIC_PART) if not row.merge]
"""The most specific acts (spec 2: every other field of Traffic)."""
BOTH = [row.name for row in of(TRAFFIC_PART) if row.merge == WITH_INLINE]
"""The policy that wins, then the rule's own filter."""
EVERY = [row.name for row in of(TRAFFIC_PART) if row.merge == ALL]
"""Rules of all policies, as far as no Override keeps them out."""


def test_which_fields_are_otherwise() -> None:
    assert (BOTH, EVERY) == (["header_modifiers"], ["authorization"])
    assert len(ONE) > 10


MATRIX = """
policies        one          header_modifiers  authorization  conflicted    overridden

G               G            G                 G              -             -
S               S            S                 S              -             -
L               L            L                 L              -             -
R               R            R                 R              -             -
U               U            U                 U              -             -
I               I            I                 I              -             -
G!              G            G                 G              -             -
U!              U            U                 U              -             -

G,S             S            S                 G,S            -             -
G,L             L            L                 G,L            -             -
G,R             R            R                 G,R            -             -
G,U             U            U                 G,U            -             -
G,I             I            G,I               G,I            -             -
S,L             L            L                 S,L            -             -
S,R             R            R                 S,R            -             -
S,U             U            U                 S,U            -             -
S,I             I            S,I               S,I            -             -
L,R             R            R                 L,R            -             -
L,U             U            U                 L,U            -             -
L,I             I            L,I               L,I            -             -
R,U             U            U                 R,U            -             -
R,I             I            R,I               R,I            -             -
U,I             I            U,I               U,I            -             -
G,S,L,R,U       U            U                 G,S,L,R,U      -             -
G,S,L,R,U,I     I            U,I               G,S,L,R,U,I    -             -

G!,S            G            G                 G              -             S<G
G!,L            G            G                 G              -             L<G
G!,R            G            G                 G              -             R<G
G!,U            G            G                 G              -             U<G
G!,I            G            G,I               G              -             I<G
S!,L            S            S                 S              -             L<S
S!,R            S            S                 S              -             R<S
S!,U            S            S                 S              -             U<S
S!,I            S            S,I               S              -             I<S
L!,R            L            L                 L              -             R<L
L!,U            L            L                 L              -             U<L
L!,I            L            L,I               L              -             I<L
R!,U            R            R                 R              -             U<R
R!,I            R            R,I               R              -             I<R
U!,I            U            U,I               U              -             I<U

G,S!            S            S                 G,S            -             -
G,L!            L            L                 G,L            -             -
G,R!            R            R                 G,R            -             -
G,U!            U            U                 G,U            -             -
S,L!            L            L                 S,L            -             -
S,R!            R            R                 S,R            -             -
S,U!            U            U                 S,U            -             -
L,R!            R            R                 L,R            -             -
L,U!            U            U                 L,U            -             -
R,U!            U            U                 R,U            -             -

G!,S!           G            G                 G              -             S<G
G!,L!           G            G                 G              -             L<G
G!,R!           G            G                 G              -             R<G
G!,U!           G            G                 G              -             U<G
S!,L!           S            S                 S              -             L<S
S!,R!           S            S                 S              -             R<S
S!,U!           S            S                 S              -             U<S
L!,R!           L            L                 L              -             R<L
L!,U!           L            L                 L              -             U<L
R!,U!           R            R                 R              -             U<R

G,L!,U          L            L                 G,L            -             U<L
G,L!,R,U!,I     L            L,I               G,L            -             R<L,U<L,I<L
G!,S,L!,R,U     G            G                 G              -             S<G,L<G,R<G,U<G

G1,G2           G1           G1                G1,G2          G2<G1         -
R1,R2,R3        R1           R1                R1,R2,R3       R2<R1,R3<R1   -
U1,U2,I         I            U1,I              U1,U2,I        U2<U1         -
G,R1,R2         R1           R1                G,R1,R2        R2<R1         -
G1,G2,R         R            R                 G1,G2,R        G2<G1         -
G1,G2!          G2           G2                G2,G1          G1<G2         -
G1,G2!,R        G2           G2                G2,G1          G1<G2         R<G2
G1!,G2,R        G1           G1                G1,G2          G2<G1         R<G1
G!,R1,R2        G            G                 G              R2<R1         R1<G,R2<G
G!,R1,R2!       G            G                 G              R1<R2         R1<G,R2<G
G,R1,R2!        R2           R2                G,R2,R1        R1<R2         -
R1,R2!,U        R2           R2                R2,R1          R1<R2         U<R2
G1,G2!,I        G2           G2,I              G2,G1          G1<G2         I<G2
R1!,R2!,U       R1           R1                R1,R2          R2<R1         U<R1
"""
"""`conflicted` and `overridden` (loser<winner) are those of the fields `one`. header_modifiers has the same but for
I, which no policy takes out; authorization has nothing that conflicts, and the same that is overridden."""

BACKENDS = """
policies           one    conflicted    overridden

G                  G      -             -
B                  B      -             -
P                  P      -             -
BI                 BI     -             -
PI                 PI     -             -
G,S,L,R,U          U      -             -
U,B                B      -             -
G,U,B,P            P      -             -
B,P                P      -             -
B,BI               BI     -             -
P,BI               BI     -             -
P,PI               PI     -             -
BI,PI              PI     -             -
G,U,B,P,BI,PI      PI     -             -
B1,B2              B1     B2<B1         -
B1,B2,P            P      B2<B1         -
P1,P2,BI           BI     P2<P1         -
P,Q                P      Q<P           -
"""
"""Backend policies: any of their fields. A port of a Service has a name (P) and a number (Q)."""


class Row(NamedTuple):
    policies: str
    expected: dict[str, str]


def rows(text: str) -> list[Row]:
    (head, *lines) = [line.split() for line in text.splitlines() if line]
    return [Row(line[0], dict(zip(head[1:], line[1:], strict=True))) for line in lines]


def made(text: str, phase: Phase, field: str) -> list[Policy]:
    """The policy objects of a row: those that are no part of a route or backend."""
    every = [(name.removesuffix("!"), name.endswith("!")) for name in text.split(",")]
    return [
        Policy(name, (PLACES[word(name)],), override, phase, field)
        for name, override in every
        if word(name) not in INLINE
    ]


def own(text: str, phase: Phase, field: str) -> list[tuple[Phase, Attached[str]]]:
    names = [name for name in text.split(",") if word(name) in INLINE]
    return [(phase, Attached(field, INLINE[word(name)], "", False, name)) for name in names]


def word(name: str) -> str:
    return WORDS[name.rstrip("!").rstrip("123")]


def elsewhere(phase: Phase, field: str) -> list[Policy]:
    """Overrides that come first wherever they act: they must not act here."""
    return [Policy(f"!{place}", (place,), True, phase, field) for place in ELSEWHERE]


def pairs(found: list[tuple[Attached[str], Attached[str]]]) -> set[str]:
    return {f"{loser.value}<{winner.value}" for loser, winner in found}


def expected_pairs(text: str) -> set[str]:
    return set() if text == "-" else set(text.split(","))


def check(row: Row, phase: Phase, field: str, expected: str, reports: tuple[set[str], set[str]]) -> None:
    places = BACKEND if phase is Phase.BACKEND else TRAFFIC
    policies = [*made(row.policies, phase, field), *elsewhere(phase, field)]
    found = merged(policies, places, own(row.policies, phase, field))
    assert [each.value for each in found[phase].effective[field]] == expected.split(","), (field, row)
    conflicted, overridden = reports
    assert (pairs(found[phase].conflicted), pairs(found[phase].overridden)) == (conflicted, overridden), (field, row)
    assert not any(other.effective for each, other in found.items() if each is not phase)


def check_outcome(row: Row, phase: Phase, field: str, reports: tuple[set[str], set[str]]) -> None:
    """What became of each object says the same. Parts of a route or backend are no objects."""
    policies = [*made(row.policies, phase, field), *elsewhere(phase, field)]
    found = outcomes(policies, ways_at(BACKEND))
    conflicts = {f"{name}<{each.winner}" for name, out in found.items() for each in out.conflicts}
    overridden = {f"{name}<{each.winner}" for name, out in found.items() for each in out.overridden}
    names = {policy.name for policy in policies}
    wanted = [{each for each in report if each.split("<")[0] in names} for report in reports]
    assert [conflicts, overridden] == wanted, (field, row)


@pytest.mark.parametrize("row", rows(MATRIX), ids=lambda row: row.policies)
def test_traffic(row: Row) -> None:
    expected = row.expected
    phases = [Phase.POST_ROUTING]
    if not set(row.policies) & set("RUI"):
        phases.append(Phase.PRE_ROUTING)
    lost = expected_pairs(expected["conflicted"]), expected_pairs(expected["overridden"])
    policies_lost = lost[0], lost[1] - {each for each in lost[1] if each.startswith("I<")}
    locked_out: tuple[set[str], set[str]] = (set(), lost[1])
    for phase in phases:
        for field in ONE:
            check(row, phase, field, expected["one"], lost)
            check_outcome(row, phase, field, lost)
        for field in BOTH:
            check(row, phase, field, expected["header_modifiers"], policies_lost)
            check_outcome(row, phase, field, policies_lost)
        for field in EVERY:
            check(row, phase, field, expected["authorization"], locked_out)
            check_outcome(row, phase, field, locked_out)


@pytest.mark.parametrize("row", rows(BACKENDS), ids=lambda row: row.policies)
def test_backend(row: Row) -> None:
    lost = expected_pairs(row.expected["conflicted"]), expected_pairs(row.expected["overridden"])
    for field in [row.name for row in of("backend") if not row.merge]:
        check(row, Phase.BACKEND, field, row.expected["one"], lost)


def test_phases_do_not_meet() -> None:
    early = Policy("A", (PLACES["gateway"],), True, Phase.PRE_ROUTING, "jwt_authentication")
    late = Policy("B", (PLACES["route"],), False, Phase.POST_ROUTING, "jwt_authentication")
    backend = Policy("C", (PLACES["gateway"],), False, Phase.BACKEND, "jwt_authentication")
    found = merged([early, late, backend])
    assert {
        phase: [each.value for each in sets.effective.get("jwt_authentication", ())] for phase, sets in found.items()
    } == {
        Phase.FRONTEND: [],
        Phase.PRE_ROUTING: ["A"],
        Phase.POST_ROUTING: ["B"],
        Phase.BACKEND: ["C"],
    }
    assert not any(sets.conflicted or sets.overridden for sets in found.values())
    assert not any(
        each.conflicts or each.overridden for each in outcomes([early, late, backend], ways_at(BACKEND)).values()
    )


def test_an_override_locks_only_the_fields_that_it_sets() -> None:
    """A Gateway's `timeouts` does not switch off a route's tokens."""
    lock = Policy("G", (PLACES["gateway"],), True, field="timeouts")
    route = [Policy("R", (PLACES["route"],), field=field) for field in ("timeouts", "jwt_authentication")]
    effective = merged([lock, *route])[Phase.POST_ROUTING].effective
    assert {field: [each.value for each in found] for field, found in effective.items()} == {
        "timeouts": ["G"],
        "jwt_authentication": ["R"],
    }


def test_one_policy_with_two_names_of_a_place_is_no_rival_of_its_own() -> None:
    both = Policy("P", (PLACES["section"], PLACES["section by number"]), phase=Phase.BACKEND, field="tls")
    found = merged([both], BACKEND)[Phase.BACKEND]
    assert ([each.value for each in found.effective["tls"]], found.conflicted) == (["P"], [])


def test_equal_filters_of_a_rule_both_act() -> None:
    mirrors = [(Phase.POST_ROUTING, Attached("request_mirror", Level.INLINE, "", False, "to a")) for _ in range(2)]
    found = merged([], TRAFFIC, mirrors)[Phase.POST_ROUTING]
    assert [each.value for each in found.effective["request_mirror"]] == ["to a", "to a"]


# Places.


def test_places_of_a_listener_of_the_gateway() -> None:
    assert list(ListenerPosition(("infra", "edge"), "web").places()) == [
        (Level.GATEWAY, PlaceKey("Gateway", "infra", "edge")),
        (Level.LISTENER, PlaceKey("Gateway", "infra", "edge", "web")),
    ]


def test_places_of_a_listener_of_a_set() -> None:
    assert list(ListenerPosition(("infra", "edge"), "web", ("team", "extra")).places()) == [
        (Level.GATEWAY, PlaceKey("Gateway", "infra", "edge")),
        (Level.LISTENER_SET, PlaceKey("ListenerSet", "team", "extra")),
        (Level.LISTENER, PlaceKey("ListenerSet", "team", "extra", "web")),
    ]


def test_a_rule_without_a_name_has_no_place_of_its_own() -> None:
    assert list(rule_places("HTTPRoute", "shop", "cart", "")) == [(Level.ROUTE, PlaceKey("HTTPRoute", "shop", "cart"))]


def test_places_of_a_port() -> None:
    assert list(backend_places("Service", "shop", "cart", "http", "8080", "http", "")) == [
        (Level.BACKEND, PlaceKey("Service", "shop", "cart")),
        (Level.SECTION, PlaceKey("Service", "shop", "cart", "http")),
        (Level.SECTION, PlaceKey("Service", "shop", "cart", "8080")),
    ]


@pytest.mark.parametrize(("places"), [TRAFFIC, BACKEND, tuple(ListenerPosition(("infra", "edge"), "web").places())])
def test_a_place_has_the_level_of_its_positions(places: tuple[tuple[Level, PlaceKey], ...]) -> None:
    assert [level_of(place) for _, place in places] == [level for level, _ in places]
