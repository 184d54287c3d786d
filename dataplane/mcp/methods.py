"""What each method of MCP is about, as a table: of one item, of a list, of all servers.

Methods that are not in it are sent to the only target as they are, and are not known where there are several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ITEM, LIST, ALL, REFERENCE, LISTEN = "item", "list", "all", "reference", "listen"
"""Forms of a method: about an item that one target has; a list that all give a part of; for all of them; about an item
within `ref`; a stream of notices, of which all give a part."""


@dataclass(frozen=True, slots=True)
class Method:
    """`kind`: of the items, as expressions call them. `key`: where an item's name is, in `params` of a call and in each
    item of a list. `field`: where a result has its list. `missing`: the error for an item that is not
    there, or not for it. `is_idempotent`: a server may get it twice."""

    form: str
    kind: str = ""
    key: str = ""
    field: str = ""
    missing: str = ""
    is_idempotent: bool = True


METHODS: Final[dict[str, Method]] = {
    "tools/list": Method(LIST, "tool", "name", "tools"),
    "tools/call": Method(ITEM, "tool", "name", missing="Unknown tool: ", is_idempotent=False),
    "prompts/list": Method(LIST, "prompt", "name", "prompts"),
    "prompts/get": Method(ITEM, "prompt", "name", missing="Unknown prompt: "),
    "resources/list": Method(LIST, "resource", "uri", "resources"),
    "resources/templates/list": Method(LIST, "resource", "uriTemplate", "resourceTemplates"),
    "resources/read": Method(ITEM, "resource", "uri", missing="Unknown resource: "),
    "resources/subscribe": Method(ITEM, "resource", "uri", missing="Unknown resource: "),
    "resources/unsubscribe": Method(ITEM, "resource", "uri", missing="Unknown resource: "),
    "completion/complete": Method(REFERENCE, missing="Unknown reference: "),
    "tasks/list": Method(LIST, "task", "taskId", "tasks"),
    "tasks/get": Method(ITEM, "task", "taskId", missing="Unknown task: "),
    "tasks/result": Method(ITEM, "task", "taskId", missing="Unknown task: "),
    "tasks/cancel": Method(ITEM, "task", "taskId", missing="Unknown task: "),
    "tasks/update": Method(ITEM, "task", "taskId", missing="Unknown task: ", is_idempotent=False),
    "ping": Method(ALL),
    "logging/setLevel": Method(ALL),
    "subscriptions/listen": Method(LISTEN),
}

OTHER: Final = Method("other", is_idempotent=False)
"""A method that this table does not know."""

REFERENCES: Final[dict[str, tuple[str, str]]] = {"ref/prompt": ("prompt", "name"), "ref/resource": ("resource", "uri")}
"""Type of a `ref` of completions to the kind of its item and where its name is."""


_HARMLESS: Final = frozenset({"", "initialize", "server/discover"})
""""": an answer of the client."""


def is_idempotent(method: str) -> bool:
    """Whether a server may get a message twice, as it may where its first try went out on a connection that the server
    had closed: everything but what acts, and what is not known here."""
    return method in _HARMLESS or method.startswith("notifications/") or METHODS.get(method, OTHER).is_idempotent
