"""MCP: what a call, a merged list, a notice and a resting session cost, beside Envoy as a plain proxy and no proxy.

`python -m benchmarks.mcp [--only PART] [--rounds N] [--seconds N] [--quick]`. The server is `mcp_server`, on the core
of the load. Envoy forwards to it without knowing anything of MCP, and so does the row `plain` of ours: what they cost
less is what sessions, names and rules cost. Rows of one part are measured in interleaved rounds. Exit status 1 when a
bar does not hold.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from benchmarks import cpu, proxies, report
from benchmarks.load import Counting, LoadFailed, Sample, measure, settled_kib
from benchmarks.machine import OUT, PROXY_CORE, Process, alone
from benchmarks.mcp_load import Calls, Client, listening
from benchmarks.mcp_server import TOOLS
from benchmarks.proxies import Launch
from benchmarks.rounds import Rounds, interleave
from tests.harness.ports import reserve

CONNECTIONS: Final = 32
STREAMS: Final = 32
TARGETS: Final = 10
LISTS: Final = 100
IDLE: Final = 1000

MOST_CALL: Final = 150.0
"""Microseconds of CPU for a call to the only target."""
MOST_LIST: Final = 20.0
"""Milliseconds until a list of 500 tools of ten targets is there."""
MOST_NOTICE: Final = 20.0
"""Microseconds of CPU for a notice of the only target."""
MOST_IDLE: Final = 50.0
"""MiB for 1,000 sessions that rest."""

RULE: Final = {
    "mcp": {"authorization": {"policy": {"matchExpressions": ['mcp.tool.name in ["tool1", "tool7", "events"]']}}}
}
ONE: Final = "one target"
TEN: Final = "ten targets"


def mcp(ports: Sequence[int], **more: Any) -> dict[str, Any]:
    """A backend of a target for each port."""
    targets = [{"name": f"t{n}", "static": {"host": "127.0.0.1", "port": port}} for n, port in enumerate(ports)]
    return {"targets": targets, **more}


class Servers(Counting):
    def __init__(self) -> None:
        self.ports = [reserve() for _ in range(TARGETS)]
        command = [sys.executable, "-m", "benchmarks.mcp_server", *map(str, self.ports)]
        super().__init__(command, self.ports[0])


@dataclass(frozen=True, slots=True)
class Row:
    """Who is between client and server. `prefix`: of the names of tools. `asks`: requests to servers for each call."""

    launch: Callable[[Sequence[int]], Launch]
    prefix: str = ""
    sessions: bool = True
    asks: int = 1


def ours(name: str, count: int, policies: Mapping[str, Any] | None = None, **more: Any) -> Row:
    """The product with so many targets."""

    def launch(ports: Sequence[int]) -> Launch:
        return proxies.gatewright_mcp(name, ports[0], mcp(ports[:count], **more), policies or {})

    is_stateless = "sessionRouting" in more
    return Row(launch, "t0_" if count > 1 else "", not is_stateless, _STATELESS if is_stateless else 1)


_STATELESS: Final = 4
"""A session is opened, said to be open, used and ended."""


ROWS: Final = {
    ONE: ours(ONE, 1),
    "one target, a rule": ours("a rule", 1, RULE),
    "two targets": ours("two targets", 2),
    "two targets, a rule": ours("two targets a rule", 2, RULE),
    "one target, Stateless": ours("Stateless", 1, sessionRouting="Stateless"),
    TEN: ours(TEN, TARGETS),
    "plain": Row(lambda ports: proxies.gatewright(ports[0])),
    "envoy": Row(lambda ports: proxies.envoy(ports[0])),
}
OF_CALLS: Final = (
    ONE,
    "one target, a rule",
    "two targets",
    "two targets, a rule",
    "one target, Stateless",
    "plain",
    "envoy",
)
OF_NOTICES: Final = (ONE, "one target, a rule", "two targets", "plain", "envoy")
DIRECT: Final = "direct"
_BARE: Final = Row(lambda ports: proxies.envoy(ports[0]))
"""What DIRECT is asked as."""


@dataclass(slots=True)
class World:
    """The servers, and proxies that were started by now."""

    stack: ExitStack
    servers: Servers
    running: dict[str, tuple[Process, int]] = field(default_factory=dict)

    def proxy(self, name: str) -> tuple[Process, int]:
        """Its process and port; of DIRECT those of the server."""
        if name == DIRECT:
            return self.servers.process, self.servers.port
        if name not in self.running:
            launch = ROWS[name].launch(self.servers.ports)
            process = Process(name.replace(" ", "-").replace(",", ""), launch.command, PROXY_CORE, launch.environment)
            self.stack.callback(process.stop)
            process.await_port(launch.port)
            self.running[name] = process, launch.port
        return self.running[name]

    def rounds(self, names: Sequence[str], tool: str, connections: int, count: int, seconds: int) -> Rounds:
        """Samples of calls of one tool, round by round."""

        def one(name: str) -> Sample:
            row = ROWS.get(name, _BARE)
            load = Calls(row.prefix + tool, connections, row.sessions)
            found = measure(*self.proxy(name), self.servers, load, seconds, events=tool == "events")
            of_each = {"microseconds": found.microseconds * row.asks, "per_second": found.per_second / row.asks}
            return replace(found, units=found.units // row.asks, **of_each)

        for name in names:  # warm: connections, caches, memory
            one(name)
        return interleave(names, one, count, lambda text: print(f"{tool}: {text}", file=sys.stderr, flush=True))


@contextmanager
def world() -> Iterator[World]:
    with ExitStack() as stack:
        stack.enter_context(alone())
        servers = Servers()
        stack.callback(servers.process.stop)
        yield World(stack, servers)


@dataclass(slots=True)
class Found:
    """What a part gives: Markdown, figures, and whether its bars hold."""

    text: str
    figures: Any
    held: list[bool] = field(default_factory=list)


def _bar(figure: float, most: float, unit: str) -> tuple[str, bool]:
    return f"{figure:.1f} {unit}, at most {most:.0f}: {'holds' if figure <= most else 'DOES NOT HOLD'}", figure <= most


def _table(title: str, unit: str, rounds: Rounds, most: float) -> Found:
    head = f"| | us of CPU per {unit} | p50 us | times Envoy (least to most) |"
    lines = [f"### {title}", "", head, "|---|---|---|---|"]
    for name in rounds.samples:
        ratios = rounds.ratios(name, "envoy", "microseconds")
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        p50 = rounds.median(name, "p50") if unit == "call" else 0.0
        lines.append(f"| {name} | {rounds.median(name, 'microseconds'):.1f} | {p50:,.0f} | {ratio} |")
    text, holds = _bar(rounds.median(ONE, "microseconds"), most, f"us per {unit}")
    noise = f"At most {rounds.noise():.2f} cores were busy with something else in any round."
    figures = {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()}
    return Found("\n".join([*lines, "", f"- {ONE}: {text}", noise, ""]), figures, [holds])


def calls(here: World, count: int, seconds: int) -> Found:
    return _table(
        f"`tools/call` over {CONNECTIONS} connections",
        "call",
        here.rounds(OF_CALLS, "tool7", CONNECTIONS, count, seconds),
        MOST_CALL,
    )


def notices(here: World, count: int, seconds: int) -> Found:
    title = f"Notices of progress, {STREAMS} streams of 1,000, one every 2 ms on each"
    return _table(title, "notice", here.rounds(OF_NOTICES, "events", STREAMS, count, max(seconds, 3)), MOST_NOTICE)


def latency(here: World, count: int, seconds: int) -> Found:
    """One call at a time: what is added to the way without a proxy."""
    names = (DIRECT, ONE, "two targets", "plain", "envoy")
    rounds = here.rounds(names, "tool7", 1, count, seconds)
    lines = ["### `tools/call`, one at a time", "", "| | p50 us | added to direct |", "|---|---|---|"]
    for name in names:
        pairs = zip(rounds.samples[name], rounds.samples[DIRECT], strict=True)
        added = statistics.median(one.p50 - direct.p50 for one, direct in pairs)
        lines.append(f"| {name} | {rounds.median(name, 'p50'):.0f} | {added:+.0f} |")
    figures = {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()}
    return Found("\n".join([*lines, ""]), figures)


def lists(here: World, count: int, seconds: int) -> Found:
    """`tools/list` of all targets, and of the same servers asked one after the other without a proxy."""
    process, port = here.proxy(TEN)
    client = Client(port)
    client.begin()
    found = len(client.result("tools/list")["tools"])
    if found != TARGETS * TOOLS:
        raise LoadFailed(f"{found} tools")
    clients = [Client(each) for each in here.servers.ports]
    for each in clients:
        each.begin()
    merged, direct, spent = [], [], 0
    for _ in range(LISTS):
        before = cpu.nanoseconds(process.pid)
        merged.append(client.timed("tools/list") * 1e3)
        spent += cpu.nanoseconds(process.pid) - before
        direct.append(sum(each.timed("tools/list") for each in clients) * 1e3)
    for each in (client, *clients):
        each.close()
    median, own = statistics.median(merged), statistics.median(direct)
    text, holds = _bar(median, MOST_LIST, "ms (median)")
    lines = [
        f"### `tools/list` of {found} tools of {TARGETS} targets, {LISTS} times",
        "",
        f"- through the proxy: {text}; the slowest {max(merged):.1f} ms; {spent / LISTS / 1e6:.2f} ms of CPU",
        f"- the ten servers asked one after the other, without a proxy: {own:.1f} ms",
        "",
    ]
    return Found("\n".join(lines), {"merged_ms": merged, "direct_ms": direct, "cpu_ns": spent / LISTS}, [holds])


def idle(here: World, count: int, seconds: int) -> Found:
    """Sessions that rest, with a kept connection each; then with the stream of what the server has to say as well."""
    lines, figures, held = [f"### {IDLE:,} sessions that rest", ""], {}, []
    for name in (ONE, "two targets", "envoy"):
        process, port = here.proxy(name)
        warm = Client(port)
        listening(port, warm.begin()).close()
        before = settled_kib(process)
        clients = [Client(port) for _ in range(IDLE)]
        for each in clients:
            each.begin()
        resting = (settled_kib(process) - before) / 1024
        streams = [listening(port, each.session) for each in clients]
        both = (settled_kib(process) - before) / 1024
        for each in (*clients, warm):
            each.close()
        for stream in streams:
            stream.close()
        text, holds = _bar(both, MOST_IDLE, "MiB")
        if name == ONE:
            held.append(holds)
        figures[name] = {"resting_mib": resting, "with_streams_mib": both}
        lines.append(f"- {name}: {resting:.1f} MiB; with an open stream for each {text}")
    return Found("\n".join([*lines, ""]), figures, held)


PARTS: Final[dict[str, Callable[[World, int, int], Found]]] = {
    "calls": calls,
    "latency": latency,
    "notices": notices,
    "lists": lists,
    "idle": idle,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*PARTS], help="only this part")
    parser.add_argument("--rounds", type=int, help="default 5")
    parser.add_argument("--seconds", type=int, help="of load, per row and round; default 2")
    parser.add_argument("--quick", action="store_true", help="1 round of 1 second: a look, not a result")
    options = parser.parse_args()
    count, seconds = options.rounds or (1 if options.quick else 5), options.seconds or (1 if options.quick else 2)
    with world() as here:
        found = {name: part(here, count, seconds) for name, part in PARTS.items() if name in (options.only or PARTS)}
    text = "\n".join(each.text for each in found.values())
    print(text)
    document = {"machine": report.machine(), "parts": {name: each.figures for name, each in found.items()}}
    (OUT / "mcp.json").write_text(json.dumps(document, indent=1) + "\n")
    (OUT / "mcp.md").write_text(text)
    return 0 if all(holds for each in found.values() for holds in each.held) else 1


if __name__ == "__main__":
    sys.exit(main())
