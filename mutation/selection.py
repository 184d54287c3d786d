"""Which tests are asked about a fault: those of its package and of the packages around it.

Most of them speak to the product in memory; of tests/loopback those are asked whose product is in their own process,
with real sockets, and those of modules that run nowhere but in processes of their own. What else starts processes (the
rest of tests/loopback, tests/faults) is not asked, so that a run of 200 faults takes half an hour and not a day.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
PLANES: Final = ("dataplane", "controlplane", "gatewright")
"""The packages at the top; `gatewright` is what both planes share."""
GENERATED: Final = "gatewright/wire"

UNIT = "tests/unit/"
POLICIES = "tests/policies"
CORPUS = "tests/fuzz/test_fuzz_corpus.py"
SERVER = "tests/loopback/test_xds_server.py"
"""The controller's gRPC server has no other front door than a socket; its tests start it in their own process."""
PEERS = "tests/loopback/test_controllers_among_themselves.py"
CONTROLLER = "tests/loopback/test_controller_app.py"
WATCHES = "tests/loopback/test_cluster_watches.py"


def _loopback(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/loopback/test_{name}.py" for name in names)


GUARDRAILS = "tests/loopback/test_mcp_guardrails.py"
CALLOUTS = "tests/loopback/test_callouts.py"
STREAMS = _loopback("udp_routes", "tcp_routes", "tls_passthrough")
TLS = _loopback("tls_clients", "tls_to_backends", "tls_peers")
H2 = _loopback("h2_clients", "h2_endpoints")
MCP = _loopback("mcp_streams", "mcp_tls")
PROXY_PROTOCOL = _loopback("proxy_protocol_to_backends")
IDENTITY = _loopback("identity_providers")
"""Streams, TLS, HTTP/2, MCP and others end to end, in the test's process: the parts alone say little of the whole."""
LIVES = _loopback("forks", "worker_lives", "agent")
"""The agent is in the test's process, its workers and the server that forks them are not."""
STDIO = _loopback("mcp_stdio")
MERGES = "tests/histories/test_policy_merges.py"
VERDICTS = tuple(f"tests/rules/test_verdict_{name}.py" for name in ("table", "citations"))
VERDICTS += ("tests/rules/test_claimed_limits.py", "tests/rules/test_always_rejected.py")
REPRS = "tests/rules/test_reprs.py"
OPERATIONS = "tests/rules/test_operations.py"
GENERATED_FILES = "tests/rules/test_generated.py"
HISTORIES = "tests/histories/test_random_histories.py"
BOUNDS = "tests/rules/test_bounds_page.py"
"""Asked about every package: it says what the constants of all of them are."""
LINT_CODES = "tests/rules/test_lint_codes.py"

TESTS: Final[dict[str, tuple[str, ...]]] = {
    "controlplane": ("app", "sources", "xds", "translate", "cli", "admin", CONTROLLER, MERGES),
    "controlplane.admin": ("admin", "app", "xds", "cli", CONTROLLER),
    "controlplane.answers": ("answers", "app", "xds"),
    "controlplane.cli": ("cli", "app", "api", "lint", "admin", CONTROLLER),
    "controlplane.deploy": ("deploy", "kube", "translate"),
    "controlplane.derive": ("derive", "translate", "app"),
    "controlplane.kube": ("kube", "app", "cli", WATCHES),
    "controlplane.lint": ("lint", "cli", "app", LINT_CODES, "tests/rules/test_attachment_page.py", "tests/outside"),
    "controlplane.ratelimit": ("ratelimit",),
    "controlplane.snapshot": ("snapshot", "xds", "translate", "admin"),
    "controlplane.sources": ("sources", "app", "api"),
    "controlplane.translate": ("translate", "attach", "app", "lint", MERGES, HISTORIES),
    "controlplane.xds": ("xds", "snapshot", "app", SERVER, PEERS, CORPUS, HISTORIES),
    "dataplane": (
        "test_worker.py",
        "test_proxy_main.py",
        "agent",
        "variables",
        "chain",
        "filters",
        "server",
        "telemetry",
        POLICIES,
        *LIVES,
    ),
    "dataplane.a2a": ("a2a", "proxy", POLICIES, REPRS),
    "dataplane.agent": ("agent", "xds", "link", "telemetry", "test_worker.py", CORPUS, REPRS, *LIVES),
    "dataplane.backends": ("backends", "mcp", "upstream", POLICIES, GUARDRAILS, REPRS, *MCP),
    "dataplane.chain": ("chain", "filters", "proxy", "server", POLICIES, OPERATIONS, REPRS),
    "dataplane.credentials": ("credentials", "filters", POLICIES, CORPUS, REPRS, *IDENTITY),
    "dataplane.filters": ("filters", "chain", "credentials", "server", "table", POLICIES, CALLOUTS, REPRS),
    "dataplane.http": ("http", "proxy", "server", "upstream", "chain", POLICIES, CORPUS),
    "dataplane.http.h2": ("http_h2", "server_h2", "upstream", POLICIES, CORPUS, *H2),
    "dataplane.link": ("link", "agent", "test_worker.py", "filters", POLICIES, CORPUS),
    "dataplane.llm": ("llm",),
    "dataplane.mcp": ("mcp", POLICIES, GUARDRAILS, REPRS, *MCP),
    "dataplane.net": ("net", "agent", "server", "upstream", *PROXY_PROTOCOL),
    "dataplane.proxy": ("proxy", "server", "server_h2", "upstream", "chain", "filters", POLICIES, CORPUS),
    "dataplane.server": (
        "server",
        "tls",
        "server_h2",
        "proxy",
        "filters",
        "upstream",
        "net",
        POLICIES,
        CORPUS,
        "tests/hostile/test_overspending.py",
        *STREAMS,
        *H2,
    ),
    "dataplane.server.raw": ("server", "net", "table", *STREAMS, POLICIES),
    "dataplane.stdio": ("stdio", "agent/test_stdio_servers.py", "mcp/test_dialogue.py", *STDIO),
    "dataplane.table": (
        "table",
        "filters",
        "upstream",
        "test_worker.py",
        POLICIES,
        "translate/test_golden_in_the_proxy.py",
        MERGES,
        HISTORIES,
    ),
    "dataplane.export": ("export", "tracing", POLICIES),
    "dataplane.guards": ("guards", POLICIES),
    "dataplane.tracing": ("tracing", POLICIES),
    "dataplane.telemetry": ("telemetry", "server", "agent", "filters", "upstream", POLICIES, OPERATIONS),
    "dataplane.upstream": (
        "upstream",
        "server",
        "server_h2",
        "proxy",
        "credentials",
        POLICIES,
        CORPUS,
        *TLS,
        *STREAMS,
        *H2,
        *PROXY_PROTOCOL,
    ),
    "dataplane.tls": ("tls", "server", "table", POLICIES, REPRS, *TLS),
    "gatewright": (
        "api",
        "cli",
        "variables",
        "files",
        "test_long_work.py",
        "test_orphans.py",
        "test_wire_revisions.py",
    ),
    "gatewright.api": (
        "api",
        GENERATED_FILES,
        "translate",
        "sources",
        "cli",
        POLICIES,
        *VERDICTS,
        "lint",
        REPRS,
        LINT_CODES,
        "tests/rules/test_unsupported.py",
        "tests/outside",
        MERGES,
    ),
    "gatewright.api.generate": (
        "api",
        GENERATED_FILES,
        "tests/rules/test_standalone_page.py",
        "tests/rules/test_unsupported.py",
    ),
    "gatewright.attach": ("attach", "translate", "table", "lint", "tests/rules/test_attachment_page.py", MERGES),
    "gatewright.cel": ("cel", "chain", "variables", "filters", "tests/rules/test_cel_page.py", "tests/oracles", CORPUS),
    "gatewright.variables": (
        GENERATED_FILES,
        "variables",
        "chain",
        "cel",
        "api",
        POLICIES,
        "tests/rules/test_variables.py",
    ),
}
"""By package; one that is not named has those of the package above it. Names without `tests/` are below tests/unit."""


@cache
def files(package: str) -> tuple[Path, ...]:
    """The files of tests of a package, in the order of the table.

    Raises ValueError for a row whose path is not there, KeyError for a package of none of the planes.
    """
    while package not in TESTS and "." in package:
        package = package.rpartition(".")[0]
    found: dict[Path, None] = {}
    for name in (*TESTS[package], BOUNDS):
        path = ROOT / (name if name.startswith("tests/") else UNIT + name)
        if not path.exists():
            raise ValueError(f"{package}: {name} is not there")
        found |= dict.fromkeys(sorted(path.rglob("test_*.py")) if path.is_dir() else (path,))
    return tuple(found)


def ranked(file: str) -> list[Path]:
    """Those that are asked about a fault in this file: first named after it, then importing it, then others."""
    package, _, module = file.removesuffix(".py").replace("/", ".").rpartition(".")
    return sorted(files(package), key=lambda test: -_likelihood(test, package, module))


def _likelihood(test: Path, package: str, module: str) -> int:
    """Files of the package's own folder before others of the same likelihood: `sorted` keeps the table's order."""
    words = set(re.split(r"[._]", test.stem))
    imports = _text(test)
    is_named = module in test.stem or set(module.split("_")) <= words
    is_imported = bool(
        re.search(rf"from {package} import .*\b{module}\b", imports) or f"{package}.{module} " in imports
    )
    return 2 * is_named + is_imported


@cache
def _text(test: Path) -> str:
    return test.read_text()


def sources(root: Path = ROOT) -> dict[str, str]:
    """The product's own files and their texts; generated ones aside."""
    paths = sorted(path for plane in PLANES for path in (root / plane).rglob("*.py"))
    names = {str(path.relative_to(root)): path for path in paths}
    return {name: path.read_text() for name, path in names.items() if not name.startswith(GENERATED)}
