"""A request of Completions translated for Anthropic by LiteLLM, in its own environment: the request as JSON on standard
input, microseconds of CPU of each round on standard output."""

from __future__ import annotations

import copy
import json
import sys
from time import thread_time_ns

from litellm.llms.anthropic.chat.transformation import AnthropicConfig

MODEL = "claude-sonnet-4-5"


def main() -> None:
    rounds, repeats = map(int, sys.argv[1:])
    text = sys.stdin.read()
    config = AnthropicConfig()

    def once() -> None:
        request = json.loads(text)
        settings = {"max_tokens": request["max_tokens"], "tools": copy.deepcopy(request["tools"])}
        optional = config.map_openai_params(settings, {}, MODEL, drop_params=True)
        json.dumps(config.transform_request(MODEL, request["messages"], optional, {}, {}))

    found = []
    for _ in range(rounds + 1):
        began = thread_time_ns()
        for _ in range(repeats):
            once()
        found.append((thread_time_ns() - began) / repeats / 1000)
    print(json.dumps(found[1:]))  # the first one also loads


main()
