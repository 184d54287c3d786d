"""External authorization: a server decides whether a request may go on (spec 2, ExtAuth).

`policy` is the filter. `question` makes the call of a request, `answer` reads what came back and carries it out,
`cache` keeps answers, `reach` tells the log when the server is lost and found. No module here opens a socket
(`Env.calls`).
"""

from dataplane.filters.steps.ext_auth.policy import build

__all__ = ["build"]
