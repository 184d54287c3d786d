"""Finding the listener of a host, and the rule of a request among the routes of a listener. Never a scan over routes.

Order (Gateway API HTTPRouteRule, and where it is silent the choice beside it):
1. hostname of the route: exact, then wildcards by longest suffix, then none. The first level with a matching rule wins,
   so a request falls through to less specific hostnames of the same listener, never to another listener;
2. within a hostname GRPCRoutes and others are apart (Gateway API: they must not be merged). Requests of gRPC and
   gRPC-Web are looked for among GRPCRoutes first, all others among the other routes first; then among the rest;
3. path: exact, then the longest prefix or regular expression (by characters); of GRPCRoutes service and method, then
   service, then method (`matches`);
4. a method, more headers, more query parameters, the older route, its name, the earlier rule, the earlier match.
A rule that wins without a usable backend answers 500; nothing falls through to the next.

A router is never changed: `draft.RouterDraft` makes the next one. Containers hold a `RoutePlan` where a key has one
match without further conditions, else all `Match` in order of rank (`ranked`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dataplane.http import grpc
from dataplane.table.matches import Match
from dataplane.table.parted import Container
from dataplane.table.plans import RoutePlan
from dataplane.table.ranked import Matches
from dataplane.table.regexes import PathRegexes

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Found = RoutePlan | Matches
Regexes = Container[str, PathRegexes[Match]]
"""By key of the rule."""


class Level:
    """The rules of one hostname."""

    __slots__ = ("exact", "grpc", "longest", "prefixes", "regexes", "root")

    def __init__(self) -> None:
        self.exact: Container[bytes, Found] | None = None
        """By path."""
        self.prefixes: Container[bytes, Found] | None = None
        """By prefix without slash at its end; that of "/" is `root`."""
        self.longest = 0
        """No prefix is longer."""
        self.root: Found | None = None
        self.regexes: Regexes | None = None
        self.grpc: Level | None = None
        """The rules of GRPCRoutes, which are not among the others."""

    def __repr__(self) -> str:
        return (
            f"Level({len(self.exact or ())} exact, {len(self.prefixes or ())} prefixes,"
            f" rules with regexes: {len(self.regexes or ())}, root={self.root!r}, grpc={self.grpc!r})"
        )


class Router:
    """The routes of one listener."""

    __slots__ = ("__weakref__", "any", "hosts", "wildcards")

    def __init__(self) -> None:
        self.hosts: Container[bytes, Level] = {}
        self.wildcards: Container[bytes, Level] = {}
        """By what follows the "*" (b".example.com")."""
        self.any: Level | None = None

    def match(self, host: bytes, path: bytes, exchange: Exchange) -> RoutePlan | None:
        """The rule for a request, or None. Sets `plan` and `prefix` of the exchange.

        `host` and `path` are canonical (`http/uri`); method, headers and query are read from the exchange. Raises
        `Unread` for what is not read of a request.
        """
        level = self.hosts.get(host)
        if level is not None:
            plan = find(level, path, exchange)
            if plan is not None:
                return plan
        wildcards = self.wildcards
        if wildcards:
            dot = host.find(b".", 1)
            while dot != -1:
                level = wildcards.get(host[dot:])
                if level is not None:
                    plan = find(level, path, exchange)
                    if plan is not None:
                        return plan
                dot = host.find(b".", dot + 1)
        level = self.any
        return None if level is None else find(level, path, exchange)

    def stream(self, host: bytes) -> RoutePlan | None:
        """The rule for a connection or UDP session, or None: the oldest route of the most specific hostname that has
        one. `host`: the server name in lower case, b"" where none was said."""
        for level in self._levels(host):
            found = level.root
            if found is not None:
                return found if isinstance(found, RoutePlan) else next(iter(found)).plan
        return None

    def _levels(self, host: bytes) -> Iterator[Level]:
        """The levels that a host meets, the most specific one first."""
        level = self.hosts.get(host)
        if level is not None:
            yield level
        dot = host.find(b".", 1) if self.wildcards else -1
        while dot != -1:
            level = self.wildcards.get(host[dot:])
            if level is not None:
                yield level
            dot = host.find(b".", dot + 1)
        if self.any is not None:
            yield self.any

    def __repr__(self) -> str:
        return f"Router({len(self.hosts)} hosts, {len(self.wildcards)} wildcards, any={self.any!r})"


EMPTY = Router()


def find(level: Level, path: bytes, exchange: Exchange, apart: bool = False) -> RoutePlan | None:
    """The rule for a path among those of one hostname; sets `plan` and `prefix` of the exchange. `apart`: without those
    of GRPCRoutes."""
    if level.grpc is not None and not apart:
        return _find_by_kind(level, level.grpc, path, exchange)
    exact = level.exact
    if exact is not None:
        found = exact.get(path)
        if found is not None:
            plan = found if found.__class__ is RoutePlan else _first(found, exchange)  # type: ignore[arg-type]
            if plan is not None:
                exchange.plan = plan
                exchange.prefix = b""
                return plan
    if level.regexes:
        return _find_by_length(level, path, exchange)
    prefixes = level.prefixes
    if prefixes is not None:
        end = len(path)
        if end > level.longest:  # a prefix ends where a segment ends
            end = path.rfind(b"/", 0, level.longest + 1)
        while end > 0:
            prefix = path[:end]
            found = prefixes.get(prefix)
            if found is not None:
                plan = found if found.__class__ is RoutePlan else _first(found, exchange)  # type: ignore[arg-type]
                if plan is not None:
                    exchange.plan = plan
                    exchange.prefix = prefix
                    return plan
            end = path.rfind(b"/", 0, end)
    found = level.root
    if found is None:
        return None
    plan = found if found.__class__ is RoutePlan else _first(found, exchange)  # type: ignore[arg-type]
    if plan is not None:
        exchange.plan = plan
        exchange.prefix = b"/"
    return plan


def _find_by_kind(others: Level, calls: Level, path: bytes, exchange: Exchange) -> RoutePlan | None:
    first, second = (calls, others) if grpc.is_meant(exchange.method, exchange.request) else (others, calls)
    plan = find(first, path, exchange, True)
    return plan if plan is not None else find(second, path, exchange, True)


def _first(matches: Matches, exchange: Exchange) -> RoutePlan | None:
    for match in matches:
        if match.accepts(exchange):
            return match.plan
    return None


def _find_by_length(level: Level, path: bytes, exchange: Exchange) -> RoutePlan | None:
    """As the end of `find`, for a hostname with regular expressions: they compete with prefixes by length."""
    found = [
        (-match.precedence, -len(pattern), match.rank, b"", match)
        for regexes in level.regexes.values()  # type: ignore[union-attr]
        for pattern, match in regexes.matching(path, exchange)
    ]
    for prefix, matches in prefixes_of(level, path):
        found += [(-match.precedence, -len(prefix), match.rank, prefix, match) for match in as_matches(matches)]
    found.sort(key=lambda candidate: candidate[:3])
    for _, _, _, prefix, match in found:
        if match.accepts(exchange):
            exchange.plan = match.plan
            exchange.prefix = prefix
            return match.plan
    return None


def prefixes_of(level: Level, path: bytes) -> list[tuple[bytes, Found]]:
    """The prefixes of a path that have rules, as (prefix, rules), longest first."""
    found = []
    end = len(path) if level.prefixes is not None else 0
    if end > level.longest:  # a prefix ends where a segment ends
        end = path.rfind(b"/", 0, level.longest + 1)
    while end > 0:
        matches = level.prefixes.get(path[:end])  # type: ignore[union-attr]
        if matches is not None:
            found.append((path[:end], matches))
        end = path.rfind(b"/", 0, end)
    if level.root is not None:
        found.append((b"/", level.root))
    return found


def as_matches(found: Found) -> Matches:
    """What a container holds at a key, as matches."""
    if isinstance(found, RoutePlan):
        return (Match(found, (1, 0, 0, found.order, found.rule_index, 0), b""),)
    return found
