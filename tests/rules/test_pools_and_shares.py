"""No client uses up what all share: each pool of a worker has a share for a client, or says why it needs none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.rules.bounds import BOUNDS, Bound, value_of
from tests.rules.pools import POOLS, Pool

NAMED: Final = {(each.module, each.name) for each in POOLS}
IS_OF_ALL: Final = re.compile(
    r"\b(of|by|in|that) (one|a) worker\b|\ba worker (holds|keeps|compresses|asks|counts|remembers)\b"
    r"|\b(requests|names|copies|records|counts|descriptors|processes|responses|texts|those)\b[^.;]*"
    r"\b(wait|under way|at (a|the same) time|at once)\b",
    re.IGNORECASE,
)
"""What is said of a number that bounds a pool: whose it is, or that several of something are there together."""


def bounded() -> Iterator[tuple[str, str]]:
    """(module, name) of each number of a worker whose text says so."""
    for file in sorted(each for each in Path("dataplane").rglob("*.py") if "agent" not in each.parts):
        body = ast.parse(file.read_text()).body
        for statement, text in pairwise(body):
            said = text.value if isinstance(text, ast.Expr) else None
            if isinstance(said, ast.Constant) and isinstance(said.value, str) and IS_OF_ALL.search(said.value):
                name = numbered(statement)
                if name:
                    yield ".".join(file.with_suffix("").parts), name


def numbered(statement: ast.stmt) -> str:
    """The constant that is made of a whole number there; "": none."""
    target = statement.target if isinstance(statement, ast.AnnAssign) else None
    if isinstance(statement, ast.Assign):
        (target,) = statement.targets
    value = getattr(statement, "value", None)
    is_number = value is not None and all(
        isinstance(each, ast.BinOp | ast.operator) or (isinstance(each, ast.Constant) and isinstance(each.value, int))
        for each in ast.walk(value)
    )
    return target.id if is_number and isinstance(target, ast.Name) and target.id[0].isupper() else ""


def test_each_pool_has_a_row() -> None:
    missing = sorted(set(bounded()) - NAMED)
    assert not missing, f"no share, and no reason for none (tests/rules/pools.py): {missing}"


def test_each_bound_of_a_worker_on_the_page_has_a_row() -> None:
    shown = [row for rows in BOUNDS.values() for row in rows if re.search(r"\bworker\b|\bprocesses\b", row.what)]
    assert shown and not [row for row in shown if (row.module, row.name) not in NAMED]


def test_no_pool_has_two_rows_and_each_says_one_thing() -> None:
    assert len(NAMED) == len(POOLS)
    assert [each for each in POOLS if bool(each.share) == bool(each.why)] == []


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: f"{pool.module}.{pool.name}")
def test_each_row_is_of_a_number_and_each_share_is_on_the_page(pool: Pool, root: Path) -> None:
    assert value_of(Bound(pool.module, pool.name, "", "")) > 0
    if pool.share:
        assert f'"{pool.share}"' in (root / "docs/limits.md").read_text()
