"""Target `link`: frames between agent and worker.

Promises: every message comes back equal from its frame, whatever the pieces; any other bytes are messages or a
`LinkError`, the same for all pieces; what was read from foreign bytes can be written and read again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from dataplane.link import codec
from dataplane.link.messages import TYPE_URLS, Changes, Message, Record, Trouble, WantedBind
from tests.fuzz.dice import Dice
from tests.fuzz.rig import pieces, require

KINDS = tuple(codec.CODES)
"""Every kind of message that there is: a new one is fuzzed from its first day."""


def _text(dice: Dice) -> str:
    return dice.bytes(40).decode("utf-8", "replace")


def _record(dice: Dice) -> Record:
    value = None if dice.chance(3) else dice.bytes(60)
    return Record(dice.one_of(TYPE_URLS), _text(dice), value)


def _bind(dice: Dice) -> WantedBind:
    return WantedBind(_text(dice), dice.byte(), (_text(dice),) * dice.below(3))


def _trouble(dice: Dice) -> Trouble:
    backend, endpoint, name, reason = _text(dice), _text(dice), _text(dice), _text(dice)
    return Trouble(backend, endpoint, dice.byte(), dice.byte() / 8, name, reason, dice.byte(), dice.byte() / 8)


_VALUES: dict[str, Callable[[Dice], Any]] = {
    "int": lambda dice: dice.byte(),
    "float": lambda dice: dice.byte() / 8,
    "str": _text,
    "dict[str, str]": lambda dice: {_text(dice): _text(dice) for _ in range(dice.below(3))},
    "dict[str, Any]": lambda dice: {_text(dice): [_text(dice), dice.byte(), None, {}] for _ in range(dice.below(3))},
    "tuple[Record, ...]": lambda dice: tuple(_record(dice) for _ in range(dice.below(5))),
    "tuple[Trouble, ...]": lambda dice: tuple(_trouble(dice) for _ in range(dice.below(3))),
    "tuple[WantedBind, ...]": lambda dice: tuple(_bind(dice) for _ in range(dice.below(3))),
}
"""Makers by the annotation of a field."""


def message(dice: Dice) -> Message:
    kind = dice.one_of(KINDS)
    return kind(*(_VALUES[str(field.type)](dice) for field in fields(kind)))


SEEDS = (
    *(b"R" + codec.encode(message(Dice(bytes((n, *b"\x01\x05abcde\x02\x03fgh\x01"))))) for n in range(len(KINDS))),
    *(b"M" + bytes((n, *b"\x01\x05ab\xc3\xa9e\x02\x03fgh\x01", n + 1)) for n in range(len(KINDS))),
)
LONGEST = 4096


def check(data: bytes) -> None:
    """`R` and raw bytes of a link, or `M` and choices that make messages."""
    if data[:1] == b"R":
        check_bytes(data[1:])
    else:
        check_messages(Dice(data[1:]))


def check_bytes(data: bytes) -> None:
    first = read(data, "whole")
    for manner in ("bytes", "random"):
        messages, error = read(data, manner)
        # with smaller pieces the messages before a bad one are out before it is seen
        require(bool(error) == bool(first[1]), f"{manner}: {error!r}, whole: {first[1]!r}")
        require(first[1] or messages == first[0], f"{manner}: {messages}, whole: {first[0]}")
    for one in read(data, "bytes")[0]:
        again, error = read(codec.encode(one), "whole")
        require(not error and repr(again) == repr([one]), f"{one!r} came back as {again!r} {error}")


def read(data: bytes, manner: str) -> tuple[list[Message], str]:
    decoder = codec.Decoder()
    found: list[Message] = []
    try:
        for piece in pieces(data, manner):
            found += decoder.feed(piece)
    except codec.LinkError as error:
        return found, str(error) or "refused"
    return found, ""


def check_messages(dice: Dice) -> None:
    sent: list[Message] = []
    while not dice.empty and len(sent) < 20:
        sent.append(message(dice))
    data = b"".join(map(codec.encode, sent))
    for manner in ("whole", "random"):
        came, error = read(data, manner)
        require(not error and came == sent, f"{manner}: {sent!r} came back as {came!r} {error}")
    records = [record for one in sent if isinstance(one, Changes) for record in one.records]
    again = [record for chunk in codec.chunked(records) for record in chunk.records]
    require(again == records, "chunks change the records")
