"""One object for equal settings: routes with equal policies share a chain, those with equal backends their targets.

Chains are forgotten with the last plan that holds one. The small constant values are kept up to a limit and then
forgotten together: sharing saves memory, nothing depends on it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, TypeVar
from weakref import ref

from google.protobuf.message import Message

from dataplane.chain.chain import EMPTY, Chain
from dataplane.chain.filter import SETTING, Env, Filter, Refused, Row
from dataplane.table.parted import PartedDict
from dataplane.table.store import digest
from gatewright.wire.v1 import policy_pb2

log = logging.getLogger("dataplane.table")

T = TypeVar("T")

LIMIT = 8192
"""Constant values kept."""


class _Known(ref[Chain]):
    """A chain by a digest of the bytes that it was made of, as long as a plan holds it."""

    __slots__ = ("key",)
    key: bytes


class Interns:
    def __init__(self, rows: Iterable[Row], env: Env) -> None:
        self.rows = {row.name: (index, row) for index, row in enumerate(rows)}
        self.env = env
        self._chains: PartedDict[bytes, _Known] = PartedDict()
        self._values: dict[object, object] = {}

    def row(self, policy: policy_pb2.Policy) -> tuple[int, Row]:
        """Place and row of a policy. Raises `Refused` when this proxy does not know it."""
        name = policy.WhichOneof("field")
        if name is None:
            raise Refused("a policy that this proxy does not know")
        found = self.rows.get(name)
        if found is None:
            raise Refused(f"policy {name} is not supported yet")
        return found

    def chain(self, policies: Iterable[policy_pb2.Policy]) -> Chain:
        """The steps of these policies in order of the registry; settings are passed over. Raises `Refused`."""
        steps = []
        for policy in policies:
            index, row = self.row(policy)
            if row.kind != SETTING:
                steps.append((index, row, policy))
        if not steps:
            return EMPTY
        steps.sort(key=lambda step: step[0])  # stable: equal policies stay as written
        key = digest(b"".join(_delimited(index, _bytes(getattr(policy, row.name))) for index, row, policy in steps))
        known = self._chains.get(key)
        chain = None if known is None else known()
        if chain is None:
            built: list[Filter | None] = [build(row, policy, self.env) for _, row, policy in steps]
            chain = Chain(step for step in built if step is not None)
            known = self._chains[key] = _Known(chain, self._forget)
            known.key = key
        return chain

    def _forget(self, known: _Known) -> None:
        if self._chains.get(known.key) is known:
            del self._chains[known.key]

    def same(self, value: T) -> T:
        """A value equal to this one, the first that was seen. It must be hashable and constant."""
        values = self._values
        if len(values) >= LIMIT:
            values.clear()
        return values.setdefault(value, value)  # type: ignore[return-value]

    def __len__(self) -> int:
        """Chains that a plan holds."""
        return len(self._chains)

    def __repr__(self) -> str:
        return f"Interns({len(self._chains)} chains, {len(self._values)} values)"


def build(row: Row, policy: policy_pb2.Policy, env: Env) -> Any:
    """What the builder of a row makes of a policy: a filter or None, of a setting its value. Raises `Refused`.

    A builder with a bug must cost the proxy one policy, not the process: that is refused as well, and logged in full.
    """
    try:
        return row.build(getattr(policy, row.name), env)
    except Refused as error:
        raise Refused(f"{row.name}: {error}") from None
    except Exception as error:
        log.exception("building %s failed", row.name)
        raise Refused(f"{row.name}: internal error: {error!r}") from error


def _delimited(index: int, config: bytes) -> bytes:
    return b"%d %d " % (index, len(config)) + config


def _bytes(config: Message) -> bytes:
    return config.SerializeToString(deterministic=True)
