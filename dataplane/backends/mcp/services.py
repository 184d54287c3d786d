"""What a worker keeps for MCP servers (`kinds.Services`): made for the first request that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.backends.mcp.legacy import peers
from dataplane.backends.mcp.legacy.holder import Holder
from dataplane.backends.mcp.memory_queue import MemoryQueue
from dataplane.credentials.sealing import Sealer
from dataplane.mcp.worker import Memory, Shared

if TYPE_CHECKING:
    from dataplane.backends.mcp.typing import McpWorker


class Services:
    """`typing.McpServices`."""

    __slots__ = ("answers", "holder", "memory", "sealer")

    def __init__(self, worker: McpWorker) -> None:
        self.sealer = Sealer(worker.session_key)
        known = Shared.local() if worker.common is None else Shared.of(worker.common, worker.index)
        self.memory = Memory(known, worker.deadlines.wake_at, not worker.shares_sessions)
        self.answers = MemoryQueue(worker)
        self.holder: Holder[Any, Any] = Holder(worker, worker.sockets, peers.serve, worker.shortages.filled)

    @property
    def sockets(self) -> int:
        return self.holder.sockets

    def close(self) -> None:
        self.holder.close()
