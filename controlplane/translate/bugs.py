"""What becomes of a bug in a transform: counted, and said in the log. The rest of the batch took effect."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from controlplane.derive import TransformError
from controlplane.numbers import Numbers

log = logging.getLogger("controlplane")


@contextlib.contextmanager
def logged(numbers: Numbers) -> Iterator[None]:
    """Around the steps of a batch. A transform that raises is a bug: what took effect is served."""
    try:
        yield
    except TransformError as bug:
        numbers.failures += 1
        log.error("a bug in the controller: %s", bug, exc_info=bug.failures[0][2])
