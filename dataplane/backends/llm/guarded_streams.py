"""A stream on its way through guards: texts of its events go on when they are judged.

Each event is written anew, since what was judged is what the client is to read: of a name that stands in it twice the
one that was judged, of comments nothing, and no line that is of no field. Of an event whose text waits the rest goes
on, so tools begin when they began; what was held comes in an event of its own before the one that ends its text.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.guards.plan import Rejected
from dataplane.http.sse import BOM
from dataplane.llm import stream_texts, usage
from dataplane.llm.routes import Format
from dataplane.llm.streams import DATA, MAX_EVENT, last_end, split

if TYPE_CHECKING:
    from dataplane.guards.judging import Judge, Track
    from dataplane.guards.plan import Guard
    from dataplane.llm.places import Slot
    from dataplane.llm.stream_texts import Event, Key, Piece

MAX_TRACKS: Final = 1024
"""Texts of one answer that may be open at a time, or be repeated by later events."""
_REPEATING: Final = (Format.RESPONSES, Format.REALTIME)
"""Formats whose later events have all of a text once more."""
MAX_REPEATED: Final = 4_194_304
"""Bytes of texts that later events may repeat."""


class GuardedStream:
    """Raises `Rejected` where a text is rejected, or where what comes cannot be judged: the client gets nothing more of
    the answer."""

    def __init__(self, form: Format, judge: Judge, first: Guard) -> None:
        """`first`: of the guards, which is named where an answer cannot be read."""
        self._form = form
        self._judge = judge
        self._first = first
        self._reader = stream_texts.READERS[form]
        self._held = b""
        """The beginning of an event."""
        self._is_first = True
        """No byte but those of a byte order mark has come."""
        self._tracks: dict[Key, _Open] = {}
        self._repeated: dict[bytes, str] = {}
        """What texts that have ended say now, by a digest of what came."""
        self._repeated_size = 0
        self._added = 0
        """Events more than came, where the format counts them."""
        self.next_number = 0
        """Of the next event, where the format counts them."""

    async def feed(self, data: bytes) -> bytes:
        whole = self._held + data if self._held else data
        if self._is_first:
            whole = whole.removeprefix(BOM)  # clients leave it out, and read what comes behind it
            self._is_first = BOM.startswith(whole)
        end = last_end(whole)
        self._held = whole[end:]
        if len(self._held) > MAX_EVENT:
            raise self._unreadable("an event of the answer is too large to be judged")
        given = [await self._event(event) for event in split(whole[:end])] if end else []
        return b"".join(given)

    async def end(self) -> bytes:
        """The stream has ended: what is held of its texts. An event that is not complete is dropped."""
        return await self._ended([*self._tracks])

    def _unreadable(self, why: str) -> Rejected:
        return Rejected(self._first, why, is_unavailable=True)

    async def _event(self, raw: bytes) -> bytes:
        found = DATA.findall(raw)
        if not found:
            beside = _lines(raw)
            return beside and beside + b"\n"
        data = found[0] if len(found) == 1 else b"\n".join(found)
        if data == usage.DONE:
            return await self.end() + _lines(raw) + b"data: %b\n\n" % data
        event = usage.parsed(data)
        if type(event) is not dict:
            raise self._unreadable("an event of the answer is not a JSON object")
        return await self.judged(event, raw)

    async def judged(self, event: Event, raw: bytes) -> bytes:
        """What goes on of an event now, and of those before it. `raw`: as it came."""
        pieces = [*self._reader.pieces(event)]
        slots = stream_texts.others(event, pieces)
        for piece in pieces:
            self._open(piece, event)
        ended = self._reader.ended(event, self._tracks)
        here = [piece.key for piece in pieces]
        before = await self._ended([key for key in ended if key not in here])
        for piece in pieces:
            await self._go_on(piece, piece.key in ended)
        await self._whole(slots)
        if pieces and stream_texts.is_empty(self._form, event):
            return before
        if self._added and type(event.get(stream_texts.COUNTS)) is int:
            event[stream_texts.COUNTS] += self._added
        self.next_number = _number(event, self.next_number)
        return before + self.written(raw, event)

    def _open(self, piece: Piece, event: Event) -> None:
        track = self._tracks.get(piece.key)
        if track is None:
            if len(self._tracks) >= MAX_TRACKS:
                raise self._unreadable("the answer has too many texts at a time")
            repeats = self._form in _REPEATING
            track = self._tracks[piece.key] = _Open(self._judge.track(piece.slot.text), repeats)
        track.last = event

    async def _go_on(self, piece: Piece, is_end: bool) -> None:
        track = self._tracks[piece.key]
        piece.slot.put(await track.feed(piece.slot.holder[piece.slot.key], is_end))
        if is_end:
            self._over(piece.key)

    async def _ended(self, keys: list[Key]) -> bytes:
        """Events with what is held of these tracks, which are over."""
        given = []
        for key in keys:
            track = self._tracks[key]
            text = await track.feed("", True)
            if text:
                given.append(self._rest(track.last, key, text))
            self._over(key)
        return b"".join(given)

    def _rest(self, last: Event, key: Key, text: str) -> bytes:
        event = self._reader.rest(last, key, text)
        if type(event.get(stream_texts.COUNTS)) is int:
            self._added += 1
            event[stream_texts.COUNTS] = self.next_number
        self.next_number = _number(event, self.next_number)
        return self.added(event)

    def added(self, event: Event) -> bytes:
        """An event of the gateway."""
        name = event.get("type")
        line = b"event: %b\n" % name.encode() if type(name) is str else b""
        return b"%bdata: %b\n\n" % (line, msgspec.json.encode(event))

    def written(self, raw: bytes, event: Event) -> bytes:
        """An event with other data; its name and id stay."""
        return _lines(raw) + b"data: %b\n\n" % msgspec.json.encode(event)

    def forget(self) -> None:
        """Of what has ended nothing is repeated any more."""
        if not self._tracks:
            self._repeated.clear()
            self._repeated_size = 0

    def _over(self, key: Key) -> None:
        track = self._tracks.pop(key)
        if track.said is None:
            return
        text = "".join(track.said)
        self._repeated_size += len(text)
        if len(self._repeated) >= MAX_TRACKS or self._repeated_size > MAX_REPEATED:
            raise self._unreadable("the answer is larger than may be judged")
        self._repeated[track.digest.digest()] = text

    async def _whole(self, slots: list[Slot]) -> None:
        """Texts that are here whole. What was judged piece by piece says what it said then."""
        new = []
        for slot in slots:
            known = self._repeated.get(_digest(slot.holder[slot.key])) if self._repeated else None
            if known is None:
                new.append(slot)
            else:
                slot.put(known)
        if new:
            for slot, text in zip(new, await self._judge.texts([slot.text for slot in new]), strict=True):
                slot.put(text)


class _Open:
    """A track that is open."""

    def __init__(self, track: Track, repeats: bool) -> None:
        """`repeats`: later events have all of the text once more."""
        self._track = track
        self.last: Any = {}
        """The last event with text of it."""
        self.digest = blake2b(digest_size=16)
        self.said: list[str] | None = [] if repeats else None

    async def feed(self, text: str, is_end: bool) -> str:
        said = await self._track.feed(text, is_end)
        if self.said is not None:
            self.digest.update(text.encode())
            self.said.append(said)
        return said


_FIELDS: Final = (b"event:", b"id:", b"retry:")


def _lines(raw: bytes) -> bytes:
    """The lines of an event beside its data. Of a comment, which keeps a connection, nothing but that it is one; a line
    of no field may be text that was not judged."""
    kept = [
        line if line.startswith(_FIELDS) else b":" for line in raw.splitlines() if line.startswith((b":", *_FIELDS))
    ]
    return b"".join(line + b"\n" for line in kept)


def _number(event: Event, known: int) -> int:
    found = event.get(stream_texts.COUNTS)
    return found + 1 if type(found) is int else known


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
