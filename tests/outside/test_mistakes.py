"""Each mistake of `mistakes.py` is answered with its words, in one line that names file, line and, if any, field."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.api.lint import lint
from gatewright.api.lint.lint import Document
from tests.outside.mistakes import MISTAKES, Mistake


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_the_words_that_answer(mistake: Mistake) -> None:
    lines = [str(problem) for problem in lint.lint([Document("f", mistake.text)])]
    if not mistake.says:
        assert lines == []
        return
    assert lines[0].startswith(mistake.says)
    assert all("\n" not in line for line in lines)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_text_of_another_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "shop.yaml"
    file.write_bytes("binds: [] # größer\n".encode(encoding))
    (problem,) = lint.lint_paths([file]).problems
    assert problem.message == "cannot be read: is not UTF-8 text; save it as UTF-8"


def test_names_are_unique() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
