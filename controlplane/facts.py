"""What a source says of one object: a fact, with what was written of its status before and where it comes from.

Made by sources (`controlplane.sources`), taken by `pipeline` and `translate.program`. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from gatewright.api.schema.metadata import KubeObject, ObjectKey

MOST_REASONS: Final = 8
"""That one message names; the list of problems of a source has all."""
LONGEST_MESSAGE: Final = 4096
"""Characters of a message: the API server takes 32,768, more than anyone reads."""


class Origin(NamedTuple):
    """Where a fact comes from: which source, and which place of it (a file; "" where the source has no places)."""

    source: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Previous:
    """The status that an object has where it comes from, written by us or by others, and the version of the object
    that it was read at."""

    status: Mapping[str, Any]  # Any: the JSON of a Kubernetes status
    resource_version: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """In place of a model: the object is there and cannot be read.

    `last_good` goes on acting, while a source remembers it. Where there is none, `rest` is what can be read all the
    same: whose route or policy it is, so that its status has a place, and of a GatewayPolicy which security policies
    refuse.
    """

    reasons: tuple[str, ...]
    generation: int
    last_good: KubeObject | None = None
    rest: KubeObject | None = None

    @property
    def message(self) -> str:
        """All reasons, as far as a message should hold them."""
        more = "; the last valid version acts on" if self.last_good is not None else ""
        return f"not valid: {bounded(self.reasons)}{more}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One object as it is now.

    Facts are equal when they mean the same: what was written before and where an object comes from are no part of
    that, so that a new status alone changes nothing.
    """

    key: ObjectKey
    model: KubeObject | Invalid | None
    """None: the object is gone."""
    previous: Previous | None = field(default=None, compare=False)
    """None: the source keeps no status."""
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def acts(self) -> KubeObject | None:
        """The model that counts: the object's own, or what is left of an invalid one."""
        if isinstance(self.model, Invalid):
            return self.model.last_good or self.model.rest
        return self.model

    @property
    def invalid(self) -> Invalid | None:
        return self.model if isinstance(self.model, Invalid) else None


def fact_of(model: KubeObject) -> Fact:
    """The fact of a valid object that has no status yet."""
    return Fact(model.key, model)


def gone(key: ObjectKey) -> Fact:
    """The fact that an object is gone."""
    return Fact(key, None)


def bounded(reasons: Sequence[str]) -> str:
    """Several reasons as one text, as far as a message should hold them."""
    over = len(reasons) - MOST_REASONS
    text = "; ".join(reasons[:MOST_REASONS]) + (f"; and {over} more" if over > 0 else "")
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
