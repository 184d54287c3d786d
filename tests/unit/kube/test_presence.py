"""A controller that does not know all proxies says so, and why."""

from __future__ import annotations

import pytest

from controlplane.kube.presence import Seen, unknown_proxies

HERE = "only proxies that are connected to this controller are listed, and counted for Programmed; "


@pytest.mark.parametrize(
    ("seen", "notes"),
    [
        (Seen(True, "", True, 0), []),
        (
            Seen(True, "", True, 1),
            ["1 controller has not reported yet: proxies that are connected there are not listed"],
        ),
        (
            Seen(True, "", True, 2),
            ["2 controllers have not reported yet: proxies that are connected there are not listed"],
        ),
        (Seen(False, "one-7f_0a1b", True, 0), [f"{HERE}one-7f leads and lists all of them"]),
        (Seen(False, "", True, 0), [f"{HERE}which one leads is not known"]),
        (Seen(True, "", False, 0), [f"{HERE}other replicas, if any, do not report"]),
    ],
)
def test_notes(seen: Seen, notes: list[str]) -> None:
    assert unknown_proxies(seen) == notes
