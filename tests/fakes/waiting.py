"""A setting of a policy that is known and does not work yet, for tests of what becomes of one: now all work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gatewright.api.checks import unsupported
from gatewright.attach.policies import Policy

SETTING = "promptCaching"
"""Of `backend.ai`."""


@pytest.fixture(name="a_setting_waits")
def _a_setting_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = unsupported.waiting_below

    def waiting(policy: Policy, attribute: str) -> Iterator[str]:
        yield from real(policy, attribute)
        if policy.name == "backend_ai":
            yield f"-{SETTING}"

    monkeypatch.setattr(unsupported, "waiting_below", waiting)
    unsupported.tree.cache_clear()
    yield
    monkeypatch.undo()
    unsupported.tree.cache_clear()
