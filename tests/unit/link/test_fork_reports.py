"""What the agent and its fork server say to each other."""

from __future__ import annotations

import pytest

from dataplane.link.forks import QUESTION, REPORT_BYTES, Report, decode


@pytest.mark.parametrize(
    "report", [Report(False, 4711, 0), Report(False, 0, 11), Report(True, 4711, -9), Report(True, 1, 3)]
)
def test_a_report_is_heard_as_it_was_said(report: Report) -> None:
    data = report.encode()
    assert len(data) == REPORT_BYTES and decode(data) == report


def test_a_question_is_one_byte() -> None:
    assert len(QUESTION) == 1
