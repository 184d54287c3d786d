"""Random histories of a whole system in memory: whatever happens on the way, the end is that of a fresh start.

`world` says what is promised and checked, `operations` what can happen. To look longer:

    GATEWRIGHT_EXAMPLES=80 scripts/test tests/histories
"""

from __future__ import annotations

from hypothesis import example, given, settings

from tests.histories.operations import STEPS, Step, run
from tests.histories.texts import GONE, WRONG


@example([("remove", "routes.yaml"), ("edit", "gateway one", 2)])  # an open door for routes that are gone
@example([("edit", "route a/r", GONE), ("turns", 3), ("edit", "gateway one", 2)])
@example([("edit", "route a/q", 4), ("edit", "gateway one", 2)])  # a listener does not come before a rule that waits
@example([("edit", "route a/q", 4), ("edit", "route a/r", 1)])  # another route does
@example([("edit", "gateway one", 1), ("edit", "route a/r", 2), ("edit", "service a/s", GONE)])  # but for a listener
@example([("edit", "route a/r", 1), ("edit", "slice a/s-1", 2)])  # and for the rules of the same route
@example([("edit", "class", WRONG), ("add controller",)])  # what acts for an error is what another controller reads
@example([("edit", "route a/q", 2), ("rest", 3.0), ("edit", "slice a/s-1", 3)])  # the last endpoint goes to another
@example(  # workers that ended again and again serve by now
    [
        *[("kill worker", 0, 0), ("nonsense", "a.yaml"), ("edit", "gateway one", 1), ("hold", 0, "down")],
        *[("kill worker", 0, 0), ("rest", 0.2), ("kill worker", 0, 0)],
    ]
)
@settings(max_examples=12)
@given(STEPS)
def test_any_history_ends_where_a_fresh_start_ends(steps: list[Step]) -> None:
    run(steps)


def test_a_quiet_history_serves_what_was_written() -> None:
    world = run([])
    assert world.tables == 4
