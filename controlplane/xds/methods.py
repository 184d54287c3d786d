"""Names of the services on the controller's gRPC ports. There are no generated stubs: these are the whole contract."""

from __future__ import annotations

from typing import Final

DISCOVERY: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
CLIENT_STATUS: Final = "envoy.service.status.v3.ClientStatusDiscoveryService"
HEALTH: Final = "grpc.health.v1.Health"
REFLECTION: Final = "grpc.reflection.v1.ServerReflection"
REFLECTION_ALPHA: Final = "grpc.reflection.v1alpha.ServerReflection"

DELTA_AGGREGATED_RESOURCES: Final = f"/{DISCOVERY}/DeltaAggregatedResources"
FETCH_CLIENT_STATUS: Final = f"/{CLIENT_STATUS}/FetchClientStatus"
STREAM_CLIENT_STATUS: Final = f"/{CLIENT_STATUS}/StreamClientStatus"
HEALTH_CHECK: Final = f"/{HEALTH}/Check"
