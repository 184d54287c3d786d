"""Names of the methods in each binding, and the one name that policies and logs have for each: that of JSON-RPC in 0.3.

A method has one name here, whatever binding and version its client chose, so that no client gets past a rule about it
by taking another one. JSON-RPC methods that are in no table keep the name that they came with.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

CARD: Final = "agent/getCard"
"""A card at one of its two well-known paths. A2A has no name for that."""
EXTENDED_CARD: Final = "agent/getAuthenticatedExtendedCard"
SEND, STREAM = "message/send", "message/stream"
GET, LIST, CANCEL, SUBSCRIBE = "tasks/get", "tasks/list", "tasks/cancel", "tasks/resubscribe"
PUSH: Final = "tasks/pushNotificationConfig/"

WELL_KNOWN: Final = (("agent-card.json",), ("agent.json",))
"""File names below `.well-known`: of 0.3 and 1.0, and of older agents."""

NAMES: Final[dict[str, str]] = {
    # the name of the gRPC method, which version 1.0 has in JSON-RPC too -> the name here
    "SendMessage": SEND,
    "SendStreamingMessage": STREAM,
    "GetTask": GET,
    "ListTasks": LIST,
    "CancelTask": CANCEL,
    "SubscribeToTask": SUBSCRIBE,
    "TaskSubscription": SUBSCRIBE,  # 0.3
    "CreateTaskPushNotificationConfig": f"{PUSH}set",
    "SetTaskPushNotificationConfig": f"{PUSH}set",  # drafts of 1.0
    "GetTaskPushNotificationConfig": f"{PUSH}get",
    "ListTaskPushNotificationConfigs": f"{PUSH}list",
    "ListTaskPushNotificationConfig": f"{PUSH}list",  # 0.3
    "DeleteTaskPushNotificationConfig": f"{PUSH}delete",
    "GetExtendedAgentCard": EXTENDED_CARD,
    "GetAgentCard": EXTENDED_CARD,  # 0.3: the card over gRPC
}

SERVICES: Final = ("lf.a2a.v1.A2AService", "a2a.v1.A2AService")
"""Names of the gRPC service in 1.0 and 0.3."""

KNOWN: Final = frozenset(NAMES.values()) | {CARD}
"""All names used here: values that may be a label."""

_VERBS: Final = {
    # the end of a REST path behind the last colon, and its HTTP methods -> method
    ("message", "send"): (SEND, ("POST",)),
    ("message", "stream"): (STREAM, ("POST",)),
    ("tasks", "cancel"): (CANCEL, ("POST",)),
    ("tasks", "subscribe"): (SUBSCRIBE, ("GET", "POST")),
}
_PUSH: Final = {
    # (HTTP method, whether the path names one configuration) -> method
    ("POST", False): f"{PUSH}set",
    ("GET", False): f"{PUSH}list",
    ("GET", True): f"{PUSH}get",
    ("DELETE", True): f"{PUSH}delete",
}


def of_json_rpc(name: str) -> str:
    """The name here of a `method` of JSON-RPC, of either version."""
    return NAMES.get(name, name)


_SPELLED: Final = {name.casefold(): name for name in (*NAMES, *KNOWN)}


def is_misspelled(name: str) -> bool:
    """Whether lenient readers may take a `method` of JSON-RPC for one of A2A's: it has other letters, or spaces."""
    return name not in NAMES and name not in KNOWN and name.strip().casefold() in _SPELLED


may_be_known = re.compile(r"%|tasks|card|:send|:stream|agent\.json|a2aservice", re.IGNORECASE).search
"""Whether a path may be one of A2A's, in any letters; most paths of JSON-RPC are none, and need not be taken apart."""


def of_grpc(path: str) -> tuple[str, str] | None:
    """(service, method) of a gRPC path; None: it is none of A2A's. Read by its end, as paths of REST are: what stands
    before it may be taken away on the way to the agent."""
    if may_be_known(path) is None:
        return None
    *_, service, name = ("", "", *_segments(path))
    return (service, NAMES[name]) if service in SERVICES and name in NAMES else None


def _segments(path: str) -> list[str]:
    """As a lenient agent reads a path: escapes resolved, empty segments skipped."""
    return [part for part in unquote(path).split("/") if part]


_WORDS: Final = {
    word.casefold(): word
    for word in (
        *(".well-known", "agent-card.json", "agent.json", "v1", "card", "extendedAgentCard", "agent"),
        *("authenticatedExtendedCard", "message", "send", "stream", "tasks", "cancel", "subscribe"),
        *("pushNotificationConfigs", *SERVICES, *NAMES),
    )
}


def in_usual_letters(path: str) -> str:
    """A path as readers understand it that look neither at the case of letters (ASP.NET) nor at dots and spaces at the
    end (Windows). Escapes are resolved, so resolving those of the answer resolves them twice."""
    return "/".join(
        ":".join(_WORDS.get(part.rstrip(" .\t\r\n").casefold(), part) for part in segment.split(":"))
        for segment in _segments(path)
    )


_CARDS: Final = (["v1", "card"], ["agent", "authenticatedExtendedCard"])
"""Ends of paths of the extended card in 0.3: REST, and beside JSON-RPC in its SDKs."""


def of_rest(verb: str, path: str) -> tuple[str, str | None] | None:
    """(method, id of the task) of a request by its HTTP method and path; None: it is none of A2A's."""
    return next(iter(all_of_rest(verb, path)), None)


def all_of_rest(verb: str, path: str) -> list[tuple[str, str | None]]:
    """The same as each agent may read it. Paths are read by their end, since what stands before it is the agent's
    choice: a version, a tenant, a prefix. So `/tasks/tasks` is a list to the one and a task to the other."""
    verb = "GET" if verb == "HEAD" else verb
    segments = _segments(path) if may_be_known(path) is not None else []
    if not segments:
        return []
    *before, last = segments
    if before[-1:] == [".well-known"] and (last,) in WELL_KNOWN:
        return [(CARD, None)] if verb == "GET" else []
    found = (
        _of_message(verb, last),
        _of_list(verb, last),
        _of_task(verb, before, last),
        _of_push(verb, segments),
        _of_card(verb, segments),
    )
    return [each for each in found if each is not None]


def _of_message(verb: str, last: str) -> tuple[str, str | None] | None:
    name, _, action = last.partition(":")
    found = _VERBS.get((name, action)) if name == "message" else None
    return (found[0], None) if found is not None and verb in found[1] else None


def _of_list(verb: str, last: str) -> tuple[str, str | None] | None:
    return (LIST, None) if last == "tasks" and verb == "GET" else None


def _of_task(verb: str, before: list[str], last: str) -> tuple[str, str | None] | None:
    if before[-1:] != ["tasks"]:
        return None
    task, _, action = last.rpartition(":")
    found = _VERBS.get(("tasks", action))
    if found is not None and verb in found[1]:
        return found[0], task
    return (GET, last) if verb == "GET" else None


def _of_push(verb: str, segments: list[str]) -> tuple[str, str | None] | None:
    for names_one in (False, True):
        tail = segments[-4:] if names_one else segments[-3:]
        if len(tail) == 3 + names_one and tail[0] == "tasks" and tail[2] == "pushNotificationConfigs":
            method = _PUSH.get((verb, names_one))
            if method is not None:
                return method, tail[1]
    return None


def _of_card(verb: str, segments: list[str]) -> tuple[str, str | None] | None:
    is_card = segments[-1] == "extendedAgentCard" or segments[-2:] in _CARDS  # 1.0, and before
    return (EXTENDED_CARD, None) if is_card and verb == "GET" else None
