"""The router against a model that scans every rule, on random rules and requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.table.binds import BindPlan
from tests.fakes.table_state import TableRun, bind, listener, match, route

LABELS = ("a", "b", "x")
HOSTS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=4).map(".".join)
HOSTNAMES = st.one_of(HOSTS, HOSTS.map(lambda host: "*." + host))
SEGMENTS = st.lists(st.sampled_from(("p", "pq", "q", "")), max_size=4)
PATHS = SEGMENTS.map(lambda segments: "/" + "/".join(segments))
REGEXES = st.sampled_from(("/p.*", "/[pq]/.*", "/.*", "/p/q", ".*q"))
SMALL = st.dictionaries(st.sampled_from(("h", "g")), st.sampled_from(("1", "2", "~[12]")), max_size=2)


@dataclass(frozen=True)
class Rule:
    name: str
    hosts: tuple[str, ...]
    kind: str
    path: str
    method: str
    headers: tuple[tuple[str, str], ...]
    query: tuple[tuple[str, str], ...]


@st.composite
def rules(draw: st.DrawFn) -> list[Rule]:
    found = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(("prefix", "prefix", "exact", "regex")))
        found.append(
            Rule(
                f"r{number:02}",
                tuple(draw(st.lists(HOSTNAMES, max_size=2))),
                kind,
                draw(REGEXES if kind == "regex" else PATHS),
                draw(st.sampled_from(("", "", "GET"))),
                tuple(draw(SMALL).items()),
                tuple(draw(SMALL).items()),
            )
        )
    return found


Request = tuple[str, str, str, dict[str, str], dict[str, str]]
VALUES = st.dictionaries(st.sampled_from(("h", "g")), st.sampled_from(("1", "2", "3")), max_size=2)
REQUESTS = st.tuples(HOSTS, PATHS, st.sampled_from(("GET", "PUT")), VALUES, VALUES)


def host_level(rule: Rule, host: str) -> int | None:
    """How specific the best of a rule's hostnames is for a host; None: none covers it."""
    levels = [0] if not rule.hosts else []
    for hostname in rule.hosts:
        if hostname == host:
            levels.append(1000)
        elif hostname.startswith("*.") and host.endswith(hostname[1:]) and len(host) > len(hostname) - 1:
            levels.append(len(hostname))
    return max(levels, default=None)


def path_rank(rule: Rule, path: str) -> tuple[int, int] | None:
    if rule.kind == "exact":
        return (1, 0) if path == rule.path else None
    if rule.kind == "regex":
        return (0, len(rule.path)) if re.fullmatch(rule.path, path) else None
    prefix = rule.path.rstrip("/")
    return (0, len(prefix) or 1) if path == prefix or path.startswith(prefix + "/") else None


def holds(conditions: tuple[tuple[str, str], ...], values: dict[str, str]) -> bool:
    return all(
        name in values and (re.fullmatch(wanted[1:], values[name]) if wanted[0] == "~" else values[name] == wanted)
        for name, wanted in conditions
    )


def model(rules: list[Rule], request: Request) -> str | None:
    """Scan: every rule that matches, the best one by Gateway API's order."""
    host, path, method, headers, query = request
    matching: list[tuple[Any, ...]] = []
    for rule in rules:
        level, rank = host_level(rule, host), path_rank(rule, path)
        if level is None or rank is None or rule.method not in ("", method):
            continue
        if holds(rule.headers, headers) and holds(rule.query, query):
            key = (-level, -rank[0], -rank[1], not rule.method, -len(rule.headers), -len(rule.query), rule.name)
            matching.append((key, rule.name))
    return min(matching)[1] if matching else None


def loaded(rules: list[Rule]) -> TableRun:
    run = TableRun()
    changes = [
        route(
            rule.name,
            match(
                method=rule.method,
                headers=dict(rule.headers),
                query=dict(rule.query),
                **{rule.kind: rule.path},  # type: ignore[arg-type]
            ),
            hosts=rule.hosts,
            order=rule.name,
        )
        for rule in rules
    ]
    run.apply(bind(), listener(), *changes)
    assert run.refused == {}
    return run


@settings(max_examples=110, deadline=None)
@given(rules(), st.lists(REQUESTS, min_size=5, max_size=10))
def test_router_finds_what_a_scan_finds(rules: list[Rule], requests: list[Request]) -> None:
    run = loaded(rules)
    for request in requests:
        host, path, method, headers, query = request
        lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
        text = "&".join(f"{name}={value}" for name, value in query.items())
        found = run.find(host, path, method=method, headers=lines, query=text)
        assert found == model(rules, request), request


def test_the_strategies_reach_every_kind_of_answer() -> None:
    """The property above is worth something only when most of the requests find a rule."""
    found: list[str | None] = []

    @settings(max_examples=50, deadline=None, database=None)
    @given(rules(), REQUESTS)
    def look(rules: list[Rule], request: Request) -> None:
        found.append(model(rules, request))

    look()
    assert any(found) and None in found


def test_a_bind_plan_without_listeners_chooses_none() -> None:
    assert BindPlan("bind/x", 1, ()).default is None
