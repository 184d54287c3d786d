"""What a server that judges texts is, for who asks it. Pure: it makes a request and reads an answer.

`asking` has the network, the deadline, and what happens when there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.guards.values import Phase, Text
    from dataplane.guards.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Question:
    """One request of a server."""

    target: bytes
    body: bytes = field(repr=False)


class Server(Protocol):
    @property
    def backend(self) -> str:
        """The key of its Backend."""

    @property
    def fails_open(self) -> bool:
        """What cannot be asked lets pass."""

    def question(self, phase: Phase, texts: Sequence[Text]) -> Question: ...

    def verdict(self, phase: Phase, texts: Sequence[Text], body: bytes) -> Verdict:
        """`body`: of an answer with a status of success. Raises `Unreadable`."""
        ...

    def forwards(self, name: bytes, value: bytes) -> bool:
        """Whether it gets this header line of the client's request. `name` in lower case."""
        ...
