"""Random policies through both planes, against the naive merge: what requests meet, and what statuses say.

Objects go into the control plane, its resources into the table of a proxy. There each policy leaves its name where a
request or its plan shows it. After every change all rules on all listeners are asked.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.table.store import Change
from tests.fakes.policy_run import policies_of
from tests.fakes.table_state import TableRun, exchange
from tests.fakes.web_objects import CLASS
from tests.harness import yamls
from tests.harness.seeds import times
from tests.unit.attach.naive import Document, Spot, Target, verdict
from tests.unit.translate.golden import World

EDGE = ("default", "edge")
NAMES = "abcdef"
SPOTS = [
    Spot(EDGE, listener, None, ("HTTPRoute", "default", route), rule)
    for listener, route, rule in [
        *((listener, "cart", rule) for listener in ("web", "admin") for rule in ("pay", "")),
        ("admin", "pages", "all"),
    ]
]
PORTS = {"web": 8080, "admin": 8081}
PATHS = {("cart", "pay"): "/cart/pay", ("cart", ""): "/cart", ("pages", "all"): "/pages", ("own", ""): "/own"}
OWN = [Spot(EDGE, listener, None, ("HTTPRoute", "default", "own"), "") for listener in PORTS]
"""The rule with timeouts of its own, in the order of its route's parents; no policy names it."""
TARGETS: list[Target] = [
    *(("Gateway", *EDGE, section) for section in ("", "web", "admin")),
    *(("HTTPRoute", "default", "cart", section) for section in ("", "pay")),
    *(("HTTPRoute", "default", "pages", section) for section in ("", "all")),
]
FIELDS = ("authorization", "csrf", "timeouts", "transformation")
EARLY = ("authorization", "transformation")

GROUND = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: gatewright
  listeners: [{name: web, port: 8080, protocol: HTTP}, {name: admin, port: 8081, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart}
spec:
  parentRefs: [{name: edge}]
  rules:
    - {name: pay, matches: [{path: {value: /cart/pay}}]}
    - {matches: [{path: {value: /cart}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: pages}
spec:
  parentRefs: [{name: edge, sectionName: admin}]
  rules: [{name: all, matches: [{path: {value: /pages}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: own}
spec:
  parentRefs: [{name: edge, sectionName: web}, {name: edge, sectionName: admin}]
  rules: [{timeouts: {request: 99s}, matches: [{path: {value: /own}}]}]
"""
)


def settings(name: str) -> dict[str, Any]:
    """What each field says, so that the policy is known by it."""
    header = f'"x-from" in request.headers && request.headers["x-from"] == "{name}"'
    return {
        "authorization": {"action": "Deny", "policy": {"matchExpressions": [header]}},
        "csrf": {"additionalOrigins": [f"https://{name}.page"]},
        "timeouts": {"request": f"{NAMES.index(name) + 1}s"},
        "transformation": {"request": {"add": [{"name": "x-met", "value": f'"{name}"'}]}},
    }


def text_of(document: Document) -> str:
    """A document of the naive merge as users write it."""
    refs = []
    for kind, _, name, section in document.targets:
        named = {"sectionName": section} if section else {}
        refs.append({"group": "gateway.networking.k8s.io", "kind": kind, "name": name, **named})
    traffic = {"phase": document.phase, **{field: settings(document.name)[field] for field in document.fields}}
    strategy = {"inheritance": "Override" if document.override else "Default"}
    spec = {"targetRefs": refs, "strategy": strategy, "traffic": traffic}
    envelope = {"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy", "metadata": {"name": document.name}}
    return yamls.dump({**envelope, "spec": spec})


def drawn(dice: random.Random) -> Document:
    early = dice.random() < 0.3
    targets = TARGETS[:3] if early else TARGETS
    fields = EARLY if early else FIELDS
    return Document(
        name=dice.choice(NAMES),
        targets=tuple(dice.sample(targets, dice.randint(1, min(3, len(targets))))),
        phase="PreRouting" if early else "PostRouting",
        override=dice.random() < 0.4,
        fields=tuple(dice.sample(fields, dice.randint(1, len(fields)))),
    )


class Planes:
    """A control plane and the table of one proxy of its Gateway."""

    def __init__(self) -> None:
        self.world = World()
        self.table = TableRun()
        self._taken = 0
        self.put(GROUND)

    def put(self, text: str) -> None:
        self.world.put(text)
        self._pass_on()

    def delete(self, name: str) -> None:
        self.world.apply([("GatewayPolicy", ("default", name), None)])
        self._pass_on()

    def _pass_on(self) -> None:
        batches, self._taken = self.world.batches[self._taken :], len(self.world.batches)
        for batch in batches:
            self.table.apply(*(Change(type_url, name, data) for _, type_url, name, data in batch))
        assert self.table.refused == {}

    def sent(self, spot: Spot, **headers: str) -> tuple[Exchange, Reply | None]:
        """A request of the spot through gateway phase and route phase."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        x = exchange(path=PATHS[spot.route[2], spot.rule], headers=lines.encode(), method="POST")
        plan = self.table.plan(x, f"bind/default/edge/{PORTS[spot.listener]}")
        assert plan is not None
        x.policies = policies_of(x, plan)
        for chain in (x.listener.chain, x.policies.chain):
            answer = None if chain.request is None else chain.request(x)
            if isinstance(answer, Reply):
                return x, answer
        return x, None

    def met(self, spot: Spot) -> dict[str, list[str]]:
        """The names of the policies that act at a spot, by field, both phases one after the other."""
        x, answer = self.sent(spot)
        assert answer is None, answer
        seconds = x.policies.timeouts.request
        allowed = [name for name in NAMES if self.sent(spot, origin=f"https://{name}.page")[1] is None]
        return {
            "authorization": [name for name in NAMES if self.sent(spot, x_from=name)[1] is not None],
            "csrf": [] if allowed == list(NAMES) else allowed,
            "timeouts": [] if seconds is None else [NAMES[round(seconds) - 1]],
            "transformation": [value.decode() for value in x.request.get_all(b"x-met")],
        }

    def locked_out(self) -> list[bool]:
        """Whether the rule with timeouts of its own runs with those of a policy, by parent."""
        return [self.sent(spot)[0].policies.timeouts.request != 99 for spot in OWN]

    def told_locked_out(self) -> list[bool]:
        """The same as the route's status has it."""
        entries = [self.world.conditions("HTTPRoute", "own", entry=entry) for entry in range(len(OWN))]
        return [any(line.startswith("Overridden=True ") for line in lines) for lines in entries]

    def troubles(self, name: str) -> set[str]:
        """What the status of a policy complains of."""
        lines = [line.partition("=")[0] for line in self.world.conditions("GatewayPolicy", name)]
        return set(lines) & {"Conflicted", "Overridden"}


def expected_troubles(documents: list[Document], name: str) -> set[str]:
    found = [verdict(documents, spot, phase, field) for spot in SPOTS for phase in PHASES for field in FIELDS]
    lost = {"Conflicted" for each in found for loser, _ in each.lost if loser == name}
    return lost | {"Overridden" for each in found for loser, _ in each.locked_out if loser == name}


def expected(documents: list[Document], spot: Spot) -> dict[str, list[str]]:
    found = {field: [verdict(documents, spot, phase, field).acting for phase in PHASES] for field in FIELDS}
    both = {field: [name for acting in each for name in acting] for field, each in found.items()}
    return {**both, "authorization": sorted(set(both["authorization"]))}


PHASES = ("PreRouting", "PostRouting")


@pytest.mark.parametrize("history", range(times(6)))
def test_requests_and_statuses_are_what_the_naive_merge_says(history: int, dice: random.Random) -> None:
    planes = Planes()
    known: dict[str, Document] = {}
    for _ in range(25):
        if known and dice.random() < 0.25:
            name = dice.choice(sorted(known))
            del known[name]
            planes.delete(name)
        else:
            document = drawn(dice)
            known[document.name] = document
            planes.put(text_of(document))
        for spot in SPOTS:
            assert planes.met(spot) == expected(list(known.values()), spot), (spot, known)
        assert planes.told_locked_out() == planes.locked_out(), known
        told = {name: planes.troubles(name) for name in known}
        assert told == {name: expected_troubles(list(known.values()), name) for name in known}, known
