"""Which route takes a request: expectations after Gateway API and the choices in `table/router` and `matches`."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.table.binds import choose
from dataplane.table.router import prefixes_of
from gatewright.wire.v1 import route_pb2
from tests.fakes.memory_proxy import ROUTES, MemoryProxy
from tests.fakes.table_state import TableRun, bind, exchange, listener, match, route


def table(*routes: Any) -> TableRun:
    run = TableRun()
    run.apply(bind(), listener(), *routes)
    assert run.refused == {}
    return run


HOSTNAMES = table(
    route("exact", hosts=["shop.example.com"], prefix="/"),
    route("deep", hosts=["*.api.example.com"], prefix="/"),
    route("wide", hosts=["*.example.com"], prefix="/"),
    route("com", hosts=["*.com"], prefix="/only"),
    route("any", prefix="/"),
    route("any-long", prefix="/very/long"),
)


@pytest.mark.parametrize(
    ("host", "path", "expected"),
    [
        ("shop.example.com", "/", "exact"),
        ("www.example.com", "/", "wide"),
        ("a.b.example.com", "/", "wide"),  # one or more labels
        ("v1.api.example.com", "/", "deep"),
        ("a.v1.api.example.com", "/", "deep"),
        ("api.example.com", "/", "wide"),  # the apex is not covered by its own wildcard
        ("example.com", "/only", "com"),
        ("example.com", "/", "any"),  # *.com has no rule for it: fall through
        ("example.org", "/", "any"),
        ("xexample.com", "/", "any"),  # whole labels
        ("com", "/only", "any"),
        ("", "/", "any"),  # HTTP/1.0 without Host
        ("[::1]", "/", "any"),
        ("shop.example.com", "/very/long/path", "exact"),  # hostname before path
        ("1.2.3.4", "/very/long", "any-long"),
    ],
)
def test_hostnames(host: str, path: str, expected: str) -> None:
    assert HOSTNAMES.find(host, path) == expected


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_rule_takes_what_any_of_its_matches_takes(count: int) -> None:
    run = table(route("all", *[match(prefix=f"/{number}") for number in range(count)]), route("none", exact="/x"))
    assert [run.find("a.example", f"/{number}/y") for number in range(4)] == ["all"] * count + [None] * (4 - count)


def test_falls_through_to_less_specific_hostnames_of_the_listener() -> None:
    run = table(
        route("narrow", hosts=["a.b.example"], exact="/one"),
        route("middle", hosts=["*.b.example"], exact="/two"),
        route("wide", hosts=["*.example"], exact="/three"),
    )
    found = [run.find("a.b.example", path) for path in ("/one", "/two", "/three", "/four")]
    assert found == ["narrow", "middle", "wide", None]


def test_never_falls_through_to_another_listener() -> None:
    run = TableRun()
    run.apply(
        bind(),
        listener("open"),
        listener("wild", "*.example"),
        listener("own", "a.example"),
        route("open", listeners=["open"], prefix="/"),
        route("wild", listeners=["wild"], prefix="/"),
        route("own", listeners=["own"], exact="/own"),
    )
    assert run.find("a.example", "/own") == "own"
    assert run.find("a.example", "/other") is None
    assert run.find("b.example", "/other") == "wild"
    assert run.find("c.b.example", "/other") == "wild"
    assert run.find("example", "/other") == "open"


def test_a_route_on_two_listeners_serves_both() -> None:
    run = TableRun()
    run.apply(
        bind(), listener("one", "one.example"), listener("two", "two.example"), route("r", listeners=["one", "two"])
    )
    assert (run.find("one.example"), run.find("two.example"), run.find("three.example")) == ("r", "r", None)


def test_choose_takes_the_longest_wildcard() -> None:
    run = TableRun()
    run.apply(bind(), listener("a", "*.com"), listener("b", "*.example.com"), listener("c", "x.example.com"))
    names = {}
    for host in (b"x.example.com", b"y.example.com", b"z.y.example.com", b"example.com", b"com", b"a.org"):
        plan = choose(run.bind(), host)
        names[host] = None if plan is None else plan.name
    assert list(names.values()) == ["c", "b", "b", "a", None, None]


PATHS = table(
    route("root", prefix="/"),
    route("foo", prefix="/foo"),
    route("foo-exact", exact="/foo"),
    route("foo-bar", prefix="/foo/bar/"),
    route("slash", exact="/dir/"),
    route("escaped", exact="/caf%c3%a9/%7Euser"),
    route("long", prefix="/" + "x" * 900),
)


@pytest.mark.parametrize(
    ("path", "expected", "prefix"),
    [
        ("/", "root", b"/"),
        ("/foo", "foo-exact", b""),
        ("/foo/", "foo", b"/foo"),
        ("/foo/x", "foo", b"/foo"),
        ("/foobar", "root", b"/"),  # whole segments
        ("/foo/bar", "foo-bar", b"/foo/bar"),  # the slash at a prefix's end does not count
        ("/foo/bar/", "foo-bar", b"/foo/bar"),
        ("/foo/barista", "foo", b"/foo"),
        ("/foo/bar/baz/qux", "foo-bar", b"/foo/bar"),
        ("/foo//bar", "foo", b"/foo"),
        ("/FOO", "root", b"/"),  # case-sensitive
        ("/dir/", "slash", b""),
        ("/dir", "root", b"/"),
        ("/caf%C3%A9/~user", "escaped", b""),  # compared in canonical form
        ("/" + "x" * 900 + "/y", "long", b"/" + b"x" * 900),
        ("/" + "x" * 901, "root", b"/"),
        ("*", "root", b"/"),  # OPTIONS *
        ("/" * 5000, "root", b"/"),
    ],
)
def test_paths(path: str, expected: str, prefix: bytes) -> None:
    x = exchange(path=path)
    plan = PATHS.plan(x)
    assert plan is not None and plan.key == f"route/httproute/default/{expected}/0"
    assert x.plan is plan and x.prefix == prefix


def test_no_rule_for_the_path() -> None:
    run = table(route("r", prefix="/a"), route("e", exact="/b"))
    x = exchange(path="/c")
    assert run.plan(x) is None
    assert x.plan is None


REGEXES = table(
    route("root", prefix="/"),
    route("ids", regex="/items/[0-9]+"),
    route("any", regex="/.*/z"),
    route("prefix", prefix="/items/12345678901"),
    route("exact", exact="/items/7"),
    route("search", regex="/items/7?", method="SEARCH"),
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/items/12", "ids"),
        ("/items/7", "exact"),
        ("/items/12/more", "root"),  # the whole path must match
        ("/items/12345678901", "prefix"),  # 18 characters beat the expression's 13
        ("/items/z", "any"),
        ("/x/y/z", "any"),
        ("/items", "root"),
    ],
)
def test_regular_expressions_compete_with_prefixes_by_length(path: str, expected: str) -> None:
    assert REGEXES.find(path=path) == expected


def test_regular_expression_sets_no_prefix_and_a_prefix_beside_it_does() -> None:
    x = exchange(path="/items/12")
    REGEXES.plan(x)
    assert x.prefix == b""
    x = exchange(path="/items/x")
    REGEXES.plan(x)
    assert x.prefix == b"/"


METHODS = table(
    route("get", prefix="/a", method="GET"),
    route("all", prefix="/a", headers={"x": "1", "y": "2"}),
    route("long", prefix="/a/b"),
)


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("GET", "/a", b"x: 1\r\ny: 2\r\n", "get"),  # a method before any number of headers
        ("PUT", "/a", b"x: 1\r\ny: 2\r\n", "all"),
        ("PUT", "/a", b"", None),
        ("GET", "/a/b", b"", "long"),  # path before method
        ("get", "/a", b"", None),  # methods are case-sensitive
    ],
)
def test_methods(method: str, path: str, headers: bytes, expected: str | None) -> None:
    assert METHODS.find(method=method, path=path, headers=headers) == expected


HEADERS = table(
    route("two", prefix="/", headers={"X-Version": "v2", "accept": "a"}),
    route("one", prefix="/", headers={"x-version": "v2"}),
    route("regex", prefix="/", headers={"x-version": "~v[0-9]"}),
    route("query", prefix="/", query={"v": "2"}),
    route("rest", prefix="/"),
)


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        (b"x-version: v2\r\naccept: a\r\n", "", "two"),
        (b"X-VERSION: v2\r\n", "", "one"),  # names are case-insensitive
        (b"x-version: V2\r\n", "", "rest"),  # values are not
        (b"x-version: v1\r\nx-version: v2\r\n", "", "one"),  # any line of a repeated header
        (b"x-version: v3\r\n", "v=2", "regex"),  # a header before a query parameter
        (b"x-version: v33\r\n", "", "rest"),  # the whole value
        (b"x-versions: v2\r\n", "", "rest"),
        (b"y: x-version: v2\r\n", "", "rest"),
        (b"", "v=2", "query"),
        (b"", "v=1&v=2", "rest"),  # the first value of a repeated parameter
        (b"", "a=1&v=2&b", "query"),
        (b"", "%76=%32", "query"),  # form decoding
        (b"", "V=2", "rest"),
        (b"", "v=", "rest"),
        (b"", "", "rest"),
    ],
)
def test_headers_and_query(headers: bytes, query: str, expected: str) -> None:
    assert HEADERS.find(headers=headers, query=query) == expected


@pytest.mark.parametrize(
    ("wanted", "query", "expected"),
    [
        ({"q": "a b"}, "q=a+b", True),
        ({"q": "a b"}, "q=a%20b", True),
        ({"q": "a+b"}, "q=a%2Bb", True),
        ({"q": ""}, "q", True),
        ({"q": ""}, "q=", True),
        ({"q": ""}, "p", False),
        ({"q": "~[a-z]+"}, "q=abc", True),
        ({"q": "~[a-z]+"}, "q=abc1", False),
        ({"q": "1", "r": "2"}, "r=2&q=1", True),
        ({"q": "1", "r": "2"}, "q=1", False),
        ({"q": "a=b"}, "q=a=b", True),
    ],
)
def test_query(wanted: dict[str, str], query: str, expected: bool) -> None:
    run = table(route("r", prefix="/", query=wanted))
    assert (run.find(query=query) == "r") is expected


def test_only_the_first_condition_on_a_name_counts() -> None:
    message = match(prefix="/", headers={"x": "1"}, query={"q": "1"})
    message.headers.add(name="X", exact="2")
    message.query.add(name="q", exact="2")
    run = table(route("r", message))
    assert run.find(headers=b"x: 1\r\n", query="q=1") == "r"
    assert run.find(headers=b"x: 2\r\n", query="q=2") is None


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ({"order": "2026/b"}, {"order": "2025/z"}, "second"),  # the older route
        ({"order": "2026/b"}, {"order": "2026/a"}, "second"),  # then by name
        ({"headers": {"a": "1"}}, {"headers": {"a": "1", "b": "1"}}, "second"),
        ({"query": {"a": "1"}}, {"query": {"a": "1", "b": "1"}}, "second"),
        ({"query": {"a": "1", "b": "1"}}, {"headers": {"a": "1"}}, "second"),
        ({"headers": {"a": "1", "b": "1"}}, {"method": "GET"}, "second"),
        ({"order": "1", "headers": {"a": "1"}}, {"order": "2", "headers": {"a": "~1"}}, "first"),
    ],
)
def test_precedence_between_equal_paths(first: dict[str, Any], second: dict[str, Any], winner: str) -> None:
    request: dict[str, Any] = {"headers": b"a: 1\r\nb: 1\r\n", "query": "a=1&b=1"}
    for path in ({"prefix": "/"}, {"exact": "/"}, {"prefix": "/p"}, {"regex": "/p"}):
        target = "/p" if "/p" in path.values() else "/"
        one, two = route("first", **path, **first), route("second", **path, **second)
        for routes in ((one, two), (two, one)):
            assert table(*routes).find(path=target, **request) == winner


def test_rule_order_then_match_order() -> None:
    first = route("r", prefix="/", order="1", rule=0)
    second = route("r", prefix="/", order="1", rule=1)
    for routes in ((first, second), (second, first)):
        plan = table(*routes).plan(exchange())
        assert plan is not None and plan.rule_index == 0


def test_ten_rules_are_in_order_of_number_not_of_text() -> None:
    run = table(*(route("r", prefix="/", order="1", rule=rule) for rule in (10, 2)))
    plan = run.plan(exchange())
    assert plan is not None and plan.rule_index == 2


def test_a_rule_without_matches_takes_every_path() -> None:
    assert table(route("r")).find(path="/x/y") == "r"
    assert table(route("r", route_pb2.RouteMatch(method="PUT"))).find(path="/x", method="PUT") == "r"


def test_a_winning_rule_without_backends_does_not_fall_through() -> None:
    plan = table(route("empty", prefix="/a"), route("rest", prefix="/")).plan(exchange(path="/a"))
    assert plan is not None and plan.key == "route/httproute/default/empty/0" and plan.targets == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"regex": "/(a"}, "regular expression '/(a': missing ): /(a"),
        ({"exact": "a"}, "path 'a' can match no request"),
        ({"prefix": "/a b"}, "path '/a b' can match no request"),
        ({"prefix": "/", "headers": {"a b": "1"}}, "'a b' is not a header name"),
        ({"prefix": "/", "query": {"a": "~["}}, "regular expression '['"),
        ({"regex": "x" * 200 + "("}, "xxx..."),
        ({"regex": "((a{1,300}){1,300}){1,300}"}, "invalid repetition size"),
        ({"regex": "/(?=a)"}, "invalid perl operator"),
        ({"regex": r"/(a)\1"}, "invalid escape sequence"),
    ],
)
def test_what_cannot_be_matched_with_is_refused(fields: dict[str, Any], reason: str) -> None:
    run = TableRun()
    run.apply(bind(), listener(), route("bad", **fields), route("good", prefix="/"))
    assert list(run.refused) == ["route/httproute/default/bad/0"]
    assert reason in run.refused["route/httproute/default/bad/0"]
    assert run.find() == "good"


def test_a_path_of_slashes_is_not_looked_up_slash_by_slash() -> None:
    regex = "    - name: regex\n      matches: [{path: {type: RegularExpression, value: '/z[0-9]'}}]\n"
    prefix = "    - name: prefix\n      matches: [{path: {type: PathPrefix, value: /foo}}]\n"
    backends = "      backends: [{host: '127.0.0.1:9000'}]\n"
    proxy = MemoryProxy(ROUTES.replace("    - name: all\n", f"{regex}{backends}{prefix}{backends}    - name: all\n"))
    (plan,) = proxy.applier.current.table.binds.values()
    assert plan.default is not None
    level = plan.default.router.any
    assert level is not None
    assert [prefix for prefix, _ in prefixes_of(level, b"/foo/" + b"/" * 30_000)] == [b"/foo", b"/"]

    class Counting(bytes):
        looks = 0

        def rfind(self, *args: Any) -> int:
            Counting.looks += 1
            return super().rfind(*args)

    assert [prefix for prefix, _ in prefixes_of(level, Counting(b"/" * 30_000))] == [b"/"]
    assert Counting.looks < 10


def test_an_older_rule_wins_over_another_match_of_a_younger_one() -> None:
    """Whether the path is the first thing that a rule matches with, or the second, does not matter."""
    old = route("old", prefix="/p", order="2025-01-01T00:00:00Z/default/old")
    young = route("young", match(prefix="/x"), match(prefix="/p"), order="2026-01-01T00:00:00Z/default/young")
    pattern = route("pattern", regex="/[q]", order="2027-01-01T00:00:00Z/default/pattern")
    for changes in ((old, young), (young, old), (old, young, pattern), (pattern, young, old)):
        run = table(*changes)
        assert (run.find(path="/p"), run.find(path="/x")) == ("old", "young")


def test_a_rule_that_says_the_same_twice_is_there_once() -> None:
    same = [match(prefix="/p"), match(prefix="/p"), match(exact="/e"), match(exact="/e"), match(prefix="/")]
    run = table(route("r", *same))
    assert [run.find(path=path) for path in ("/p/a", "/e", "/other")] == ["r"] * 3
    run.apply(route("r", match(exact="/e")))
    assert [run.find(path=path) for path in ("/p/a", "/e", "/other")] == [None, "r", None]


def test_of_a_pattern_that_is_none_a_hundred_letters_are_shown_and_nothing_is_written(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for size, is_whole in ((100, True), (101, False)):
        run, pattern = TableRun(), "(" + "a" * (size - 1)
        run.apply(bind(), listener(), route("r", regex=pattern))
        (reason,) = run.refused.values()
        assert (f"'{pattern}'" in reason) is is_whole and pattern[:100] in reason
    assert capfd.readouterr() == ("", "")
