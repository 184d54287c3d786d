"""The next version of a router: what changes is copied once, all else is shared with the version before.

The applier makes one per listener that a state touches, adds and removes matches, and takes the finished router. The
router it began with stays as it is: exchanges may be using it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.table import ranked
from dataplane.table.matches import EXACT, PREFIX, REGEX, ROOT, Left, Match, Placement, Spot
from dataplane.table.parted import Container, grown
from dataplane.table.plans import GRPC_ROUTE, RoutePlan
from dataplane.table.regexes import PathRegexes
from dataplane.table.router import EMPTY, Found, Level, Regexes, Router, as_matches

Rules = Container[bytes, Found]
Entry = Match | RoutePlan


class RouterDraft:
    def __init__(self, router: Router = EMPTY) -> None:
        self._router = Router()
        self._router.hosts = router.hosts.copy()
        self._router.wildcards = router.wildcards.copy()
        self._router.any = router.any
        self.fresh: Container[bytes, Level] = {}
        """Levels that this draft made, by hostname: they may be changed."""

    def add(self, hostname: bytes, placements: Iterable[Placement], plan: RoutePlan) -> None:
        """Enter the matches of a plan under a hostname (b"" any, b"*.x" wildcard, else exact)."""
        level = self._level(hostname)
        if plan.kind == GRPC_ROUTE:
            if level.grpc is None:
                level.grpc = Level()
            level = level.grpc
        for kind, key, entry in placements:
            if isinstance(entry, PathRegexes):
                regexes = level.regexes if level.regexes is not None else {}
                regexes[plan.key] = entry
                level.regexes = grown(regexes)
            else:
                _add(level, kind, key, entry)

    def remove(self, hostname: bytes, places: Iterable[Left], plan: RoutePlan) -> None:
        """Take out the matches of a plan."""
        level = self._level(hostname)
        part = level.grpc if plan.kind == GRPC_ROUTE else level
        if part is not None:
            for place in places:
                _remove(part, place, plan)
        if level.grpc is not None and _is_empty(level.grpc):
            level.grpc = None
        if _is_empty(level):
            del self.fresh[hostname]
            self._replace(hostname, None)

    def finish(self) -> Router:
        """The next router. The draft must not be used afterwards."""
        return self._router

    def _level(self, hostname: bytes) -> Level:
        fresh = self.fresh
        level = fresh.get(hostname)
        if level is None:
            level = Level()
            old = self._replace(hostname, level)
            if old is not None:
                _copy(old, level)
            fresh[hostname] = level
            if type(fresh) is dict:
                self.fresh = grown(fresh)
        return level

    def _replace(self, hostname: bytes, level: Level | None) -> Level | None:
        """Put a level in the place of the one that is there, which is answered; None takes it away."""
        router = self._router
        if not hostname:
            old, router.any = router.any, level
        elif hostname.startswith(b"*."):
            old, router.wildcards = _replaced(router.wildcards, hostname[1:], level)
        else:
            old, router.hosts = _replaced(router.hosts, hostname, level)
        return old


def _is_empty(level: Level) -> bool:
    return not (level.exact or level.prefixes or level.regexes or level.root or level.grpc)


def _replaced(
    container: Container[bytes, Level], key: bytes, value: Level | None
) -> tuple[Level | None, Container[bytes, Level]]:
    old = container.get(key)
    if value is None:
        del container[key]
        return old, container
    container[key] = value
    return old, grown(container)


def _copy(old: Level, new: Level) -> None:
    new.exact = None if old.exact is None else old.exact.copy()
    new.prefixes = None if old.prefixes is None else old.prefixes.copy()
    new.regexes = None if old.regexes is None else old.regexes.copy()
    new.longest, new.root = old.longest, old.root
    if old.grpc is not None:
        new.grpc = Level()
        _copy(old.grpc, new.grpc)


def _add(level: Level, kind: int, key: bytes, entry: Entry) -> None:
    if kind == PREFIX and key == ROOT:
        level.root = _with(level.root, entry)
    elif kind == EXACT:
        exact = level.exact if level.exact is not None else {}
        exact[key] = _with(exact.get(key), entry)
        level.exact = grown(exact)
    else:
        prefixes = level.prefixes if level.prefixes is not None else {}
        prefixes[key] = _with(prefixes.get(key), entry)
        level.prefixes = grown(prefixes)
        level.longest = max(level.longest, len(key))


def _as_match(entry: Entry) -> Iterable[Match]:
    return (entry,) if isinstance(entry, Match) else as_matches(entry)


def _with(found: Found | None, entry: Entry) -> Found:
    if found is None and type(entry) is RoutePlan:
        return entry
    (match,) = _as_match(entry)
    if found is None:
        return match.plan if match.plain else (match,)
    if found is match.plan and match.plain:
        return found  # the rule says the same twice
    return ranked.added(as_matches(found), match)


def _remove(level: Level, place: Left, plan: RoutePlan) -> None:
    """Take out what a plan has at a place; nothing, when it has nothing there any more."""
    kind, key, spot = place
    if kind == REGEX:
        level.regexes = _without_regexes(level.regexes, plan)
    elif kind == EXACT:
        level.exact = _without_key(level.exact, key, spot, plan)
    elif key == ROOT:
        level.root = None if level.root is None else _without(level.root, spot, plan)
    else:
        level.prefixes = _without_key(level.prefixes, key, spot, plan)


def _without_regexes(found: Regexes | None, plan: RoutePlan) -> Regexes | None:
    if found is not None:
        found.pop(plan.key, None)
    return found or None


def _without_key(found: Rules | None, key: bytes, spot: Spot, plan: RoutePlan) -> Rules | None:
    """Rules by key, less those of a plan at one key; None when none is left."""
    here = None if found is None else found.get(key)
    if found is None or here is None:
        return found
    left = _without(here, spot, plan)
    if left is None:
        del found[key]
        return found or None
    found[key] = left
    return found


def _without(found: Found, spot: Spot, plan: RoutePlan) -> Found | None:
    if isinstance(found, RoutePlan):
        return None if found is plan else found
    left = ranked.without(found, spot, plan)
    if len(left) == 1:
        (last,) = left
        return last.plan if last.plain else left
    return left or None
