"""Request mirrors from the standalone file to the plan."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import request_mirror
from dataplane.table.plans import Mirror
from gatewright.wire.v1 import policy_pb2, resource_pb2, traffic_pb2
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import TableRun, bind, change, exchange, listener, route

TO = "backend/gatewaybackend/default/127.0.0.1:9001"


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ("{host: '127.0.0.1:9001'}", 1.0),
        ("{host: '127.0.0.1:9001', percent: 20}", 0.2),
        ("{host: '127.0.0.1:9001', fraction: {numerator: 1, denominator: 3}}", 1 / 3),
    ],
)
def test_mirror(fields: str, share: float) -> None:
    run = PolicyRun(f"policies: {{requestMirror: {fields}}}")
    (mirror,) = run.route(exchange()).policies.mirrors
    assert run.backend(mirror.backend) is not None
    assert mirror.numerator / mirror.denominator == pytest.approx(share)


def test_a_rule_may_have_several() -> None:
    resource = resource_pb2.Resource.FromString(route("r").value or b"")
    for name in "ab":
        mirror = traffic_pb2.RequestMirror(backend=name)
        resource.route.policies.append(policy_pb2.Policy(request_mirror=mirror))
    run = TableRun()
    run.apply(bind(), listener(), change(resource))
    plan = run.plan(exchange())
    assert plan is not None and plan.policies.mirrors == (Mirror("a"), Mirror("b"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "a mirror needs a backend"),
        ({"backend": TO, "numerator": 3, "denominator": 2}, "3 of 2 is more than all requests"),
    ],
)
def test_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        request_mirror.build(
            traffic_pb2.RequestMirror(**fields),  # type: ignore[arg-type]
            Env(clock=lambda: 0.0, random=lambda: 0.0),
        )
