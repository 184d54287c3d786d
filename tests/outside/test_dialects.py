"""What users of other proxies bring, written here: it is accepted and serves as they mean it, or is refused by name."""

from __future__ import annotations

import pytest

from gatewright.api.lint import lint
from gatewright.api.lint.lint import Document
from tests.outside.dialects import page
from tests.outside.dialects.case import ACCEPTED, SERVES, Row
from tests.outside.dialects.rows import ROWS
from tests.outside.dialects.serving import Served

SERVING = [row for row in ROWS if row.verdict == SERVES]
ACCEPTING = [row for row in ROWS if row.verdict == ACCEPTED]


@pytest.mark.parametrize("row", SERVING, ids=str)
def test_it_serves_as_meant(row: Row) -> None:
    problems = [str(each) for each in lint.lint([Document("file.yaml", row.text)]) if each.severity == "error"]
    assert problems == []
    assert row.asks, "a row that serves is asked"
    proxy = Served(row.text, row.servers)
    for ask in row.asks:
        status, headers, body, got = proxy.ask(ask)
        assert status == ask.status, (ask, headers, body)
        assert {name: headers.get(name) for name in ask.gets} == ask.gets, ask
        assert ask.text is None or body == ask.text
        assert {request.server for request in got} == {ask.at, ask.also_at} - {None}, ask
        assert [request.server for request in got].count(ask.at or "") == (ask.tries if ask.at else 0), ask
        for request in got:
            if request.server == ask.at:
                assert ask.sees is None or request.line == ask.sees
                assert {name: request.headers.get(name) for name in ask.with_headers} == ask.with_headers, ask
    assert not row.log or row.log in proxy.log_lines()[-1]


@pytest.mark.parametrize("row", ACCEPTING, ids=str)
def test_it_is_accepted(row: Row) -> None:
    """Certificates that it names are not there."""
    found = lint.lint([Document("file.yaml", row.text)])
    assert [str(each) for each in found if each.unsupported or "unknown" in each.message] == []
    assert row.asks == ()


def test_nothing_of_it_waits() -> None:
    assert [str(row) for row in ROWS if row.verdict not in (SERVES, ACCEPTED)] == []


def test_rows_are_told_apart() -> None:
    assert len({(row.dialect, row.theirs, row.intention) for row in ROWS}) == len(ROWS) >= 40


def test_the_page_has_the_rows() -> None:
    text = page.PAGE.read_text()
    assert page.page(text) == text, "python -m tests.outside.dialects.page"
