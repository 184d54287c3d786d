"""What is refused when an expression is configured, and where; what types are found; what is read."""

from __future__ import annotations

import inspect
import sys

import pytest

from gatewright.cel.environment import Environment, Field, open_object
from gatewright.cel.errors import CelCheckError, CelSyntaxError
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING, ObjectType, list_of, map_of

REQUEST = ObjectType(
    "request",
    [
        Field("method", STRING, "request_method"),
        Field("path", STRING, "request_path"),
        Field("body", STRING, "request_body", parsed="request_json"),
        Field("headers", map_of(STRING, STRING), "request_headers", lookup="request_header", fold=True),
        Field("size", INT, "request_size"),
        Field("client", ObjectType("client", [Field("id", STRING, "client_id")])),
        Field("values", map_of(STRING, list_of(STRING)), "request_values", lookup="request_value"),
    ],
)
ENVIRONMENT = Environment(
    [
        Field("request", REQUEST),
        Field("jwt", map_of(STRING, DYN), "jwt"),
        Field("tags", list_of(STRING), "tags"),
        Field("extra", open_object("extra", Field("known", INT, "extra_known"))),
    ]
)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("requst.path == 'a'", 1, 'unknown variable "requst"; did you mean "request"?'),
        ("request.path == blue", 17, "unknown variable \"blue\"; text stands in quotes: 'blue'; known: "),
        ("request.headers.x-team == 'a'", 19, 'in brackets: ["x-team"]'),
        ("jwt.user-id == 'a'", 10, 'unknown variable "id"; a name with - stands in brackets: ["user-id"]'),
        ("request.pth == 'a'", 9, 'request has no field "pth"; did you mean "path"?'),
        ("request.client.nam", 16, 'client has no field "nam"'),
        ("request['pth']", 8, 'no field "pth"'),
        ("request.path == 1", 14, "no such operation: string == int"),
        ("'a' + 1", 5, "no such operation: string + int"),
        ("1u + 1", 4, "no such operation: uint + int"),
        ("1 == 1u", 3, "no such operation: int == uint"),
        ("!1", 1, "! needs bool, found int"),
        ("-'a'", 1, "- does not take string"),
        ("request.size && true", 9, "&& needs bool, found int"),
        ("request.path ? 1 : 2", 9, "?: needs bool, found string"),
        ("request.path.startsWith(1)", 14, "startsWith does not take (string, int); it is string.startsWith(string)"),
        ("request.path.startsWith()", 14, "startsWith does not take (string)"),
        ("request.path.startWith('a')", 14, 'unknown function "startWith"; did you mean "startsWith"?'),
        ("size(1)", 1, "size does not take (int)"),
        ("startsWith('a', 'b')", 1, "startsWith is a method"),
        ("tags['a']", 5, "a list has no index of type string"),
        ("jwt[1]", 4, "has no key of type int"),
        ("tags.x", 6, "list(string) has no fields"),
        ("request.size.map(x, x)", 14, "map does not take int"),
        ("tags.all(x, x)", 13, "all needs bool, found string"),
        ("tags.map(x, x, x)", 13, "map needs bool, found string"),
        ("tags.transformList(i, x, i, x)", 26, "transformList needs bool, found int"),
        ("1 in tags", 3, "no such operation: int in list(string)"),
        ("{[1]: 2}", 2, "a map has no key of type list(int)"),
        ("[?1]", 3, "expected an optional, found int"),
        ("a.B{c: 1}", 1, "there are no messages: a.B"),
        ("tags.map(x, y)", 13, 'unknown variable "y"'),
        ("request.path.matches('(')", 22, "not a regular expression"),
        ("cidr('10.0.0.0/33').containsIP('10.0.0.1')", 6, "not a network"),
        ("ip('10.0.0')", 4, "not an IP address"),
        ("timestamp('yesterday')", 11, "not a timestamp"),
        ("duration('5 minutes')", 10, "not a duration"),
        ("request.size[0]", 13, "int has no index"),
        (
            "sets.contains([1], ['a'])",
            6,
            "contains does not take (list(int), list(string)); it is sets.contains(list(A), list(A))",
        ),
        ("optional.of(1).orValue('a')", 16, "orValue does not take (optional(int), string)"),
        ("{'a': 1}.merge({1: 1})", 10, "merge does not take (map(string, int), map(int, int))"),
        ("request.client.startsWith('a')", 16, "startsWith does not take (client, string)"),
        ("request == request.client", 9, "no such operation: request == client"),
        ("{'a': 1} == {'a': 'b'}", 10, "no such operation: map(string, int) == map(string, string)"),
        ("{'a': 1} == {1: 1}", 10, "no such operation: map(string, int) == map(int, int)"),
        ("[1] == {1: 1}", 5, "no such operation: list(int) == map(int, int)"),
        ("[1] + {1: 1}", 5, "no such operation: list(int) + map(int, int)"),
        ("jwt.a - 'b'", 7, "no such operation: dyn - string"),
        ("jwt.a in 1", 7, "no such operation: dyn in int"),
        ("1u in {'a': 1}", 4, "no such operation: uint in map(string, int)"),
        ("tags.sortBy(x, x).mapValues(v, v)", 19, "mapValues does not take list(string)"),
        ("jwt.filterKeys(k, k)", 19, "filterKeys needs bool, found string"),
        ("{'a': 1}.sortBy(x, x)", 10, "sortBy does not take map(string, int)"),
        ("{1.5: 2}", 2, "a map has no key of type double"),
        ("{'a': 1, null: 2}", 10, "a map has no key of type null_type"),
        ("{?'a': 1}", 8, "expected an optional, found int"),
        ("-1u", 1, "- does not take uint"),
        ("optional.of(1).optFlatMap(x, x)", 30, "optFlatMap needs an optional, found int"),
        ("coalesce(nowhere, tags.x)", 24, "list(string) has no fields"),
        ("coalesce(nowhere, elsewhere)", 19, 'unknown variable "elsewhere"'),
        ("coalesce(1 + 'a', 2)", 12, "no such operation: int + string"),
        ("'a'.regexReplace('(', 'x')", 18, "not a regular expression"),
        ("ip('10.0.0.1').startsWith('a')", 16, "startsWith does not take (net.IP, string)"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, column: int, part: str) -> None:
    with pytest.raises(CelCheckError) as caught:
        compile_expression(text, ENVIRONMENT)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (1, column)
    assert part in problem.message + problem.hint


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("requst", 6),
        ("request.pth", 3),
        ("tags.xy", 2),
        ("startWith(tags)", 9),
        ("startsWith('a', 'b')", 10),
        ("request.path.startsWith(1)", 10),
        ("request.size.exists(x, true)", 6),
        ("a.Bcd{}", 5),
        ("1 == 'a'", 2),
        ("1 <= 'a'", 2),
        ("1 in 'a'", 2),
        ("jwt.a - 'b'", 1),
        ("!1", 1),
        ("tags['a']", 1),
    ],
)
def test_a_mistake_is_as_long_as_the_word_that_is_wrong(text: str, length: int) -> None:
    """What an editor underlines."""
    with pytest.raises(CelCheckError) as caught:
        compile_expression(text, ENVIRONMENT)
    assert [problem.length for problem in caught.value.problems] == [length]


def test_all_problems_come_at_once_in_the_order_of_the_text() -> None:
    with pytest.raises(CelCheckError) as caught:
        compile_expression("request.a == 1 &&\n  unknown(jwt) &&\n  !'x'", ENVIRONMENT)
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(1, 9), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("request.path", "string"),
        ("request.headers['a']", "string"),
        ("request.headers[?'a']", "optional(string)"),
        ("jwt.sub", "dyn"),
        ("tags.map(x, x.size())", "list(int)"),
        ("tags.filter(x, x != '')", "list(string)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("[1, 'a']", "list(dyn)"),
        ("[]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("[[1], []]", "list(list(int))"),
        ("[[1], ['a']]", "list(list(dyn))"),
        ("[{'a': []}, {1: [2]}]", "list(map(dyn, list(int)))"),
        ("[{'a': [2]}, {1: []}]", "list(map(dyn, list(int)))"),
        ("[optional.none(), optional.of(1)]", "list(optional(int))"),
        ("[null, optional.of(1)]", "list(optional(int))"),
        ("[optional.of(1), null]", "list(optional(int))"),
        ("[null, 1]", "list(dyn)"),
        ("request.size > 1 ? [] : ['a']", "list(string)"),
        ("request.size > 1 ? 1 : 'a'", "dyn"),
        ("{'a': [], 'b': [1]}", "map(string, list(int))"),
        ("jwt.n + 1", "int"),
        ("optional.of(1).orValue(2)", "int"),
        ("extra.known + 1", "int"),
        ("extra.other.deep", "dyn"),
        ("tags.map(x, {x: 1})[0]", "map(string, int)"),
        ("default(request.headers.a, 'x')", "string"),
        ("default(nowhere.at.all, 1)", "dyn"),
        ("[].map(x, [x, [x]])", "list(list(list(dyn)))"),  # of no type that has itself inside
        ("[].map(x, {'a': x, 'b': [x]})", "list(map(string, list(dyn)))"),
        ("{'a': 1}.filterKeys(k, true)", "map(string, int)"),
        ("jwt.a.filterKeys(k, true)", "map(dyn, dyn)"),
        ("request.client.filterKeys(k, true)", "map(dyn, dyn)"),
        ("{'a': 1}.mapValues(v, [v])", "map(string, list(int))"),
        ("jwt.a.mapValues(v, 1)", "map(dyn, int)"),
        ("request.client.mapValues(v, v)", "map(dyn, dyn)"),
        ("tags.sortBy(x, x.size())", "list(string)"),
        ("jwt.a.sortBy(x, 1)", "list(dyn)"),
        ("jwt.a.filter(x, true)", "list(dyn)"),
        ("{'a': 1}.filter(x, true)", "list(string)"),
        ("jwt.a.map(x, x)", "list(dyn)"),
        ("request.client.map(x, x)", "list(string)"),
        ("request.client.transformList(k, v, k)", "list(string)"),
        ("request.client.transformList(k, v, v)", "list(dyn)"),
        ("tags.transformList(i, v, i)", "list(int)"),
        ("tags.transformList(i, v, v)", "list(string)"),
        ("tags.transformMap(i, v, v)", "map(int, string)"),
        ("{true: 1}.transformMap(k, v, 'a')", "map(bool, string)"),
        ("jwt.a.transformMap(k, v, 1)", "map(dyn, int)"),
        ("request.client.transformMap(k, v, 1)", "map(dyn, int)"),
        ("tags.transformMapEntry(i, v, {v: i})", "map(string, int)"),
        ("tags.transformMapEntry(i, v, jwt.a)", "map(dyn, dyn)"),
        ("tags.exists_one(x, x == '')", "bool"),
        ("jwt.a.exists(k, v, v == k)", "bool"),
        ("optional.of(1).optMap(x, 'a')", "optional(string)"),
        ("optional.of(1).optFlatMap(x, optional.of('a'))", "optional(string)"),
        ("jwt.a.optFlatMap(x, jwt.b)", "dyn"),
        ("coalesce(null, null, 1)", "int"),
        ("coalesce(1, 'a')", "dyn"),
        ("1.with(x, 'a')", "string"),
        ("cel.block([1, [cel.index(0)]], cel.index(1))", "list(int)"),
        ("cel.block([1], cel.block(['a'], cel.index(0)))", "string"),
        ("request.merge({'a': 1})", "map(string, int)"),
        ("request == {'a': 1}", "bool"),
        ("[1] + ['a']", "list(dyn)"),
        ("[1] + [2]", "list(int)"),
        ("jwt.a + [1]", "list(dyn)"),
        ("jwt.a + 'b'", "string"),
        ("jwt.a - jwt.b", "dyn"),
        ("jwt.a < 1", "bool"),
        ("timestamp(0) - jwt.a", "dyn"),
        ("duration('1s') + jwt.a", "dyn"),
        ("-jwt.a", "dyn"),
        ("-1.5", "double"),
        ("-request.size", "int"),
        ("!jwt.a", "bool"),
        ("{'a': 1}['a']", "int"),
        ("{'a': 1}[?'a']", "optional(int)"),
        ("optional.of({'a': 1}).a", "optional(int)"),
        ("optional.of({'a': 1})['a']", "optional(int)"),
        ("optional.of([1])[0]", "optional(int)"),
        ("optional.of({'a': 1}).?a", "optional(int)"),
        ("request.client['id']", "string"),
        ("request.client[jwt.a]", "dyn"),
        ("request.?client.id", "optional(string)"),
        ("[?optional.of(1)]", "list(int)"),
        ("{?'a': optional.of(1)}", "map(string, int)"),
        ("request.size > 1 ? null : optional.of(1)", "optional(int)"),
        ("b'a' + b'b'", "bytes"),
        ("1u", "uint"),
        ("null", "null_type"),
        ("int", "type"),
        ("timestamp(0) - timestamp(0)", "duration"),
        ("ip('::1')", "net.IP"),
    ],
)
def test_the_type_of(text: str, kind: str) -> None:
    assert str(compile_expression(text, ENVIRONMENT).type) == kind


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("request.method == 'GET'", {"request.method"}),
        ("request.headers['X-Foo'] + request.headers.bar", {"request.headers:x-foo", "request.headers:bar"}),
        ("'X-Foo' in request.headers", {"request.headers:x-foo"}),
        ("request.headers.all(k, k != jwt.sub)", {"request.headers", "jwt"}),
        ("has(request.headers.foo) && request['body'] != ''", {"request.headers:foo", "request.body"}),
        ("request.client.id", {"request.client.id"}),
        ("'a' in request.values.b", {"request.values:b"}),
        ("toJson(request)", {"request"}),
        ("[1].map(request, request + 1)", set()),
        ("variables().size()", {"*"}),
        ("extra.other", {"extra"}),
        ("extra.known", {"extra.known"}),
        ("request.headers[jwt.name]", {"request.headers", "jwt"}),
        ("'A' in request.values", {"request.values:A"}),
        ("jwt.a in request.headers", {"request.headers", "jwt"}),
        ("request.?client.id", {"request"}),
        ("request.headers.?foo", {"request.headers:foo"}),
        ("request.headers[?'Foo']", {"request.headers:foo"}),
        ("{'a': 1}['a'] in [1]", set()),
        ("coalesce(request.method, jwt.a)", {"request.method", "jwt"}),
        (".tags.size()", {"tags"}),
        ("[1].map(tags, .tags.size())", {"tags"}),
    ],
)
def test_what_is_read(text: str, names: set[str]) -> None:
    assert compile_expression(text, ENVIRONMENT).references.attributes == names


def test_a_part_and_a_whole_count_as_read() -> None:
    read = compile_expression("toJson(request) + jwt.sub", ENVIRONMENT).references
    assert read.reads("request.body")
    assert read.reads("jwt")
    assert not read.reads("tags")
    assert compile_expression("request.headers.a", ENVIRONMENT).references.reads("request.headers")
    entry = compile_expression("request.headers.a", ENVIRONMENT).references
    assert entry.reads("request") and not entry.reads("request.head") and not entry.reads("request.headers.b")
    assert compile_expression("variables()", ENVIRONMENT).references.reads("request.body")


def test_a_caller_whose_stack_is_nearly_full_gets_a_refusal() -> None:
    """At every depth from which it can be called at all it is a program or a refusal."""

    def called(depth: int) -> set[str]:
        try:
            found = called(depth + 1)
        except RecursionError:
            return {"full"}
        try:
            compile_expression("[request.size, 1, 2].map(x, x + 1).size() > 1 || tags == []", ENVIRONMENT)
        except CelSyntaxError as error:
            return found | {error.problems[0].message}
        return found | {"made"}

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 120)
    try:
        assert called(0) == {"full", "nested too deeply", "made"}
    finally:
        sys.setrecursionlimit(limit)


def test_a_bad_pattern_writes_nothing_into_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CelCheckError):
        compile_expression("request.path.matches('(')", ENVIRONMENT)
    with pytest.raises(CelCheckError):
        compile_expression("request.path.regexReplace('(not one', 'x')", ENVIRONMENT)
    assert capfd.readouterr() == ("", "")
