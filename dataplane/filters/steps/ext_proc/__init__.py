"""External processing: a server that sees requests and responses, changes them, or answers in place of the backend.

Over gRPC, by Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`: one call for each exchange. `modes` says what the
server sees, `messages` what it is sent and what it says, `session` carries the call, `content` the two bodies, `phases`
the two heads; `processor` is the server as a policy asks it, `policy` the filter.
"""

from dataplane.filters.steps.ext_proc.policy import build

__all__ = ["build"]
