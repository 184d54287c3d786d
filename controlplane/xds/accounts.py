"""How much all streams together make the server keep, and of whom it is. Pure; the server and its sessions ask.

- Each stream says what it weighs (`stream.Stream.weight`): about the bytes that it makes us keep, as long as it does.
- It counts for its Gateway. Over TCP, where it is not checked whose it is (no token, no certificate, or one for all
  Gateways), it counts for its host as well: who may name any Gateway could else fill the account of each.
- An account has so many streams and bytes; a stream beyond that is ended with RESOURCE_EXHAUSTED, and no other
  stream is.
- A stream whose first request did not come yet counts for its host, which may have few of those at a time. When all
  hosts together have too many, the oldest of the host that has most makes room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from controlplane.xds.node import Exhausted, Peer

MOST_STREAMS: Final = 2000
"""Of one Gateway, or of one host of unknown peers."""
MOST_BYTES: Final = 64 << 20
"""The same of what they make us keep."""
MOST_OF_ALL: Final = 256 << 20
"""Bytes of all Gateways together."""
MOST_OPENING: Final = 256
"""Streams that have not said yet which Gateway's they are. Each may have a message under way."""
MOST_OPENING_OF_HOST: Final = 64


class _Account:
    __slots__ = ("streams", "weight")

    def __init__(self) -> None:
        self.streams = self.weight = 0


class Accounts:
    """Of one server."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self.weight = 0
        """Bytes of all streams."""

    def open(self, *owners: str) -> Charge:
        """A stream of these. Raises Exhausted."""
        for owner in owners:
            account = self._accounts.get(owner)
            if account is not None and account.streams >= MOST_STREAMS:
                raise Exhausted(f"{owner} has {MOST_STREAMS} streams already, as many as one may have")
        found = [self._accounts.setdefault(owner, _Account()) for owner in owners]
        for account in found:
            account.streams += 1
        return Charge(self, dict(zip(owners, found, strict=True)))

    def drop(self, owner: str, account: _Account) -> None:
        """A stream of this owner has ended."""
        account.streams -= 1
        if not account.streams:
            del self._accounts[owner]

    def __repr__(self) -> str:
        return f"<Accounts of {len(self._accounts)}, {self.weight} bytes>"


class Charge:
    """What one stream weighs in its accounts."""

    __slots__ = ("_accounts", "_all", "_weight")

    def __init__(self, all_of_them: Accounts, accounts: dict[str, _Account]) -> None:
        self._all, self._accounts = all_of_them, accounts
        self._weight = 0

    def weigh(self, weight: int) -> None:
        """From now on the stream weighs this. Raises Exhausted; then it weighs it all the same, until `end`."""
        more, self._weight = weight - self._weight, weight
        if not more:
            return
        self._all.weight += more
        for account in self._accounts.values():
            account.weight += more
        if more > 0:
            self._check()

    def _check(self) -> None:
        for owner, account in self._accounts.items():
            if account.weight > MOST_BYTES:
                raise Exhausted(
                    f"the streams of {owner} make this control plane keep more than {MOST_BYTES} bytes together"
                )
        if self._all.weight > MOST_OF_ALL:
            raise Exhausted(f"all streams make this control plane keep more than {MOST_OF_ALL} bytes together")

    def end(self) -> None:
        """The stream is over. May be called again."""
        self._all.weight -= self._weight
        for owner, account in self._accounts.items():
            account.weight -= self._weight
            self._all.drop(owner, account)
        self._accounts, self._weight = {}, 0


class Opening:
    """Streams that have not said yet whose they are."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[Callable[[], None], None]] = defaultdict(dict)
        self._count = 0

    def enter(self, host: str, give_up: Callable[[], None]) -> None:
        """One more; `give_up` ends it when it has to make room, and is its name for `leave`. Raises Exhausted."""
        if len(self._hosts.get(host, ())) >= MOST_OPENING_OF_HOST:
            raise Exhausted(
                f"{host} has {MOST_OPENING_OF_HOST} streams without a first request, as many as one may have"
            )
        if self._count >= MOST_OPENING:
            most = max(self._hosts, key=lambda each: len(self._hosts[each]))
            oldest = next(iter(self._hosts[most]))
            oldest()
            self.leave(most, oldest)
        self._hosts[host][give_up] = None
        self._count += 1

    def leave(self, host: str, give_up: Callable[[], None]) -> None:
        """Its first request came, or it ended. May be called again."""
        there = self._hosts.get(host, {})
        if give_up in there:
            del there[give_up]
            self._count -= 1
        if not there:
            self._hosts.pop(host, None)

    def __len__(self) -> int:
        return self._count


def host(peer: Peer) -> str:
    """Where a peer is, without its port: "unix:" for all on this machine."""
    return "unix:" if peer.local else peer.address.rpartition(":")[0]
