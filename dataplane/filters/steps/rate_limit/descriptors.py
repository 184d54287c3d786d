"""What a rate limit service counts a request by: descriptors, made of expressions.

One of which an expression fails is dropped: the service is not asked about it. What it costs is known with the request,
or (unit Tokens) at its end; until then such a descriptor asks whether anything is left.
"""

from __future__ import annotations

import math
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.filter import Refused
from dataplane.filters.steps.rate_limit.local import tokens_used
from gatewright.cel.errors import CelError
from gatewright.cel.values import NONE, Optional, Redacted
from gatewright.wire.external import rate_limit_pb2 as pb
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

MOST: Final = 1024
"""Bytes of a value that is sent as it is: of a longer one its digest, which is as distinct."""
MOST_PER_UNIT: Final = 2**32 - 1
MOST_HITS: Final = 2**53
"""Of larger numbers a double cannot hold each."""

UNITS: Final = {
    traffic_pb2.CALENDAR_UNIT_SECONDS: pb.SECOND,
    traffic_pb2.CALENDAR_UNIT_MINUTES: pb.MINUTE,
    traffic_pb2.CALENDAR_UNIT_HOURS: pb.HOUR,
    traffic_pb2.CALENDAR_UNIT_DAYS: pb.DAY,
    traffic_pb2.CALENDAR_UNIT_MONTHS: pb.MONTH,
    traffic_pb2.CALENDAR_UNIT_YEARS: pb.YEAR,
}


class Dropped(Exception):
    """An expression of the descriptor has no value that counts."""


class Descriptor:
    """One of a policy. Raises `Refused` for expressions that cannot be."""

    __slots__ = ("_cost", "_entries", "_override", "_unit", "at_end", "programs")

    def __init__(self, config: traffic_pb2.RateLimitDescriptor, where: str) -> None:
        if not config.entries:
            raise Refused(f"{where}.entries: is empty")
        self._entries: list[tuple[str, Program]] = [
            (each.name, expressions.compiled(each.expression, "request", f"{where}.entries[{i}].expression"))
            for i, each in enumerate(config.entries)
        ]
        self.at_end = config.unit == traffic_pb2.COUNTED_UNIT_TOKENS
        """Whether its cost is known at the end of a request."""
        self._cost = (
            expressions.compiled(config.cost, "end" if self.at_end else "request", f"{where}.cost")
            if config.cost
            else None
        )
        self._override: Program | None = None
        if config.HasField("limit_override"):
            override = config.limit_override
            if override.unit not in UNITS:
                raise Refused(f"{where}.limitOverride.unit: {override.unit} is not known to this proxy")
            text = override.requests_per_unit
            self._override = expressions.compiled(text, "request", f"{where}.limitOverride.requestsPerUnit")
            self._unit = UNITS[override.unit]
        early = None if self.at_end else self._cost
        self.programs: list[Program] = [program for _, program in self._entries]
        """What is evaluated with the request."""
        self.programs += (each for each in (self._override, early) if each is not None)

    def of(self, x: Exchange) -> pb.RateLimitDescriptor:
        """As the service is asked with the request. Raises `Dropped`."""
        found = pb.RateLimitDescriptor()
        for name, program in self._entries:
            found.entries.add(key=name, value=_text(_value(program, x)))
        if self._override is not None:
            found.limit.requests_per_unit = min(max(0, math.floor(_number(self._override, x))), MOST_PER_UNIT)
            found.limit.unit = self._unit
        if self.at_end:
            found.hits_addend.value = 0
        elif self._cost is not None:
            found.hits_addend.value = _hits(_number(self._cost, x))
        return found

    def cost(self, x: Exchange) -> int:
        """What the request came to, at its end: the tokens, or the value of the expression. Raises `Dropped`."""
        return tokens_used(x) if self._cost is None else _hits(_number(self._cost, x))


def _value(program: Program, x: Exchange) -> Any:  # Any: a value of the language
    try:
        value = program.evaluate(x)
    except CelError:
        raise Dropped from None
    if type(value) is not Optional:
        return value
    if value is NONE:
        raise Dropped
    return value.value


def _text(value: Any) -> str:
    """Of a secret its digest is sent: the service need not know them, and keeps what it counts by."""
    secret = type(value) is Redacted
    found = expressions.header_value(value.unredacted() if secret else value)
    if found is None:
        raise Dropped
    if secret or len(found) > MOST:
        return f"sha256:{sha256(found).hexdigest()}"
    return found.decode("utf-8", "replace")


def _number(program: Program, x: Exchange) -> float:
    value = _value(program, x)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Dropped
    return value


def _hits(cost: float) -> int:
    """Parts of one count as one."""
    if cost < 0:
        raise Dropped
    return min(math.ceil(cost), MOST_HITS)
