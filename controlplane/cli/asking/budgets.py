"""`gatewright budgets`: who has used what, as a running rate limit server counts it."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from controlplane.cli import exits
from controlplane.cli.asking import client, tables

COLUMNS = ("DOMAIN", "WHO", "PER", "USED", "LIMIT", "LEFT", "UNTIL (UTC)")


def run(arguments: argparse.Namespace) -> int:
    """0; with --exit-code 1 when a budget is used up."""
    body = client.budgets(arguments.admin, arguments.domain)
    rows = body["budgets"]
    print(json.dumps(body, indent=2) if arguments.output == "json" else _shown(body))
    is_used_up = any(each["used"] >= each["limit"] for each in rows)
    return exits.CONFIG if arguments.exit_code and is_used_up else exits.OK


def _shown(body: dict[str, Any]) -> str:
    if not body["budgets"]:
        return "nothing was counted yet"
    more = "" if body["isComplete"] else "\nthere are more: name a --domain"
    return tables.table([COLUMNS, *map(_row, body["budgets"])]) + more


def _row(budget: dict[str, Any]) -> tuple[str, ...]:
    used, limit = budget["used"], budget["limit"]
    who = " ".join(f"{each['name']}={each['value']}" for each in budget["entries"])
    until = datetime.fromtimestamp(budget["end"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        _printable(budget["domain"]),
        _printable(who),
        budget["unit"],
        *map(str, (used, limit, max(0, limit - used))),
        until,
    )


def _printable(text: str) -> str:
    """Values come from clients: none may move the cursor of a terminal."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
