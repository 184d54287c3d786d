"""`subscriptions/listen` (MCP 2026-07-28): what a client wants to hear of, what each server is asked for, what all of
them grant. Flags name lists that may change, URIs the resources that may; nothing else is asked for, whatever
extensions may add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from dataplane.mcp import messages
from dataplane.mcp.messages import INVALID_PARAMS, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.mcp.messages import Id, Message, Object

METHOD: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"

FLAGS: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""Flags, with the notices that they ask for."""
URIS: Final = "resourceSubscriptions"
MAX_URIS: Final = 1024
"""Resources that one stream is about."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for, or granted."""

    flags: tuple[str, ...] = ()
    """Names of `FLAGS`, in its order."""
    uris: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.flags or self.uris)

    def raw(self) -> Raw:
        """As messages have it: what is not asked for is absent."""
        fields: dict[str, object] = dict.fromkeys(self.flags, True)
        if self.uris:
            fields[URIS] = list(self.uris)
        return messages.raw(fields)

    def within(self, asked: Filter) -> Filter:
        """Those of them that were asked for."""
        flags, uris = frozenset(asked.flags), frozenset(asked.uris)
        return Filter(
            tuple(each for each in self.flags if each in flags), tuple(each for each in self.uris if each in uris)
        )

    def grants(self, method: object) -> bool:
        """Whether a notice is one of those that were asked for. Which resource it is about is for rules to judge: a
        server may name a part of one that was asked for."""
        return (method == UPDATED and bool(self.uris)) or any(FLAGS[flag] == method for flag in self.flags)


def read(params: Object) -> Filter:
    """What a request, or an acknowledgement, names. Raises `Malformed`."""
    if "notifications" not in params:
        raise Malformed(INVALID_PARAMS, "params.notifications must be an object")
    fields = messages.object_of(params["notifications"])
    messages.exact(fields, *FLAGS, URIS)
    flags = tuple(flag for flag in FLAGS if flag in fields and bytes(fields[flag]).strip() == b"true")
    return Filter(flags, _uris(fields.get(URIS)))


def _uris(raw: Raw | None) -> tuple[str, ...]:
    if raw is None or bytes(raw).strip() == b"null":
        return ()
    try:
        found = _texts(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Malformed(INVALID_PARAMS, f"params.notifications.{URIS} must be a list of URIs") from None
    if len(found) > MAX_URIS:
        raise Malformed(INVALID_PARAMS, f"params.notifications.{URIS} has more than {MAX_URIS} URIs")
    return tuple(dict.fromkeys(found))


_texts = msgspec.json.Decoder(list[str]).decode


def merged(granted: Iterable[Filter]) -> Filter:
    """What several servers grant, as one."""
    filters = list(granted)
    flags = frozenset(flag for each in filters for flag in each.flags)
    uris = dict.fromkeys(uri for each in filters for uri in each.uris)
    return Filter(tuple(flag for flag in FLAGS if flag in flags), tuple(uris))


def acknowledgement(granted: Filter, request_id: Id | None) -> bytes:
    """The first message of a stream."""
    params = {"notifications": granted.raw(), "_meta": {ID_KEY: request_id}}
    return messages.notification(ACKNOWLEDGED, messages.raw(params))


def asking(message: Message, params: Object, wanted: Filter) -> bytes:
    """The request to one server, of that of the client."""
    fields: dict[str, object] = {**params, "notifications": wanted.raw()}
    return messages.encode(messages.Message("2.0", message.id, message.method, messages.raw(fields)))
