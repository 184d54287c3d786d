"""Decides about a request: which counters it is charged to, and what is answered. Pure; the store counts in between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.ratelimit.limits import Entry, Found, Limit, Limits
from controlplane.ratelimit.store import Charge, Key, is_refused
from controlplane.ratelimit.windows import WINDOWS
from gatewright.wire.external.rate_limit_pb2 import RateLimitDescriptor, RateLimitRequest, RateLimitResponse

MOST_DESCRIPTORS: Final = 256
MOST_KEY: Final = 16_384
"""Characters of a counter's key."""
MOST_HITS: Final = 2**53
OVERRIDE: Final = "override"
"""In place of the path of a limit that came with the request."""


class BadRequest(ValueError):
    """What is wrong with a request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Of each descriptor the limit that counts for it, or None, and of those that are limited what is charged."""

    limits: Sequence[Limit | None]
    charges: Sequence[Charge]


def asked(request: RateLimitRequest, limits: Limits, now: float) -> Asked:
    """Raises `BadRequest`."""
    if not request.domain:
        raise BadRequest("domain: is empty")
    if not request.descriptors:
        raise BadRequest("descriptors: is empty")
    if len(request.descriptors) > MOST_DESCRIPTORS:
        raise BadRequest(f"descriptors: at most {MOST_DESCRIPTORS}")
    found = [_found(request.domain, each, limits) for each in request.descriptors]
    replaced = {name for each in found if each is not None for name in each.limit.replaces}
    counted = [None if each is None or each.limit.name in replaced else each for each in found]
    charges = [
        _charge(request, descriptor, each, now)
        for descriptor, each in zip(request.descriptors, counted, strict=True)
        if each is not None and not each.limit.is_unlimited
    ]
    return Asked([None if each is None else each.limit for each in counted], charges)


def _found(domain: str, descriptor: RateLimitDescriptor, limits: Limits) -> Found | None:
    entries: tuple[Entry, ...] = tuple((each.key, each.value) for each in descriptor.entries)
    if not entries:
        raise BadRequest("descriptors: one without entries")
    if not descriptor.HasField("limit"):
        return limits.find(domain, entries)
    unit = int(descriptor.limit.unit)
    if unit not in WINDOWS:
        raise BadRequest(f"descriptors: a limit of the unit {unit}")
    return Found(Limit(descriptor.limit.requests_per_unit, unit), entries)


def _charge(request: RateLimitRequest, descriptor: RateLimitDescriptor, found: Found, now: float) -> Charge:
    own = descriptor.HasField("hits_addend")
    hits = descriptor.hits_addend.value if own else max(1, request.hits_addend)
    key = Key(request.domain, json.dumps(found.entries, ensure_ascii=False, separators=(",", ":")), found.limit.unit)
    if len(key.entries) > MOST_KEY:
        raise BadRequest(f"descriptors: entries of more than {MOST_KEY} characters")
    limit = found.limit
    return Charge(key, WINDOWS[limit.unit](now), min(hits, MOST_HITS), limit.per_unit, not limit.is_shadow)


def answered(found: Asked, before: Sequence[int], if_admitted: bool, now: float) -> RateLimitResponse:
    """`before`: what the counters of `found.charges` held."""
    refused = is_refused(found.charges, before)
    answer = RateLimitResponse(overall_code=RateLimitResponse.OVER_LIMIT if refused else RateLimitResponse.OK)
    counters = iter(zip(found.charges, before, strict=True))
    for limit in found.limits:
        status = answer.statuses.add(code=RateLimitResponse.OK)
        if limit is None:
            continue
        if limit.is_unlimited:
            status.limit_remaining = 2**32 - 1
            continue
        charge, used = next(counters)
        _say(status, limit, charge, used, is_charged=not (refused and if_admitted), now=now)
    return answer


def _say(
    status: RateLimitResponse.DescriptorStatus, limit: Limit, charge: Charge, used: int, *, is_charged: bool, now: float
) -> None:
    if charge.is_over(used) and charge.refuses:
        status.code = RateLimitResponse.OVER_LIMIT
    status.current_limit.requests_per_unit = limit.per_unit
    status.current_limit.unit = limit.unit  # type: ignore[assignment]  # a number of the same enum
    status.current_limit.name = limit.name
    status.limit_remaining = max(0, limit.per_unit - used - (charge.hits if is_charged else 0))
    status.duration_until_reset.seconds = max(1, charge.window.end - int(now))
