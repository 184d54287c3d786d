"""What policies change in bodies, as a value (`shaping` has the order). Light: any worker may have one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Message:
    """One that is added to each conversation. `role` in lower case."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Caching:
    """Points up to which prompts are to be cached (`cache_points`)."""

    system: bool = True
    messages: bool = True
    tools: bool = False
    min_tokens: int = 1024
    offset: int = 0
    """How far before the second to last message."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the policies for a provider come to, as far as they change bodies. Values are JSON."""

    overrides: tuple[tuple[str, bytes], ...] = ()
    defaults: tuple[tuple[str, bytes], ...] = ()
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    prepend: tuple[Message, ...] = ()
    append: tuple[Message, ...] = ()

    @property
    def is_plain(self) -> bool:
        """It changes nothing."""
        return not (self.overrides or self.defaults or self.aliases or self.prepend or self.append)


NO_SHAPE: Final = Shape()
