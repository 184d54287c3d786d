"""Which API a request calls."""

from __future__ import annotations

import pytest

from dataplane.llm.routes import ALL_COMPLETIONS, ROUTE_TYPES, Format, Routes, Way

TABLE = Routes(
    [
        ("*", Way.PASSTHROUGH),
        ("/messages", Format.MESSAGES),
        ("/v1/messages/count_tokens", Format.TOKEN_COUNT),
        ("/models", Way.MODELS),
        ("tokens", Way.DETECT),
    ]
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (b"/v1/messages", Format.MESSAGES),
        (b"/team/a/v1/messages", Format.MESSAGES),
        (b"/v1/messages/count_tokens", Format.TOKEN_COUNT),
        (b"/tokens", Way.DETECT),
        (b"/v1/messages/", Way.PASSTHROUGH),
        (b"/", Way.PASSTHROUGH),
    ],
)
def test_the_longest_suffix_decides_and_a_star_is_last(path: bytes, found: object) -> None:
    assert TABLE.of(path) is found


def test_without_a_table_all_is_completions() -> None:
    assert ALL_COMPLETIONS.of(b"/whatever") is Format.COMPLETIONS
    assert Routes([("/models", Way.MODELS)]).of(b"/other") is Format.COMPLETIONS


def test_names_are_those_of_the_api() -> None:
    from typing import get_args

    from gatewright.api.backend.ai import RouteType

    assert set(ROUTE_TYPES) == {name.removeprefix("Anthropic") for name in get_args(RouteType)}
