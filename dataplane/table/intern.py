"""One object for equal settings: routes with equal policies share a chain, those with equal backends their targets.

Chains are forgotten with the last plan that holds one. The small constant values are kept up to a limit and then
forgotten together: sharing saves memory, nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from weakref import WeakValueDictionary

from dataplane.chain.chain import EMPTY, Chain
from dataplane.chain.filter import SETTING, Env, Filter, Refused, Row
from gatewright.wire.v1 import policy_pb2

T = TypeVar("T")

LIMIT = 8192
"""Constant values kept."""


class Interns:
    def __init__(self, rows: Iterable[Row], env: Env) -> None:
        self.rows = {row.name: (index, row) for index, row in enumerate(rows)}
        self.env = env
        self._chains: WeakValueDictionary[tuple[tuple[int, bytes], ...], Chain] = WeakValueDictionary()
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
                steps.append((index, row, getattr(policy, row.name)))
        if not steps:
            return EMPTY
        steps.sort(key=lambda step: step[0])  # stable: equal policies stay as written
        key = tuple((index, config.SerializeToString(deterministic=True)) for index, _, config in steps)
        chain = self._chains.get(key)
        if chain is None:
            built = [_build(row, config, self.env) for _, row, config in steps]
            chain = self._chains[key] = Chain(step for step in built if step is not None)
        return chain

    def same(self, value: T) -> T:
        """A value equal to this one, the first that was seen. It must be hashable and constant."""
        values = self._values
        if len(values) >= LIMIT:
            values.clear()
        return values.setdefault(value, value)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Interns({len(self._chains)} chains, {len(self._values)} values)"


def _build(row: Row, config: object, env: Env) -> Filter | None:
    build: Callable[[object, Env], Filter | None] = row.build
    try:
        return build(config, env)
    except Refused as error:
        raise Refused(f"{row.name}: {error}") from None
