"""Each conformance test of Gateway API about TLS, TCP and UDP is replayed by a function of its name, or it says here
why not. Both ways: a function without a file fails, and so does a reason that nothing needs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.outside.gateway_api.modules import CONFORMANCE, files
from tests.rules.features import FILES_OF_REPLAYS

PREFIXES = ("tcproute-", "udproute-", "tlsroute-", "backendtlspolicy", "httproute-https-", "gateway-with-clientcert")
"""Of files of the suite, all of which need such listeners or backends."""
ELSEWHERE = {
    "backendtlspolicy-preserve-foreign-status": "a folder has no statuses of others: "
    "tests/unit/translate/test_status_merge.py",
    "gateway-with-clientcertificate-validation": "tests/loopback/test_https_conformance.py",
    "gateway-with-clientcertificate-validation-insecure-fallback": "tests/loopback/test_https_conformance.py",
    "httproute-https-listener-detect-misdirected-requests": "tests/loopback/test_https_conformance.py",
    "tlsroute-listener-mixed-termination-not-supported": "passed over where TLSRouteModeMixed is claimed",
    "tlsroute-listener-terminate-not-supported": "passed over where TLSRouteModeTerminate is claimed",
}
"""File to where it is shown, or why there is nothing to show."""


def replays(root: Path) -> set[str]:
    """Names of files, from names of functions that open one by `suite.replay`."""
    found = set()
    for path in FILES_OF_REPLAYS:
        for function in ast.parse((root / path).read_text()).body:
            if isinstance(function, ast.AsyncFunctionDef) and function.name.startswith("test_"):
                calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
                names = [call.args[0] for call in calls if ast.unparse(call.func) == "suite.replay"]
                assert len(names) == 1 and isinstance(names[0], ast.Constant), function.name
                found.add(str(names[0].value))
    return found


@pytest.mark.needs("go")
def test_what_concerns_these_listeners_is_replayed(root: Path) -> None:
    stems = {Path(path).stem for path, _ in files(CONFORMANCE) if path.startswith("tests/")}
    concerned = {stem for stem in stems if stem.startswith(PREFIXES)}
    assert len(concerned) > 40
    assert concerned - replays(root) == ELSEWHERE.keys()
    assert replays(root) - stems == set()
