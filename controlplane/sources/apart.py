"""Which files of a folder wait for pieces that are decoded apart, and the tasks that see to it.

Called by `directory`: one file after the other, so that there is one process at a time. What a file waits for stands in
the way of no other file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from controlplane.sources.aside import Decoder, Pieces


class Apart:
    """`ready` is called with each file whose pieces are known then: it is to be read again."""

    LINGER = 30.0
    """Seconds for which the process stays when nothing waits for it: the next piece comes sooner."""

    def __init__(self, pieces: Pieces, decoder: Decoder, ready: Callable[[str], None]) -> None:
        self._pieces, self._decoder, self._ready = pieces, decoder, ready
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._resting: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Apart {len(self._waiting)} files>"

    def __bool__(self) -> bool:
        """Whether a file waits."""
        return bool(self._waiting)

    def decode(self, file: str, pieces: Sequence[str]) -> None:
        """See to it. A file that waits already is read again when what it waits for is known."""
        if file not in self._waiting:
            self._waiting[file] = asyncio.get_running_loop().create_task(self._decode(file, pieces))

    async def close(self) -> None:
        """Leave undone what is not done."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        self._rest()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _decode(self, file: str, pieces: Sequence[str]) -> None:
        try:
            async with self._turn:
                self._stay()
                for piece in pieces:
                    self._pieces.learn(file, piece, await asyncio.to_thread(self._decoder.decode, piece))
                self._resting = asyncio.get_running_loop().call_later(self.LINGER, self._rest)
        finally:
            del self._waiting[file]
        self._ready(file)

    def _stay(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _rest(self) -> None:
        self._stay()
        self._decoder.rest()
