"""Rows of the lists of names that TLS toward clients and toward backends have in common (2-policies)."""

from __future__ import annotations

from tests.rules.verdicts.common import P
from tests.rules.verdicts.table import Rows
from tests.rules.verdicts.words import (
    enum,
    in_list,
    invalid,
    items,
    valid,
)

_LISTS = P + "| ALPN / key exchange lists | 1 to 16 items |"
GROUPS = ("X25519", "P-256", "P-384", "X25519_MLKEM768")


def alpn(path: str, spec: str) -> Rows:
    """`alpnProtocols`: 1 to 16 names of 1 to 64 characters."""
    yield valid(path, ["h2", "http/1.1"], spec)
    yield from items(path, 1, 16, _LISTS, lambda n: f"p{n}")
    yield from (valid(path, ["x" * length], spec) for length in (1, 64))
    yield from (invalid(path, [bad], spec) for bad in ("", "x" * 65, 1))


def key_exchange(path: str, spec: str) -> Rows:
    """`keyExchangeGroups`: 1 to 16 of four names."""
    yield from names(path, GROUPS, spec)
    yield from items(path, 1, 16, _LISTS, "X25519")


def names(path: str, values: tuple[str, ...], spec: str) -> Rows:
    """A list of enum values."""
    yield from in_list(path, enum(path, values, spec))
    yield valid(path, list(values), spec)
