"""What a frame costs of a turn's limit, and of the limits of floods: large heads and large SETTINGS more than one."""

from __future__ import annotations

import pytest

from dataplane.http.h2.budget import CLIENTS, SETTINGS_AT_ONCE
from dataplane.http.h2.events import Failed, Request
from dataplane.http.h2.frames import SETTING, SETTINGS
from tests.fakes.h2_wire import GET, frame, headers, server


def _heads(fields: int, size: int) -> bytes:
    return b"".join(
        headers(stream, (*GET, *[(b"x-%d" % n, b"%d" % stream + b"v" * size) for n in range(fields)]))
        for stream in range(1, 101, 2)
    )


@pytest.mark.parametrize(("fields", "size"), [(90, 1), (20, 600), (90, 150)], ids=["many", "long", "over the limit"])
def test_heads_that_cost_much_count_for_many_frames(fields: int, size: int) -> None:
    codec = server()
    found = codec.receive(_heads(fields, size), 50)
    assert 0 < len(found) < 10 and codec.has_more
    rounds = 1
    while codec.has_more:
        found += codec.receive(b"", 50)
        rounds += 1
    assert len(found) == 50 and rounds >= 5, "none is lost"


def test_ordinary_heads_count_for_one() -> None:
    codec = server()
    found = codec.receive(_heads(3, 10), 50)
    assert len(found) == 50 and all(isinstance(event, Request) for event in found)


def test_a_settings_frame_of_many_values_counts_for_many() -> None:
    codec = server()
    many = frame(SETTINGS, 0, 0, SETTING.pack(9, 1) * 2700)
    assert 2700 // SETTINGS_AT_ONCE < CLIENTS["SettingsFlood"].burst < 2 * 2700 // SETTINGS_AT_ONCE
    assert not any(isinstance(event, Failed) for event in codec.receive(many))
    (*_, last) = codec.receive(many)
    assert isinstance(last, Failed) and last.reason == "SettingsFlood"
