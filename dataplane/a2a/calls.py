"""Which call of A2A a request is: its method, and the task, context and skill that it names.

`read` is strict, for policies: what two readers may read differently raises `Unreadable`, and whoever asked refuses the
request. `glance` is for logs: what it cannot read it leaves out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from dataplane.a2a import methods
from dataplane.a2a.documents import Unreadable, field, fields, parse

JSON_RPC, REST, GRPC = "JSONRPC", "HTTP+JSON", "GRPC"
"""The bindings, by the names that cards have for them."""

FRAME: Final = 5
"""Bytes before each message of gRPC: whether it is compressed, and its length."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read of a request. `body` is all of it, or as much as there is."""

    verb: str
    path: str
    body: bytes = b""
    is_grpc: bool = False
    encoding: bytes = b""
    """The value of `content-encoding`."""


@dataclass(slots=True)
class Call:
    """A call, and what came of it."""

    method: str | None = None
    binding: str = ""
    task: str | None = None
    context: str | None = None
    skill: str | None = None
    state: str | None = None
    """The state of the task that the agent named last (`results`)."""
    error: int | None = None
    """The code of an error of JSON-RPC."""


def read(facts: Facts) -> Call:
    """The call of a request whose body is here whole. Raises `Unreadable`."""
    if facts.is_grpc:
        return _of_grpc(facts)
    known = methods.of_rest(facts.verb, facts.path)
    if facts.verb != "POST" or not facts.body:
        return _of_path(known)
    if facts.encoding.strip().lower() not in (b"", b"identity"):
        raise Unreadable("a compressed body")
    body = parse(facts.body)
    if not isinstance(body, dict):
        raise Unreadable("a body that is no JSON object")  # no version has batches
    _exact(body)
    call = _of_json_rpc(body) if "jsonrpc" in body or "method" in body else None
    if known is None or call is None:
        return call or (_of_path(known) if known is None else _of_rest(known, body))
    if call.method != known[0] or (known[1] is not None and call.task not in (None, known[1])):
        raise Unreadable("a body of one call, at the path of another")
    return call


def glance(facts: Facts) -> Call:
    """The same for logs, of a body that may not be all here: what cannot be read is absent."""
    try:
        return read(facts)
    except Unreadable:
        known = methods.of_grpc(facts.path) if facts.is_grpc else None
        if known is not None:
            return Call(known, GRPC)
        found = methods.of_rest(facts.verb, facts.path)
        return _of_path(found) if found is not None else _beginning(facts)


_MEMBER = re.compile(rb'[\s,{]*"(jsonrpc|method|id)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+|null)').match


def _beginning(facts: Facts) -> Call:
    """The method of a JSON-RPC request that is too large, or not here whole, when it stands before the parameters."""
    at = 0
    while (found := _MEMBER(facts.body, at)) is not None:
        at = found.end()
        if found[1] == b"method" and found[2][:1] == b'"':
            try:
                return Call(methods.of_json_rpc(json.loads(found[2])), JSON_RPC)
            except ValueError:
                break
    return Call()


def _of_path(known: tuple[str, str | None] | None) -> Call:
    return Call() if known is None else Call(known[0], REST, known[1])


def _of_json_rpc(body: dict[str, Any]) -> Call:
    name, params = body.get("method"), body.get("params")
    if not isinstance(name, str):
        return Call(binding=JSON_RPC)
    call = Call(methods.of_json_rpc(name), JSON_RPC)
    if isinstance(params, dict):
        is_old = name not in methods.NAMES
        _named(call, params, is_old)
    return call


def _of_rest(known: tuple[str, str | None], body: dict[str, Any]) -> Call:
    call = Call(known[0], REST)
    _named(call, body, False)
    call.task = known[1] if known[1] is not None else call.task
    return call


def _named(call: Call, params: dict[str, Any], is_old: bool) -> None:
    """What the parameters of a call name. Of 0.3 most methods call the task `id`; in 1.0 that is the configuration's
    where they have a `taskId`."""
    _exact(params)
    message = _one(params, "message", "request")  # `request`: the field of 0.3's protobuf
    if isinstance(message, dict):
        _exact(message)
        call.task, call.context = _text(message, "taskId", "task_id"), _text(message, "contextId", "context_id")
        call.skill = _skill(message)
    else:
        call.task = _text(params, "taskId", "task_id")
        if call.task is None and (is_old or not (call.method or "").startswith(methods.PUSH)):
            call.task = _text(params, "id")
        call.context = _text(params, "contextId", "context_id")
    if call.skill is None:
        call.skill = _skill(params)


def _skill(holder: dict[str, Any]) -> str | None:
    """A2A has no field for the skill; clients name it in the metadata of the message, or of the request."""
    metadata = holder.get("metadata")
    return _text(metadata, "skillId", "skill_id", "skill") if isinstance(metadata, dict) else None


_NAMES: Final = (
    *("jsonrpc", "id", "method", "params", "message", "request", "metadata"),
    *("taskId", "task_id", "contextId", "context_id"),
)
_FOLDED: Final = frozenset(name.casefold() for name in _NAMES)


def _exact(holder: dict[str, Any]) -> None:
    """Raises `Unreadable` where a name that is read here is spelled with other letters: some readers (of Go, of .NET)
    take `Method` for `method`, others for nothing."""
    for name in holder:
        if name not in _NAMES and name.casefold() in _FOLDED:
            raise Unreadable("a name in other letters than the protocol's")


def _one(holder: dict[str, Any], *names: str) -> Any:
    """The value under one of these spellings of a name. Raises `Unreadable` where there are several."""
    found = [holder[name] for name in names if name in holder]
    if len(found) > 1:
        raise Unreadable(f"{' and '.join(names)} at once")
    return found[0] if found else None


def _text(holder: dict[str, Any], *names: str) -> str | None:
    value = _one(holder, *names)
    return value if isinstance(value, str) and value else None


# --- gRPC: the same of protobuf. Numbers are those of `a2a.proto`; 0.3 has others, and names tasks `tasks/ID`.

_MESSAGE: Final = {"lf.a2a.v1.A2AService": 2, "a2a.v1.A2AService": 1}
_TASK_OF_PUSH: Final = {
    f"{methods.PUSH}set": 3,
    f"{methods.PUSH}get": 2,
    f"{methods.PUSH}list": 2,
    f"{methods.PUSH}delete": 2,
}


def _of_grpc(facts: Facts) -> Call:
    method = methods.of_grpc(facts.path)
    if method is None:
        return Call()
    call = Call(method, GRPC)
    data = facts.body
    if not data:
        return call
    if len(data) < FRAME or data[0] or int.from_bytes(data[1:FRAME], "big") != len(data) - FRAME:
        raise Unreadable("a gRPC message that is compressed, cut off, or one of several")
    service, message = facts.path.lstrip("/").partition("/")[0], data[FRAME:]
    if method in (methods.SEND, methods.STREAM):
        _named_in_message(call, message, _MESSAGE[service])
    elif service == methods.SERVICES[0]:
        number = _TASK_OF_PUSH.get(method) or (2 if method.startswith("tasks/") and method != methods.LIST else 0)
        call.task = _utf8(field(message, number)) if number else None
    else:
        call.task = _of_name(_utf8(field(message, 1)))
    return call


def _named_in_message(call: Call, request: bytes, number: int) -> None:
    parts = [value for found, value in fields(request) if found == number and isinstance(value, bytes)]
    message = b"".join(parts)
    call.context, call.task = _utf8(field(message, 2)), _utf8(field(message, 3))
    call.skill = _skill_in(field(message, 6)) or _skill_in(field(request, 4 if number == 2 else 3))


def _skill_in(struct: Any) -> str | None:
    """The skill in a `google.protobuf.Struct`, which is a map of name (1) to value (2), of which 3 is text."""
    found: dict[str, str | None] = {}
    for number, entry in fields(struct) if isinstance(struct, bytes) else ():
        name = _utf8(field(entry, 1)) if number == 1 and isinstance(entry, bytes) else None
        if name in ("skillId", "skill_id", "skill"):
            found[name] = _utf8(field(entry, 2, 3))
    if len(found) > 1:
        raise Unreadable(f"{' and '.join(sorted(found))} at once")
    return next(iter(found.values()), None)


def _of_name(name: str | None) -> str | None:
    """The id in a resource name of 0.3: `tasks/ID`, `tasks/ID/pushNotificationConfigs/OTHER`."""
    parts = (name or "").split("/")
    return parts[1] if len(parts) > 1 and parts[0] == "tasks" and parts[1] else None


def _utf8(value: Any) -> str | None:
    try:
        return value.decode() or None if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        raise Unreadable("text that is no UTF-8") from None
