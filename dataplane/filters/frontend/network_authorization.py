"""Network authorization: rules about connections. Each becomes a `chain/rules.Rule` of the listener's plan.

Rules of several policies of one Gateway add up, as those of `authorization` do; `chain/network` decides.
"""

from __future__ import annotations

from dataplane.chain import rules
from dataplane.chain.filter import Env
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.Authorization, env: Env) -> rules.Rule:
    """Raises `Refused`, as `rules.compiled`."""
    return rules.compiled(config, "connection", env, str(env.origin))
