"""`gatewright ratelimit`: a server of Envoy's rate limit protocol, version 3, with a store of its own.

`limits` reads the configuration (the format of Envoy's server), `windows` knows the calendar, `decision` decides; these
are pure. `store` is the contract of what counts, of which there are two: `sqlite` (one file) and `valkey` (several
replicas). `service` answers calls, `pages` has metrics and budgets, `server` runs it all.
"""
