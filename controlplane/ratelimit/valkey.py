"""The store on Valkey or Redis: for several servers that count together. A decision is one script, which is atomic.

A counter is a hash with what was used and the limit, and expires with its window. All counters of a domain have one
hash tag, so that a cluster keeps them on one node, as a script needs it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from controlplane.ratelimit.resp import Address, Answer, Connection, Refused, Unavailable
from controlplane.ratelimit.store import Budget, Charge, Key, StoreFailed
from controlplane.ratelimit.windows import Window

PREFIX: Final = "gatewright:ratelimit:"
PAGE: Final = 500
MOST_PAGES: Final = 10_000
"""That one look at budgets reads: the store may be full of keys of others."""

SCRIPT: Final = """\
local before, held, over = {}, {}, false
for i, key in ipairs(KEYS) do
  local used = held[key] or tonumber(redis.call('HGET', key, 'used') or '0')
  local hits, limit = tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1])
  before[i] = used
  held[key] = used + hits
  if ARGV[4 * i] == '1' and used + math.max(hits, 1) > limit then over = true end
end
if ARGV[1] == '1' and over then return before end
for i, key in ipairs(KEYS) do
  if held[key] < 2^62 then redis.call('HINCRBY', key, 'used', ARGV[4 * i - 2]) end
  redis.call('HSET', key, 'limit', ARGV[4 * i - 1])
  redis.call('EXPIREAT', key, ARGV[4 * i + 1])
end
return before
"""
_DIGEST: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class ValkeyStore:
    def __init__(self, where: Address, now: Callable[[], float] = time.time) -> None:
        self._connection = Connection(where)
        self._now = now

    async def take(self, charges: Sequence[Charge], if_admitted: bool) -> Sequence[int]:
        arguments: list[str | int] = [int(if_admitted)]
        for each in charges:
            arguments += (each.hits, each.limit, int(each.refuses), each.window.end)
        words = (len(charges), *map(_name, charges), *arguments)
        try:
            try:
                found = await self._connection.ask("EVALSHA", _DIGEST, *words)
            except Refused as error:
                if not str(error).startswith("NOSCRIPT"):
                    raise
                found = await self._connection.ask("EVAL", SCRIPT, *words)
        except (Unavailable, Refused) as error:
            raise StoreFailed(f"the store gives no answer: {error}") from None
        if not (isinstance(found, list) and len(found) == len(charges) and all(type(each) is int for each in found)):
            raise StoreFailed("the store answers what is no answer")
        return found

    async def budgets(self, most: int) -> Sequence[Budget]:
        found: list[Budget] = []
        cursor: Answer = b"0"
        try:
            for _ in range(MOST_PAGES):
                cursor, names = await self._connection.ask("SCAN", cursor, "MATCH", f"{PREFIX}*", "COUNT", PAGE)
                for name in names[: most - len(found)]:
                    used, limit = await self._connection.ask("HMGET", name, "used", "limit")
                    if used is not None:
                        found.append(_budget(name.decode(), int(used), int(limit)))
                if cursor == b"0" or len(found) >= most:
                    break
            else:
                raise StoreFailed(f"the store has more than {MOST_PAGES} pages of keys")
        except (Unavailable, Refused, AttributeError, TypeError, ValueError) as error:
            raise StoreFailed(f"the store gives no answer: {error}") from None
        now = self._now()
        return sorted(each for each in found if each.window.end > now)

    async def close(self) -> None:
        await self._connection.close()


def _name(charge: Charge) -> str:
    """A `}` of a domain is escaped, so that the hash tag is all of it."""
    key, window = charge.key, charge.window
    return f"{PREFIX}{{{quote(key.domain, safe='')}}}:{key.unit}:{window.start}:{window.end}:{key.entries}"


def _budget(name: str, used: int, limit: int) -> Budget:
    domain, _, rest = name.removeprefix(f"{PREFIX}{{").partition("}:")
    unit, start, end, entries = rest.split(":", 3)
    return Budget(Key(unquote(domain), entries, int(unit)), Window(int(start), int(end)), used, limit)
