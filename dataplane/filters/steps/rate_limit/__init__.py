"""Rate limits: how many requests, or tokens of models, pass (`traffic.rateLimit`).

`policy` is the filter. `local` counts in this proxy; `remote` asks a service (`rateLimit.global`): `descriptors` says
what it is asked, `answers` reads what it says, `usage_reports` reports what is known only at the end of a request.
"""

from dataplane.filters.steps.rate_limit.policy import build

__all__ = ["build"]
