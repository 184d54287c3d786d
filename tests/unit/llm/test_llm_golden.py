"""What a provider gets of a client's request, as a person reads it: one file for each API of clients. A plain request
stands at its top, with what each provider's API makes of it; of the others only what differs from that. `GOLDEN=write`
writes them anew."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.routes import Format
from tests.fakes import llm_talks as talks
from tests.unit.llm.test_llm_matrix import made_of

FOLDER = Path(__file__).parents[2] / "golden" / "llm"
PLAIN = "plain"
SCENARIOS = ("parallel tools", "images", "thinking", "structured output")


WIDTH = 110
SAME = "..."
"""In place of items of a list that the plain request has, too."""


def page(client: Format) -> str:
    others = [provider for provider in PROVIDERS if provider is not client]
    plain = {client: talks.REQUESTS[PLAIN][client]}
    plain |= {provider: json.loads(made_of(PLAIN, client, provider).body) for provider in others}
    found = [f"=== {PLAIN}: a client of {client}"]
    found += [f"--- {form}\n{shown(body)}\n" for form, body in plain.items()]
    for scenario in SCENARIOS:
        asked = talks.REQUESTS[scenario][client]
        found.append(f"=== {scenario}: a client of {client}\n{shown(differing(asked, plain[client]))}\n")
        for provider in others:
            made = made_of(scenario, client, provider)
            dropped = f" (left out: {', '.join(made.dropped)})" if made.dropped else ""
            found.append(f"--- {provider}{dropped}\n{shown(differing(json.loads(made.body), plain[provider]))}\n")
    return "\n".join(found)


def differing(value: Any, plain: Any) -> Any:  # Any: JSON
    """What of a value the plain one has not, or otherwise; of what it has and this has not: null."""
    if isinstance(value, dict) and isinstance(plain, dict):
        names = [*value, *(name for name in plain if name not in value)]
        return {
            name: differing(value.get(name), plain.get(name)) for name in names if value.get(name) != plain.get(name)
        }
    if isinstance(value, list) and isinstance(plain, list):
        same = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(value, plain, strict=False)))
        return [SAME, *value[len(same) :]] if same else value
    return value


def shown(value: Any, depth: int = 0) -> str:
    """JSON, on one line where that has room."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + depth <= WIDTH or not isinstance(value, dict | list):
        return flat
    inner, pad = depth + 1, " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{pad}{json.dumps(name)}: {shown(each, inner)}" for name, each in value.items()]
        return "\n".join(("{", ",\n".join(parts), " " * depth + "}"))
    return "\n".join(("[", ",\n".join(pad + shown(each, inner) for each in value), " " * depth + "]"))


def test_a_page_shows_what_differs_alone() -> None:
    plain = {"model": "m", "messages": ["hi"], "max_tokens": 5, "system": "s"}
    value = {"model": "m", "messages": ["hi", "again"], "max_tokens": 9}
    assert differing(value, plain) == {"messages": [SAME, "again"], "max_tokens": 9, "system": None}


@pytest.mark.parametrize("client", CLIENTS)
def test_requests_are_written_as_the_file_has_it(client: Format) -> None:
    file = FOLDER / f"{client.value.lower()}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(page(client))
    assert file.read_text() == page(client), "look at what differs; GOLDEN=write takes it over"
