"""What is refused when an expression is configured, and where; what types are found; what is read."""

from __future__ import annotations

import pytest

from gatewright.cel.environment import Environment, Field, open_object
from gatewright.cel.errors import CelCheckError
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
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, column: int, part: str) -> None:
    with pytest.raises(CelCheckError) as caught:
        compile_expression(text, ENVIRONMENT)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (1, column)
    assert part in problem.message + problem.hint


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


def test_a_bad_pattern_writes_nothing_into_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CelCheckError):
        compile_expression("request.path.matches('(')", ENVIRONMENT)
    assert capfd.readouterr() == ("", "")
