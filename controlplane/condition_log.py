"""Lines of the log about conditions that begin to report trouble: the object, what is wrong, why, and what mends it.

The messages of conditions say what to do; a line is one of them with the name of its object in front.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from controlplane.derive import Change
from controlplane.translate.conditions import StatusBody
from controlplane.translate.status import troubles
from controlplane.translate.status.statuses import StatusKey

log = logging.getLogger("controlplane")

MOST_LINES: Final = 20
"""Of one batch of objects. The rest is counted in one more line: `gatewright status` has all."""
PASSING: Final = frozenset(("Pending",))
"""Reasons that end by themselves, when proxies have answered."""


def write(changes: Sequence[Change[StatusKey, StatusBody]]) -> None:
    """Log the troubles that began with these changes of statuses."""
    lines = lines_of(changes)
    for line in islice(lines, MOST_LINES):
        log.warning("%s", line)
    if more := sum(1 for _ in lines):
        log.warning("and %d more conditions report trouble; `gatewright status` shows all", more)


def lines_of(changes: Sequence[Change[StatusKey, StatusBody]]) -> Iterator[str]:
    """One for each condition that began to report trouble, or does for another reason now; none for what passes by
    itself."""
    for (kind, namespace, name), old, new in changes:
        for entry, type_, status, reason, message in troubles.turned(old, new):
            if reason not in PASSING:
                place = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
                yield f"{place}{entry and f' ({entry})'}: {type_} is {status}, {reason}: {message}"
