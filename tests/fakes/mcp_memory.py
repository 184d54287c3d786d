"""Memory for answers of MCP servers that does not end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataplane.backends.mcp.memory_queue import Claim, MemoryQueue
from dataplane.link.pools import BodyMemory


def boundless() -> MemoryQueue:
    shortages = SimpleNamespace(filled=None)
    worker: Any = SimpleNamespace(body_memory=BodyMemory(1 << 40), shortages=shortages)
    return MemoryQueue(worker)


def claim() -> Claim:
    return Claim(boundless(), lambda size: True, "192.0.2.1")
