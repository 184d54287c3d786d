"""Which API a request calls."""

from __future__ import annotations

import pytest

from dataplane.llm.routes import ALL_COMPLETIONS, ROUTE_TYPES, Format, Routes, Way, detected

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


@pytest.mark.parametrize(
    "path",
    [
        *(
            b"/v1/messages/",
            b"/v1//count_tokens/../messages//",
            b"/v1/messages;a=1",
            b"/v1/messages/%2e",
            b"/v1/Messages",
        ),
        *(
            b"/v1%2Fmessages%2F",
            b"/v1%5Cmessages%5C",
            b"/v1/messages%20",
            b"/v1/messages.",
            b"/v1/messages%3Fa",
            b"/v1/m;a/models;b",
        ),
        *(
            b"/v1/messages%252F",
            b"/v1/messages/x/..%2F",
            b"/v1/m%2565ssages",
            b"/v1/messages%23",
            b"/v1/messages%09%0A",
            b"/A" * 513,
        ),
    ],
)
def test_a_path_that_may_be_read_as_that_of_another_row_is_not_clear(path: bytes) -> None:
    assert not TABLE.is_clear(path)


@pytest.mark.parametrize(
    "path",
    [
        *(b"/", b"/v1/messages", b"//v1/messages", b"/v1/messages/count_tokens", b"/v1/files/", b"/v1/Files/File-1;a"),
        *(
            b"/v1beta/models/gemini-2.5-pro:generateContent",
            b"/v1/messages/msg_1",
            b"/v1/files/a%2Fb%20c",
            b"/v1/messages%",
            b"/a" * 9999,
        ),
    ],
)
def test_a_path_that_is_of_one_row_however_it_is_read_is_clear(path: bytes) -> None:
    assert TABLE.is_clear(path)


def test_rows_are_read_as_paths_are() -> None:
    table = Routes([("*", Way.PASSTHROUGH), ("/v1/Chat/", Format.COMPLETIONS), ("/", Way.DETECT)])
    assert table.is_clear(b"/v1/Chat/") and table.of(b"/v1/Chat/") is Format.COMPLETIONS
    assert not table.is_clear(b"/v1/chat")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (b"/v1/messages", Format.MESSAGES),
        (b"/v1/messages/", Format.MESSAGES),
        (b"/v1//Responses;a", Format.RESPONSES),
        (b"/v1beta/models/Gemini:generateContent", Format.GENERATE_CONTENT),
        (b"/v1beta/models/gemini:streamGenerateContent%20", Format.GENERATE_CONTENT),
        (b"/v1/completions", Format.COMPLETIONS),
    ],
)
def test_what_passes_is_found_out_by_any_spelling_of_its_path(path: bytes, found: object) -> None:
    assert detected(path) is found


def test_without_a_table_all_is_completions() -> None:
    assert ALL_COMPLETIONS.of(b"/whatever") is Format.COMPLETIONS
    assert Routes([("/models", Way.MODELS)]).of(b"/other") is Format.COMPLETIONS


def test_names_are_those_of_the_api() -> None:
    from typing import get_args

    from gatewright.api.backend.ai import RouteType

    assert set(ROUTE_TYPES) == {name.removeprefix("Anthropic") for name in get_args(RouteType)}
