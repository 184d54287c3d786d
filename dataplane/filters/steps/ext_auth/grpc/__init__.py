"""Authorization servers that are asked over gRPC: Envoy's external authorization, version 3.

`server` asks; `check_request` makes the message, `check_response` reads the answer, `edits` carries its changes out.
"""

from dataplane.filters.steps.ext_auth.grpc.server import GrpcServer

__all__ = ["GrpcServer"]
