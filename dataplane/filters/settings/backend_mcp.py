"""What happens with MCP calls (`backend.mcp`): rules about tools, prompts and resources, guardrails, tokens.

A value of plans: the kind of backend (`backends/mcp`) acts on it. Of other backends it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from dataplane.chain import rules
from dataplane.chain.filter import Env, Refused
from dataplane.mcp.policies import McpPolicies, McpPolicy
from gatewright.wire.v1 import mcp_pb2

SHORTEST = 0.1
"""Seconds between two signs of life on a stream."""
OWN = "policies of the route or backend itself"


def build(config: mcp_pb2.BackendMcp, env: Env) -> McpPolicy:
    """Raises `Refused` for a rule that cannot work."""
    guardrails = None
    if config.HasField("guardrails"):
        from dataplane.mcp.guardrail_calls import Guardrails  # with protobuf's JSON: not where there are none

        guardrails = Guardrails(config.guardrails, env)
    authentication = None
    if config.HasField("authentication"):
        from dataplane.credentials.mcp_authentication import McpAuthentication  # as above

        authentication = McpAuthentication(config.authentication, env)
    keep_alive = None
    if config.HasField("keep_alive_ms"):
        keep_alive = max(SHORTEST, config.keep_alive_ms / 1000)
    if not config.HasField("authorization"):
        return McpPolicy((), guardrails, authentication, keep_alive)
    who = str(env.origin) if env.origin.policy else OWN
    try:
        compiled = rules.compiled(config.authorization, "request", env, who)
        return McpPolicy((compiled,), guardrails, authentication, keep_alive)
    except Refused as error:
        raise Refused(f"authorization.{error}") from None


def merged(policies: Sequence[McpPolicy], best: McpPolicy) -> McpPolicies:
    """Rules of all of them, the rest of the one that wins."""
    rules_of_all = tuple(chain.from_iterable(each.rules for each in policies))
    return McpPolicies(rules_of_all, best.guardrails, best.authentication, keep_alive=best.keep_alive)


def closed(why: str) -> McpPolicies:
    """In place of one that cannot be built."""
    return McpPolicies(refused=why)
