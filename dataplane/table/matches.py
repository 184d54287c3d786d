"""The conditions of a route rule, as the router tests them (Gateway API HTTPRouteMatch).

Where Gateway API leaves the choice to implementations:
- a header that is repeated matches when any of its lines does; a query parameter that is repeated counts once, with its
  first value; several conditions on one name: the first counts;
- query names and values are compared after form decoding ("+" and percent escapes); header values as they are;
- regular expressions are RE2's and must match the whole value; a path's competes with prefixes by its length;
- of a GRPCRoute (GRPCRouteMatch) a service or method that is named exactly goes before a regular expression that
  matches as much of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from dataplane.chain.filter import Refused
from dataplane.http.heads import is_name, plain_name
from dataplane.http.uri import canonical_path
from dataplane.table.regexes import FEW, PathRegexes, Regex, compiled, options, price_of, set_of
from gatewright.wire.v1 import route_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.table.plans import RoutePlan

Test = Callable[[bytes, "Exchange"], bool]
_Condition = tuple[bytes, bytes, Regex | None]
"""(name, value, None) or (name, pattern, regular expression)."""
Rank = tuple[int, int, int, str, int, int]
Spot = tuple[int, int, int, str, int]
"""A rank without the number of the match: those of one rule lie beside each other."""
EXACT, PREFIX, REGEX = range(3)
ROOT = b""
"""The key of prefix "/"; other prefixes have no slash at their end."""


class Match:
    """One match of a rule, without its hostname and path: `accepts` tests the rest. `rank`: the smaller goes first."""

    __slots__ = ("headers", "method", "path", "plan", "precedence", "query", "rank")

    def __init__(
        self, plan: RoutePlan, rank: Rank, method: bytes, path: Test | None = None, precedence: int = 0
    ) -> None:
        self.plan = plan
        self.rank = rank
        self.method = method
        self.path = path
        """Test of the path; None where the path was found by key."""
        self.precedence = precedence
        """Before its length where it competes for a path: the greater goes first."""
        self.headers: tuple[_Condition, ...] = ()
        self.query: tuple[_Condition, ...] = ()

    @property
    def spot(self) -> Spot:
        return self.rank[:5]

    @property
    def plain(self) -> bool:
        """No condition beside hostname and path."""
        return not (self.method or self.headers or self.query or self.path or self.precedence)

    def accepts(self, exchange: Exchange) -> bool:
        """Raises `Unread` for what is not read of a request, as of all that a client chose and is too much."""
        if self.method and exchange.method != self.method:
            return False
        for name, value, regex in self.headers:
            values = exchange.request.get_all(name)
            if regex is None:
                if value not in values:
                    return False
            elif not any(regex.matches(each, exchange) for each in values):
                return False
        if self.query:
            parameters = exchange.request_query  # which is parsed once for all matches
            for name, value, regex in self.query:
                first = parameters.get(name)
                if first is None or (first != value if regex is None else not regex.matches(first, exchange)):
                    return False
        return True

    def __repr__(self) -> str:
        return f"Match({self.plan.key}, rank={self.rank})"


class Left(NamedTuple):
    """Where a match was entered within a hostname, for taking it out: `Placement` without what tests requests."""

    kind: int
    key: bytes
    spot: Spot


class Placement(NamedTuple):
    """Where a match goes within a hostname: `key` is the exact path or the prefix.

    `entry`: of the first match of a rule the plan alone, when hostname and path are all that it asks for; all regular
    expressions of a rule are one."""

    kind: int
    key: bytes
    entry: Match | RoutePlan | PathRegexes[Match]


def place(route: route_pb2.Route, plan: RoutePlan) -> list[Placement]:
    """The matches of a rule in order. Raises `Refused` for what cannot be matched with."""
    matches = route.matches
    if len(matches) == 1 and matches[0].SerializeToString() == _EVERY_PATH:
        return [Placement(PREFIX, ROOT, plan)]
    patterns = [match.path.regex.encode() for match in matches if match.path.HasField("regex")]
    together = set_of(patterns, options()) if len(patterns) > FEW else None
    placed = [_placement(match, index, plan, together is not None) for index, match in enumerate(matches)]
    regexes = tuple([(each.key, each.entry) for each in placed if isinstance(each.entry, Match) and each.kind == REGEX])
    if regexes:
        placed = [each for each in placed if each.kind != REGEX]
        price = 0 if together is None else price_of(patterns)
        placed.append(Placement(REGEX, b"", PathRegexes(regexes, together, price)))
    return placed or [Placement(PREFIX, ROOT, plan)]


def left(route: route_pb2.Route, plan: RoutePlan) -> list[Left]:
    """Where `place` entered the matches of a rule, each place once. Nothing is compiled for it."""
    matches = route.matches or (route_pb2.RouteMatch(),)
    return [*dict.fromkeys([_left(match, plan) for match in matches])]


def _left(message: route_pb2.RouteMatch, plan: RoutePlan) -> Left:
    kind, key, *_ = _path(message.path, is_tested=False)
    headers = len(_conditions(message.headers, True, False)) if message.headers else 0
    query = len(_conditions(message.query, False, False)) if message.query else 0
    return Left(kind, key, (0 if message.method else 1, -headers, -query, plan.order, plan.rule_index))


_EVERY_PATH = route_pb2.RouteMatch(path=route_pb2.PathMatch(prefix="/")).SerializeToString()
"""The match of rules that have none (default of HTTPRouteRule `matches`): most rules of most users."""


def _placement(message: route_pb2.RouteMatch, index: int, plan: RoutePlan, later: bool) -> Placement:
    """`later`: the regular expression of the path is known to be one, and compiled when it is asked by itself."""
    kind, key, test, precedence = _path(message.path, later=later)
    headers = _conditions(message.headers, lower=True) if message.headers else ()
    query = _conditions(message.query, lower=False) if message.query else ()
    if not (index or headers or query or message.method or test or precedence):
        return Placement(kind, key, plan)
    rank = (0 if message.method else 1, -len(headers), -len(query), plan.order, plan.rule_index, index)
    match = Match(plan, rank, message.method.encode(), test, precedence)
    match.headers, match.query = headers, query
    return Placement(kind, key, match)


class _Path(NamedTuple):
    """Where a path goes, and what else it asks for."""

    kind: int
    key: bytes
    test: Test | None = None
    precedence: int = 0


def _path(message: route_pb2.PathMatch, is_tested: bool = True, later: bool = False) -> _Path:
    """`is_tested`: with the test, where one is needed; `later`: which compiles its regular expression when asked."""
    kind = message.WhichOneof("kind")
    if kind == "prefix":
        prefix = message.prefix
        return _Path(PREFIX, ROOT if prefix == "/" else _canonical(prefix).rstrip(b"/"))
    if kind == "exact":
        return _Path(EXACT, _canonical(message.exact))
    if kind == "regex":
        pattern = message.regex.encode()
        if later:
            return _Path(REGEX, pattern, lambda path, exchange: compiled(pattern).matches(path, exchange))
        return _Path(REGEX, pattern, compiled(pattern).matches if is_tested else None)
    return _grpc_path(message.grpc, is_tested) if kind == "grpc" else _Path(PREFIX, ROOT)


def _grpc_path(message: route_pb2.GrpcMethodMatch, is_tested: bool) -> _Path:
    """A name that is to be matched exactly has all the characters that a regular expression can match: what matters is
    whether a service is asked for, then whether a method is (Gateway API GRPCRouteRule `matches`)."""
    service, method = message.service, message.method
    if not service and not method:
        return _Path(PREFIX, ROOT)
    if message.regex or not service:
        order = _GRPC_PRECEDENCE[bool(service), bool(method), message.regex]
        test = _names(service, method, message.regex) if is_tested else None
        return _Path(REGEX, f"{service}/{method}".encode(), test, order)
    if method:
        return _Path(EXACT, _canonical(f"/{service}/{method}"))
    return _Path(PREFIX, _canonical(f"/{service}"), None, _GRPC_PRECEDENCE[True, False, False])


_GRPC_PRECEDENCE = {
    # service, method, regular expression
    (True, True, True): 5,  # service and method by name are found before all others, by the path
    (True, False, False): 4,
    (True, False, True): 3,
    (False, True, False): 2,
    (False, True, True): 1,
}


def _names(service: str, method: str, is_regex: bool) -> Test:
    """A test of a path "/<service>/<method>"; "" is any."""
    first, second = (_name(text.encode(), is_regex) if text else None for text in (service, method))

    def test(path: bytes, exchange: Exchange) -> bool:
        names = path.split(b"/", 3)
        return (
            len(names) == 3
            and (first is None or first(names[1], exchange))
            and (second is None or second(names[2], exchange))
        )

    return test


def _name(text: bytes, is_regex: bool) -> Test:
    return compiled(text).matches if is_regex else lambda name, _: name == text


def _canonical(path: str) -> bytes:
    """Written as requests' paths are when they are matched (`http/uri`)."""
    canonical = canonical_path(path.encode()) if path.startswith("/") else None
    if canonical is None:
        raise Refused(f"path {path!r} can match no request: it must begin with / and hold only what a path may")
    return canonical


def _conditions(
    messages: Iterable[route_pb2.ValueMatch], lower: bool, is_tested: bool = True
) -> tuple[_Condition, ...]:
    found: dict[bytes, _Condition] = {}
    for message in messages:
        name = message.name.encode()
        if lower:
            if is_name(name) is None:
                raise Refused(f"{message.name!r} is not a header name")
            name = plain_name(name)
        if name in found:
            continue  # Gateway API: only the first entry of a name counts
        if message.WhichOneof("kind") == "regex":
            pattern = message.regex.encode()
            found[name] = (name, pattern, compiled(pattern) if is_tested else None)
        else:
            found[name] = (name, message.exact.encode(), None)
    return tuple(found.values())
