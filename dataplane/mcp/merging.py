"""What several servers answer, as one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dataplane.mcp import messages, modern, renaming, versions
from dataplane.mcp.messages import Id, Malformed, Object
from dataplane.mcp.methods import Method

NAME: Final = "gatewright"
_PREAMBLE: Final = "Tools of several servers; names begin with the server's.\n\n"

_FEATURES: Final = ("tools", "prompts", "resources", "logging", "completions", "tasks")
"""Capabilities that a merged endpoint has when one of its servers has them."""


def hello(client_version: str, answers: Iterable[tuple[str, Raw]], stateless: bool, own_version: str) -> Raw:
    """The result of `initialize`: `answers` are those of the targets. Raises `Malformed`."""
    spoken, capabilities, instructions = [client_version], dict[str, object](), list[str]()
    for target, answer in answers:
        fields = messages.object_of(answer)
        spoken.append(messages.text_of(fields.get("protocolVersion")) or client_version)
        _add_capabilities(capabilities, messages.object_of(fields.get("capabilities", Raw(b"{}"))), stateless)
        said = messages.text_of(fields.get("instructions"))
        if said:
            instructions.append(f"[{target}]\n{said}")
    merged: dict[str, object] = {
        "protocolVersion": versions.lowest([each for each in spoken if each in versions.KNOWN] or [versions.NEWEST]),
        "capabilities": capabilities,
        "serverInfo": {"name": NAME, "version": own_version},
    }
    if instructions:
        merged["instructions"] = _PREAMBLE + "\n\n".join(instructions)
    return messages.raw(merged)


def discovered(answers: Iterable[tuple[str, Raw]], own_version: str) -> Raw:
    """The result of `server/discover`. Raises `Malformed`."""
    capabilities, instructions, common = dict[str, object](), list[str](), dict[str, int]()
    count = 0
    for target, answer in answers:
        count += 1
        fields = messages.object_of(answer)
        named = map(messages.text_of, messages.items_of(fields.get("supportedVersions")))
        for version in dict.fromkeys(each for each in named if each):  # once, however often it says so
            common[version] = common.get(version, 0) + 1
        _add_capabilities(capabilities, messages.object_of(fields.get("capabilities", Raw(b"{}"))), False)
        said = messages.text_of(fields.get("instructions"))
        if said:
            instructions.append(f"[{target}]\n{said}")
    merged: dict[str, object] = {
        "supportedVersions": [version for version, named in common.items() if named == count],
        "capabilities": capabilities,
        "_meta": {modern.SERVER_KEY: {"name": NAME, "version": own_version}},
    }
    if instructions:
        merged["instructions"] = _PREAMBLE + "\n\n".join(instructions)
    return messages.raw(modern.fresh(merged))


def _add_capabilities(merged: dict[str, object], theirs: Object, stateless: bool) -> None:
    """Flags of a feature are true when one server has them; of others the first server's word counts."""
    for feature, value in theirs.items():
        if feature not in _FEATURES and feature not in ("extensions", "experimental"):
            continue
        found = merged.setdefault(feature, {})
        assert isinstance(found, dict)
        for name, setting in messages.object_of(value).items():
            if stateless and name in ("subscribe", "listChanged"):
                continue  # without sessions there is no client to notify
            if bytes(setting) == b"true":
                found[name] = True
            else:
                found.setdefault(name, setting)


def items(method: Method, target: str, fields: Object, several: bool) -> Iterator[tuple[str, Raw]]:
    """The items of one target's page, of the fields of its result: the name that the target knows, and the item as
    clients see it. What has no name is left out: no client could ask for it. Raises `Malformed`."""
    name_of = _NAMERS[method.key]
    for item in messages.items_of(fields.get(method.field)):
        try:
            name = name_of(item)
            seen = renaming.item(item, method.key, method.kind, target) if several else item
        except (Malformed, msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        yield name, seen


class _Name(msgspec.Struct):
    name: str


class _Uri(msgspec.Struct):
    uri: str


class _Template(msgspec.Struct):
    uriTemplate: str


class _Task(msgspec.Struct):
    taskId: str


def _namer(shape: type[msgspec.Struct], key: str) -> Callable[[Raw], str]:
    decode = msgspec.json.Decoder(shape).decode
    return lambda raw: getattr(decode(raw), key)


_NAMERS: Final = {
    "name": _namer(_Name, "name"),
    "uri": _namer(_Uri, "uri"),
    "uriTemplate": _namer(_Template, "uriTemplate"),
    "taskId": _namer(_Task, "taskId"),
}


def page(
    method: Method, found: list[Raw], cursor: str | None, rest: Object | None = None, is_modern: bool = False
) -> Raw:
    """The result of a list. `rest`: what else a single server said of it."""
    fields: dict[str, object] = modern.fresh({}) if is_modern else dict(rest or {})
    fields[method.field] = found
    if cursor is not None:
        fields["nextCursor"] = cursor
    return messages.raw(fields)


RELATED: Final = "io.modelcontextprotocol/related-task"
"""Key of `_meta` that names the task to which a message belongs (MCP 2025-11-25, Tasks)."""


def related(raw: Raw | UnsetType, change: Callable[[str], str]) -> Raw | UnsetType:
    """Params or a result, with another name of the task that it belongs to; the same where it belongs to none."""
    if raw is UNSET:
        return raw
    fields = messages.object_of(raw)
    meta = messages.object_of(fields.get("_meta", UNSET))
    task = messages.object_of(meta.get(RELATED, UNSET))
    name = messages.text_of(task.get("taskId"))
    if name is None:
        return raw
    task["taskId"] = messages.raw(change(name))
    meta[RELATED] = messages.raw(task)
    fields["_meta"] = messages.raw(meta)
    return messages.raw(fields)


TOKEN: Final = "progressToken"
"""Key that names what progress is of: in `_meta` of the request, and in the notices."""


def token_renamed(raw: Raw | UnsetType, change: Callable[[Id], str]) -> Raw | UnsetType:
    """Params of a request, with another token for its progress; the same where it wants none."""
    fields = messages.object_of(raw)
    meta = messages.object_of(fields.get("_meta", UNSET))
    token = messages.id_of(meta.get(TOKEN))
    if token is None:
        return raw
    meta[TOKEN] = messages.raw(change(token))
    fields["_meta"] = messages.raw(meta)
    return messages.raw(fields)
