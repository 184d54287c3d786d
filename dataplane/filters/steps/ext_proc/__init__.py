"""External processing: a server that sees requests and responses, changes them, or answers in place of the backend.

The protocol is `chain/ext_proc`; `processor` is the server as this policy asks it, `policy` the filter.
"""

from dataplane.filters.steps.ext_proc.policy import build

__all__ = ["build"]
