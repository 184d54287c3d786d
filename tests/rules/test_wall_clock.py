"""The wall clock may be set at any time: it is read where a person reads the result, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gatewright", "controlplane", "dataplane")

READS = {("time", name) for name in ("time", "time_ns", "ctime")} | {
    (owner, name) for owner in ("datetime", "date") for name in ("now", "utcnow", "today")
}
MAY_READ = re.compile(rb"\b(time|datetime|date)[.](time|time_ns|ctime|now|utcnow|today)\b")
"""In a text that may have one: to parse all files takes seconds."""

# (file, how many times): why a time of the day is wanted there.
ALLOWED = {
    ("dataplane/telemetry/access_log.py", 2): "time stamps of log lines; durations come from the monotonic clock",
    ("dataplane/export/tracing.py", 1): "spans are dated; durations come from the monotonic clock",
    ("dataplane/export/metrics.py", 1): "numbers are dated",
    ("dataplane/serving.py", 1): "since when they are counted, for collectors",
    ("dataplane/telemetry/requests.py", 1): "exemplars are dated",
    ("dataplane/variables/facts.py", 1): "moments of the monotonic clock as times of the day, for expressions",
    ("dataplane/chain/filter.py", 1): "tokens and cookies are dated (`Env.wall_clock`)",
    ("dataplane/proxy/context.py", 1): "sessions of MCP clients are dated (`Context.wall_clock`)",
    ("dataplane/table/security.py", 1): "OCSP responses are dated",
    ("dataplane/tls/contexts.py", 1): "the same, when one is presented",
    ("dataplane/agent/mesh/workload.py", 1): "a workload's certificate is dated",
    ("dataplane/server/workload_tunnels.py", 1): "the same: when a tunnel ends",
    ("dataplane/upstream/dial/hbone.py", 1): "the same",
    ("dataplane/http/dates.py", 2): "the date header of our own answers, and of others without one (RFC 9110, 6.6.1)",
    ("controlplane/known_facts.py", 1): "when the controller was started, shown to people",
    ("controlplane/snapshot/snapshots.py", 1): "when a state was published, shown to people",
    ("controlplane/answers/news.py", 1): "when a proxy acknowledged or refused",
    ("controlplane/pipeline.py", 2): "when an object was read; lastTransitionTime",
    ("controlplane/cli/offline/init.py", 2): "token and certificate of a folder to start from are dated",
    ("controlplane/kube/leadership.py", 1): "times of a Lease, read by people and other programs; never by us",
    ("controlplane/kube/cluster.py", 2): "tokens and certificates are dated",
    ("dataplane/agent/reader.py", 1): "certificates that expire soon",
    ("gatewright/api/lint/lint.py", 2): "certificates that expire soon",
    ("controlplane/ratelimit/service.py", 1): "budgets of days and months are those of the calendar",
    ("controlplane/ratelimit/sqlite.py", 1): "the same",
    ("controlplane/ratelimit/valkey.py", 1): "the same",
    ("controlplane/tracing.py", 1): "when a state was published, shown to people",
}


def reads_in(text: bytes) -> int:
    return sum(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (node.value.id, node.attr) in READS
        for node in ast.walk(ast.parse(text))
    )


def found() -> dict[str, int]:
    reads: dict[str, int] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_bytes()
            number = reads_in(text) if MAY_READ.search(text) else 0
            if number:
                reads[str(path.relative_to(ROOT))] = number
    return reads


def test_only_these_read_the_wall_clock() -> None:
    assert found() == dict(list(ALLOWED))
