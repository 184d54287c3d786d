"""What the benchmark of Gateways counts as an answer, and as a `Programmed` that came too early."""

from __future__ import annotations

import json
from typing import Any

from benchmarks import gateway_hops
from benchmarks.gateways import Probe, Row, Seen, judged, summary


def condition(kind: str = "Programmed", status: str = "True", generation: int = 1) -> dict[str, Any]:
    return {"type": kind, "status": status, "observedGeneration": generation}


def gateway(*conditions: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": "web", "generation": generation}, "status": {"conditions": [*conditions]}}


def probes(*answered: bool) -> list[Probe]:
    """One each 100 ms, which takes 10."""
    return [Probe(1.0 + number / 10, 1.01 + number / 10, each) for number, each in enumerate(answered)]


def test_the_first_answer_counts_from_the_creation() -> None:
    row = judged(0.5, probes(False, False, True, True), programmed=1.25)
    assert (round(row.answered), round(row.programmed), row.early) == (710, 750, 0)


def test_programmed_is_early_where_a_later_request_is_not_answered() -> None:
    assert judged(0.5, probes(False, False, True, True), programmed=1.05).early == 1
    assert judged(0.5, probes(False, False, True, True), programmed=0.9).early == 2
    assert judged(0.5, probes(True, True, False, True), programmed=1.05).early == 1  # one that fails afterwards as well


def test_a_request_that_was_under_way_is_no_evidence() -> None:
    assert judged(0.5, probes(False, True), programmed=1.005).early == 0


def test_programmed_is_what_is_said_of_the_newest_content() -> None:
    seen = Seen()
    for found in (
        gateway(),
        gateway(condition(status="False")),
        gateway(condition("Accepted")),
        gateway(condition(), generation=2),
    ):
        seen.gateway("MODIFIED", found)
    seen.gateway("DELETED", gateway(condition()))
    assert not seen.programmed
    seen.gateway("MODIFIED", gateway(condition()))
    first = dict(seen.programmed)
    seen.gateway("MODIFIED", gateway(condition()))
    assert seen.programmed == first != {}


def test_early_ones_of_all_are_added_up() -> None:
    found = summary([Row(300.0, 320.0, 0), Row(500.0, 510.0, 2), Row(400.0, 430.0, 1)])
    assert (found["first answer mean ms"], found["p50"], found["max"]) == (400, 400, 500)
    assert (found["Programmed after first answer, mean ms"], found["unanswered after Programmed"]) == (20, 3)


def event(verb: str, resource: str, name: str, second: float, sub: str = "") -> str:
    about = {"resource": resource, "name": name, **({"subresource": sub} if sub else {})}
    return json.dumps({"verb": verb, "objectRef": about, "stageTimestamp": f"2026-01-01T00:00:{second:09.6f}Z"})


def test_hops_are_those_of_one_gateway_in_the_order_of_time() -> None:
    lines = [
        event("patch", "deployments", "web1", 2.5),
        event("create", "pods", "web1-6d5f-x7k", 3, "binding"),
        event("patch", "deployments", "web1", 9),
        event("patch", "deployments", "web10", 1),
        event("get", "serviceaccounts", "web1", 2.25),
    ]
    moments = gateway_hops.noted(lines, "web1")
    logged = gateway_hops.logged(["2026-01-01T00:00:03.500Z\tinfo\tdataplane\tgatewright-proxy 0.1.0 workers=2"])
    found = [line.split("  ")[-1] for line in gateway_hops.table(moments | logged, moments["Deployment applied"] - 0.5)]
    assert found == [
        "the controller asks for the first object",
        "Deployment applied",
        "Pod bound to the node",
        "proxy: interpreter runs, workers started",
    ]
    (first, *_, last) = gateway_hops.table(moments | logged, moments["Deployment applied"] - 0.5)
    assert first.split()[:3] == ["250", "ms", "+"]
    assert last.split()[:4] == ["1500", "ms", "+", "500"]
