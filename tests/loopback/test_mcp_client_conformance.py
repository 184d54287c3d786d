"""MCP's own suite for clients: the servers of its scenarios judge what a proxy sends them, and every verdict is the one
that the official SDK gets direct. What is about a client's own OAuth is not asked: nobody authorizes a proxy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.mcp_driver import ask, ask_through
from tests.fakes.mcp_suites import differing, judged_as_client

pytestmark = [pytest.mark.slow, pytest.mark.needs("mcp-conformance")]

SCENARIOS = {
    ("initialize", "2025-11-25"): set[str](),
    ("tools_call", "2025-11-25"): set(),
    ("tools_call", "2026-07-28"): set(),
    ("elicitation-sep1034-client-defaults", "2025-11-25"): set(),
    ("sse-retry", "2025-11-25"): set(),
    ("request-metadata", "2026-07-28"): set(),
    ("sep-2322-client-request-state", "2026-07-28"): set(),
    ("http-standard-headers", "2026-07-28"): set(),
    ("http-custom-headers", "2026-07-28"): {"sep-2243-client-omit-null", "sep-2243-client-base64-unsafe"},
    ("http-invalid-tool-headers", "2026-07-28"): set(),
    ("json-schema-ref-no-deref", "2026-07-28"): set(),
}
"""By scenario and revision: checks that fail, direct as well, as the test's client gives every argument a value."""


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS)
async def test_the_client_set(tool: Callable[[str], str], tmp_path: Path, scenario: str, revision: str) -> None:
    """Each run ends by itself or with `mcp_suites.SCENARIO_MS`; a check that vanishes on the way is a difference."""
    program = tool("mcp-conformance")
    direct = await judged_as_client(program, scenario, revision, tmp_path / "direct", ask)
    through = await judged_as_client(
        program, scenario, revision, tmp_path / "through", partial(ask_through, tmp_path / "through")
    )
    assert "SUCCESS" in direct.values()
    assert {name for name, verdict in direct.items() if verdict == "FAILURE"} == SCENARIOS[scenario, revision], direct
    assert differing({scenario: direct}, {scenario: through}) == {}
