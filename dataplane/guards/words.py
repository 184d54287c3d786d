"""Words close to a number that say what it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_OTHERS: Final = (
    *("order", "invoice", "ticket", "case", "tracking", "serial", "sku", "isbn", "part", "item", "account", "acct"),
    *("ref", "reference", "transaction", "txn", "batch", "build", "version", "model", "id", "uuid", "po", "rma"),
    *("parcel", "shipment", "zip", "customer", "commit", "error", "job", "request", "session", "issue", "bug"),
    *("product", "code", "lot", "claim", "policy", "iban", "asset", "timestamp", "epoch", "room", "member", "routing"),
    *("booking", "confirmation"),
)
"""Of numbers that are no person's."""
is_otherwise: Final = re.compile(
    rb"(?i)(?<![a-z])(?:%b)(?![a-z])\W*(?:no|nr|num|number|id|code|is|was|key)?\W*\Z" % "|".join(_OTHERS).encode()
).search
"""What stands before a number says that it is something else."""


def said(*words: str) -> Callable[[bytes], object]:
    """Whether any of these stands in a text. Patterns of the standard library: they are built in, and short."""
    return re.compile(rf"(?i)(?<![a-z0-9])(?:{'|'.join(words)})(?![a-z0-9])".encode()).search
