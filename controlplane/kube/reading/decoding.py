"""Objects of our kinds, and those of Gateway API, as bytes to facts: here, or in a process that runs this module.

What decoding costs depends on what is written: checking expressions costs three seconds for each megabyte, all else
a tenth of that at most. `weight` estimates it without decoding. Pure.
"""

from __future__ import annotations

import os
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from controlplane.facts import Fact, Previous
from controlplane.helper import serve
from controlplane.kube.reading.events import Item, bare, tree
from controlplane.sources.objects import fact_from, unread_fact
from gatewright.api.checks.expressions import expression_texts
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema import names
from gatewright.api.schema.metadata import ObjectKey
from gatewright.aside import limit_time

Json = dict[str, Any]  # Any: JSON

SOURCE: Final = "cluster"
"""The origin of the facts."""
_DROPPED: Final = ("managedFields",)
"""Of metadata: it can be most of an object, and says nothing to us."""
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation: the object once more, the values of a Secret too."""

SHORT: Final = 8 * 1024
"""Bytes of an object that is light, whatever is in it."""
LIGHT: Final = 64 * 1024
"""Weight of an object that is decoded at once: as much as 8 KiB of expressions, some 50 ms at worst."""
EXPRESSIONS: Final = 8
"""How much more a character of an expression weighs than one of anything else."""
UNWEIGHED: Final = 256 * 1024
"""Bytes of an object that is heavy, whatever is in it: looking would take long itself."""

NICE: Final = 5
"""How much the process stands back: the event loop, which everybody waits for, may have the same processor."""

_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BESIDE: Final = {"apiVersion", "kind", "status"}
_VERSIONED: Final = {*_DROPPED, "resourceVersion"}
"""What may differ in objects that say the same."""


class Piece(NamedTuple):
    """An object as it came."""

    key: ObjectKey
    raw: bytes
    api_version: str
    """Where it does not say it itself, as an item of a list; else ""."""
    unread: str = ""
    """Why it shall not be decoded; then the fact says so, and what it protects is refused."""


def weight(piece: Piece) -> int:
    """What decoding will cost, in characters that cost nothing special."""
    size = len(piece.raw)
    if size <= SHORT:
        return size
    if size > UNWEIGHED:
        return EXPRESSIONS * size
    value, kind = tree(piece.raw), piece.key.kind
    document = names.canonical(value, []) if kind in names.OUR_KINDS else value
    texts = expression_texts(KINDS[kind].model, document)
    return len(msgspec.json.encode(value.get("spec"))) + EXPRESSIONS * sum(map(len, texts))


def fact_of(piece: Piece) -> Fact | None:
    """The fact of an object; None for one of a kind that has no model here. Raises `events.Failed` for none at all."""
    value = tree(piece.raw)
    if piece.api_version:
        value |= {"apiVersion": piece.api_version, "kind": piece.key.kind}
    if isinstance(value.get("metadata"), dict):
        value["metadata"] = _slim(value["metadata"])
    return unread_fact(value, SOURCE, piece.unread) if piece.unread else fact_from(value, SOURCE)


def content_mark(raw: bytes) -> bytes:
    """Equal for versions of an object that differ in their status and the like alone."""
    digest = blake2b(digest_size=16)
    try:
        parts = _PARTS.decode(raw)
        metadata = _PARTS.decode(parts.pop("metadata", msgspec.Raw(b"{}")))
    except RecursionError:  # whatever it says, it says the same as another time
        return blake2b(raw, digest_size=16).digest()
    for each, dropped in ((parts, _BESIDE), (metadata, _VERSIONED)):
        for name in sorted(each.keys() - dropped):
            digest.update(b"%s %d " % (name.encode(), len(memoryview(each[name]))))
            digest.update(each[name])
    return digest.digest()


def with_status(fact: Fact, raw: bytes) -> Fact:
    """The same with the status and version of `raw`, which is equal otherwise."""
    status = tree(raw).get("status")
    return replace(fact, previous=Previous(status if isinstance(status, dict) else {}, bare(raw).version))


def piece_of(key: ObjectKey, item: Item, api_version: str) -> Piece:
    return Piece(key, bytes(memoryview(item)), api_version)


def _slim(metadata: Json) -> Json:
    """Without what is large and says nothing to us."""
    found = {name: part for name, part in metadata.items() if name not in _DROPPED}
    annotations = found.get("annotations")
    if isinstance(annotations, dict) and _APPLIED in annotations:
        found["annotations"] = {name: value for name, value in annotations.items() if name != _APPLIED}
    return found


class Question(NamedTuple):
    """An object that is to be decoded, and for how many seconds that may be computed."""

    piece: Piece
    seconds: float


def answer(question: Question | None) -> Fact | None:
    """What the process answers. Of None nothing: then it has loaded what it needs."""
    if question is None:
        return None
    limit_time(question.seconds)
    return fact_of(question.piece)


if __name__ == "__main__":
    os.nice(NICE)
    serve(answer)
