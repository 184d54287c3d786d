"""Prices of models in the standalone file, and in the file that it names."""

from __future__ import annotations

import pytest

from gatewright.api.standalone.secrets import Content, Unreadable
from gatewright.api.standalone.standalone import Standalone, load
from gatewright.wire.v1 import ai_pb2

CONFIG = "config: {prices: {file: prices.yaml, models: {own: {input: 1}}}}\nbinds: []"
FILE = """
own: {input: 2, output: 3}
other: {input: 0.000001, cacheRead: "1.50", tiers: {batch: {input: 1e-7, output: 2}}}
"""


def read(file: str | None, config: str = CONFIG) -> Standalone:
    def resolve(content: Content) -> bytes:
        assert content.file == "prices.yaml"
        if file is None:
            raise Unreadable("file", '"prices.yaml" cannot be read: no such file')
        return file.encode()

    return load(config, "f.yaml", resolve=resolve)


def prices(found: Standalone) -> ai_pb2.Prices:
    assert not found.problems
    (made,) = (each.prices for each in found.resources if each.key == "prices/config")
    return made


def test_prices_of_a_file_are_beneath_those_written_out() -> None:
    own, other = sorted(prices(read(FILE)).models, key=lambda each: each.model != "own")
    assert own.prices == ai_pb2.TokenPrices(input="1")
    assert (other.model, other.prices.input, other.prices.cache_read) == ("other", "0.000001", "1.50")
    assert other.tiers["batch"] == ai_pb2.TokenPrices(input="0.0000001", output="2")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (None, '"prices.yaml" cannot be read: no such file'),
        ("a: {input: x}", '"prices.yaml": a.input: must be a price such as 2.50'),
        ("a: {output: 1}", '"prices.yaml": a.input: is required'),
        ("[1]", '"prices.yaml": '),
        ("a: {input: [", '"prices.yaml": line 2: not YAML'),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_what_and_where(file: str | None, why: str) -> None:
    found = read(file)
    (problem,) = found.problems
    assert problem.path == "config.prices.file" and problem.message.startswith(why), problem
    assert not found.resources


def test_who_only_checks_reads_no_file() -> None:
    assert not load(CONFIG, "f.yaml").problems
