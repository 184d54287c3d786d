"""The generated plan: its form, that nothing of the user gets into it, where its errors are, how far it goes."""

from __future__ import annotations

import ast
import io
import keyword
import re
import sys
import threading
import tokenize
from collections.abc import Iterator
from typing import ClassVar

import pytest
from hypothesis import given, settings

from gatewright.cel.emitters import EMITTERS
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import CelError, Fault, line_and_column
from gatewright.cel.plan import Plan
from gatewright.cel.program import Program, compile_expression, typed
from gatewright.cel.types import DYN, STRING, list_of
from tests.oracles.plans import alike, all_outcomes
from tests.unit.cel.generate import CONTEXT, EXPRESSIONS, TYPED, UNTYPED, VARIABLES
from tests.unit.cel.test_check import ENVIRONMENT


class Context:
    """A request as a context offers it; `asked` are the headers that were looked up."""

    request_method = "GET"
    request_path = "/api/x"
    request_size = 5
    request_json: ClassVar[dict[str, str]] = {"model": "m"}
    tags = ("a", "bb")

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def jwt(self) -> dict[str, object]:
        raise Fault("no such key: jwt")

    def request_header(self, name: str) -> str | None:
        self.asked.append(name)
        return {"x-foo": "bar"}.get(name)


def body(program: Program) -> str:
    return program.source.partition("\n")[2].strip()


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("request.method == 'GET'", "return c.request_method == k0"),
        ("request.method in ['GET', 'PUT']", "return c.request_method in k2"),
        ("request.path.startsWith('/a')", "return c.request_path.startswith(k0)"),
        ("has(request.headers.Foo)", "return c.request_header(k0) is not None"),
        ("'Foo' in request.headers", "return c.request_header(k1) is not None"),
        ("'a' in request.values.b", "return k0 in (v2 if (v2 := c.request_value(k1)) is not None else missing(k1))"),
        ("request.method in request.headers", "return c.request_method in c.request_headers"),
        ("json(request.body).model", "return v1[k0] if type((v1 := c.request_json)) is dict else select(v1, k0)"),
        ("cidr('10.0.0.0/8').prefixLength()", "return 8"),
        ("1 + 2 * 3", "return 7"),
        ("'a' + 'b'", "return k2"),
        ("duration('1h') > duration('1m')", "return True"),
    ],
)
def test_typed_operations_are_pythons_own(text: str, plan: str) -> None:
    assert plan in body(compile_expression(text, ENVIRONMENT))


def test_a_literal_header_name_is_folded_and_looked_up_alone() -> None:
    context = Context()
    assert compile_expression("request.headers['X-Foo'] == 'bar'", ENVIRONMENT).evaluate(context) is True
    assert context.asked == ["x-foo"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("jwt.sub == 'a' || request.method == 'GET'", True),
        ("jwt.sub == 'a' && request.method == 'PUT'", False),
        ("request.headers.none == 'a' || true", True),
        ("default(jwt.sub, 'anonymous')", "anonymous"),
        ("coalesce(request.headers.none, jwt.sub, request.headers['x-foo'])", "bar"),
        ("has(jwt.sub) || true", True),
        ("has(request.client)", True),
        ("has(request.headers.none)", False),
        ("request.headers[?'none'].orValue('d')", "d"),
        ("request.headers.?none.hasValue()", False),
        ("json(request.body).model", "m"),
        ("tags.exists(t, jwt[t] == 1 || t == 'bb')", True),
        ("tags.all(t, t == 'zz' && jwt.sub == t)", False),
        ("cel.bind(x, jwt.sub, request.size > 1 || x == 'a')", True),
        ("default(jwt.sub == 'a' || request.method == 'GET', false)", True),
        ("default(default(jwt.sub == 'a' || true, false), 1)", True),
        ("coalesce(jwt.sub, tags.exists(t, jwt[t] == 1 || t == 'bb'), 1)", True),
        ("['a'].map(t, default(cel.bind(x, jwt.sub, t), 'b'))[0]", "a"),
        ("cel.bind(x, jwt.sub, x == 'a' || x == 'b' || true)", True),
        ("cel.bind(x, request.headers.none, x == 'a' || x == 'b' || true)", True),
        ("cel.bind(x, request.headers.none, ['a'].exists(i, i == x || i == 'a'))", True),
        ("cel.bind(x, request.headers.none, tags.all(t, t == x && t == 'zz'))", False),
        ("cel.bind(x, jwt.sub, [1].exists(i, x == 'b' || i == 1))", True),
    ],
)
def test_errors_are_absorbed_where_the_language_says_so(text: str, value: object) -> None:
    assert compile_expression(text, ENVIRONMENT).evaluate(Context()) == value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("request.method == 'GET' && request.headers.none == 'a'", 44, "no such key: none"),
        ("true && (1 / request.size == 0 ?\n [1][3] : 1) == 1", None, "index out of range"),
        ("jwt.a == 1 || jwt.b == 2", 1, "no such key: jwt"),
        ("tags.map(t, t + 'x')[7]", 21, "index out of range"),
        ("tags.map(t, int(t))", 13, "not an int"),
        ("[0].map(x, request.size / x)", 25, "division by zero"),
        ("9223372036854775807 + request.size", 21, "integer overflow"),
        ("fail('no')", 1, "no"),
        ("json(request.body).model && true", 20, "expected bool, found string"),
        ("true && (false || json(request.body).model)", 38, "expected bool, found string"),
        ("tags.exists(t, json(request.body).model)", 35, "expected bool, found string"),
        ("cel.bind(x, jwt.sub, x == 'a' || x == 'b')", 13, "no such key: jwt"),
        ("cel.bind(x, request.headers.none, ['a'].exists(i, i == x))", 29, "no such key: none"),
    ],
)
def test_an_error_knows_its_place(text: str, column: int | None, message: str) -> None:
    with pytest.raises(CelError, match=message) as caught:
        compile_expression(text, ENVIRONMENT).evaluate(Context())
    assert caught.value.offset is not None
    line, found = line_and_column(text, caught.value.offset)
    assert (line, found) == ((1, column) if column else (2, 5))


# What can be in a plan: generated names, and those of functions, methods and attributes of ours.
NAME = re.compile(r"[kvf][0-9]+|b|c|e|FAULTS|NATIVE|Optional|[a-z][a-z0-9_]{2,30}")
USER_WORDS = frozenset((*VARIABLES, "missing_variable"))


def tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(source).readline)


HOSTILE = ["'; import os; '", '"""', "__import__", "k0", "c", "\\N{BULLET}", "{x}", "%s", "\x00", "\u2028", "'\n'"]


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize(
    "form", ["{0}", "x[{0}]", "x.indexOf({0})", "{{{0}: {0}}}", "x.matches({0})", "[{0}].map(v, v + {0})"]
)
def test_text_of_the_user_never_reaches_the_plan(word: str, form: str) -> None:
    literal = "'" + "".join(f"\\U{ord(letter):08x}" for letter in word) + "'"
    program = compile_expression(form.format(literal), Environment([Field("x", DYN)]), checked=False)
    kinds = {token.type for token in tokens(program.source)}
    assert tokenize.STRING not in kinds
    assert word not in program.source or word in ("c", "k0")


@given(EXPRESSIONS)
@settings(max_examples=150, deadline=None)
def test_a_plan_has_only_names_of_ours(text: str) -> None:
    for careful in (False, True):
        plan = Plan(TYPED, EMITTERS, careful=careful, restart=repr)
        module = plan.module(typed(text, TYPED, checked=False))
        for token in tokens(ast.unparse(module)):
            assert token.type not in (tokenize.STRING, tokenize.COMMENT)
            if token.type == tokenize.NAME:
                assert keyword.iskeyword(token.string) or NAME.fullmatch(token.string)
                assert token.string not in USER_WORDS
        assert "__builtins__" not in plan.names


@given(EXPRESSIONS)
@settings(max_examples=300, deadline=None)
def test_quick_careful_and_untyped_plans_agree(text: str) -> None:
    """The same value or an error, and no exception but the language's, whatever types the checker believed in."""
    quick, *others = all_outcomes(text, TYPED, UNTYPED, CONTEXT)
    for other in others:
        assert alike(quick, other)


NESTED: dict[str, object] = {}
NESTED["a"] = NESTED
LONG = Environment([Field("x", DYN), Field("m", DYN), Field("s", STRING), Field("l", list_of(DYN))])
LONG_CONTEXT = Values({"x": 1, "m": NESTED, "s": "ab", "l": [1, 2]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+".join(["x"] * 2000), 2000),
        ("+".join(["s"] * 2000), "ab" * 2000),
        ("s" + " + 'c'" * 2000, "ab" + "c" * 2000),
        ("||".join(["x == 2"] * 1500) + "|| x == 1", True),
        ("&&".join(["x == 1"] * 1500), True),
        ("||".join(["x.y"] * 200) + "|| true", True),
        ("m" + ".a" * 190 + " != null", True),
        ("s == '" + "z" * 16_300 + "'", False),
        ("[" + ",".join(["x"] * 2000) + "].size()", 2000),
        ("{" + ",".join(f"{n}: x" for n in range(1500)) + "}.size()", 1500),
        (" : ".join(["x == 2 ? 1"] * 1000) + " : 3", 3),
        ("(" * 190 + "x" + ")" * 190, 1),
        ("(x + " * 95 + "1" + ")" * 95, 96),
        ("(x == 2 || " * 90 + "true" + ")" * 90, True),
        ("(x.a == 1 || (x == 1 && " * 45 + "true" + "))" * 45, True),
        ("l.exists(a, " * 40 + "a == 1" + ")" * 40, True),
        ("[[1]].map(a, " * 30 + "1" + ")" * 30 + ".size()", 1),
        ("default(" * 90 + "x.a" + ", 1)" * 90, 1),
        ("x == 1 ? (" * 60 + "l.map(i, i)[0]" + ") : 0" * 60, 1),
        ("[" * 150 + "x" + "]" * 150 + "[0]" * 40 + ".size()", 1),
        (("x == 2 ? 1 : " * 9 + "x == 1 ? (") * 25 + "7" + ") : 3" * 25, 7),
    ],
)
def test_long_and_deep_expressions_work(text: str, value: object) -> None:
    assert compile_expression(text, LONG).evaluate(LONG_CONTEXT) == value


def test_a_variable_that_is_found_by_name_may_have_a_dot() -> None:
    environment = Environment([Field("a.b", DYN), Field("a.c", DYN)])
    for text, value in (("has(a.b)", True), ("has(a.c)", False), ("a.b", 1), ("has(a.b) && a.b == 1", True)):
        assert compile_expression(text, environment).evaluate(Values({"a.b": 1})) == value


def test_threads_share_nothing_that_changes() -> None:
    """20,000 evaluations of several programs in four threads that take turns in the middle of everything."""
    expressions = {
        "l.map(a, a + x).filter(b, b > 2).size() == 1 || x.y": True,
        "l.map(a, a + x).filter(b, b > 9).size() == 1": False,
        "cel.bind(v, l + l, v.exists(a, a == x && v.size() == 4))": True,
        "default(x.nope, s + s) == 'abab' && [x, 1].distinct().size() == 1": True,
        "'%s-%d'.format([s, x]).split('-').all(p, p.matches('^[a-z0-9]+$' + s.substring(2)))": True,
        "x == 2 ? l[7] == 1 : json('{\"a\": [1, 2]}').a == l": True,
    }
    programs = [(compile_expression(text, LONG), wanted) for text, wanted in expressions.items()]
    wrong: list[object] = []

    def work(first: int) -> None:
        for number in range(5000):
            program, wanted = programs[(first + number) % len(programs)]
            found = program.evaluate(LONG_CONTEXT)
            if found is not wanted:
                wrong.append((program, found))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
