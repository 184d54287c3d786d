"""Which state a proxy has committed, read from outside: from the memory that its processes share.

Used by `propagation`, to ask a proxy when it may have something new to say, instead of all the time: a look costs a few
microseconds of the one who looks and nothing of the proxy. The proxy's own code reads the numbers; it does not notice.
"""

from __future__ import annotations

import os
from pathlib import Path

from dataplane.link.commits import Commits
from dataplane.link.shared import Region

_NAME = "memfd:gatewright-common"


class Committed:
    """The numbers of the proxy whose agent has this process id."""

    def __init__(self, agent: int) -> None:
        fd = _descriptor(agent)
        self._region = Region.attach(fd)
        self._commits = Commits(self._region)

    def read(self) -> int:
        """The newest state that the proxy serves, or will at the next request."""
        return self._commits.read()

    def close(self) -> None:
        self._region.close()


def _descriptor(agent: int) -> int:
    """The agent's shared memory, opened anew. Raises LookupError where there is none."""
    for entry in Path(f"/proc/{agent}/fd").iterdir():
        if _NAME in os.readlink(entry):
            return os.open(entry, os.O_RDWR)
    raise LookupError(f"process {agent} shares no memory named {_NAME}")
