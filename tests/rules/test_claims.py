"""Every row of the specification's Errors and Limits tables is claimed by a test, or listed with what it waits for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.chain.reply import Reply
from tests.rules.claims import ERRORS, LATER, ROWS, Claim, Refused, UnknownRow, cases_in, claims_in, row_of

LIMIT = "errors: Local or global rate limit exceeded"


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return list(claims_in(Path(__file__).parents[1]))


def test_every_claim_is_of_a_row(claims: list[Claim]) -> None:
    wrong = []
    for claim in claims:
        try:
            row_of(claim.text)
        except UnknownRow as problem:
            wrong.append(f"{claim.where}: {problem}")
    assert wrong == []


def test_every_row_is_claimed_or_waits(claims: list[Claim]) -> None:
    claimed = {row_of(claim.text) for claim in claims if claim.text}
    lacking = [row for row in ROWS if row not in claimed and row not in LATER]
    assert not lacking, "claimed by no test:\n" + "\n".join(lacking)


def test_no_row_waits_that_is_claimed(claims: list[Claim]) -> None:
    claimed = {row_of(claim.text) for claim in claims if claim.text}
    assert [row for row in LATER if row in claimed or row not in ROWS] == []


def test_a_row_that_can_be_claimed_says_what_is_answered() -> None:
    assert [row for row, cases in ERRORS.items() if not cases and f"errors: {row}" not in LATER] == []


def test_every_case_of_a_row_is_compared() -> None:
    cases = {case for row, known in ERRORS.items() if f"errors: {row}" not in LATER for case in known}
    assert cases - {""} - cases_in(Path(__file__).parents[1]) == set()


# The harness itself.


RESPONSE = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 19\r\n\r\nrate limit exceeded"


@pytest.mark.parametrize(
    "answer",
    [
        RESPONSE.replace(b"429", b"503"),
        RESPONSE.replace(b"exceeded", b"surpass."),
        RESPONSE + b"!",
        RESPONSE[:-1],
        b"",
        Reply(429, "RateLimited", b"Rate limit exceeded"),
        (200, b"rate limit exceeded"),
    ],
)
def test_another_answer_fails(answer: object) -> None:
    refused = Refused([LIMIT])
    with pytest.raises(AssertionError):
        refused(answer)
    assert refused.lacking() == [LIMIT]


SUITE = f"""
import pytest

@pytest.mark.claims("{LIMIT}")
def test_only_claims(): pass

@pytest.mark.claims("{LIMIT}")
def test_asks_for_nothing(refused): pass

@pytest.mark.claims("{LIMIT}")
def test_compares(refused): refused((429, b"rate limit exceeded"))

@pytest.mark.claims("limits: TCP keepalive")
def test_of_a_limit(): pass

@pytest.mark.claims("errors: No such row")
def test_of_nothing(): pass
"""


def test_a_claim_without_a_comparison_fails_its_own_test(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "tests/conftest.py", tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n    claims\n    needs\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    run = subprocess.run([*command, str(tmp_path)], env=environment, cwd=tmp_path, capture_output=True, text=True)
    ends = {line.split(" - ")[0] for line in run.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))}
    assert ends == {
        "FAILED test_suite.py::test_only_claims",
        "FAILED test_suite.py::test_asks_for_nothing",
        "PASSED test_suite.py::test_compares",
        "PASSED test_suite.py::test_of_a_limit",
        "FAILED test_suite.py::test_of_nothing",
    }, run.stdout + run.stderr
