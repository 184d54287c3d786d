"""External processing (extProc), which no proxy does yet: what such a policy covers is refused.

A processor may reject requests and take out of them what a backend must not see, so nothing passes without it.
"""

from __future__ import annotations

from typing import NoReturn

from dataplane.chain.filter import Env, Refused
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.ExtProc, env: Env) -> NoReturn:
    """Raises `Refused`, always."""
    raise Refused("not supported yet")
