"""MCP's own suite for clients: the servers of its scenarios judge what a proxy sends them, as they judge the official
SDK itself. What is about a client's own OAuth is not asked: nobody authorizes a proxy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.mcp_suites import judged_as_client

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
    checks = await judged_as_client(tool("mcp-conformance"), scenario, revision, "through", tmp_path / "through")
    assert "SUCCESS" in checks.values()
    assert {name for name, verdict in checks.items() if verdict == "FAILURE"} == SCENARIOS[scenario, revision], checks


async def test_failures_are_those_of_the_client_itself(tool: Callable[[str], str], tmp_path: Path) -> None:
    """Nobody has forgotten a check that the proxy fails among them."""
    for (scenario, revision), failing in SCENARIOS.items():
        if failing:
            checks = await judged_as_client(tool("mcp-conformance"), scenario, revision, "direct", tmp_path / scenario)
            assert {name for name, verdict in checks.items() if verdict == "FAILURE"} == failing
