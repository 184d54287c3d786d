"""The tables of docs/operations.md say what the code's tables say: metrics, reason codes, exit codes."""

from __future__ import annotations

from pathlib import Path

from controlplane.cli import exits
from dataplane.proxy.replies import REPLIES
from dataplane.telemetry.metrics import METRICS, PREFIX

PAGE = Path(__file__).resolve().parents[2] / "docs/operations.md"


def table(heading: str) -> list[tuple[str, ...]]:
    """The rows of the first table under a heading, cells without backquotes."""
    lines = PAGE.read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    return [tuple(cell.strip().replace("`", "") for cell in row[1:-1].split("|")) for row in rows]


def test_metrics() -> None:
    expected = [(PREFIX + metric.name, metric.kind, ", ".join(metric.labels), metric.help) for metric in METRICS]
    assert table("Metrics") == expected


def test_reason_codes() -> None:
    rows = [(code, status, text) for code, status, text, *_ in table("Reason codes")]
    assert rows == [(code, str(reply.status), reply.body.decode()) for code, reply in REPLIES.items()]


def test_exit_codes() -> None:
    assert table("Exit codes") == [(str(code), meaning) for code, meaning in exits.MEANINGS]
