"""A thousand clients of LLM providers, many of which leave at random moments: what log and metrics have counted is the
same, and equals what the provider has reported; estimates stand apart."""

from __future__ import annotations

import json
import re
from random import Random

from tests.carriers import Carrier, Response, Run
from tests.fakes.llm_toys import CHAT, EVENTS, post, text

CLIENTS = 1000
LIMIT = "{rateLimit: {local: [{tokens: 2000000000, unit: Hours}]}}"
PRICED = "config: {prices: {models: {m: {input: 1, output: 1000}}}}\n"
PATH = "/v1/chat/completions"


def event(**fields: object) -> bytes:
    return b"data: %b\n\n" % json.dumps({"model": "m", "choices": [], **fields}).encode()


def pieces(inputs: int, outputs: int) -> list[bytes]:
    """A stream, whose usage comes with its last event but one."""
    said = [event(choices=[{"index": 0, "delta": {"content": "word "}}]) for _ in range(4)]
    last = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    return [*said, last, event(usage={"prompt_tokens": inputs, "completion_tokens": outputs}), b"data: [DONE]\n\n"]


def one(run: Run, random: Random) -> int:
    """One client. How many tokens the provider has reported while it was there."""
    inputs, outputs = random.randrange(1, 500), random.randrange(1, 500)
    asked = run.send(post(PATH, {**CHAT, "stream": True}))
    parts = pieces(inputs, outputs)
    stays = random.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    if stays:
        run.arrival.head(Response(headers=EVENTS))
    for part in parts[: max(stays - 1, 0)]:
        run.arrival.content(part)
    if stays > len(parts):
        run.arrival.end()
    else:
        asked.cancel()
    return inputs + outputs if stays > len(parts) - 1 else 0


def tokens(line: str) -> int:
    return sum(map(int, re.findall(r"gen_ai\.usage\.(?:input|output)_tokens=(\d+)", line)))


def test_sums_are_equal_when_a_thousand_clients_leave_at_random(carrier: Carrier) -> None:
    run, random = carrier.proxy(PRICED + text(policies=LIMIT)), Random(7)
    run.new_lines()
    reported = sum(one(run, random) for _ in range(CLIENTS))
    lines = run.new_lines()
    assert len(lines) == CLIENTS
    estimated = [line for line in lines if "llm.usage_estimated=true" in line]
    surely = [line for line in lines if "llm.usage_estimated=true" not in line]
    assert sum(map(tokens, surely)) == reported > 0
    assert len(estimated) > 100 and sum(map(tokens, estimated)) > 0
    counted = sum(map(tokens, lines))
    recorder = run.memory.context.recorder
    metric = 0
    for kind in ("input", "output"):
        for model in ("m", ""):
            at = recorder.metrics.labelled("gen_ai_client_token_usage", ("chat", "custom", "gpt", model, kind), ())
            metric += recorder.slots[at + 17]  # the sum behind 16 buckets and the one above them
    assert metric == counted
    assert run.memory.context.body_memory.used == 0
