"""The filter of external processing: one call for each exchange, which sees its request and its response."""

from __future__ import annotations

from typing import Final

from dataplane.chain.conditional import conditional
from dataplane.chain.filter import EVERY_HEADER, Env, Filter, Refused
from gatewright.wire.v1 import traffic_pb2

NAME: Final = "ext_proc"
_UNSEEN: Final = frozenset((EVERY_HEADER,))
"""It may set and judge by any header: no trailer that it is not shown may pass for one. It sees to the others."""


def build(config: traffic_pb2.ExtProc, env: Env) -> Filter | None:
    """Raises `Refused` for a policy without server, and for modes and expressions that cannot be."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    if not config.backend:
        raise Refused("backendRef: there is no processor")
    from dataplane.filters.steps.ext_proc.processor import Processor  # its messages are loaded with the first policy

    processor = Processor(NAME, config, env)
    return Filter(
        NAME,
        request=processor.request,
        response=processor.response,
        end=processor.end,
        makes_stages=True,
        writes=_UNSEEN if not processor.modes.request.trailers else frozenset(),
    )
