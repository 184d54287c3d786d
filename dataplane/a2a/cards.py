"""Agent cards, rewritten so that they lead through the gateway: bytes in, bytes out, bounded.

All URLs at which an agent says that it can be spoken to are moved, in the shapes of 0.3 (`url`, `additionalInterfaces`)
and of 1.0 (`supportedInterfaces`), also as protobuf's readers of JSON take them (`supported_interfaces`); other URLs
stay. Signatures are taken out: they are those of the other card, and a client that checks them would refuse the
rewritten one. A card that leads here already is passed as it came, signatures included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from dataplane.a2a.documents import Unreadable, parse, write
from dataplane.http.uri import canonical_path

MAX_CARD: Final = 262_144
"""Bytes of a card, or of an answer that contains one."""
MAX_INTERFACES: Final = 64

_LISTS: Final = ("supportedInterfaces", "additionalInterfaces", "supported_interfaces", "additional_interfaces")
_NAMES: Final = frozenset(("url", "signatures", "jsonrpc", "result", "error", *_LISTS))
_FOLDED: Final = frozenset(name.casefold() for name in _NAMES)
_PORTS: Final = {"https": 443, "http": 80}
_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_is_authority = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?").fullmatch


class BadCard(Exception):
    """It is no card that can be rewritten. The text is for the log."""


@dataclass(frozen=True, slots=True)
class Way:
    """How clients reach the agent: `scheme` and `authority` are the gateway's, `asked` is the path that a client asked
    for, `sent` the one that was sent to the agent for it."""

    scheme: str
    authority: str
    asked: str
    sent: str

    def moved(self, url: str) -> str:
        """Where a client finds what the agent has at `url`. Raises `BadCard`."""
        if "://" not in url:  # gRPC's form: a host and its port
            return self._target(url)
        try:
            parts = urlsplit(url)
        except ValueError:
            raise BadCard("a URL that is none") from None
        if parts.scheme not in ("http", "https"):
            raise BadCard("a URL that is neither http nor https")
        here, there = self._prefixes()
        path = _normal(parts.path)
        if path == there or path.startswith(f"{there}/"):
            path = here + path[len(there) :]
        query = f"?{parts.query}" if parts.query else ""
        return f"{self.scheme}://{self.authority}{path}{query}"

    def _target(self, url: str) -> str:
        if not _is_authority(url):
            raise BadCard("a URL that is none")
        _, colon, port = self.authority.rpartition(":")
        is_whole = colon and port.isdigit() and not self.authority.endswith("]")
        return self.authority if is_whole else f"{self.authority}:{_PORTS[self.scheme]}"

    def _prefixes(self) -> tuple[str, str]:
        """What stands before the part of the path that is the same for both: the rule's prefix, and what a rewrite made
        of it."""
        here, there = self.asked.split("/"), self.sent.split("/")
        while len(here) > 1 and len(there) > 1 and here[-1] == there[-1]:
            here.pop()
            there.pop()
        return "/".join(here).rstrip("/"), "/".join(there).rstrip("/")


def _normal(path: str) -> str:
    """A path as clients read it who make it normal: `..` must not lead out of the rule's prefix. Raises `BadCard`."""
    try:
        found = canonical_path(quote(path or "/", safe=_VISIBLE).encode())
    except UnicodeEncodeError:  # half a surrogate pair
        found = None
    if found is None:
        raise BadCard("a URL with a path that is none")
    return found.decode() if path else ""


def rewritten(data: bytes, way: Way) -> bytes:
    """A card. Raises `BadCard`."""
    card = _parsed(data)
    moved = _moved(card, way)
    return data if _is_same(moved, card) else _written(moved)


def rewritten_answer(data: bytes, way: Way) -> bytes:
    """An answer to a question for the extended card: a card, or JSON-RPC's answer with one; an error stays as it is.
    Raises `BadCard`."""
    value = _parsed(data)
    if not isinstance(value, dict) or "jsonrpc" not in value:
        return rewritten(data, way)
    _exact(value)
    if "result" not in value:
        return data
    moved = _moved(value["result"], way)
    return data if _is_same(moved, value["result"]) else _written({**value, "result": moved})


def _is_same(moved: dict[str, Any], card: dict[str, Any]) -> bool:
    """Whether all URLs of a card stayed."""
    return all(card[name] == value for name, value in moved.items())


def _exact(holder: dict[str, Any]) -> None:
    """Raises `BadCard` where a name that is read here is spelled with other letters, which some readers take for it."""
    for name in holder:
        if name not in _NAMES and name.casefold() in _FOLDED:
            raise BadCard("a name in other letters than the protocol's")


def _parsed(data: bytes) -> Any:
    if len(data) > MAX_CARD:
        raise BadCard(f"more than {MAX_CARD} bytes")
    try:
        return parse(data)
    except Unreadable as error:
        raise BadCard(str(error)) from None


def _written(value: Any) -> bytes:
    try:
        return write(value)
    except Unreadable as error:
        raise BadCard(str(error)) from None


def _moved(card: Any, way: Way) -> dict[str, Any]:
    if not isinstance(card, dict):
        raise BadCard("it is no JSON object")
    _exact(card)
    made = {name: value for name, value in card.items() if name != "signatures"}
    count = 0
    if "url" in made:
        made["url"] = _moved_url(made["url"], way)
        count = 1
    for name in _LISTS:
        if name in made:
            made[name] = _moved_list(name, made[name], way)
            count += len(made[name])
    if not count:
        raise BadCard("it has no URL")
    return made


def _moved_list(name: str, interfaces: Any, way: Way) -> list[dict[str, Any]]:
    if not isinstance(interfaces, list) or len(interfaces) > MAX_INTERFACES:
        raise BadCard(f"{name} is no list of at most {MAX_INTERFACES}")
    if not all(isinstance(each, dict) for each in interfaces):
        raise BadCard(f"{name} has an item that is no JSON object")
    for each in interfaces:
        _exact(each)
    return [{**each, "url": _moved_url(each.get("url"), way)} for each in interfaces]


def _moved_url(url: Any, way: Way) -> str:
    if not isinstance(url, str):
        raise BadCard("a URL that is no text")
    return way.moved(url)
