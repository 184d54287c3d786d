"""What proxies answered, as facts with an origin, which controllers that serve the same Gateways share. Pure.

Each controller ("origin") gives out the answers of the proxies that are connected to it, as a change feed
(`derive.feed` has the laws), and takes those of the others. The laws in addition:

1. *An answer names a state by its version*, which is a hash of its content and so the same on every controller.
   Sequences count the states of one controller and never leave it.
2. *A fact is about a connected proxy.* When the proxy leaves, its fact goes. One that moves to another controller may
   have two for a moment; who has it connected himself is right.
3. *Missing is not none.* From `expect` on until the first batch of an origin (its whole feed, also when it is empty)
   its facts are missing, and again after it was lost. While any are missing it is unknown whether all proxies have
   answered: what was said last stays (`FleetView.complete`). `forget` ends it: the origin is no more, and neither are
   its proxies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.answers.nacks import NONE, Refusal
from controlplane.derive import Change


class AnswerKey(NamedTuple):
    """A proxy connected to one of the controllers."""

    origin: str
    gateway: str
    instance: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a proxy answered last."""

    version: str = field(repr=False)  # of a state with secrets: depends on them
    """Of the state that it has applied, be it without what it refuses; "" while it has answered nothing."""
    refusals: Mapping[str, Refusal] = field(default_factory=lambda: NONE)
    """What it refuses, by resource; "" for a state as a whole."""


class Elsewhere:
    """The answers that other controllers gave out."""

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, dict[AnswerKey, Answer]]] = {}
        """By origin and Gateway."""
        self._missing: set[str] = set()

    @property
    def complete(self) -> bool:
        """Whether everything is known that should be."""
        return not self._missing

    def expect(self, origin: str) -> None:
        """There is another controller, of which nothing is known yet, or nothing any more: it was lost, and will give
        its whole feed again."""
        self._missing.add(origin)

    def hear(self, origin: str, changes: Sequence[Change[AnswerKey, Answer]]) -> set[str]:
        """Take a batch of an origin's feed; the first one after `expect` is the whole. Gives the Gateways concerned.

        What an origin says of others is ignored: a controller reports its own proxies alone.
        """
        own = [change for change in changes if change.key.origin == origin]
        concerned = {change.key.gateway for change in own}
        known = self._facts.setdefault(origin, {})
        if origin in self._missing:
            concerned |= known.keys()
            known.clear()
            self._missing.discard(origin)
        for key, _, new in own:
            if new is not None:
                known.setdefault(key.gateway, {})[key] = new
            elif key.gateway in known:
                known[key.gateway].pop(key, None)
        return concerned

    def forget(self, origin: str) -> set[str]:
        """The origin is no more. Gives the Gateways concerned."""
        self._missing.discard(origin)
        return {*self._facts.pop(origin, {})}

    def gateways(self) -> set[str]:
        """The Gateways of which facts are known."""
        return {gateway for facts in self._facts.values() for gateway, found in facts.items() if found}

    def of(self, gateway: str) -> Iterator[tuple[AnswerKey, Answer]]:
        """The facts about proxies of one Gateway."""
        for origin in sorted(self._facts):
            yield from self._facts[origin].get(gateway, {}).items()
