"""A region with buckets, and processes that use it: for tests of what they share.

with shared() as region:
    child = spawn(region, "meter.take(1.0); print('taken', flush=True)")
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dataplane.link import buckets, locks
from dataplane.link.commits import Commits
from dataplane.link.shared import Region

COUNTS = "counts"
"""A section of 16 words of 8 bytes for what children tell."""

_PRELUDE = """
import sys, time
from dataplane.link.buckets import Buckets, Rate
from dataplane.link.shared import Region
region = Region.attach(int(sys.argv[1]))
counts = region.section("counts").cast("Q")
buckets = Buckets.of(region)
"""


@contextmanager
def shared() -> Iterator[Region]:
    """As the agent makes it."""
    _, region = Commits.create(1, **buckets.SECTIONS, **{COUNTS: 128})
    assert locks.initialise(region.section(buckets.LOCKS))
    try:
        yield region
    finally:
        region.close()


def spawn(region: Region, program: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a program in a process of its own; it has `buckets`, `counts`, `Rate` and its arguments from sys.argv[2]."""
    command = [sys.executable, "-c", _PRELUDE + program, str(region.fd), *map(str, arguments)]
    return subprocess.Popen(command, pass_fds=(region.fd,), stdout=subprocess.PIPE, text=True)
