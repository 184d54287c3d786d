"""The catalogue of prices, row by row against the table of published list prices that LiteLLM ships (`llm-python`)."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dataplane.llm.price_list import ROWS
from dataplane.llm.prices import Rates, catalogue
from tests.conftest import need_tool
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.needs("llm-python")

FIND = "import importlib.util as u; print(u.find_spec('litellm').submodule_search_locations[0])"
TABLE = "model_prices_and_context_window_backup.json"
NAMES = (
    *("input_cost_per_token", "output_cost_per_token"),
    *("cache_read_input_token_cost", "cache_creation_input_token_cost"),
)
TIERS = {"": NAMES, "batch": ("input_cost_per_token_batches", "output_cost_per_token_batches")}


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    command = [need_tool("llm-python"), "-c", FIND]
    found = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=True)
    read: dict[str, Any] = json.loads((Path(found.stdout.strip()) / TABLE).read_text())
    return read


def a_million(price: object) -> Decimal | None:
    return None if price is None else Decimal(repr(price)) * 1_000_000


@pytest.mark.parametrize("name", [row[0] for row in ROWS])
@pytest.mark.parametrize("tier", TIERS)
def test_a_row_is_the_published_price(name: str, tier: str, table: dict[str, Any]) -> None:
    published = [a_million(table[name].get(field)) for field in TIERS[tier]]
    ours = catalogue().rates("", (name,), tier)
    assert ours is not None
    if ours.output is None:  # embeddings: there is none
        published[1] = None
    assert [*ours][: len(published)] == published
    assert ours[len(NAMES) :] == Rates(ours.input)[len(NAMES) :]
