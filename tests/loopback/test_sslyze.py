"""HTTPS listeners judged by sslyze against Mozilla's recommendations for servers.

sslyze knows no `X25519_MLKEM768`, which the recommendations do not have and our default has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.fakes.certificates import EC, RSA, Authority
from tests.fakes.socket_proxy import serving
from tests.harness.patience import PATIENCE

UNKNOWN_AUTHORITY = "certificate_path_validation"
"""Its authority is the test's own: always said."""
BOTH, NEW = (EC, RSA), {"minProtocolVersion": "1.3"}


def config(authority: Authority, kinds: Sequence[str], tls: dict[str, Any]) -> str:
    pairs = [authority.issue("localhost", kind=kind, age=10) for kind in kinds]
    entries = [{name: {"value": text.decode()} for name, text in pair.entries.items()} for pair in pairs]
    routes = [{"policies": {"directResponse": {"status": 200, "body": "ok"}}}]
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": entries}, "routes": routes}
    binds = [{"port": 8443, "addresses": ["127.0.0.1"], "listeners": [listener]}]
    return json.dumps({"frontendPolicies": {"tls": tls}, "binds": binds})


@pytest.mark.needs("sslyze")
@pytest.mark.parametrize(
    ("kinds", "tls", "recommendation", "problems"),
    [
        (BOTH, {}, "intermediate", set()),
        ((EC,), NEW, "modern", set()),
        (BOTH, {}, "modern", {"tls_versions", "ciphers"}),
    ],
    ids=["defaults", "1.3 alone", "defaults are not modern"],
)
async def test_mozilla(
    tool: Callable[[str], str],
    kinds: Sequence[str],
    tls: dict[str, Any],
    recommendation: str,
    problems: set[str],
) -> None:
    async with serving(config(Authority(), kinds, tls)) as proxy:
        command = [tool("sslyze"), f"--mozilla_config={recommendation}"]
        process = await asyncio.create_subprocess_exec(
            *command, f"localhost:{proxy.port}", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    report = output.decode().partition("COMPLIANCE AGAINST TLS CONFIGURATION")[2]
    found = {line.split()[1].rstrip(":") for line in report.splitlines() if line.strip().startswith("* ")}
    assert found == {UNKNOWN_AUTHORITY, *problems}, report
