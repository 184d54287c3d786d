"""Translation between APIs of language models: `python -m benchmarks.llm_translation [--rounds N] [--json FILE]`.

CPU of what a proxy does beside passing bytes: a chunk of a stream of Completions for a client of Messages, the other
way round, and a conversation of twenty turns with calls of tools in each direction; that for Anthropic also by LiteLLM,
where the variable LITELLM names its program (as in `benchmarks.llm`). Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time_ns
from typing import Any, Final

from dataplane.llm import translation
from dataplane.llm.chat import Asked
from dataplane.llm.providers import PROVIDERS, Provider
from dataplane.llm.providers import Path as Target
from dataplane.llm.routes import Format

MOST: Final = 40.0
"""Microseconds of a translated chunk."""
ROUNDS: Final = 7
REPEATS: Final = {"chunk": 2_000, "conversation": 40}

CHUNK: Final = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"content":" word"},"logprobs":null,"finish_reason":null}]}\n\n'
)
BLOCK: Final = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}\n\n'
)
START: Final = (
    b'data: {"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":1}}}\n\n'
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
)


def conversation() -> dict[str, Any]:
    """Twenty turns of a coding agent."""
    turns: list[Any] = []
    for number in range(10):
        use = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"ls {number}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "a line of output\n" * 20}
        turns.append({"role": "user", "content": [result] if number else "go"})
        turns.append({"role": "assistant", "content": [{"type": "text", "text": "Next."}, use]})
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tools = [{"name": "bash", "description": "Runs a command.", "input_schema": schema}]
    return {"model": "m", "max_tokens": 4096, "system": "Be brief.", "tools": tools, "messages": turns}


def provider(form: Format) -> Provider:
    return Provider(PROVIDERS["custom"], "", {form: Target(b"/")})


def stream(source: Format, target: Format, start: bytes, chunk: bytes) -> Callable[[], object]:
    body = json.dumps({"model": "m", "max_tokens": 1, "messages": [], "stream": True}).encode()
    made = translation.translated(source, body, provider(target))
    found = translation.Stream(made, Asked(made.talk, "x", 1))
    found.feed(start or chunk)
    return lambda: found.feed(chunk)


def cases() -> dict[str, Callable[[], object]]:
    messages = json.dumps(conversation()).encode()
    to_completions = translation.translated(Format.MESSAGES, messages, provider(Format.COMPLETIONS)).body
    return {
        "chunk of Completions, client of Messages": stream(Format.MESSAGES, Format.COMPLETIONS, b"", CHUNK),
        "chunk of Messages, client of Completions": stream(Format.COMPLETIONS, Format.MESSAGES, START, BLOCK),
        "conversation of Messages to Completions": lambda: translation.translated(
            Format.MESSAGES, messages, provider(Format.COMPLETIONS)
        ),
        "conversation of Completions to Messages": lambda: translation.translated(
            Format.COMPLETIONS, to_completions, provider(Format.MESSAGES)
        ),
    }


def microseconds(run: Callable[[], object], repeats: int) -> float:
    began = thread_time_ns()
    for _ in range(repeats):
        run()
    return (thread_time_ns() - began) / repeats / 1000


def measured(rounds: int) -> dict[str, float]:
    """The median of rounds that take turns."""
    every = cases()
    found: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(rounds):
        for name, run in every.items():
            found[name].append(microseconds(run, REPEATS[name.partition(" ")[0]]))
    return {name: statistics.median(values) for name, values in found.items()}


def of_litellm(program: str, rounds: int) -> float:
    """The conversation of Completions for Anthropic."""
    body = translation.translated(
        Format.MESSAGES, json.dumps(conversation()).encode(), provider(Format.COMPLETIONS)
    ).body
    script = Path(__file__).with_name("peers") / "litellm_translation.py"
    command = [str(Path(program).with_name("python")), str(script), str(rounds), str(REPEATS["conversation"])]
    done = subprocess.run(command, input=body, capture_output=True, check=True, timeout=300)
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = measured(given.rounds)
    if program := os.environ.get("LITELLM"):
        found["conversation of Completions to Messages, by LiteLLM"] = of_litellm(program, given.rounds)
    for name, value in found.items():
        print(f"{name:<54} {value:8.1f} us")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(value > MOST for name, value in found.items() if name.startswith("chunk")))


if __name__ == "__main__":
    sys.exit(main())
