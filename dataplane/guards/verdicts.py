"""What a server says of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Verdict:
    """They pass (`texts`: as they are to be from now on; None: as they are), or are rejected."""

    texts: Sequence[str] | None = None
    is_rejected: bool = False
    message: str = ""
    status: int = 0
    """Of the server's own answer to a rejected request; 0: it has none."""


PASSED: Final = Verdict()
REJECTED: Final = Verdict(is_rejected=True)


class Unreadable(Exception):
    """The server's answer cannot be used. The text is for the log, and holds nothing of what was judged."""
