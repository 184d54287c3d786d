"""Text to tree: forms, precedence, literals, refusals with their place, and no text that breaks the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.cel import tree
from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelSyntaxError
from gatewright.cel.parser import MAX_DEPTH, parse
from gatewright.cel.program import compile_expression
from gatewright.cel.values import Uint
from tests.unit.cel.generate import BINARY, LEAVES


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "1 + 2 * 3 - 4",
            "Chain(Literal(1), ['+', '-'], [2, 10], [Chain(Literal(2), ['*'], [6], [Literal(3)]), Literal(4)])",
        ),
        ("a || b && c", "Logic('||', [Ident('a', False), Logic('&&', [Ident('b', False), Ident('c', False)])])"),
        (
            "a ? 1 : b ? 2 : 3",
            "Conditional([Ident('a', False), Ident('b', False)], [Literal(1), Literal(2)], Literal(3))",
        ),
        ("a.b.?c[?0]", "Index(Select(Select(Ident('a', False), 'b', False), 'c', True), Literal(0), True)"),
        (".a", "Ident('a', True)"),
        ("a.`b-c`", "Select(Ident('a', False), 'b-c', False)"),
        ("!!!a", "Unary('!', Ident('a', False))"),
        ("--a", "Unary('-', Unary('-', Ident('a', False)))"),
        ("[1, ?a,]", "ListNode([Literal(1), Ident('a', False)], frozenset({1}))"),
        ("{1: 2, ?a: b,}", "MapNode([Literal(1), Ident('a', False)], [Literal(2), Ident('b', False)], frozenset({1}))"),
        ("a.b(1)", "Call('b', Ident('a', False), [Literal(1)])"),
        ("has(a.b)", "Has(Select(Ident('a', False), 'b', False))"),
        ("l.map(x, true, x)", "Comprehension('map', Ident('l', False), ('x',), Literal(True), Ident('x', False))"),
        ("cel.bind(x, 1, x)", "Bind('x', Literal(1), Ident('x', False))"),
        ("1.with(x, x)", "Bind('x', Literal(1), Ident('x', False))"),
        (
            "a < b + c",
            "Chain(Ident('a', False), ['<'], [2], [Chain(Ident('b', False), ['+'], [6], [Ident('c', False)])])",
        ),
        (
            "a + b < c",
            "Chain(Chain(Ident('a', False), ['+'], [2], [Ident('b', False)]), ['<'], [6], [Ident('c', False)])",
        ),
        ("a == b && c", "Logic('&&', [Chain(Ident('a', False), ['=='], [2], [Ident('b', False)]), Ident('c', False)])"),
        ("(a ? 1 : 2)", "Conditional([Ident('a', False)], [Literal(1)], Literal(2))"),
        ("[a ? 1 : 2]", "ListNode([Conditional([Ident('a', False)], [Literal(1)], Literal(2))], frozenset())"),
        (
            "{a ? 1 : 2: b ? 3 : 4}",
            "MapNode([Conditional([Ident('a', False)], [Literal(1)], Literal(2))],"
            " [Conditional([Ident('b', False)], [Literal(3)], Literal(4))], frozenset())",
        ),
        ("f(a ? 1 : 2)", "Call('f', None, [Conditional([Ident('a', False)], [Literal(1)], Literal(2))])"),
        ("l[a ? 1 : 2]", "Index(Ident('l', False), Conditional([Ident('a', False)], [Literal(1)], Literal(2)), False)"),
        ("B{c: a ? 1 : 2}", "Message('B')"),
        ("a.B{c: 1}", "Message('a.B')"),
        ("a.B{}", "Message('a.B')"),
        ("B{c: 1, ?`d-e`: [2],}", "Message('B')"),
        ("1 // a comment\n + 2", "Chain(Literal(1), ['+'], [16], [Literal(2)])"),
        ("x.block([1], 2)", "Call('block', Ident('x', False), [ListNode([Literal(1)], frozenset()), Literal(2)])"),
        ("cel.block(1, 2)", "Call('block', Ident('cel', False), [Literal(1), Literal(2)])"),
        ("cel.block([1], cel.index(0))", "Block(['@index0'], [Literal(1)], Ident('@index0', False))"),
        ("x.index(0)", "Call('index', Ident('x', False), [Literal(0)])"),
        ("cel.iterVar(0, 1)", "Ident('@it:0:1', False)"),
        ("cel.accuVar(2, 3)", "Ident('@it:2:3', False)"),
        ("x.accuVar(2, 3)", "Call('accuVar', Ident('x', False), [Literal(2), Literal(3)])"),
        ("x.bind(a, 1, a)", "Call('bind', Ident('x', False), [Ident('a', False), Literal(1), Ident('a', False)])"),
    ],
)
def test_the_tree_of(text: str, wanted: str) -> None:
    assert repr(parse(text)) == wanted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9223372036854775808", -(2**63)),
        ("0xFFu", Uint(255)),
        ("18446744073709551615u", Uint(2**64 - 1)),
        (".5e1", 5.0),
        (r"'\u00e9\x41\101\n'", "éAA\n"),
        (r"r'\n'", "\\n"),
        (r"b'\xff\u00e9'[0]", None),
        (r"b'é\xff\377'", b"\xc3\xa9\xff\xff"),
        ("'''a\n'b'''", "a\n'b"),
    ],
)
def test_the_value_of_a_literal(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(CelSyntaxError):
            parse(text)
        return
    node = parse(text)
    assert isinstance(node, tree.Literal)
    assert (type(node.value), node.value) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("", 1, 1, "expected a value"),
        ("1 +", 1, 4, "expected a value"),
        ("a\n  .b c", 2, 6, 'unexpected "c"'),
        ("f(1", 1, 4, 'expected ","'),
        ("f(1,)", 1, 5, "expected a value"),
        ("a.B{c: 1 d: 2}", 1, 10, 'expected ","'),
        ("a.B{c: 1,, d: 2}", 1, 10, "expected a field name"),
        ("a.B{,}", 1, 5, "expected a field name"),
        ("a.B{1: 2}", 1, 5, "expected a field name"),
        ("a.B{c 1}", 1, 7, 'expected ":"'),
        ("a.B{c:}", 1, 7, "expected a value"),
        ("a.B{c: 1", 1, 9, 'expected ","'),
        ("'abc", 1, 1, "does not end"),
        ("a @ b", 1, 3, "unexpected character '@'"),
        ("a = b", 1, 3, "unexpected character '='; equal is =="),
        ("a and b", 1, 3, 'unexpected "and"; and is &&'),
        ("a & b", 1, 3, "; and is &&"),
        ("not a", 1, 5, 'unexpected "a"'),
        ("/check", 1, 1, 'expected a value before "/"; text stands in quotes'),
        ("9223372036854775808", 1, 1, "out of range"),
        ("18446744073709551616u", 1, 1, "uint literal out of range"),
        (f"1{'0' * 29}u", 1, 1, "uint literal out of range"),
        (f"0x1{'0' * 29}u", 1, 1, "uint literal out of range"),
        ("0x8000000000000001", 1, 1, "int literal out of range"),
        ("1e999", 1, 1, "out of range"),
        ("'\\q'", 1, 2, "unknown escape"),
        ("b'\ud800'", 1, 3, "the text holds a lone surrogate"),
        ("b'ab\\nc\ud800'", 1, 7, "the text holds a lone surrogate"),
        ("'\\ud800'", 1, 2, "no Unicode character"),
        ("package", 1, 1, "reserved"),
        ("has(a)", 1, 5, "must be a field"),
        ("l.map(1, 2)", 1, 7, "must be a plain name"),
        ("l.all(x, x, true)", 1, 10, "must differ"),
        ("(" * 5000, 1, MAX_DEPTH + 1, "deep"),
        ("x" + ".y" * 8000, 1, 401, "deep"),
        ("x" + ".y()" * 4000, 1, 799, "deep"),
        (f"f(x{'.y' * (MAX_DEPTH - 1)})", 1, 1, "deep"),
        ("1+" * 8193, 1, 1, "16386 characters"),
        (" " * 16 * 1024 + "1", 1, 1, "16385 characters"),
        ("(1)+" * 100 + "(" * 5000, 1, 400 + MAX_DEPTH, "deep"),
        ("'\\udfff'", 1, 2, "no Unicode character"),
        ("'\\U00110000'", 1, 2, "no Unicode character"),
        ("b'ab\\u0041'", 1, 5, "escape \\u is not allowed in bytes"),
        ("cel.index('a')", 1, 11, "expected a number"),
        ("cel.iterVar(0, 'a')", 1, 16, "expected a number"),
        ("cel.iterVar(x, 0)", 1, 13, "expected a number"),
        ("coalesce()", 1, 1, "needs an argument"),
        ("l.map(x.y, 2)", 1, 9, "must be a plain name"),
    ],
)
def test_a_refusal_says_where_and_why(text: str, line: int, column: int, part: str) -> None:
    with pytest.raises(CelSyntaxError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (line, column)
    assert part in problem.message + problem.hint


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("ab ? 1 : b ? 2 : 3", 3),
        ("ab(1)", 0),
        ("x.ab(1)", 2),
        ("x.ab", 2),
        ("x[1]", 1),
        (" [1]", 1),
        (" {1: 2}", 1),
        ("x in [1]", 2),
        (" -x", 1),
        (" a.B{}", 1),
        (" l.map(x, x)", 3),
    ],
)
def test_the_place_of(text: str, offset: int) -> None:
    """Where errors point at, characters from the beginning."""
    assert parse(text).offset == offset


def test_there_is_no_advice_where_nothing_is_known_to_be_meant() -> None:
    for text in ("a b", "[,]", "1 +"):
        with pytest.raises(CelSyntaxError) as caught:
            parse(text)
        assert caught.value.problems[0].hint == ""


@pytest.mark.parametrize("joint", ["+", "||", "&&", "<", "==", "*"])
def test_a_chain_of_thousands_is_flat(joint: str) -> None:
    assert parse(joint.join(["a"] * 5000)).depth == 2


WORDS = st.lists(
    st.sampled_from(
        [*LEAVES, *BINARY, *"()[]{}.,:?!-", "'", '"""', "\\", "a.b(", "x.map(", "`", "//", "\n", "0x", "é", "\ud800"]
    ),
    max_size=30,
).map(" ".join)


@given(st.one_of(st.text(max_size=60), WORDS))
def test_any_text_is_an_expression_or_a_syntax_error(text: str) -> None:
    try:
        assert parse(text).depth <= MAX_DEPTH
    except CelSyntaxError as error:
        assert error.problems[0].line >= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{'0' * 40}7", 7),
        (f"0x{'0' * 40}F", 15),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0x7fffffffffffffff", 2**63 - 1),
        ("18446744073709551615u == 0xffffffffffffffffu", True),
        ("'\\ud7ff\\ue000\\U0010ffff'", "\ud7ff\ue000\U0010ffff"),
        (" " * (16 * 1024 - 1) + "1", 1),
    ],
)
def test_numbers_at_their_bounds(text: str, value: object) -> None:
    """However many zeros are before them."""
    assert compile_expression(text, Environment([])).evaluate(Values({})) == value
