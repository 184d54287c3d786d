"""Runtimes of agents that cannot be reached: errors. A row of `advice`, for objects; of the file its reader says it."""

from __future__ import annotations

from collections.abc import Iterator

from gatewright import aws_hosts
from gatewright.api.objects.gateway_backend import GatewayBackendSpec
from gatewright.api.text.problem import Advice


def no_runtime(spec: GatewayBackendSpec) -> Iterator[Advice]:
    """A resource name that is none of a runtime."""
    runtime = spec.aws.agent_runtime if spec.aws is not None else None
    if runtime is not None and aws_hosts.region_of_runtime(runtime.agent_runtime_arn) is None:
        path = ("aws", "agentRuntime", "agentRuntimeArn")
        yield Advice(path, f"{aws_hosts.NO_RUNTIME}: requests are answered with 500", "error")
