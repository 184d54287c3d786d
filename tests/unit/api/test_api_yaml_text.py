"""YAML and JSON text: values as the API server reads them, errors with their place, no way to hurt the reader."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
import yaml

from gatewright.api.text import yaml_text
from gatewright.api.text.yaml_text import TextError, load, positions

INF = float("inf")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment", None),
        ("a: 1", {"a": 1}),
        ("[-12, +3, 0x1F, 010, 0o10, 1_000, 0b11]", [-12, 3, 31, 8, 8, 1000, 3]),
        ("a: 1.5\nb: 1e3\nc: .5\nd: 1.", {"a": 1.5, "b": 1000.0, "c": 0.5, "d": 1.0}),
        ("a: '80'\nb: \"80\"\nc: !!str 80", {"a": "80", "b": "80", "c": "80"}),
        ("[true, Yes, on, FALSE, no, Off]", [True, True, True, False, False, False]),
        ("[~, null, '', 'null']", [None, None, "", "null"]),
        ("a:\nb: ~", {"a": None, "b": None}),
        ("2026-01-01: 2026-01-01T00:00:00Z", {"2026-01-01": "2026-01-01T00:00:00Z"}),
        ("a: 12:30:00", {"a": "12:30:00"}),
        ("a: 1.2.3.4\nb: 1-2\nc: 08\nd: 0x_", {"a": "1.2.3.4", "b": "1-2", "c": 8.0, "d": "0x_"}),
        ("1: one\ntrue: yes", {"1": "one", "true": True}),
        ("a: |\n  x\n  y\nb: >\n  x\n  y", {"a": "x\ny\n", "b": "x y"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &x {b: 1}\nd: {<<: [*x, {e: 2}]}", {"a": {"b": 1}, "d": {"b": 1, "e": 2}}),
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        ('{\n\t"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ("{a: 1}", {"a": 1}),
        ('{"a": ' + "1" * 5000 + "}", {"a": float("inf")}),
        ("[.inf, -.Inf, +.INF, ., -, +, .e1, 1e]", [INF, -INF, INF, ".", "-", "+", ".e1", "1e"]),
        ("[1e5, 1E-2, -1.5, +.5, 1_0.5_0, 0.0, -0, 9e999]", [1e5, 0.01, -1.5, 0.5, 10.5, 0.0, 0, INF]),
        ("[00, 007, 0o17, 0O17, 0X1f, -0x1f, +0b1, 0b2, 0_1]", [0, 7, 15, 15, 31, -31, 1, "0b2", 1]),
        ("[0.1.2, 1e5e5, 1x, 0x, 12:30]", ["0.1.2", "1e5e5", "1x", "0x", "12:30"]),
        ("[~, null, Null, NULL, nULL]", [None, None, None, None, "nULL"]),
        (
            "[true, True, TRUE, tRUE, yes, Yes, YES, yES, on, On, ON]",
            [True] * 3 + ["tRUE"] + [True] * 3 + ["yES"] + [True] * 3,
        ),
        ("[false, False, FALSE, no, No, NO, off, Off, OFF, y, n]", [False] * 9 + ["y", "n"]),
        ("[!!str 1, ! 1, !!str null, !!str ]", ["1", "1", "null", ""]),
        ("x: " + "1" * 63, {"x": int("1" * 63)}),
        ("x: " + "1" * 64, {"x": float("1" * 64)}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("<<: {a: 1}\nb: 2\n'<<': 3", {"a": 1, "b": 2, "<<": 3}),
        ("a: {<<: [{b: 1}, {b: 2, c: 3, d: 5}], c: 4}", {"a": {"b": 1, "c": 4, "d": 5}}),
        ("{a: 'b:c', 'd:e': , f}", {"a": "b:c", "d:e": None, "f": None}),
        ("{a:b: c}", {"a:b": "c"}),
        ("a", "a"),
        ("'a b'", "a b"),
        ("# c\n---\na: 1\n", {"a": 1}),
        ('  {"a": 1}\n', {"a": 1}),
        ('{"a": "\\\\ud800"}', {"a": "\\ud800"}),
        ('{"a": "\\ud83d\\ude00", "b": 1}', {"a": "😀", "b": 1}),
        ("a: {\n\tb: 1}", {"a": {"b": 1}}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert load(text) == value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, 'duplicate key "a"'),
        ("x:\n  - a: 1\n    a: 2", 3, 'duplicate key "a"'),
        ('{"a": 1, "a": 2}', 1, 'duplicate key "a"'),
        ("{a: 1, a: 2}", 1, 'duplicate key "a"'),
        ("a: [1, 2\nb: 3", 2, "not YAML"),
        ("a: b: c", 1, "not YAML: mapping values are not allowed"),
        ("a:\n\t- b", 2, "not YAML"),
        ("a: *nobody", 1, "unknown alias *nobody"),
        ("? [a, b]\n: c", 1, "a key must be plain text"),
        ("a: !!python/object:os.system x", 1, "tag tag:yaml.org,2002:python/object:os.system is not allowed"),
        ("a: !!binary aGk=", 1, "is not allowed"),
        ("a: {<<: 3}", 1, "<< needs a mapping"),
        ("a: \x07", 1, "not YAML"),
    ],
)
def test_errors_have_a_place(text: str, line: int, message: str) -> None:
    with pytest.raises(TextError) as raised:
        load(text)
    assert raised.value.line == line
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\n  b: 2", 2, 4, "not YAML: mapping values are not allowed in this context"),
        ("a:\n\t- b", 2, 1, "not YAML: a tab indents this line; indent with spaces"),
        ("\ta: 1", 1, 1, "not YAML: a tab indents this line; indent with spaces"),
        (
            "a: @\t",
            1,
            4,
            "not YAML: found character that cannot start any token while scanning for the next token"
            "; text that begins so must be in quotes",
        ),
        ("{name:web}", 1, 2, "name and value are one word to YAML: write a space after the colon"),
        ("a: { b:1 , c}", 1, 6, "name and value are one word to YAML: write a space after the colon"),
        ("a: {{ x }}", 1, 5, "a key must be plain text; a template {{ … }} has to be filled in before"),
        ("{{ x }}: 1", 1, 1, "a key must be plain text"),
        ("{[ x ]: 1}", 1, 2, "a key must be plain text"),
        ("? {a: 1}\n: 2", 1, 3, "a key must be plain text"),
        ("a: *b", 1, 4, "unknown alias *b"),
        ("a: &b\n- *b", 2, 3, "unknown alias *b"),
        ("a: *", 1, 5, "not YAML: text that begins with * must be in quotes"),
        ("a: 'b", 1, 6, "not YAML: found unexpected end of stream while scanning a quoted scalar"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document begins without a line ---"),
        ("a: 1\nb: 1\na: 2", 3, 1, 'duplicate key "a"'),
        (
            "apiVersion: 1\napiVersion: 2",
            2,
            1,
            'duplicate key "apiVersion"; where another object begins, a line --- stands before it',
        ),
        ("a: !foo 1", 1, 4, "tag !foo is not allowed"),
        ("a: {<<: [{}, 1]}", 1, 5, "<< needs a mapping or a list of mappings"),
        ("a: 1\nx: \x00", 1, 0, "not YAML: unacceptable character #x0000: control characters are not allowed"),
        ('[1,\n2,\n"\\uDEAD"]', 3, 0, "\\uDEAD is half a character"),
        ('{"b": 1, "a": 1,\n "a": 2, "c": 3}', 1, 0, 'duplicate key "a"'),
        ("- " * 101 + "x", 1, 201, "is nested too deeply"),
        ("[" * 101 + "]" * 101, 1, 0, "is nested too deeply"),
        ('{"a":' * 101 + "1" + "}" * 101, 1, 0, "is nested too deeply"),
        ("{a: " * 101 + "1" + "}" * 101, 1, 401, "is nested too deeply"),
        ("[{x: 1}, " * 101 + "1" + "]" * 101, 1, 893, "is nested too deeply"),
    ],
)
def test_errors_say_where_and_what(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(TextError) as raised:
        load(text)
    assert (raised.value.line, raised.value.column, raised.value.message) == (line, column, message)


@pytest.mark.parametrize(
    "text",
    ["- " * 100 + "x", "[" * 100 + "]" * 100, '{"a":' * 100 + "1" + "}" * 100, "{a: " * 100 + "1" + "}" * 100],
)
def test_a_hundred_levels_are_read(text: str) -> None:
    assert load(text)
    assert positions(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "- " * 5_000 + "x",
        "".join(" " * depth + "a:\n" for depth in range(2_000)),
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(TextError):
        load(text)


def test_an_alias_shares_its_value() -> None:
    value = load("a: &a [x, x]\nb: [*a, *a]\n")
    assert value["b"][0] is value["b"][1] is value["a"]


def test_positions_are_those_of_keys_and_items() -> None:
    root = positions("a:\n  b: 1\n  c:\n    - x: 1\n    - 2\n")
    assert root is not None
    c = root.parts["a"].parts["c"]
    assert (c.line, c.column) == (3, 3)
    assert [(item.line, item.column) for item in c.parts.values()] == [(4, 7), (5, 7)]
    assert c.parts[0].parts["x"].line == 4


@pytest.mark.parametrize("loader", [yaml_text.Loader, yaml.SafeLoader])  # with libyaml and without
def test_positions_of_json_with_tabs(loader: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "Loader", loader)
    root = positions('{\n\t"a": {\n\t\t"b": 1\n\t}\n}')
    assert root is not None
    assert root.parts["a"].parts["b"].line == 3


def test_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "Loader", yaml.SafeLoader)
    assert load("a: [1, 'x', {b: yes}]\n") == {"a": [1, "x", {"b": True}]}
    with pytest.raises(TextError) as raised:
        load("a: 1\nb: [")
    assert raised.value.line == 2


def test_half_a_character_is_refused_with_its_line() -> None:
    with pytest.raises(TextError, match=r"\\ud800 is half a character") as failure:
        load('{\n"a": "\\ud800"}')
    assert failure.value.line == 2


def test_positions_begin_with_the_document_itself() -> None:
    root = positions("\n a: &x\n  - {b: 1, c: [2, 3]}\n b: *x\n [d]: 4")
    assert root is not None
    assert (root.line, root.column) == (2, 2)
    a, b = root.parts["a"], root.parts["b"]
    assert [(a.line, a.column), (b.line, b.column)] == [(2, 2), (4, 2)]
    item = a.parts[0]
    assert (item.line, item.column, list(item.parts)) == (3, 5, ["b", "c"])
    assert [(each.line, each.column) for each in item.parts["c"].parts.values()] == [(3, 16), (3, 19)]
    assert b.parts == {}


@pytest.mark.parametrize(
    "text",
    ["a: [1, 2", "[" * 102 + "]" * 102, "- " * 102, "{a: " * 101 + "1" + "}" * 101, "{a: [" * 51 + "1" + "]}" * 51, ""],
)
def test_there_are_no_positions_where_nothing_can_be_read(text: str) -> None:
    assert positions(text) is None


_TEN = "[*{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}]"
_BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} {_TEN.format(before)}\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(_BOMB, 4, id="aliases of aliases"),  # b, c and d repeat 110, 1110 and 11,110
        pytest.param(_BOMB.replace(": &", ": !!seq &"), 4, id="with tags"),
        pytest.param(f"a: &a {'x' * 64_000}\nb: [{'*a, ' * 9}]\nc: [*a]", 3, id="long text"),
        pytest.param(f"a: &a {{? {'x' * 900} : 1}}\nb: [{'*a, ' * 599}]\nc: [*a, {'*a, ' * 99}]", 3, id="long keys"),
        pytest.param(f"a: &a {{b: {[1] * 4997}}}\nc: {{<<: *a}}\nd: {{<<: *a}}\ne: {{<<: *a}}", 4, id="merges"),
    ],
)
def test_what_aliases_repeat_is_bounded(text: str, line: int) -> None:
    with pytest.raises(TextError, match="aliases repeat more than 10000 values") as raised:
        load(text)
    assert raised.value.line == line


def test_aliases_up_to_the_bound_are_read_and_each_document_has_its_own() -> None:
    text = f"a: &a {[1] * 99}\nb: [{', '.join(['*a'] * 100)}]"
    for _ in range(2):
        assert load(text)["b"] == [[1] * 99] * 100
    with pytest.raises(TextError, match="aliases repeat more than"):
        load(text + "\nc: *a")


def test_values_without_aliases_are_not_counted() -> None:
    assert len(load("a: &a\n" + "- 1\n" * 10_001)["a"]) == 10_001


@pytest.mark.parametrize(
    "text",
    [
        f"a: {'0' * 20_000}x",
        f"a: {'0_' * 10_000}x",
        f"a: {'1' * 20_000}.{'1' * 20_000}e",
        "{" + "".join(f'"k{n}": 1, ' for n in range(20_000)) + '"k19999": 1}',
        "".join(f"k{n}: 1\n" for n in range(20_000)) + f"<<: [{'{}, ' * 20_000}]",
    ],
    ids=["digits", "underscores", "fraction", "twice in JSON", "merged"],
)
def test_the_time_of_reading_grows_with_the_text_and_no_faster(text: str) -> None:
    """Each of these took seconds to minutes once: the square of its length."""
    before = time.thread_time()
    with contextlib.suppress(TextError):
        yaml_text.load(text)
    assert time.thread_time() - before < 3


def test_what_is_merged_gives_way_to_what_is_written_and_to_what_was_merged_before() -> None:
    text = "{<<: [{a: 1, b: 1}, {b: 2, c: 2, d: 2}], c: 3, d: 3}"
    assert yaml_text.load(text) == {"a": 1, "b": 1, "c": 3, "d": 3}


def test_a_number_of_more_than_sixty_three_digits_is_none_that_anybody_meant() -> None:
    assert load("1" * 63) == int("1" * 63) and load("-" + "1" * 62) == -int("1" * 62)
    assert not isinstance(load("1" * 64), int) and not isinstance(load("0x" + "1" * 62), int)
