"""gRPC as a client speaks it, over calls (`chain.calls.Call`). Messages are bytes: who calls knows their types.

Source: gRPC's document PROTOCOL-HTTP2.
"""

from dataplane.chain.grpc.opening import opened
from dataplane.chain.grpc.status import StatusError, blames_request
from dataplane.chain.grpc.stream import Stream
from dataplane.chain.grpc.unary import unary, unary_of

__all__ = ["StatusError", "Stream", "blames_request", "opened", "unary", "unary_of"]
