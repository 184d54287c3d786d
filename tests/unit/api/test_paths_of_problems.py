"""Where a problem is, as it is written for people."""

from __future__ import annotations

import pytest

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
