"""Where objects are on an API server. Pure."""

from __future__ import annotations

from typing import Final, Protocol
from urllib.parse import quote

from gatewright.api.schema.metadata import ObjectKey


class Kind(Protocol):
    """`KindInfo`, or what is like it."""

    @property
    def kind(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def versions(self) -> tuple[str, ...]: ...
    @property
    def plural(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...


CORE: Final = "/api"
"""Which versions of the core there are: what every API server answers to everybody who is known to it."""


def of_kind(info: Kind, version: str, namespace: str = "") -> str:
    """All objects of a kind, in one namespace or (of "") everywhere."""
    base = f"/apis/{info.group}/{version}" if info.group else f"/api/{version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{base}{inside}/{info.plural}"


def of_object(info: Kind, version: str, key: ObjectKey) -> str:
    """One object."""
    return f"{of_kind(info, version, key.namespace if info.namespaced else '')}/{quote(key.name, safe='')}"
