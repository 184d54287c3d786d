"""The endpoint picker of an InferencePool: a server that chooses the endpoint of each request.

The protocol is `chain/ext_proc`; `picker` is the server and what it says, `policy` the filter.
"""

from dataplane.filters.steps.endpoint_picker.policy import build

__all__ = ["build"]
