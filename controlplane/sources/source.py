"""The contract between a source of objects and who takes them: `Source`, `Sink` and their laws.

A folder is a source (`directory`), an API server is another.

What a source promises:

1. *Facts are whole.* `take` gives the newest fact of each object named; the last one of a key counts, whatever came
   before, also within one call. Facts of different objects come in any order.
2. *Nothing vanishes silently.* A source that lists anew (an API server after a lost watch, a folder after a scan) gives
   every object that it finds and `gone` for each that it gave before and finds no longer. Giving a fact again is
   allowed: an equal one changes nothing.
3. *`idle` is a moment, not a state.* It is called when everything that the source has seen has been given and nothing
   is buffered; the first time when the initial world is complete, however late that is, also when it is empty. It is
   called again after each later `take`, at the latest when the source comes to rest. Until the first `idle` no proxy
   serves.
4. *An object that cannot be read is `Invalid`*, with every reason, never absent. A source that knows the last good
   version gives it along. It never gives an invalid object as if it were gone.
5. *Who wrote decides how strict reading is.* In what people write by hand (a folder, `lint`, the file of a proxy
   alone) an unknown field is a typing error, so the object is `Invalid`. What comes from an API server has passed a
   schema: what is unknown to us there is of a newer version of that schema, and the object is read as far as that is
   safe (`gatewright.api.decode.newer`).
6. *Status.* A source whose objects have a status gives it in `previous`, with the version of the object, and gives
   the fact anew when the status alone changed. A folder ignores what stands under `status`.
7. *One call at a time.* A source awaits `take` and `idle` before the next call; what takes long in there slows it
   down, and nothing else. `problems` may be asked at any time.
8. *Trouble outside is no end.* A source that lost its world keeps what it gave, says so in `problems`, and goes on
   trying. `run` ends by cancellation alone; any other end is a bug.

What a sink promises: it takes facts of kinds that it does not know, and passes them over; it raises nothing; it may
wait in `take` and `idle` as long as it likes. A source that never comes to rest is not waited for once the first `idle`
is over: facts then count after a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from controlplane.facts import Fact
from gatewright.api.text.problem import Problem


class Sink(Protocol):
    """Who takes what a source says."""

    async def take(self, facts: Sequence[Fact]) -> None:
        """These objects are now so."""

    async def idle(self) -> None:
        """Everything that the source has seen has been given: a good moment to publish."""


class Source(Protocol):
    """Where objects come from."""

    async def run(self, sink: Sink) -> None:
        """Reads and watches until cancelled."""

    def problems(self) -> Sequence[Problem]:
        """Everything wrong with what the source read, as it was when it was last idle."""
