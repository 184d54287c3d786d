"""LLM providers: what a chat completion and a token of a stream cost, beside Envoy as a plain proxy and LiteLLM.

`python -m benchmarks.llm [--only PART] [--rounds N] [--seconds N] [--quick]`. The provider is `llm_server`, on the core
of the load; ours checks the client's key, replaces an alias in the body and the client's key by the provider's, and
reads the usage. Envoy and the row `plain` of ours forward without knowing anything of it. LiteLLM is asked where the
variable LITELLM names its program (`pip install 'litellm[proxy]'` into an environment of its own). Rows of one part are
measured in interleaved rounds. Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks import cpu, proxies, report
from benchmarks.load import Answers, Counting, LoadFailed, Sample, Shape, measure, settled_kib
from benchmarks.machine import OUT, PROXY_CORE, Process, alone, run_folder
from benchmarks.proxies import HOST, TARGET, Launch
from benchmarks.rounds import Rounds, interleave
from tests.harness.ports import reserve

CONNECTIONS: Final = 32
STREAMS: Final = 32
MANY: Final = 4000
KEY: Final = "sk-0123456789abcdef0123456789abcdef"
"""That of `load.HEADERS`."""
PATH: Final = "/v1/chat/completions"

MOST_CHAT: Final = 60.0
"""Microseconds of CPU for a chat completion."""
AIM_TOKEN: Final = 1.3
"""Times what a chunk of a stream costs that is forwarded as it is."""
AIM_LITELLM: Final = 300.0

OURS, PLAIN, ENVOY, LITELLM = "chat", "plain", "envoy", "litellm"
MESSAGES: Final = [
    {"role": "system", "content": "You answer in one sentence. You say when you do not know. " * 10},
    {"role": "user", "content": "Which documents have the words annual and report, and which of them is the newest?"},
]


def body(model: str, **more: Any) -> str:
    return json.dumps({"model": model, "messages": MESSAGES, "temperature": 0.2, "max_tokens": 256, **more})


class Provider(Counting):
    def __init__(self) -> None:
        port = reserve()
        super().__init__([sys.executable, "-m", "benchmarks.llm_server", str(port)], port)


def ours(backend_port: int) -> Launch:
    provider = {"openai": {}, "host": "127.0.0.1", "port": backend_port}
    backend = {"ai": {"provider": provider}, "policies": {"auth": {"key": "sk-provider"}}}
    policies = {
        "apiKeyAuthentication": {"secretRef": {"bench": {"value": KEY}}},
        "ai": {"modelAliases": {"fast": "gpt-4o-mini"}},
    }
    return proxies.gatewright_of_route(OURS, backend_port, backend, policies)


def litellm(backend_port: int) -> Launch:
    """One worker, with the same key and alias. It keeps nothing but its log."""
    port = reserve()
    params = {
        "model": "openai/gpt-4o-mini",
        "api_base": f"http://127.0.0.1:{backend_port}/v1",
        "api_key": "sk-provider",
    }
    content = {
        "model_list": [{"model_name": name, "litellm_params": params} for name in ("fast", "slow")],
        "general_settings": {"master_key": KEY},
    }
    path = run_folder() / "litellm.yaml"
    path.write_text(json.dumps(content))
    command = [os.environ["LITELLM"], "--config", str(path), "--port", str(port), "--host", "127.0.0.1"]
    return Launch([*command, "--num_workers", "1"], port, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"})


@dataclass(frozen=True, slots=True)
class Row:
    launch: Callable[[int], Launch]
    target: str = TARGET


ROWS: Final = {
    OURS: Row(ours),
    PLAIN: Row(proxies.gatewright),
    ENVOY: Row(proxies.envoy),
    **({LITELLM: Row(litellm, PATH)} if os.environ.get("LITELLM") else {}),
}


@dataclass(frozen=True, slots=True)
class Asks:
    """The same request over so many connections."""

    target: str
    text: str
    connections: int

    def run(self, port: int, seconds: int) -> Answers:
        path = run_folder() / "llm.lua"
        path.write_text(f'wrk.method = "POST"\nwrk.body = {json.dumps(self.text)}\n')
        headers = ("Content-Type: application/json",)
        return Shape(self.target, self.connections, headers=headers, script=path).run(port, seconds)


@dataclass(slots=True)
class World:
    """The provider, and proxies that were started by now."""

    stack: ExitStack
    provider: Provider
    running: dict[str, tuple[Process, int]] = field(default_factory=dict)

    def proxy(self, name: str) -> tuple[Process, int]:
        if name not in self.running:
            launch = ROWS[name].launch(self.provider.port)
            process = Process(name, launch.command, PROXY_CORE, launch.environment)
            self.stack.callback(process.stop)
            process.await_port(launch.port)
            self.running[name] = process, launch.port
        return self.running[name]

    def rounds(self, text: str, connections: int, count: int, seconds: int, events: bool = False) -> Rounds:
        def one(name: str) -> Sample:
            load = Asks(ROWS[name].target, text, connections)
            return measure(*self.proxy(name), self.provider, load, seconds, events=events)

        for name in ROWS:  # warm: connections, caches, memory
            one(name)
        return interleave([*ROWS], one, count, lambda said: print(said, file=sys.stderr, flush=True))


@contextmanager
def world() -> Iterator[World]:
    with ExitStack() as stack:
        stack.enter_context(alone())
        provider = Provider()
        stack.callback(provider.process.stop)
        yield World(stack, provider)


@dataclass(slots=True)
class Found:
    """What a part gives: Markdown, figures, and whether its bars hold."""

    text: str
    figures: Any
    held: list[bool] = field(default_factory=list)


def _table(title: str, unit: str, rounds: Rounds) -> list[str]:
    lines = [
        f"### {title}",
        "",
        f"| | us of CPU per {unit} | p50 us | times {OURS} (least to most) |",
        "|---|---|---|---|",
    ]
    for name in rounds.samples:
        ratios = rounds.ratios(name, OURS, "microseconds")
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        p50 = f"{rounds.median(name, 'p50'):,.0f}"
        lines.append(f"| {name} | {rounds.median(name, 'microseconds'):,.1f} | {p50} | {ratio} |")
    return [*lines, "", f"At most {rounds.noise():.2f} cores were busy with something else in any round.", ""]


def _figures(rounds: Rounds) -> Any:
    return {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()}


def chats(here: World, count: int, seconds: int) -> Found:
    rounds = here.rounds(body("fast"), CONNECTIONS, count, seconds)
    cost = rounds.median(OURS, "microseconds")
    lines = _table(f"A chat completion over {CONNECTIONS} connections", "completion", rounds)
    holds = cost <= MOST_CHAT
    lines.append(f"- {cost:.1f} us, at most {MOST_CHAT:.0f}: {'holds' if holds else 'DOES NOT HOLD'}")
    if LITELLM in rounds.samples:
        times = statistics.median(rounds.ratios(LITELLM, OURS, "microseconds"))
        lines.append(f"- LiteLLM costs {times:.0f} times as much (aim {AIM_LITELLM:.0f})")
    return Found("\n".join([*lines, ""]), _figures(rounds), [holds])


def tokens(here: World, count: int, seconds: int) -> Found:
    rounds = here.rounds(body("fast", stream=True), STREAMS, count, max(seconds, 3), events=True)
    times = statistics.median(rounds.ratios(OURS, PLAIN, "microseconds"))
    title = f"A token, {STREAMS} streams of 1,000, one every 2 ms on each"
    lines = [*_table(title, "token", rounds), f"- {times:.2f} times a chunk that is forwarded (aim {AIM_TOKEN})", ""]
    return Found("\n".join(lines), _figures(rounds))


def streams(here: World, count: int, seconds: int) -> Found:
    """Many at once: memory with all of them open, and ten tokens of each later."""
    lines, figures = [f"### {MANY:,} streams at once", ""], {}
    for name in (OURS, PLAIN):
        process, port = here.proxy(name)
        before, text = settled_kib(process), body("slow", stream=True)
        request = _request(text)
        clients = [_opened(port, request) for _ in range(MANY)]
        begun = (cpu.resident_kib(process.pid) - before) / 1024
        _drain(clients, 10.0)
        later = (cpu.resident_kib(process.pid) - before) / 1024
        for client in clients:
            client.close()
        figures[name] = {"open_mib": begun, "later_mib": later}
        lines.append(f"- {name}: {begun:.1f} MiB with all of them open, {later:.1f} MiB ten tokens later")
    return Found("\n".join([*lines, ""]), figures)


def _request(text: str) -> bytes:
    lines = f"POST {TARGET} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {KEY}\r\n"
    return f"{lines}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def _opened(port: int, request: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 20)
    client.sendall(request)
    answer = client.recv(4096)
    if b" 200 " not in answer[:20]:
        raise LoadFailed(f"{answer[:200]!r}")
    return client


def _drain(clients: Sequence[socket.socket], seconds: float) -> None:
    """Take what comes for so long."""
    end = time.monotonic() + seconds
    for client in clients:
        client.setblocking(False)
    while time.monotonic() < end:
        for client in clients:
            try:
                client.recv(65536)
            except BlockingIOError:
                continue
        time.sleep(0.2)


PARTS: Final[dict[str, Callable[[World, int, int], Found]]] = {"chats": chats, "tokens": tokens, "streams": streams}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llm", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*PARTS], help="only this part")
    parser.add_argument("--rounds", type=int, help="default 5")
    parser.add_argument("--seconds", type=int, help="of load, per row and round; default 2")
    parser.add_argument("--quick", action="store_true", help="1 round of 1 second: a look, not a result")
    options = parser.parse_args()
    count, seconds = options.rounds or (1 if options.quick else 5), options.seconds or (1 if options.quick else 2)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with world() as here:
        found = {name: part(here, count, seconds) for name, part in PARTS.items() if name in (options.only or PARTS)}
    text = "\n".join(each.text for each in found.values())
    print(text)
    document = {"machine": report.machine(), "parts": {name: each.figures for name, each in found.items()}}
    (OUT / "llm.json").write_text(json.dumps(document, indent=1) + "\n")
    (OUT / "llm.md").write_text(text)
    return 0 if all(holds for each in found.values() for holds in each.held) else 1


if __name__ == "__main__":
    sys.exit(main())
