"""What one answer of HTTP has still to carry of a dialogue (`dialogue.Listener`), and who waits for more of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol

MAX_BEHIND: Final = 64
"""Messages that were not taken yet, and for which their server waits."""
MAX_BEHIND_BYTES: Final = 1024 * 1024
"""Bytes of them."""


class Future(Protocol):
    """As `chain/filter.Future`."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...  # Any: nothing is said by it

    def __await__(self) -> Generator[Any, Any, Any]: ...


class Signal:
    """Something has changed: code that waits looks again."""

    def __init__(self, make_future: Callable[[], Future]) -> None:
        self._make_future = make_future
        self._waiting: list[Future] = []

    async def wait(self) -> None:
        """Until it is set next."""
        future = self._make_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def set(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


class Hearing:
    """`dialogue.Listener`: what is said, until it is taken."""

    def __init__(self, make_future: Callable[[], Future]) -> None:
        self._said: deque[tuple[bytes, bool]] = deque()
        self._bytes = 0
        self._is_over = False
        self._heard = Signal(make_future)

    def hear(self, text: bytes, last: bool) -> None:
        text = text.rstrip(b"\r\n")
        self._said.append((text, last))
        self._bytes += len(text)
        self._heard.set()

    def leave(self) -> None:
        self._is_over = True
        self._heard.set()

    @property
    def is_behind(self) -> bool:
        return len(self._said) >= MAX_BEHIND or self._bytes >= MAX_BEHIND_BYTES

    async def next(self) -> tuple[bytes, bool] | None:
        """The next message, and whether it is the answer. None: nothing more will come."""
        while not self._said:
            if self._is_over:
                return None
            await self._heard.wait()
        text, last = self._said.popleft()
        self._bytes -= len(text)
        return text, last

    def __repr__(self) -> str:
        return f"Hearing({len(self._said)} messages{', over' if self._is_over else ''})"
