"""Gateway API's own examples and the inputs of its conformance suite: `gateway_api/verdicts.txt` says what we make of
each object of each file, `gateway_api/reasons.py` why where it is not "valid". Complete both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.outside.gateway_api import table
from tests.outside.gateway_api.reasons import INVALID, MEANT_INVALID, REASONS

pytestmark = pytest.mark.needs("go")


@pytest.fixture(scope="module")
def found() -> table.Verdicts:
    return table.found()


def test_the_table_is_what_we_make_of_the_files(found: table.Verdicts) -> None:
    known = table.read()
    assert sorted(found.keys() - known.keys()) == [], "files without a row: python -m tests.outside.gateway_api.write"
    assert sorted(known.keys() - found.keys()) == [], "rows without a file"
    assert {path: lines for path, lines in found.items() if lines != known[path]} == {
        path: known[path] for path, lines in found.items() if lines != known[path]
    }


def test_the_modules_hold_what_we_think(found: table.Verdicts) -> None:
    folders = Counter("/".join(path.split("/")[:2]) for path in found)
    assert folders == {
        "examples/standard": 81,
        "examples/experimental": 8,
        "hack/invalid-examples": 36,
        "conformance/base": 1,
        "conformance/tests": 168,
    }


def objects(verdicts: table.Verdicts) -> Iterator[tuple[str, int, str]]:
    """Path, count and what is said, of each line."""
    for path, lines in verdicts.items():
        for line in lines:
            count, _, rest = line.partition(" ")
            yield path, int(count), rest


def parts(said: str) -> Iterator[str]:
    """Each difference of a line, as REASONS names it."""
    if said.startswith("foreign "):
        yield said
        return
    first, *more = said.split(", ")
    kind, verdict, *named = first.split(" ")
    yield from (f"{kind} {verdict} {each}" for each in named)
    yield from (f"{kind} {each}" for each in more)


def test_each_difference_has_a_reason_and_each_reason_a_difference() -> None:
    rows = table.read()
    differences = {
        part
        for path, _, said in objects(rows)
        for part in parts(said)
        if " invalid" not in said and not path.startswith(MEANT_INVALID)
    }
    assert differences == REASONS.keys()


def test_what_is_meant_to_be_invalid_is_and_nothing_else() -> None:
    rows = table.read()
    invalid = {path for path, _, said in objects(rows) if " invalid " in said}
    meant = {path for path in rows if path.startswith(MEANT_INVALID)}
    assert invalid == meant | INVALID.keys()
    assert {said for path, _, said in objects(rows) if path in meant and " invalid " not in said} == set()


def test_the_summary_of_the_readme_is_that_of_the_table(request: pytest.FixtureRequest) -> None:
    counts: Counter[str] = Counter()
    for path, count, said in objects(table.read()):
        source = path.partition("/")[0]
        counts[f"{source} {said.split(',')[0].split()[1] if not said.startswith('foreign') else 'foreign'}"] += count
    readme = (request.config.rootpath / "tests/outside/README.md").read_text()
    lines = [f"| {name.replace(' ', ' | ')} | {count} |" for name, count in sorted(counts.items())]
    assert [line for line in lines if line not in readme] == []
