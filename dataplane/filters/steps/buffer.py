"""Buffer: bodies are buffered until they are complete, instead of streamed; too large ones are refused.

A request body over its limit is answered with 413, a response body over its limit replaced by 502. What has no end to
wait for (a stream of events, a tunnel) passes; answers of the gateway's own are not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.buffering import buffering
from dataplane.chain.filter import Env, Filter, RequestHook, ResponseHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "buffer"


def build(config: traffic_pb2.Buffer, env: Env) -> Filter | None:
    """Neither side set: nothing to do."""
    request = _limit(config.request, env) if config.HasField("request") else None
    response = _limit(config.response, env) if config.HasField("response") else None
    if request is None and response is None:
        return None
    return Filter(
        NAME,
        request=None if request is None else _request(request, str(env.origin)),
        response=None if response is None else _response(response, str(env.origin)),
        response_body=0 if response is None else response or 1,  # 0 would be: it reads none
    )


def _limit(config: traffic_pb2.BufferedBody, env: Env) -> int:
    """Bytes; absent: what the listener allows."""
    return config.max_bytes if config.HasField("max_bytes") else env.buffer_limit


def _request(limit: int, origin: str) -> RequestHook:
    too_large = made("BodyTooLarge", origin)

    def measure(x: Exchange) -> Reply | None:
        """A step before this one may have read more, or made another body."""
        return too_large if x.body is not None and len(x.body) > x.may_hold(limit) else None

    return buffering(measure, limit, too_large)


def _response(limit: int, origin: str) -> ResponseHook:
    too_large = made("ResponseTooLarge", origin)

    def measure(x: Exchange) -> Reply | None:
        if x.reason:  # the response was made here
            return None
        return (
            too_large
            if x.response_body_too_large or (x.response_body is not None and len(x.response_body) > x.may_hold(limit))
            else None
        )

    return measure
