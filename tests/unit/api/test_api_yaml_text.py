"""YAML and JSON text: values as the API server reads them, errors with their place, no way to hurt the reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gatewright.api import yaml_text
from gatewright.api.yaml_text import TextError, load, positions


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


def test_anchors_do_not_multiply() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    value = load(bomb)
    assert value["a59"][0] is value["a59"][1]


def test_positions_are_those_of_keys_and_items() -> None:
    root = positions("a:\n  b: 1\n  c:\n    - x: 1\n    - 2\n")
    assert root is not None
    c = root.parts["a"].parts["c"]
    assert (c.line, c.column) == (3, 3)
    assert [(item.line, item.column) for item in c.parts.values()] == [(4, 7), (5, 7)]
    assert c.parts[0].parts["x"].line == 4


def test_positions_of_json_with_tabs() -> None:
    root = positions('{\n\t"a": {\n\t\t"b": 1\n\t}\n}')
    assert root is not None
    assert root.parts["a"].parts["b"].line == 3


def test_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "_Loader", yaml.SafeLoader)
    assert load("a: [1, 'x', {b: yes}]\n") == {"a": [1, "x", {"b": True}]}
    with pytest.raises(TextError) as raised:
        load("a: 1\nb: [")
    assert raised.value.line == 2


def test_half_a_character_is_refused_with_its_line() -> None:
    with pytest.raises(TextError, match=r"\\ud800 is half a character") as failure:
        load('{\n"a": "\\ud800"}')
    assert failure.value.line == 2
