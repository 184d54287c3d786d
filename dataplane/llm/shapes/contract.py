"""What a shape is: requests of a format, made for an API that does the same in another way, and their answers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.body import Body
    from dataplane.llm.providers import Provider


class Converted(NamedTuple):
    """A request in another API that does the same as a format. `read`: its answer as the format has it; raises
    `contract.Unreadable`. `dropped`: fields that it leaves out."""

    body: bytes
    read: Callable[[bytes, Head], bytes]
    dropped: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """What a request is made for. `drops`: fields that cannot be said are left out, else they are refused."""

    provider: Provider
    model: str
    drops: bool


Shape: TypeAlias = "Callable[[Body, Wanted], Converted]"
"""Makes one of a body of the format. Raises `Malformed`, also for what cannot be said."""
