"""TLS of clients beside nginx and Envoy: CPU per request on connections that stay, per handshake, and over HTTP/2.

`python -m benchmarks.tls [--rounds N] [--quick] [--only GROUP]`. Proxies, routes and backend are those of
`benchmarks/run`; all have the same certificate (EC, P-256). Method and tables are those of `benchmarks.h2`. Exit status
1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from benchmarks import proxies, report
from benchmarks.h2 import Bar, Group, Row, judged, run, table
from benchmarks.h2_load import Streams
from benchmarks.handshakes import Handshakes
from benchmarks.load import Shape
from benchmarks.machine import OUT
from benchmarks.proxies import TARGET

GET: Final = Shape(TARGET, 32, scheme="https")
TWO: Final = Streams(TARGET, 32, 10, scheme="https")
GROUPS: Final = (
    Group(
        "get",
        "GET over TLS, 32 connections that stay",
        (
            Row("gatewright", proxies.gatewright_tls, GET),
            Row("nginx", proxies.nginx_tls, GET),
            Row("envoy", proxies.envoy_tls, GET),
        ),
        {"nginx": Bar(0.5, 0.65), "envoy": Bar(1.8, 1.8)},
    ),
    Group(
        "full",
        "A connection for each GET, handshakes in full",
        (
            Row("gatewright full", proxies.gatewright_tls, Handshakes(False)),
            Row("nginx full", proxies.nginx_tls, Handshakes(False)),
            Row("envoy full", proxies.envoy_tls, Handshakes(False)),
        ),
        {"nginx full": Bar(0.75, 0.85)},
    ),
    Group(
        "resumed",
        "A connection for each GET, sessions resumed",
        (
            Row("gatewright resumed", proxies.gatewright_tls, Handshakes(True)),
            Row("nginx resumed", proxies.nginx_tls, Handshakes(True)),
            Row("envoy resumed", proxies.envoy_tls, Handshakes(True)),
        ),
    ),
    Group(
        "h2",
        "GET over TLS, HTTP/2, 32 connections of ten streams",
        (
            Row("gatewright h2", proxies.gatewright_tls, TWO),
            Row("nginx h2", proxies.nginx_tls, TWO),
            Row("envoy h2", proxies.envoy_tls, TWO),
        ),
        {"envoy h2": Bar(1.2, 1.7)},
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls", description=__doc__)
    parser.add_argument("--only", action="append", choices=[group.name for group in GROUPS], help="only this group")
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--seconds", type=int, help="of load, per row and round; default 2")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 second: a look, not a result")
    options = parser.parse_args()
    groups = [group for group in GROUPS if not options.only or group.name in options.only]
    rounds = run(groups, options.rounds or (3 if options.quick else 9), options.seconds or (1 if options.quick else 2))
    text = "\n".join(table(group, rounds) for group in groups)
    text += f"\n\nAt most {rounds.noise():.2f} cores were busy with something else in any round.\n"
    print(text)
    document: dict[str, Any] = {
        "machine": report.machine(),
        "samples": {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()},
    }
    (OUT / "tls.json").write_text(json.dumps(document, indent=1) + "\n")
    (OUT / "tls.md").write_text(text)
    return 0 if all(holds for group in groups for _, holds in judged(group, rounds)) else 1


if __name__ == "__main__":
    sys.exit(main())
