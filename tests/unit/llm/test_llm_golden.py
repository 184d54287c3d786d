"""What a provider gets of a client's request, as a person reads it: one file for each API of clients, with the request
once and then what each provider's API makes of it. `GOLDEN=write` writes them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.routes import Format
from tests.fakes import llm_talks as talks
from tests.unit.llm.test_llm_matrix import made_of

FOLDER = Path(__file__).parents[2] / "golden" / "llm"
SCENARIOS = ("parallel tools", "images", "thinking", "structured output")


def page(client: Format) -> str:
    found = []
    for scenario in SCENARIOS:
        found.append(f"=== {scenario}: a client of {client}\n{shown(talks.REQUESTS[scenario][client])}\n")
        for provider in PROVIDERS:
            if provider is not client:
                made = made_of(scenario, client, provider)
                dropped = f" (left out: {', '.join(made.dropped)})" if made.dropped else ""
                found.append(f"--- {provider}{dropped}\n{shown(json.loads(made.body))}\n")
    return "\n".join(found)


def shown(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("client", CLIENTS)
def test_requests_are_written_as_the_file_has_it(client: Format) -> None:
    file = FOLDER / f"{client.value.lower()}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(page(client))
    assert file.read_text() == page(client), "look at what differs; GOLDEN=write takes it over"
