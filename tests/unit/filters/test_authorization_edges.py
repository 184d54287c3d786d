"""Authorization where rules of several policies read a body: each of them has a limit of its own."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Filter, Origin
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.filters.steps import authorization
from dataplane.http.body import BodyBuffer
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import Pending
from tests.fakes.table_state import exchange


def deny(source: str, limit: int) -> Filter:
    """A policy that denies a body which is `bad`, and holds so many bytes at most."""
    config = traffic_pb2.Authorization(
        policy=traffic_pb2.AuthorizationRule(match_expressions=["string(request.body) == 'bad'"]),
        action=traffic_pb2.ACTION_DENY,
    )
    origin = Origin(f"GatewayPolicy default/{source}", "authorization")
    return authorization.build(config, Env(lambda: 0.0, lambda: 0.0, origin=origin, buffer_limit=limit))


@pytest.mark.parametrize(("size", "answer"), [(10, None), (11, REPLIES["BodyTooLarge"])])
@pytest.mark.parametrize("limits", [(10, 100), (100, 10)])
def test_the_smallest_limit_counts(limits: tuple[int, int], size: int, answer: Reply | None) -> None:
    step = authorization.combine([deny(str(limit), limit) for limit in limits])
    x = exchange("POST")
    x.has_body, x.buffer = True, BodyBuffer.of(b"x" * size, Pending, lambda: None)
    assert step.request is not None
    assert step.request(x) == answer
