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

_SAME = "same"

_MANY = ("mirrors",)
"""Plan fields that take a value of each policy; of the others the last written holds."""

_Written = tuple[int, bytes, Row, Message]
"""A policy: its place in the registry, its bytes, its row and itself."""


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
        self._forgotten = self._forget  # one bound method for all, instead of one for each chain

    def row(self, policy: policy_pb2.Policy) -> tuple[int, Row]:
        """Place and row of a policy. Raises `Refused` when this proxy does not know it."""
        name = policy.WhichOneof("field")
        if name is None:
            raise Refused("a policy that this proxy does not know")
        found = self.rows.get(name)
        if found is None:
            raise Refused(f"policy {name} is not supported yet")
        return found

    def policies(self, policies: Iterable[policy_pb2.Policy]) -> tuple[Chain, dict[str, Any]]:
        """The steps of these policies in order of the registry, and the settings among them as values of plan fields.

        Raises `Refused`.
        """
        steps: list[_Written] = []
        settings: list[_Written] = []
        rows = self.rows
        for policy in policies:
            index, row = rows.get(policy.WhichOneof("field")) or self.row(policy)
            config = getattr(policy, row.name)
            written = index, config.SerializeToString(deterministic=True), row, config
            (settings if row.kind == SETTING else steps).append(written)
        chain = self._chain(steps) if steps else EMPTY
        return chain, self._settings(settings) if settings else {}

    def _chain(self, steps: list[_Written]) -> Chain:
        if len(steps) == 1:
            key = digest(_delimited(steps[0]))
        else:
            steps.sort(key=_place)  # stable: equal policies stay as written
            key = digest(b"".join(map(_delimited, steps)))
        known = self._chains.get(key)
        chain = None if known is None else known()
        if chain is None:
            built: list[Filter | None] = [build(row, config, self.env) for _, _, row, config in steps]
            chain = Chain([step for step in built if step is not None])
            known = self._chains[key] = _Known(chain, self._forgotten)
            known.key = key
        return chain

    def _settings(self, settings: list[_Written]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for index, raw, row, config in settings:
            value = self.kept((index, raw))
            if value is None:
                value = self.keep((index, raw), build(row, config, self.env))
            if row.plan_field in _MANY:
                value = self.same((*values.get(row.plan_field, ()), value))
            values[row.plan_field] = value
        return values

    def _forget(self, known: _Known) -> None:
        if self._chains.get(known.key) is known:
            del self._chains[known.key]

    def kept(self, key: object) -> Any:
        """What was made of this key, or None."""
        return self._values.get(key)

    def keep(self, key: object, value: T) -> T:
        """Remember a value that is made of its key, constant, and small."""
        if len(self._values) >= LIMIT:
            self._values.clear()
        self._values[key] = value
        return value

    def same(self, value: T) -> T:
        """A value equal to this one, the first that was seen. It must be hashable and constant."""
        known: T | None = self.kept((_SAME, value))
        return self.keep((_SAME, value), value) if known is None else known

    def __len__(self) -> int:
        """Chains that a plan holds."""
        return len(self._chains)

    def __repr__(self) -> str:
        return f"Interns({len(self._chains)} chains, {len(self._values)} values)"


def build(row: Row, config: Message, env: Env) -> Any:
    """What the builder of a row makes of a policy: a filter or None, of a setting its value. Raises `Refused`.

    A builder with a bug must cost the proxy one policy, not the process: that is refused as well, and logged in full.
    """
    try:
        return row.build(config, env)
    except Refused as error:
        raise Refused(f"{row.name}: {error}") from None
    except Exception as error:
        log.exception("building %s failed", row.name)
        raise Refused(f"{row.name}: internal error: {error!r}") from error


def _place(step: _Written) -> int:
    return step[0]


def _delimited(step: _Written) -> bytes:
    return b"%d %d %b" % (step[0], len(step[1]), step[1])
