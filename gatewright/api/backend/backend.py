"""BackendWithAI and BackendFull: the larger sets of policies for connecting to a backend."""

from __future__ import annotations

from gatewright.api.backend.ai import BackendAI
from gatewright.api.backend.hash import BackendHash
from gatewright.api.backend.health import Health
from gatewright.api.backend.limits import BackendLimits
from gatewright.api.backend.mcp import BackendMCP
from gatewright.api.backend.simple import BackendSimple
from gatewright.api.traffic.ext_auth import ExtAuth
from gatewright.api.traffic.transformation import Transformation


class BackendWithAI(BackendSimple):
    """Policies for connecting to an LLM provider."""

    ai: BackendAI | None = None
    """What happens with requests to LLM providers."""
    transformation: Transformation | None = None
    """Headers, body and metadata computed by expressions."""
    health: Health | None = None
    """Which endpoints get no requests for a while."""
    limits: BackendLimits | None = None
    """How much is asked of the backend at a time. Gatewright extension."""


class BackendFull(BackendWithAI):
    """All policies for connecting to a backend."""

    hash: BackendHash | None = None
    """What decides which endpoint a request goes to. Gatewright extension."""
    mcp: BackendMCP | None = None
    """What happens with MCP calls."""
    ext_auth: ExtAuth | None = None
    """A server that decides about requests to this backend."""
