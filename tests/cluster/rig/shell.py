"""Commands of the system, from asyncio, and the times of Kubernetes."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

log = logging.getLogger("rig")

NODE = "rig"
NODE_ADDRESS = "10.244.0.1"
PODS = "10.244.0.0/16"
BRIDGE = "cni0"


async def sh(script: str) -> bool:
    """Whether every command succeeded; what failed is in the log."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-ec", script, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await process.communicate()
    if process.returncode:
        log.warning("failed: %s: %s", script, complaint.decode(errors="replace").strip())
    return not process.returncode


def stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
