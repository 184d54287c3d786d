"""The expression language beside two libraries: `python -m benchmarks.cel [--quick] [--rounds N] [--json FILE]`.

Twelve expressions of the kind that policies have, each evaluated with a context that is made for it anew, as for each
request. All sides begin with the same plain document (`DOCUMENT`): ours makes an object that looks values up when they
are asked for, cel-expr-python is handed those roots that the expression reads and converts them, cel-python needs its
own classes, made for each evaluation as well. What a library does not have is given to it as a Python function, or its
cell is empty where there is no way. Rounds are interleaved; a ratio is of two figures of the same round, and CPU time.
Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import thread_time_ns
from typing import Any

import celpy
from cel_expr_python import cel as cpp
from celpy import celtypes

from gatewright.cel.budget import START
from gatewright.cel.functions import json_text
from gatewright.cel.program import compile_expression
from gatewright.cel.values import Timestamp
from gatewright.variables.environments import environment

MEDIAN, LEAST = 15.0, 3.0
"""At least so many times faster than cel-expr-python: the median of all expressions, and each of them."""

BODY = json.dumps(
    {
        "id": "x",
        "choices": [{"message": {"role": "assistant", "content": "Hello there"}}],
        "usage": {"total_tokens": 120},
    }
)
DOCUMENT: dict[str, Any] = {
    "request": {
        "method": "GET",
        "path": "/api/v1/users/42",
        "host": "api.example.com",
        "scheme": "https",
        "version": "HTTP/1.1",
        "headers": {
            "host": "api.example.com",
            "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "accept": "application/json",
            "accept-encoding": "gzip, deflate, br",
            "accept-language": "en-GB,en;q=0.8",
            "authorization": "Bearer eyJhbGciOi.J9.x",
            "cookie": "session=abc; theme=dark",
            "referer": "https://app.example.com/users",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "x-forwarded-for": "203.0.113.9",
            "x-request-id": "2b6ad2bc-9e1c-4b7e-8f39-9a3a0a0e7f01",
            "x-tier": "gold",
            "x-user": "alice",
        },
        "startTime": 1_700_000_000,
    },
    "response": {"code": 200, "headers": {"content-type": "application/json", "content-length": "169"}, "body": BODY},
    "source": {"address": "10.1.2.3", "port": 51234, "identity": {"namespace": "shop", "serviceAccount": "web"}},
    "jwt": {
        "iss": "https://issuer.example.com",
        "sub": "alice",
        "aud": ["api"],
        "exp": 1_900_000_000,
        "iat": 1_700_000_000,
        "jti": "6f1b9a",
        "scope": "read write",
        "email": "alice@example.com",
        "tenant": "acme",
        "groups": ["dev", "team-gateway", "admin"],
    },
}
"""Some forty values, as a request of a browser with a token has."""


@dataclass(frozen=True)
class Row:
    """An expression; `cpp` and `python` where a library needs another text, "" where it cannot do it at all."""

    name: str
    text: str
    roots: tuple[str, ...]
    cpp: str | None = None
    python: str | None = None


ROWS = (
    Row("header look-up", "request.headers['x-user'] == 'alice'", ("request",)),
    Row("header, ternary", "request.headers['x-tier'] == 'gold' ? 'fast' : 'slow'", ("request",)),
    Row(
        "method in list, path prefix",
        "request.method in ['GET', 'PUT'] && request.path.startsWith('/api/')",
        ("request",),
    ),
    Row("JWT claims", "jwt.sub == 'alice' && 'admin' in jwt.groups", ("jwt",)),
    Row("has", "has(jwt.tenant) && jwt.tenant == 'acme'", ("jwt",)),
    Row("exists", "jwt.groups.exists(g, g.startsWith('team-'))", ("jwt",)),
    Row("filter, map", "jwt.groups.filter(g, g.startsWith('team-')).map(g, g + '!')", ("jwt",)),
    Row(
        "CIDR",
        "cidr('10.0.0.0/8').containsIP(source.address)",
        ("source",),
        cpp="inNetwork('10.0.0.0/8', source.address)",
        python="inNetwork('10.0.0.0/8', source.address)",
    ),
    Row("split, filter, size", "request.path.split('/').filter(p, p != '').size() == 4", ("request",), python=""),
    Row("JSON of a body", "json(response.body).usage.total_tokens > 100", ("response",)),
    Row(
        "timestamp, duration",
        "request.startTime - duration('5m') > timestamp('2023-01-01T00:00:00Z')",
        ("request",),
        cpp="timestamp(request.startTime) - duration('5m') > timestamp('2023-01-01T00:00:00Z')",
    ),
    Row("regular expression", "request.path.matches('^/api/v[0-9]+/users/[0-9]+$')", ("request",)),
)


class Context:
    """What a worker offers: nothing is converted before it is asked for."""

    __slots__ = ("document",)

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def request_header(self, name: str) -> str | None:
        return self.document["request"]["headers"].get(name)  # type: ignore[no-any-return]

    @property
    def request_method(self) -> str:
        return self.document["request"]["method"]  # type: ignore[no-any-return]

    @property
    def request_path(self) -> str:
        return self.document["request"]["path"]  # type: ignore[no-any-return]

    @property
    def request_start_time(self) -> Timestamp:
        return Timestamp(self.document["request"]["startTime"] * 10**9)

    @property
    def response_json(self) -> Any:
        return json_text.parse(list(START), self.document["response"]["body"])

    @property
    def source_address(self) -> str:
        return self.document["source"]["address"]  # type: ignore[no-any-return]

    @property
    def jwt(self) -> Any:
        return self.document["jwt"]


Evaluate = Callable[[], Any]


def ours(row: Row) -> Evaluate:
    evaluate = compile_expression(row.text, environment("response")).evaluate
    document = DOCUMENT
    return lambda: evaluate(Context(document))


def own_json(text: str) -> Any:
    return json.loads(text)


@cache
def network(text: str) -> Any:
    return ipaddress.ip_network(text)


def in_network(text: str, address: str) -> bool:
    return ipaddress.ip_address(address) in network(text)


def cel_expr_python(row: Row) -> Evaluate | None:
    kinds = cpp.Type
    functions = [
        cpp.FunctionDecl("json", [cpp.Overload("json_s", kinds.DYN, [kinds.STRING], False, own_json)]),
        cpp.FunctionDecl(
            "inNetwork", [cpp.Overload("in_s", kinds.BOOL, [kinds.STRING, kinds.STRING], False, in_network)]
        ),
    ]
    config = cpp.NewEnvConfigFromYaml("name: t\nextensions:\n- name: strings\n")
    roots = {name: kinds.Map(kinds.STRING, kinds.DYN) for name in row.roots}
    made = cpp.NewEnv(config=config, variables=roots, functions=functions)
    found = made.compile(row.text if row.cpp is None else row.cpp)

    def evaluate() -> Any:
        return found.eval(data={name: DOCUMENT[name] for name in row.roots}).plain_value()

    return evaluate


def cel_python(row: Row) -> Evaluate | None:
    text = row.text if row.python is None else row.python
    if not text:
        return None
    made = celpy.Environment(runner_class=celpy.InterpretedRunner)
    functions: dict[str, Any] = {
        "json": lambda body: celpy.json_to_cel(json.loads(body)),
        "inNetwork": lambda net, address: celtypes.BoolType(in_network(str(net), str(address))),
    }
    program = made.program(made.compile(text), functions=functions)

    def evaluate() -> Any:
        values = {name: celpy.json_to_cel(DOCUMENT[name]) for name in row.roots}
        if "startTime" in text:
            start = celtypes.TimestampType("2023-11-14T22:13:20Z")
            values["request"][celtypes.StringType("startTime")] = start
        return program.evaluate(values)

    return evaluate


SIDES: dict[str, Callable[[Row], Evaluate | None]] = {
    "gatewright": ours,
    "cel-expr-python": cel_expr_python,
    "cel-python": cel_python,
}


def timed(evaluate: Evaluate, count: int) -> float:
    """Microseconds of CPU for each evaluation."""
    start = thread_time_ns()
    for _ in range(count):
        evaluate()
    return (thread_time_ns() - start) / count / 1000


def sized(evaluate: Evaluate, milliseconds: float) -> int:
    """How many evaluations take about that long."""
    once = max(timed(evaluate, 20), 0.05)
    return max(int(milliseconds * 1000 / once), 20)


def measure(rounds: int, milliseconds: float) -> list[dict[str, Any]]:
    """One dict for each expression: microseconds by library, and ratios to ours (median, least, greatest)."""
    sides = {row.name: {name: make(row) for name, make in SIDES.items()} for row in ROWS}
    counts: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], list[float]] = {}
    for row in ROWS:
        check(row, sides[row.name])
    for number in range(rounds):
        names = list(SIDES)
        for row in ROWS:
            for name in names[number % len(names) :] + names[: number % len(names)]:
                evaluate = sides[row.name][name]
                if evaluate is None:
                    continue
                key = row.name, name
                counts[key] = counts.get(key) or sized(evaluate, milliseconds)
                found.setdefault(key, []).append(timed(evaluate, counts[key]))
    return [result(row, found) for row in ROWS]


def check(row: Row, sides: dict[str, Evaluate | None]) -> None:
    """All sides give the same value, or the figures mean nothing."""
    values = {name: plain(evaluate()) for name, evaluate in sides.items() if evaluate is not None}
    if len({repr(value) for value in values.values()}) != 1:
        raise RuntimeError(f"{row.name}: {values}")


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return bool(value) if isinstance(value, celtypes.BoolType) else str(value) if isinstance(value, str) else value


def result(row: Row, found: dict[tuple[str, str], list[float]]) -> dict[str, Any]:
    own = found[row.name, "gatewright"]
    out: dict[str, Any] = {"name": row.name, "text": row.text, "microseconds": {}, "ratios": {}}
    for name in SIDES:
        figures = found.get((row.name, name))
        if figures is None:
            continue
        out["microseconds"][name] = statistics.median(figures)
        if name != "gatewright":
            ratios = [peer / our for peer, our in zip(figures, own, strict=True)]
            out["ratios"][name] = {"median": statistics.median(ratios), "least": min(ratios), "greatest": max(ratios)}
    return out


def verdicts(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The two bars, each with the figure and whether it holds."""
    ratios = {row["name"]: row["ratios"]["cel-expr-python"]["median"] for row in results}
    slowest = min(ratios, key=lambda name: ratios[name])
    median = statistics.median(ratios.values())
    return [
        {"bar": "median ratio to cel-expr-python", "wanted": MEDIAN, "found": median, "holds": median >= MEDIAN},
        {
            "bar": f"least ratio ({slowest})",
            "wanted": LEAST,
            "found": ratios[slowest],
            "holds": ratios[slowest] >= LEAST,
        },
    ]


def table(results: list[dict[str, Any]]) -> str:
    head = [*(f"{name} us" for name in SIDES), "cel-expr-python / ours (least to most)", "cel-python / ours"]
    lines = ["| expression | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for row in results:
        figures = [f"{row['microseconds'][name]:.2f}" if name in row["microseconds"] else "" for name in SIDES]
        one = row["ratios"]["cel-expr-python"]
        two = row["ratios"].get("cel-python")
        figures.append(f"{one['median']:.1f} ({one['least']:.1f} to {one['greatest']:.1f})")
        figures.append(f"{two['median']:.0f}" if two else "")
        lines.append(f"| {row['name']} | " + " | ".join(figures) + " |")
    lines.append("")
    for verdict in verdicts(results):
        judged = "holds" if verdict["holds"] else "DOES NOT HOLD"
        lines.append(f"- {verdict['bar']}: {verdict['found']:.1f}, at least {verdict['wanted']:.0f}: {judged}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.cel", description=__doc__)
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--milliseconds", type=float, help="of each measurement; default 40")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 10 ms: a look, not a result")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 9)
    results = measure(rounds, options.milliseconds or (10 if options.quick else 40))
    print(table(results))
    judged = verdicts(results)
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "expressions": results, "verdicts": judged}, indent=1))
    return 0 if all(verdict["holds"] for verdict in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
