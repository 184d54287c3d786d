"""Dashboards and alert rules ask for metrics and labels that there are, and each alert has a test of promtool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.admin import metrics as of_controller
from dataplane.telemetry.metric_table import METRICS, PREFIX

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "manifests/grafana").glob("*.json"))
ALERTS = ROOT / "manifests/prometheus/alerts.yaml"
TESTS = ROOT / "manifests/prometheus/tests.yaml"

LABELS = {PREFIX + each.name: (each.kind, {*each.labels}) for each in METRICS} | {
    of_controller.PREFIX + each.name: (each.kind, {*each.labels}) for each in of_controller.METRICS
}
OF_SCRAPES = {"instance", "job", "le"}
"""Labels that Prometheus adds, or a histogram has."""

_SELECTOR = re.compile(r"(gatewright_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_BY = re.compile(r"\bby \(([^)]*)\)")


def expressions() -> list[tuple[str, str]]:
    """Where each stands, and what it says."""
    panels = [
        (f"{file.name}: {panel['title']}", target["expr"])
        for file in DASHBOARDS
        for panel in json.loads(file.read_text())["panels"]
        for target in panel["targets"]
    ]
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    return [*panels, *((rule["alert"], rule["expr"]) for rule in rules)]


def row_of(name: str) -> tuple[str, set[str]] | None:
    """The metric that a series belongs to."""
    if name in LABELS:
        return LABELS[name]
    base = re.sub(r"_(bucket|count|sum)$", "", name)
    row = LABELS.get(base)
    return row if row is not None and row[0] == "histogram" else None


@pytest.mark.parametrize(("where", "text"), expressions(), ids=[where for where, _ in expressions()])
def test_what_is_asked_for_is_there(where: str, text: str) -> None:
    known: set[str] = set(OF_SCRAPES)
    asked = _SELECTOR.findall(text)
    assert asked
    for name, labels in asked:
        row = row_of(name)
        assert row is not None, name
        known |= row[1]
        assert set(_LABEL.findall(labels)) <= row[1] | OF_SCRAPES, (name, labels)
    grouped = {label.strip() for labels in _BY.findall(text) for label in labels.split(",")}
    assert grouped <= known


@pytest.mark.parametrize("file", DASHBOARDS, ids=[file.stem for file in DASHBOARDS])
def test_a_dashboard_is_whole(file: Path) -> None:
    made: dict[str, Any] = json.loads(file.read_text())
    panels = made["panels"]
    assert made["uid"] == f"gatewright-{file.stem}" and made["title"].startswith("Gatewright: ")
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) and all(panel["description"] for panel in panels)


def test_each_alert_has_a_test() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    tested = [
        case["alertname"] for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]
    ]
    assert tested == [rule["alert"] for rule in rules]
    assert all(rule["labels"]["severity"] in ("critical", "warning") for rule in rules)
    assert all(rule["annotations"]["summary"] for rule in rules)
