"""Asks a running controller's admin API; standard library only, so that `status` and `wait` start fast."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from controlplane.cli import exits

TIMEOUT = 10.0
"""Seconds that a command waits for each answer of a controller."""


class _Server(NamedTuple):
    name: str
    command: str
    beside: str = ""
    """What somebody may mean who asks where none runs."""


CONTROLLER: Final = _Server(
    "controller",
    "gatewright up FOLDER",
    ". A proxy that runs from one file has none: its own page is http://127.0.0.1:15000/config_dump",
)
RATE_LIMIT: Final = _Server("rate limit server", "gatewright ratelimit")


class Unreachable(exits.Failure):
    """Nothing answers there (yet)."""


def status(admin: str, objects: Sequence[str]) -> dict[str, Any]:
    """The body of `/api/status`, for all objects or the named ones. Raises Failure with what to do about it."""
    return _answer(admin, "/api/status", objects, "objects")


def trace(admin: str, objects: Sequence[str]) -> dict[str, Any]:
    """The body of `/api/trace` for the named objects. Raises as `status`."""
    return _answer(admin, "/api/trace", objects, "traces")


def budgets(admin: str, domain: str | None) -> dict[str, Any]:
    """The body of `/api/budgets` of a rate limit server, of one domain or all. Raises as `status`."""
    code, body = _get(admin, "/api/budgets" + (f"?{urlencode({'domain': domain})}" if domain else ""), RATE_LIMIT)
    if code == http.client.SERVICE_UNAVAILABLE:
        raise exits.Failure(exits.DEPENDENCY, str(body.get("error")))
    if code != http.client.OK or "budgets" not in body:
        raise _stranger(admin, RATE_LIMIT)
    return body


def _answer(admin: str, path: str, objects: Sequence[str], has: str) -> dict[str, Any]:
    """The body, which must have that field."""
    query = f"?{urlencode([('object', name) for name in objects])}" if objects else ""
    code, body = _get(admin, f"{path}{query}")
    if code == http.client.BAD_REQUEST:
        raise exits.Failure(exits.USAGE, str(body.get("error")))
    if code != http.client.OK or has not in body:
        raise _stranger(admin)
    return body


def _get(admin: str, path: str, who: _Server = CONTROLLER) -> tuple[int, dict[str, Any]]:
    host, _, port = admin.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except OSError as error:
        cure = f"start one with `{who.command}`, or name its address with --admin"
        text = f"no {who.name} answers on {admin} ({error.strerror or error}); {cure}{who.beside}"
        raise Unreachable(exits.DEPENDENCY, text) from error
    except (http.client.HTTPException, ValueError) as error:
        raise _stranger(admin, who) from error
    finally:
        connection.close()
    if not isinstance(body, dict):
        raise _stranger(admin, who)
    return answer.status, body


def _stranger(admin: str, who: _Server = CONTROLLER) -> exits.Failure:
    text = f"what answers on {admin} is not a {who.name} of Gatewright; name its admin address with --admin"
    return exits.Failure(exits.DEPENDENCY, text)
