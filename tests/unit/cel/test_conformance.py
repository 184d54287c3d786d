"""The CEL specification's conformance data. Absent data is a skip; a listed exception that passes is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.cel.parser import RESERVED
from tests.oracles import peers
from tests.unit.cel import conformance

FOLDER = conformance.folder()
FILES = sorted(FOLDER.glob("*.json")) if FOLDER else []

# Tests that fail, each with its reason. At most 20 of the 1,735.
BACKSLASH = "the expected value has a backslash, the literal has none"
EXCEPTIONS = {
    **{
        f"parse/{kind}_literals/triple_{quote}_quoted_unescaped_punctuation": BACKSLASH
        for kind in ("bytes", "string")
        for quote in ("single", "double")
    },
}

pytestmark = pytest.mark.skipif(FOLDER is None, reason="no CEL conformance data: scripts/tools fetches it")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_language_conforms(path: Path) -> None:
    failures = {}
    for test in conformance.tests(path):
        wrong = conformance.run(test)
        if wrong is not None:
            failures[conformance.identity(path, test)] = f"{test['expr']}: {wrong}"
    listed = {name for name in EXCEPTIONS if name.startswith(f"{path.stem}/")}
    assert {name: wrong for name, wrong in failures.items() if name not in listed} == {}
    assert listed <= set(failures), "an exception passes: take it off the list"


def test_nearly_everything_that_needs_no_messages_is_run() -> None:
    assert sum(len(conformance.tests(path)) for path in FILES) == 1735
    assert len(EXCEPTIONS) <= 20


# What the checker of the product refuses although the test evaluates without a checker.
REFUSED = {
    "an unknown variable or function beside a term that decides": {
        *("basic/variables/unbound_is_runtime_error", "basic/functions/unbound_is_runtime_error"),
        *(f"parse/receiver_function_names/{name}" for name in RESERVED),
    },
    "a text or number where a bool is needed": {
        f"logic/{name}/short_circuit_type_{side}" for name in ("AND", "OR") for side in ("left", "right")
    },
    "values compared whose types are never equal": {
        f"comparisons/{name}"
        for name in (
            *("eq_literal/not_eq_list_length", "eq_literal/eq_mixed_types", "eq_literal/eq_list_elem_mixed_types"),
            "ne_literal/ne_mixed_types",
        )
    },
}


def test_how_many_pass_as_expressions_of_policies_are_checked() -> None:
    failing = {
        conformance.identity(path, test)
        for path in FILES
        for test in conformance.tests(path)
        if conformance.run(test, peers.configured) is not None
    }
    assert failing == set(EXCEPTIONS).union(*REFUSED.values())
    passing = f"{1735 - len(failing):,}"
    for page in ("docs/cel.md", "CHANGELOG.md"):
        text = " ".join((conformance.REPOSITORY / page).read_text().split())
        assert f"{passing} of the 1,735" in text, f"{page} claims another number than {passing}"
    page = (conformance.REPOSITORY / "docs/cel.md").read_text()
    assert all(f"| {len(names)} | {why} |" in page for why, names in REFUSED.items())


# How many of the 1,735 each library passes through this harness, with every extension it has. Most of what
# cel-expr-python lacks are the network functions (60) and cel.block (25), which its Python interface does not offer.
PEERS = {"cel-expr-python": 1633, "cel-python": 1020}


@pytest.mark.slow
@pytest.mark.parametrize("name", peers.LIBRARIES)
def test_no_library_passes_as_many(name: str) -> None:
    cases = [test for path in FILES for test in conformance.tests(path)]
    passed = [test for test in cases if conformance.run(test, peers.LIBRARIES[name]) is None]
    assert len(passed) < len(cases) - len(EXCEPTIONS)
    assert abs(len(passed) - PEERS[name]) < 40, "the harness treats the library in another way than before"


# Where the data expects an error of the evaluation, our checker may have refused the expression before.
REFUSED_EARLIER = 16


def test_how_many_errors_are_found_before_the_evaluation() -> None:
    cases = [test for path in FILES for test in conformance.tests(path) if "eval_error" in test]
    refused = [test for test in cases if peers.ours(conformance.case(test)).kind == "refused"]
    assert (len(refused), len(cases)) == (REFUSED_EARLIER, 189)
