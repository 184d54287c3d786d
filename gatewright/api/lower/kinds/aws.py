"""Services of AWS: runtimes of agents of Amazon Bedrock AgentCore. One address, and one path for all requests."""

from __future__ import annotations

from urllib.parse import quote

from gatewright import aws_hosts
from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.lower.kinds.ai import HTTPS, credentials
from gatewright.api.lower.kinds.kind import Address, BackendReferences, Kind, Lowered, Policies
from gatewright.api.objects.gateway_backend import AwsBackend
from gatewright.wire.v1 import backend_pb2, backend_policy_pb2


class Aws(Kind):
    """`spec.aws`. Without `auth` requests are signed with the ambient credentials of AWS."""

    facts = KINDS["aws"]

    def lowered(self, model: AwsBackend, policies: Policies, references: BackendReferences) -> Lowered:
        runtime = model.agent_runtime
        assert runtime is not None  # the one variant that there is
        arn = runtime.agent_runtime_arn
        region = aws_hosts.region_of_runtime(arn)
        if region is None:
            why = f"agentRuntime.agentRuntimeArn: {arn[:200]!r} {aws_hosts.NO_RUNTIME}"
            references.problem(why)
            return Lowered(backend_pb2.Backend(static=backend_pb2.StaticBackend(host="invalid."), refused=why))
        host = aws_hosts.host_of(aws_hosts.AGENT_RUNTIMES, region)
        target = f"/runtimes/{quote(arn, safe='')}/invocations"
        if runtime.qualifier:
            target += f"?qualifier={quote(runtime.qualifier, safe='')}"
        message = backend_pb2.Backend(
            aws=backend_pb2.AwsBackend(host=host, port=HTTPS, target=target),
            policies=policies.values(),
            cloud=backend_pb2.CloudPlace(service=aws_hosts.AGENT_RUNTIMES, region=region),
            fallback=[credentials(aws=backend_policy_pb2.AwsAuth())],
        )
        return Lowered(message, address=Address(host, HTTPS))
