"""Which call of A2A a request is: its method, and the task, context and skill that it names.

`read` is strict, for policies: what two readers may read differently raises `Unreadable`, and the caller refuses the
request. `glance` is for logs: what it cannot read it leaves out.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl

from dataplane.a2a import methods, protobuf_calls
from dataplane.a2a.call import GRPC, JSON_RPC, REST, Call, Facts
from dataplane.a2a.documents import Unreadable, parse
from dataplane.a2a.protobuf_calls import SKILLS, one_skill
from dataplane.http.grpc import NOT_GRPC

MAX_PARAMETERS: Final = 1000
"""Parameters of a query that is read."""
_PARAMETERS: Final = frozenset(("id", "taskId", "contextId"))
"""As the protocol spells them. Some agents take names with `_` for them, and others pass over these."""
_FOLDED_PARAMETERS: Final = frozenset((*(name.casefold() for name in _PARAMETERS), "task_id", "context_id"))

Known = tuple[str, str | None]
"""A method and the id of its task, as a path of REST says them."""


def read(facts: Facts) -> Call:
    """The call of a request whose body is here whole. Raises `Unreadable`."""
    _has_one_meaning(facts)
    return _read(facts)


def _read(facts: Facts) -> Call:
    of_grpc = methods.of_grpc(facts.path)
    if of_grpc is not None:
        if facts.grpc_kind == NOT_GRPC:
            raise Unreadable("a method of gRPC, in another content than gRPC's")  # Connect takes JSON there
        return protobuf_calls.read(facts, *of_grpc)
    known = methods.of_rest(facts.verb, facts.path)
    if known is not None and facts.verb != "POST":
        return _without_content(facts, known)
    if not facts.body or (facts.grpc_kind != NOT_GRPC and facts.body[0] <= 1):  # a frame, of another service of gRPC
        return _of_path(known)
    body = parse(facts.body)
    if not isinstance(body, dict):
        raise Unreadable("a body that is no JSON object")  # no version has batches
    _exact(body)
    call = _of_json_rpc(body) if "jsonrpc" in body or "method" in body else None
    if known is None or call is None:
        return call or (_of_path(known) if known is None else _of_rest(known, body, facts.path))
    if call.method != known[0] or (known[1] is not None and call.task not in (None, known[1])):
        raise Unreadable("a body of one call, at the path of another")
    call.task = call.task if call.task is not None else known[1]
    return call


def _without_content(facts: Facts, known: Known) -> Call:
    """A call of REST that has parameters in its query, and no content."""
    if facts.body:
        raise Unreadable("content of a call that has none")
    call = _of_path(known)
    try:
        pairs = parse_qsl(facts.query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise Unreadable(f"more than {MAX_PARAMETERS} parameters") from None
    about = [(name, value) for name, value in pairs if name.casefold() in _FOLDED_PARAMETERS]
    named = dict(about)
    if len(named) != len(about):
        raise Unreadable("a parameter that is there twice")
    if not named.keys() <= _PARAMETERS:
        raise Unreadable("a parameter in other letters than the protocol's")
    if any(named.get(name, call.task) != call.task for name in ("id", "taskId")) and call.task is not None:
        raise Unreadable("a query about one task, at the path of another")
    call.context = _text(named, "contextId")
    return call


def by_path(verb: bytes, path: bytes) -> frozenset[str]:
    """The methods that agents may take the path of a request for, whatever is in its body; mostly none, or one."""
    text = path.decode("latin-1")
    of_grpc = methods.of_grpc(text)
    if of_grpc is not None:
        return frozenset((of_grpc[1],))
    return frozenset(method for method, _ in methods.all_of_rest(verb.decode(), text))


_CHARSETS: Final = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii"))
_CHARSET: Final = re.compile(rb"""charset\s*=\s*["']?([^"';,\s]*)""", re.IGNORECASE).findall


def _has_one_meaning(facts: Facts) -> None:
    """Raises `Unreadable` where readers may understand the head of a request differently."""
    if len(facts.content_types) > 1:
        raise Unreadable("several content types")
    if any(each.lower() not in _CHARSETS for value in facts.content_types for each in _CHARSET(value)):
        raise Unreadable("a character set other than UTF-8")
    if facts.is_coded:
        raise Unreadable("a compressed body")
    if facts.overrides:
        raise Unreadable("a header with another HTTP method")
    if methods.may_be_known(facts.path) is None:
        return
    usual, verb = methods.in_usual_letters(facts.path), facts.verb.encode()
    named = by_path(verb, facts.path.encode("latin-1"))
    if len(named) > 1:
        raise Unreadable("a path that agents may read as different calls")
    if by_path(verb, usual.encode("latin-1", "replace")) != named:
        raise Unreadable("a path of A2A in other letters")


def glance(facts: Facts) -> Call:
    """The same for logs, of a body that may not be all here: what cannot be read is absent."""
    try:
        return _read(facts)
    except Unreadable:
        of_grpc = methods.of_grpc(facts.path)
        if of_grpc is not None:
            return Call(of_grpc[1], GRPC)
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


def _of_path(known: Known | None) -> Call:
    return Call() if known is None else Call(known[0], REST, known[1])


def _of_json_rpc(body: dict[str, Any]) -> Call:
    name, params = body.get("method"), body.get("params")
    if not isinstance(name, str):
        return Call(binding=JSON_RPC)
    if methods.is_misspelled(name):
        raise Unreadable("a method of A2A in other letters")
    call = Call(methods.of_json_rpc(name), JSON_RPC)
    if isinstance(params, dict):
        is_old = name not in methods.NAMES
        _named(call, params, is_old)
    return call


def _of_rest(known: Known, body: dict[str, Any], path: str) -> Call:
    call = Call(known[0], REST)
    _named(call, body, False, "/v1/" in path)
    if known[1] is not None and call.task not in (None, known[1]):
        raise Unreadable("a body about one task, at the path of another")
    call.task = known[1] if known[1] is not None else call.task
    return call


def _named(call: Call, params: dict[str, Any], is_old: bool, takes_request: bool = False) -> None:
    """What the parameters of a call name. Of 0.3 most methods call the task `id`; in 1.0 that is the configuration's
    where they have a `taskId`. `takes_request`: the message may be in `request`, as in the protobuf of 0.3, whose REST
    paths have `/v1/`; all others overlook it."""
    _exact(params)
    message = _one(params, "message", "request")
    if call.method in (methods.SEND, methods.STREAM) and "request" in params and not takes_request:
        raise Unreadable("a message in `request`, which is a field of version 0.3 over REST")
    if call.method in (methods.SEND, methods.STREAM) and not isinstance(message, dict):
        message = {}  # nothing else of their parameters names a task
    if isinstance(message, dict):
        _exact(message)
        call.task, call.context = _text(message, "taskId", "task_id"), _text(message, "contextId", "context_id")
        call.skill = one_skill(_skill(message), _skill(params))
        return
    call.task, call.context = _task(call, params, is_old), _text(params, "contextId", "context_id")
    call.skill = _skill(params)


def _task(call: Call, params: dict[str, Any], is_old: bool) -> str | None:
    task = _text(params, "taskId", "task_id")
    if not is_old and (call.method or "").startswith(methods.PUSH):
        return task
    by_id = _text(params, "id")
    if None not in (task, by_id) and task != by_id:
        raise Unreadable("id and taskId of two tasks")
    return task if task is not None else by_id


def _skill(holder: dict[str, Any]) -> str | None:
    """A2A has no field for the skill; clients name it in the metadata of the message, or of the request."""
    metadata = holder.get("metadata")
    return _text(metadata, *SKILLS) if isinstance(metadata, dict) else None


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
