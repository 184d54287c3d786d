"""What a stream has said until now: its bytes, as far as they are kept, read when somebody asks. Pure.

A sample is kept of every stream, so that one whose client leaves early can be estimated. It begins with the first
token: what some providers say before is larger than the answer. Where an expression asks for the text
(`llm.completion`), the stream is kept from its begin, as far as may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.llm import content, estimates, streams

if TYPE_CHECKING:
    from dataplane.llm.routes import Format

SAMPLE: Final = 4_096
"""Bytes that are kept of every stream."""
MAX_HEARD: Final = 262_144
"""Bytes that are kept of one whose text is asked for."""


class Heard:
    """One stream, in one format. `whole`: its text is asked for."""

    __slots__ = ("_form", "_kept", "_passed", "_whole", "kept")

    def __init__(self, form: Format, whole: bool = False) -> None:
        self._form = form
        self._whole = whole
        self._kept: list[bytes] = []
        self._passed = 0
        """Bytes that came since it began to be kept."""
        self.kept = 0
        """Bytes."""

    def add(self, data: bytes, has_token: bool) -> None:
        """`has_token`: the first one has come, with these bytes or before."""
        if not self._whole:
            if not has_token:
                return
            if not self._passed and len(data) > SAMPLE:
                data = streams.from_first_token(self._form, data)
        self._passed += len(data)
        left = (MAX_HEARD if self._whole else SAMPLE) - self.kept
        if left > 0:
            self._kept.append(data[:left])
            self.kept += min(left, len(data))

    @property
    def beyond_sample(self) -> int:
        """Bytes that are kept since somebody asks for them."""
        return max(0, self.kept - SAMPLE)

    def cut(self) -> None:
        """Keep no more than of any other stream."""
        self._whole = False
        self._kept = [b"".join(self._kept)[:SAMPLE]]
        self.kept = len(self._kept[0])

    def said(self) -> content.Spoken:
        return content.of_events(self._form, streams.parsed(b"".join(self._kept)))

    def tokens(self) -> int:
        """An estimate of all that came, by what is kept."""
        if not self.kept:
            return 0
        said = self.said()
        found = estimates.of_texts((*said.texts, *said.thoughts, *said.arguments))
        return round(found * self._passed / self.kept)

    def __repr__(self) -> str:
        return f"Heard({self._form}, {self.kept} of {self._passed} bytes)"  # its text may be secret
