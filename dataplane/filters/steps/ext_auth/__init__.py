"""External authorization: a server decides whether a request may go on (`traffic.extAuth`).

`policy` is the filter, `asking` asks or remembers, `cache` keeps verdicts, `verdict` is the contract of servers, of
which there are two: `http` (`question`, `answer`) and `grpc`. No module here opens a socket (`Env.calls`).
"""

from dataplane.filters.steps.ext_auth.policy import build, of_backend

__all__ = ["build", "of_backend"]
