"""The tables of docs/operations.md say what the code's tables say: metrics, reason codes, exit codes."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane import numbers
from controlplane.admin import metrics as controller_metrics
from controlplane.cli import exits
from dataplane.a2a import Call as AgentCall
from dataplane.chain.replies import REPLIES
from dataplane.exchange import Exchange
from dataplane.http.grpc import GRPC, Call
from dataplane.http.h2 import budget
from dataplane.http.heads import Head
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.log_field import NO_ATTRIBUTE
from dataplane.telemetry.log_fields import FIELDS, NAMES
from dataplane.telemetry.log_rows.dynamic import DESTINATION
from dataplane.telemetry.metric import BUCKETS
from dataplane.telemetry.metric_table import METRICS, PREFIX
from dataplane.tracing.context import SpanContext
from dataplane.tracing.trace import Muted

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/operations.md"


def table(heading: str) -> list[tuple[str, ...]]:
    """The rows of the first table under a heading, cells without backquotes."""
    lines = PAGE.read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    return [tuple(cell.strip().replace("`", "") for cell in row[1:-1].split("|")) for row in rows]


def current(heading: str, rows: list[tuple[str, ...]], quoted: tuple[int, ...]) -> None:
    """With OPERATIONS=write make these the rows of that table; cells of columns in `quoted` are names."""
    if os.environ.get("OPERATIONS") != "write":
        return
    before, title, rest = PAGE.read_text().partition(f"## {heading}\n")
    old = [line for line in rest.split("\n## ", 1)[0].splitlines() if line.startswith("|")]
    made = "".join(f"| {' | '.join(map(_cell, row, (at in quoted for at in range(len(row)))))} |\n" for row in rows)
    start = f"{old[1]}\n"
    head, _, tail = rest.partition(start)
    PAGE.write_text(before + title + head + start + made + tail.removeprefix("".join(f"{line}\n" for line in old[2:])))


def _cell(text: str, is_name: bool) -> str:
    return ", ".join(f"`{each}`" for each in text.split(", ")) if text and is_name else text


def test_metrics() -> None:
    """The table is written anew by OPERATIONS=write."""
    expected = [
        (
            PREFIX + each.name,
            each.kind,
            ", ".join(each.labels),
            "yes" if each.per_request else "",
            str(each.limit or ""),
            each.help,
        )
        for each in METRICS
    ]
    current("Metrics", expected, quoted=(0, 2))
    assert table("Metrics") == expected


def test_metrics_of_the_controller() -> None:
    expected = [
        (controller_metrics.PREFIX + each.name, each.kind, ", ".join(each.labels), each.help)
        for each in controller_metrics.METRICS
    ]
    current("Metrics of the controller", expected, quoted=(0, 2))
    assert table("Metrics of the controller") == expected
    said = PAGE.read_text().split("Buckets of these histograms end at (seconds): ", 1)[1].split(".\n", 1)[0]
    assert [float(number) for number in said.split(",")] == list(numbers.BUCKETS)


def test_bounds_of_histograms() -> None:
    said = PAGE.read_text().split("Buckets of histograms end at (seconds): ", 1)[1].split(".\n", 1)[0]
    assert [float(number) for number in said.split(",")] == list(BUCKETS)


def test_reason_codes() -> None:
    rows = [(code, status, text) for code, status, text, *_ in table("Reason codes")]
    assert rows == [(code, str(reply.status), reply.body.decode()) for code, reply in REPLIES.items()]


def test_errors_are_made_of_the_table_and_all_of_it_is_used() -> None:
    sources = {path: path.read_text() for path in (ROOT / "dataplane").rglob("*.py") if path.name != "replies.py"}
    text = "\n".join(sources.values())
    assert [code for code in REPLIES if f'"{code}"' not in text] == []
    elsewhere = [
        (path.name, node.lineno)
        for path, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reply" and node.args
        if isinstance(node.args[0], ast.Constant) and str(node.args[0].value) >= "400"
    ]
    assert elsewhere == []


def everything() -> Exchange:
    """An exchange that has all fields."""
    exchange = Exchange(None, b"GET", b"/", Head(b"\r\n"), started=0.0)
    exchange.listener = SimpleNamespace(
        log=" gateway=default/g listener=l",
        log_json=',"gateway":"default/g","listener":"l"',
        gateway="default/g",
        name="l",
        telemetry=None,
    )
    exchange.plan = SimpleNamespace(
        log=" route=default/r route_rule=0",
        log_json=',"route":"default/r","route_rule":"0"',
        key="route/httproute/default/r/0",
        rule="",
        rule_index=0,
    )
    exchange.endpoint = SimpleNamespace(label="127.0.0.1:1")
    exchange.attempt, exchange.reason, exchange.detail = 1, "UpstreamFailed", "closed"
    exchange.retries = SimpleNamespace(given_up="exhausted")
    exchange.trace = Muted(SpanContext("0" * 31 + "1", "0" * 15 + "1", 1))
    exchange.grpc = Call(GRPC)
    exchange.grpc.status = 14
    exchange.agent_call = AgentCall("tasks/get", "JSONRPC", "t", state="failed", error=-32001)
    item = {"target": "t", "name": "n"}
    of_mcp = {"methodName": "tools/call", "sessionId": "5e", "tool": item, "prompt": item, "resource": item}
    exchange.leave("mcp", of_mcp)
    exchange.leave(DESTINATION, "a.test:80")
    names = ["operation", "provider", "requestModel", "responseModel", "dropped", "candidates"]
    counts = ["inputTokens", "outputTokens", "cachedInputTokens", "cacheCreationInputTokens", "reasoningTokens"]
    others = {"timeToFirstToken": 1_000_000, "timePerOutputToken": 1_000_000, "usageEstimated": True, "dropped": "n"}
    others["cost"] = {"total": 0.5}
    exchange.leave("llm", {**dict.fromkeys(names, "x"), **dict.fromkeys(counts, 1), **others})
    exchange.asked_host, exchange.asked_target, exchange.peer, exchange.status = b"a.test", b"/a?b=c", "192.0.2.1", 503
    return exchange


def test_log_fields() -> None:
    """The fields of a line that has all of them, as each format has them."""
    exchange = everything()
    written: list[bytes] = []
    log = AccessLog(written.append, lambda _seconds, _function: SimpleNamespace(cancel=lambda: None), as_json=True)
    log.record(exchange, 0.001)
    log.close()
    line = json.loads(b"".join(written))
    of_the_call = ["a2a.method", "a2a.task.id", "a2a.task.state", "a2a.error.code"]
    assert [line[name] for name in of_the_call] == ["tasks/get", "t", "failed", -32001]
    assert set(line) - {"level", "time", "scope"} == NAMES
    rows = [
        (
            field.name,
            field.what,
            field.moment,
            field.text(exchange, 0.001).strip(),
            field.json(exchange, 0.001).removeprefix(","),
            "" if field.otlp_name == NO_ATTRIBUTE else field.otlp_name,
        )
        for field in FIELDS
    ]
    current("Access log", rows, quoted=(0, 3, 4, 5))
    assert table("Access log") == rows


def test_exit_codes() -> None:
    assert table("Exit codes") == [(str(code), meaning) for code, meaning in exits.MEANINGS]


@pytest.mark.parametrize(("peer", "limits"), [("A client", budget.CLIENTS), ("An endpoint", budget.SERVERS)])
def test_what_a_peer_may_send_on_a_connection_of_http2(peer: str, limits: dict[str, budget.Limit]) -> None:
    part = PAGE.read_text().split("What a peer may send on one HTTP/2 connection", 1)[1].split(f"\n{peer}", 1)[1]
    rows = [line[2:-2].split(" | ") for line in part.split("\n\n| ", 1)[1].split("\n\n", 1)[0].splitlines()[2:]]
    said = {cells[0].strip("| `"): tuple(float(cell.replace(",", "")) for cell in cells[1:5]) for cells in rows}
    assert said == {name: tuple(map(float, limit)) for name, limit in limits.items()}
