"""Envoy's external processing (`envoy.service.ext_proc.v3.ExternalProcessor`) as a client: one call for each exchange.

`modes` says what the server sees, `messages` what it is sent and what it says, `session` carries the call, `content`
the two bodies, `phases` the two heads; `asked` is the server as filters use it.
"""
