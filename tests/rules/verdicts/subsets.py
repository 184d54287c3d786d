"""Verdicts on the three sets of policies for connecting to a backend (2-policies, BackendFull)."""

from __future__ import annotations

from tests.rules.verdicts.ai_policies import AI
from tests.rules.verdicts.backend_policies import HASH, HEALTH, LIMITS_OF_BACKENDS, SIMPLE, SIMPLE_FIELDS
from tests.rules.verdicts.common import P, X
from tests.rules.verdicts.external import EXT_AUTH
from tests.rules.verdicts.mcp_policies import MCP
from tests.rules.verdicts.table import shape
from tests.rules.verdicts.transformation import TRANSFORMATION
from tests.rules.verdicts.words import (
    nested,
    unknown,
)

_SUBSETS = P + "`BackendSimple` (`tcp`, `tls`, `http`, `tunnel`, `auth` only)"
_WITHOUT = P + "`BackendWithAI` (without `mcp`, `extAuth`)"
_FURTHER = (
    nested("transformation", TRANSFORMATION, P + "| transformation | Transformation | request and response mutation |"),
    nested("health", HEALTH, P + "| health | Health | passive and active health checking |"),
    nested("limits", LIMITS_OF_BACKENDS, X + "how much a backend is asked"),
)
_AI = nested("ai", AI, P + "| ai | BackendAI | only for backends of type `ai` |")
_MCP = nested("mcp", MCP, P + "| mcp | BackendMCP | only for backends of type `mcp` |")
_HASH = nested("hash", HASH, X + "requests with the same key go to the same endpoint")
_EXT_AUTH = nested("extAuth", EXT_AUTH, P + "| extAuth | ExtAuth | external authentication for requests sent to this")

WITH_AI = shape(
    {},
    *SIMPLE_FIELDS,
    _AI,
    *_FURTHER,
    unknown("mcp", {}, _WITHOUT),
    unknown("extAuth", EXT_AUTH.least, _WITHOUT),
)
"""BackendWithAI."""

ANY_BACKEND = shape({}, *SIMPLE_FIELDS, *_FURTHER, _HASH, _EXT_AUTH, unknown("retry", {}, _SUBSETS))
"""BackendFull without what needs a backend of a certain type."""

AI_ONLY = shape({}, _AI)
MCP_ONLY = shape({}, _MCP)

FULL = shape({}, *SIMPLE_FIELDS, _AI, _MCP, *_FURTHER, _HASH, _EXT_AUTH, unknown("retry", {}, _SUBSETS))
"""BackendFull."""

__all__ = ["AI_ONLY", "ANY_BACKEND", "FULL", "MCP_ONLY", "SIMPLE", "WITH_AI"]
