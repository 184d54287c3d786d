"""Where a problem is, as it is written for people."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.text.places import Place, Subject
from gatewright.api.text.problem import path_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "rules", 0, "name"), "spec.rules[0].name"),
        (("mcp-servers", "a_b"), "mcp-servers.a_b"),
        (("env", "a b"), 'env["a b"]'),
        (("env", "-"), 'env["-"]'),
        (("env", ""), 'env[""]'),
        ((0, "a"), "[0].a"),
        ((), ""),
    ],
)
def test_what_is_no_word_stands_in_brackets(path: tuple[str | int, ...], text: str) -> None:
    assert path_text(path) == text


TEXT = """\

# a comment
spec:
  a: {b: 1}
  cloudA: {c: 1}
  list:
  - x: 1
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (12, 1)),
        (("spec",), (12, 1)),
        (("spec", "a", "b"), (13, 7)),
        (("spec", "list", 0, "x"), (16, 5)),
        (("spec", "aws", "c"), (14, 12)),  # as it is spelled there
        (("spec", "a", "no"), (13, 3)),  # the nearest that stands there
        (("spec", "no", "a"), (12, 1)),
        (("no", "spec"), (12, 1)),
    ],
)
def test_where_a_path_stands(path: tuple[str | int, ...], place: tuple[int, int]) -> None:
    assert Place(TEXT, "f", 10).of(path) == place


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        (TEXT, 12, (12, 1)),
        ("a: 1", 10, (10, 1)),
        ("# nothing\n\n", 10, (10, 0)),
        ("", 10, (10, 0)),
        ("a: [", 10, (10, 0)),  # nobody can read it
        (None, 10, (0, 0)),
    ],
)
def test_where_a_document_stands(text: str | None, line: int, place: tuple[int, int]) -> None:
    found = Place(text, "f", 10)
    assert (found.line, found.of(())) == (line, place)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, "invalid"),
        ({"code": "expiring"}, "expiring"),
        ({"unsupported": True, "code": "expiring"}, "unsupported"),
        ({"refused": True, "code": "expiring"}, "refused"),
        ({"refused": True, "unsupported": True}, "unsupported"),
    ],
)
def test_what_a_problem_of_a_subject_is(more: dict[str, Any], code: str) -> None:
    subject = Subject(Place(TEXT, "f", 10), ("spec",), "A b/c")
    found = subject.problem(("a", "b"), "is wrong", "warning", **more)
    assert (found.file, found.line, found.column, found.object, found.path) == ("f", 13, 7, "A b/c", "a.b")
    assert (found.message, found.severity, found.code) == ("is wrong", "warning", code)
    assert (found.unsupported, found.refused) == (more.get("unsupported", False), more.get("refused", False))
    assert subject.problem((), "x").severity == "error"
