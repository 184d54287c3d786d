"""The histories can fail: each fault that is planted here is noticed, by a history that passes without it.

A row names the fault, what it replaces, by what, the history that meets it, and how the violation reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import pytest

from controlplane.answers.fleet import Fleet
from controlplane.snapshot import Coalescer
from controlplane.sources import file_state
from controlplane.sources.directory import Directory
from controlplane.xds.protocol.claim import CLAIMED_TYPES, Claim
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.subscription import Subscription
from dataplane.agent.resources import Resources
from dataplane.agent.xds_stream import XdsStream
from dataplane.table.current import Current
from gatewright.api.schema.metadata import ObjectKey
from tests.histories.operations import Step, run
from tests.histories.texts import GONE, WRONG
from tests.histories.wire import DOWN
from tests.histories.world import Violation

difference, response, good, add = Subscription.difference, Library.response, Resources.good, Coalescer.add


def without_removals(subscription: Subscription, target: Any) -> Any:
    found = difference(subscription, target)
    return found if subscription.common else type(found)(found.changed, ())


def every_response_ends_a_state(library: Library, part: Any, index: int, _version: str) -> bytes:
    return response(library, part, index, "half")


def believe(claim: Claim, subscriptions: Any, newest: Any, _recall: Any) -> Any:
    version, claim.version = claim.version, ""
    for type_url in CLAIMED_TYPES if version else ():
        subscriptions[type_url].holds(newest.resources(type_url), newest.sequence)
    return newest


def all_but_one(resources: Resources) -> Any:
    return (record for record in good(resources) if record.name != "route/httproute/a/q/0")


def all_is_good(resources: Resources, _refused: Any) -> None:
    resources._before = {}


def at_once(current: Current, table: Any) -> None:
    current.table = table


def nothing(*_: Any, **__: Any) -> None:
    """What should have happened does not."""


def none(*_: Any) -> tuple[tuple[()], frozenset[ObjectKey]]:
    """No object is kept, and so no part of one."""
    return (), frozenset()


def never(*_: Any) -> bool:
    return False


def only_what_is_there(coalescer: Coalescer, changes: Any, *more: Any) -> None:
    add(coalescer, [change for change in changes if change[-1] is not None], *more)


class Fault(NamedTuple):
    name: str
    owner: Any
    attribute: str
    new: Callable[..., Any]
    history: list[Step]
    reads: str


MISSED: list[Step] = [("hold", 0, DOWN), ("edit", "route a/q", GONE), ("rest", 0.5), ("cut", 0), ("release", 0, DOWN)]
REPLACED: list[Step] = [*MISSED[:3], ("replace controller", True), ("release", 0, DOWN)]
KILLED: list[Step] = [("kill worker", 0, 0), ("rest", 0.5)]
OPENED: list[Step] = [("remove", "routes.yaml"), ("edit", "gateway one", 2)]
REFUSED: list[Step] = [("edit", "route a/r", 3), ("rest", 0.5)]
FAULTS = [
    Fault(
        "a removal is dropped on reconnect", Subscription, "difference", without_removals, REPLACED, "never published"
    ),
    Fault("a stale claim is believed", Claim, "compare", believe, MISSED, "does not hold the newest state"),
    Fault("a state is cut", Library, "response", every_response_ends_a_state, [], "never published"),
    Fault("a refilled worker lacks one resource", Resources, "good", all_but_one, KILLED, "otherwise"),
    Fault("the last good version is forgotten", Resources, "judge", all_is_good, [*REFUSED, *KILLED], "otherwise"),
    Fault("a worker swaps before the commit", Current, "offer", at_once, [("edit", "route a/r", 1)], "otherwise"),
    Fault("a refusal is not noted", Fleet, "refuse", nothing, REFUSED, "conditions"),
    Fault("answers are lost", XdsStream, "answer", lambda *_: [], [("edit", "route a/r", 1)], "newest state"),
    Fault("an error takes objects away", file_state, "_kept", none, [("edit", "route a/r", WRONG)], "no state of"),
    Fault("a removal is not published", Coalescer, "add", only_what_is_there, MISSED, "newest state"),
    Fault("what follows a loss overtakes it", Directory, "_must_hold", never, OPENED, "no state of"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_notices(fault: Fault) -> None:
    run(fault.history)
    with mock.patch.object(fault.owner, fault.attribute, fault.new), pytest.raises(Violation, match=fault.reads):
        run(fault.history)
