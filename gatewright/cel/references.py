"""What an expression reads: so that only that is prepared, and bodies are buffered only for who asks.

Reads a checked tree. Names of macros are not references.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.cel import tree
from gatewright.cel.environment import Access, Entry
from gatewright.turns import pause

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class References:
    """`attributes`: dotted paths, "request.method"; an entry "request.headers:x-foo"; "*" for `variables()`."""

    attributes: frozenset[str]

    def reads(self, path: str) -> bool:
        """Whether the value at `path`, or an object that contains it, or a part of it, is read."""
        return any(
            name in (EVERYTHING, path) or path.startswith(f"{name}.") or name.startswith((f"{path}.", f"{path}:"))
            for name in self.attributes
        )


def references(node: tree.Node) -> References:
    found: set[str] = set()
    waiting = [node]
    while waiting:
        pause()
        one = waiting.pop()
        if isinstance(one.resolved, Access):
            found.add(one.resolved.path)
            continue  # what it was selected from is not read itself
        if isinstance(one.resolved, Entry):
            found.add(f"{one.resolved.access.path}:{one.resolved.key}")
            continue
        if isinstance(one, tree.Call) and one.resolved and any(overload.contextual for overload in one.resolved):
            found.add(EVERYTHING)
        waiting.extend(children(one))
    return References(frozenset(found))


def children(node: tree.Node) -> list[tree.Node]:
    """The nodes directly under a node."""
    found: list[tree.Node] = []
    for name in node.fields:
        value = getattr(node, name)
        if isinstance(value, tree.Node):
            found.append(value)
        elif isinstance(value, list):
            found.extend(item for item in value if isinstance(item, tree.Node))
    return found
