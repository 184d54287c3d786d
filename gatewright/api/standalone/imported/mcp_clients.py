"""The file of a desktop MCP client (`mcpServers`) as a file of a proxy alone: one route to all its servers.

Pure: text in, values out. What an entry holds that may be a secret is never copied: processes have the variables of the
proxy, so these are named and no more, and what has no place for a reference leaves its entry out. Each entry that
cannot be carried is there with its reason; whether a setting works is asked of the file's own reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from gatewright.api.standalone import standalone

MOST: Final = 32
"""Targets of one backend (MCPBackend)."""
PORT: Final = 3000
_LISTS: Final = ("mcpServers", "servers")
_PORTS: Final = {"https": 443, "http": 80}
_TRANSPORTS: Final = {
    # `type`, or `transport`, of a client's file -> protocol of a target; "": it is a process
    "stdio": "",
    "http": "StreamableHTTP",
    "streamable-http": "StreamableHTTP",
    "streamableHttp": "StreamableHTTP",
    "sse": "SSE",
}
_KNOWN: Final = frozenset(("type", "transport", "command", "args", "env", "url", "serverUrl", "headers"))
_OF_CLIENTS: Final = frozenset(
    ("alwaysAllow", "autoApprove", "description", "disabledTools", "name", "timeout", "tools")
)
"""Settings about what the client itself does: they stay with it."""
_REASONS: Final = {
    "cwd": "cwd: a process has the proxy's own folder",
    "envFile": "envFile: set these variables for the proxy",
    "oauth": "oauth: clients log in with the gateway, see jwtAuthentication.mcp",
}

_is_variable = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_reference = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}").fullmatch
_is_secret_name = re.compile(
    r"(?i)(^|[-_.])(api-?key|key|token|secret|password|passwd|pwd|auth|bearer|credentials?)($|[-_.=])"
).search
_is_secret_value = re.compile(
    r"(sk|pk|rk|ghp|gho|ghs|glpat|xox[a-z]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{12,}|[A-Za-z0-9+/_-]{40,}={0,2}$"
).match


class NotAClientsFile(ValueError):
    """The text is none; the message says what it should be."""


@dataclass(slots=True)
class Imported:
    """What became of a client's file."""

    document: dict[str, Any] = field(default_factory=dict)
    """The file of the proxy; empty when nothing could be carried."""
    disabled: list[str] = field(default_factory=list)
    """Entries that the client does not use either."""
    commands: dict[str, str] = field(default_factory=dict)
    """What processes run, by the name of their target."""
    carried: dict[str, str] = field(default_factory=dict)
    """Entries by their name, with the name of their target."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Entries by their name, with the reason."""
    variables: list[str] = field(default_factory=list)
    """Variables that the proxy's environment has to have."""


class _Left(Exception):
    """This entry cannot be carried; the text is the reason, and holds no value of it."""


class _Disabled(Exception):
    """The client does not use this entry."""


def imported(text: str, port: int = PORT) -> Imported:
    """Raises `NotAClientsFile`."""
    made = Imported()
    targets: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for name, entry in _entries(text).items():
        try:
            if len(targets) == MOST:
                raise _Left(f"a backend has at most {MOST} targets")
            target, variables = _target(entry)
            target = {"name": _name(name, {each["name"] for each in targets.values()}), **target}
            if "stdio" in target:
                variables = _share(values, target, entry.get("env") or {})
            _check(target, port)
        except _Disabled:
            made.disabled.append(name)
        except _Left as reason:
            made.left_out[name] = str(reason)
        else:
            targets[name] = target
            made.carried[name] = target["name"]
            made.variables += [each for each in variables if each not in made.variables]
            if "stdio" in target:
                made.commands[target["name"]] = target["stdio"]["cmd"]
    if targets:
        made.document = _file([*targets.values()], port)
    return made


def _share(values: dict[str, Any], target: dict[str, Any], env: Mapping[str, Any]) -> list[str]:
    """Processes have the proxy's environment, where a variable has one value: of a server that wants another one, or
    the value of another variable, `envFrom` says which. Gives the variables that have to be there; `values`
    are theirs, of all servers."""
    found, own = list[str](), dict[str, str]()
    for name, value in env.items():
        reference = _reference(value) if isinstance(value, str) else None
        source = reference[1] if reference else name
        wanted = f"${{{source}}}" if reference else value
        if not reference and values.get(source, wanted) != wanted:
            source = _own_variable(target["name"], name, values)
        if source != name:
            own[name] = source
        values.setdefault(source, wanted)
        found.append(source)
    if own:
        target["stdio"]["envFrom"] = own
    return found


def _own_variable(target: str, name: str, taken: Collection[str]) -> str:
    base = f"{target.replace('-', '_').upper()}_{name}"
    base = base if _is_variable(base) else f"_{base}"
    return next(each for each in (base, *(f"{base}_{number}" for number in range(2, MOST + 2))) if each not in taken)


def _entries(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno} column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise NotAClientsFile(
            f"not JSON: {where}{error.msg if isinstance(error, json.JSONDecodeError) else 'nested too deeply'}"
        ) from None
    found = next((document[name] for name in _LISTS if name in document), None) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise NotAClientsFile("no object mcpServers: it should have a name and a command or url for each server")
    return found


def _target(entry: Any) -> tuple[dict[str, Any], list[str]]:
    if not isinstance(entry, dict):
        raise _Left("it is no object")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise _Disabled
    for name in entry:
        if name in _REASONS:
            raise _Left(_REASONS[name])
        if name not in _KNOWN and name not in _OF_CLIENTS and name not in ("disabled", "enabled"):
            raise _Left(f"{name[:40]}: not known")
    url = entry.get("url", entry.get("serverUrl"))
    kind = entry.get("type", entry.get("transport", "http" if url is not None else "stdio"))
    if not isinstance(kind, str) or kind not in _TRANSPORTS:
        raise _Left(f"type: none of {', '.join(_TRANSPORTS)}")
    if (url is None) == ("command" not in entry):
        raise _Left("needs either command or url")
    protocol = _TRANSPORTS[kind]
    if bool(protocol) is (url is None):
        raise _Left(f"type {kind} does not go with {'command' if url is None else 'url'}")
    return _of_url(entry, url, protocol) if protocol else _of_command(entry)


def _of_command(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    command, arguments, env = entry["command"], entry.get("args", []), entry.get("env") or {}
    if not isinstance(command, str) or not command:
        raise _Left("command: no text")
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise _Left("args: no list of texts")
    if not isinstance(env, dict):
        raise _Left("env: no object")
    for index, each in enumerate(arguments):
        _look(each, arguments[index - 1] if index else "", f"args[{index}]")
    stdio: dict[str, Any] = {"cmd": command}
    if arguments:
        stdio["args"] = arguments
    return {"stdio": stdio}, [_variable(name, value) for name, value in env.items()]


def _look(argument: str, before: str, where: str) -> None:
    """Arguments are seen by all who see the file, or the list of processes."""
    if "${" in argument:
        raise _Left(f"{where}: variables stand in env alone")
    flag, is_joined, value = argument.partition("=")
    is_named = before.startswith("-") and _is_secret_name(before.lstrip("-")) and not argument.startswith("-")
    is_named = is_named or bool(is_joined and value and flag.startswith("-") and _is_secret_name(flag.lstrip("-")))
    if is_named or _is_secret_value(argument) or _is_secret_value(value):
        raise _Left(f"{where}: it looks like a secret; let the server read it from a variable")


def _variable(name: str, value: Any) -> str:
    """The variable that the proxy's environment has to have. Values are never copied: which of them are
    secrets is not known."""
    if not _is_variable(name):
        raise _Left("env: a name that no variable has")
    if not isinstance(value, str | int | float | bool):
        raise _Left(f"env.{name}: no text")
    return name


def _of_url(entry: Mapping[str, Any], url: Any, protocol: str) -> tuple[dict[str, Any], list[str]]:
    if not isinstance(url, str):
        raise _Left("url: no text")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _Left("url: it is none") from None
    if parts.scheme not in _PORTS or not parts.hostname or "${" in url:
        raise _Left("url: neither http nor https, with a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise _Left("url: what stands before the host or behind the path may be a secret, and has no place here")
    static: dict[str, Any] = {"host": parts.hostname, "port": port or _PORTS[parts.scheme]}
    if parts.path:
        static["path"] = parts.path
    static["protocol"] = protocol
    policies: dict[str, Any] = {"tls": {}} if parts.scheme == "https" else {}
    variables = _authorize(entry.get("headers") or {}, parts.hostname, policies)
    if policies:
        static["policies"] = policies
    return {"static": static}, variables


def _authorize(headers: Any, host: str, policies: dict[str, Any]) -> list[str]:
    """Headers that go with each request: one that names who asks has a place."""
    if not isinstance(headers, dict):
        raise _Left("headers: no object")
    for name in headers:
        if name.lower() != "authorization":
            raise _Left(f"headers.{name[:40]}: only Authorization can be sent to a target")
    if not headers:
        return []
    (value,) = headers.values()
    found = _reference(value.removeprefix("Bearer ")) if isinstance(value, str) else None
    source = found[1] if found else f"{re.sub('[^A-Z0-9]+', '_', host.upper()).strip('_')}_AUTHORIZATION"
    if not _is_variable(source):
        source = f"_{source}"
    policies["auth"] = {"secretRef": {"env": source}}
    return [source]


def _name(name: str, taken: set[str]) -> str:
    """The name of a target: as that of an object (RFC 1123)."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "server"
    return next(each for each in (base, *(f"{base}-{number}" for number in range(2, MOST + 2))) if each not in taken)


def _check(target: dict[str, Any], port: int) -> None:
    """What the reader of the proxy's file says of the target."""
    loaded = standalone.load(json.dumps(_file([target], port)), "")
    if loaded.problems:
        problem = loaded.problems[0]
        below = problem.path.rpartition("targets[0].")[2].rpartition("routes[0].")[2]
        raise _Left(": ".join(part for part in (below, problem.message) if part))


def _file(targets: list[dict[str, Any]], port: int) -> dict[str, Any]:
    """For this machine alone: what the servers may do, every client of the port may do."""
    # a client goes on with the servers that work, and so does the proxy
    route = {"name": "mcp", "backends": [{"mcp": {"targets": targets, "failureMode": "FailOpen"}}]}
    listener = {"name": "mcp", "protocol": "HTTP", "routes": [route]}
    return {"binds": [{"port": port, "addresses": ["127.0.0.1"], "listeners": [listener]}]}
