"""Limits as files say them, in the format of Envoy's rate limit server: a tree of descriptors for each domain. Pure.

A descriptor of a request is looked up entry by entry: by name and value, then by the beginning of the value (`a*`),
then by the name alone. The limit of the last entry counts; one with more entries than the tree has levels has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.ratelimit.windows import NAMES
from gatewright.api.text import yaml_text

MOST_PER_UNIT: Final = 2**32 - 1

Entry = tuple[str, str]
"""Name and value."""


class LimitError(ValueError):
    """What is wrong, and where: for the author of the file."""


@dataclass(frozen=True, slots=True)
class Limit:
    """`path`: the descriptor of the configuration, for metrics and people; "" of one that came with a request."""

    per_unit: int
    unit: int
    path: str = ""
    name: str = ""
    replaces: frozenset[str] = frozenset()
    is_unlimited: bool = False
    is_shadow: bool = False
    """It is counted, and never refuses."""


@dataclass(frozen=True, slots=True)
class Found:
    """The limit of a descriptor, and the entries that it is counted by."""

    limit: Limit
    entries: tuple[Entry, ...]


@dataclass(slots=True)
class _Node:
    limit: Limit | None = None
    shares: bool = False
    """All values that a pattern matches count together."""
    by_value: dict[Entry, _Node] = field(default_factory=dict)
    by_prefix: list[tuple[str, str, _Node]] = field(default_factory=list)
    by_name: dict[str, _Node] = field(default_factory=dict)

    def next(self, name: str, value: str) -> tuple[_Node | None, str]:
        """Where an entry leads, and the value that counts for it."""
        found = self.by_value.get((name, value))
        if found is not None:
            return found, value
        for key, prefix, node in self.by_prefix:
            if key == name and value.startswith(prefix):
                return node, f"{prefix}*" if node.shares else value
        return self.by_name.get(name), value


class Limits:
    """All domains. A value: a change of the files makes a new one."""

    def __init__(self, domains: Mapping[str, _Node] | None = None) -> None:
        self._domains = dict(domains or {})

    @property
    def domains(self) -> Sequence[str]:
        return sorted(self._domains)

    def find(self, domain: str, entries: Sequence[Entry]) -> Found | None:
        node = self._domains.get(domain)
        counted: list[Entry] = []
        for name, value in entries:
            if node is None:
                return None
            node, counts = node.next(name, value)
            counted.append((name, counts))
        return None if node is None or node.limit is None else Found(node.limit, tuple(counted))


def read(files: Iterable[tuple[str, bytes]]) -> Limits:
    """Of files (name, content), one domain each. Raises `LimitError`, naming file and field."""
    domains: dict[str, _Node] = {}
    for name, content in files:
        try:
            root = yaml_text.load(content.decode())
        except UnicodeDecodeError as error:
            raise LimitError(f"{name}: not YAML: {error}") from None
        except yaml_text.TextError as error:
            raise LimitError(f"{name}: not YAML: line {error.line}: {error}") from None
        reading = _Reading(name)
        domain, node = reading.root(root)
        if domain in domains:
            raise LimitError(f"{name}: domain: {domain!r} is in another file already")
        domains[domain] = node
    return Limits(domains)


_ROOT: Final = frozenset(("domain", "descriptors"))
_UNSUPPORTED: Final = {
    "quota_mode": "quotas are not supported",
    "detailed_metric": "metrics are by descriptor of the configuration; `gatewright budgets` shows values",
    "value_to_metric": "metrics are by descriptor of the configuration; `gatewright budgets` shows values",
}
_DESCRIPTOR: Final = frozenset(
    ("key", "value", "rate_limit", "descriptors", "shadow_mode", "share_threshold", *_UNSUPPORTED)
)
_LIMIT: Final = frozenset(("requests_per_unit", "unit", "unlimited", "name", "replaces"))


class _Reading:
    """Of one file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _wrong(self, where: str, what: str) -> LimitError:
        return LimitError(f"{self._file}: {where}: {what}")

    def _fields(self, value: Any, where: str, known: frozenset[str]) -> dict[str, Any]:  # Any: of YAML
        if not isinstance(value, dict):
            raise self._wrong(where or "the file", "must be an object")
        for name in value:
            if name not in known:
                raise self._wrong(f"{where}.{name}".lstrip("."), f"is not known; there are {', '.join(sorted(known))}")
            if value[name] and name in _UNSUPPORTED:
                raise self._wrong(f"{where}.{name}", _UNSUPPORTED[name])
        return value

    def root(self, value: Any) -> tuple[str, _Node]:
        found = self._fields(value, "", _ROOT)
        domain, node = found.get("domain"), _Node()
        if not isinstance(domain, str) or not domain:
            raise self._wrong("domain", "must be a name")
        self._descriptors(node, found.get("descriptors"), "descriptors", domain)
        return domain, node

    def _descriptors(self, node: _Node, values: Any, where: str, path: str) -> None:
        if values is None:
            return
        if not isinstance(values, list):
            raise self._wrong(where, "must be a list")
        for index, value in enumerate(values):
            self._descriptor(node, value, f"{where}[{index}]", path)

    def _descriptor(self, parent: _Node, value: Any, where: str, path: str) -> None:
        found = self._fields(value, where, _DESCRIPTOR)
        key, text = found.get("key"), found.get("value")
        if not isinstance(key, str) or not key:
            raise self._wrong(f"{where}.key", "must be a name")
        if text is not None and not isinstance(text, str | int | float):
            raise self._wrong(f"{where}.value", "must be a text")
        text = "" if text is None else _plain(text)
        path = f"{path}.{key}_{text}" if text else f"{path}.{key}"
        node = _Node(shares=self._flag(found, "share_threshold", where))
        if node.shares and not text.endswith("*"):
            raise self._wrong(f"{where}.share_threshold", "needs a value that ends with *")
        self._put(parent, key, text, node, where)
        if found.get("rate_limit") is not None:
            is_shadow = self._flag(found, "shadow_mode", where)
            node.limit = self._limit(found["rate_limit"], f"{where}.rate_limit", path, is_shadow)
        self._descriptors(node, found.get("descriptors"), f"{where}.descriptors", path)

    def _put(self, parent: _Node, key: str, text: str, node: _Node, where: str) -> None:
        if text.endswith("*"):
            is_there = any(known[:2] == (key, text[:-1]) for known in parent.by_prefix)
            parent.by_prefix.append((key, text[:-1], node))
        elif text:
            is_there = (key, text) in parent.by_value
            parent.by_value[key, text] = node
        else:
            is_there = key in parent.by_name
            parent.by_name[key] = node
        if is_there:
            raise self._wrong(where, f"{key} {text}".strip() + " is there twice")

    def _limit(self, value: Any, where: str, path: str, is_shadow: bool) -> Limit:
        found = self._fields(value, where, _LIMIT)
        name, unit = found.get("name") or "", found.get("unit")
        if not isinstance(name, str):
            raise self._wrong(f"{where}.name", "must be a text")
        replaces = self._replaces(found.get("replaces"), f"{where}.replaces", name)
        if self._flag(found, "unlimited", where):
            if unit is not None:
                raise self._wrong(f"{where}.unit", "must be absent when unlimited is true")
            return Limit(0, 0, path, name, replaces, is_unlimited=True, is_shadow=is_shadow)
        if not isinstance(unit, str) or unit.lower() not in NAMES:
            raise self._wrong(f"{where}.unit", f"must be one of {', '.join(NAMES)}")
        count = found.get("requests_per_unit", 0)
        if type(count) is not int or not 0 <= count <= MOST_PER_UNIT:
            raise self._wrong(f"{where}.requests_per_unit", f"must be a whole number from 0 to {MOST_PER_UNIT}")
        return Limit(count, NAMES[unit.lower()], path, name, replaces, is_shadow=is_shadow)

    def _replaces(self, values: Any, where: str, name: str) -> frozenset[str]:
        if values is None:
            return frozenset()
        if not isinstance(values, list):
            raise self._wrong(where, "must be a list")
        named = [self._fields(each, where, frozenset(("name",))).get("name") for each in values]
        names = [each for each in named if isinstance(each, str) and each]
        if len(names) < len(named) or name in names:
            raise self._wrong(where, "must name other limits")
        return frozenset(names)

    def _flag(self, found: dict[str, Any], name: str, where: str) -> bool:
        value = found.get(name, False)
        if not isinstance(value, bool | None):
            raise self._wrong(f"{where}.{name}", "must be true or false")
        return bool(value)


def _plain(value: str | float | bool) -> str:
    """As Envoy's server reads a value without quotes: a number, true and false as they are written."""
    return str(value).lower() if isinstance(value, bool) else str(value)
