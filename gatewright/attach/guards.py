"""Which policies guard: one that cannot be honoured refuses what it covers, instead of leaving it unguarded.

The proxy's registry marks the same ones (a rules test compares); the control plane asks when it cannot send a policy as
written (architecture, A bad resource).
"""

from __future__ import annotations

from typing import Final

GUARDS: Final = (
    "jwt_authentication",
    "basic_authentication",
    "api_key_authentication",
    "ext_auth",
    "authorization",
    "csrf",
    "rate_limit",
    "ext_proc",
    "backend_tls",
    "backend_mcp",
)
"""Fields of the wire's Policy: of `traffic`, and `tls` of `backend`, without which it would be plain text."""

GATEWAY_GUARDS: Final = ("backend_client_certificate",)
"""The same of a Gateway itself: TLS that would present a certificate which cannot be used is refused."""

FRONTEND_GUARDS: Final = ("proxy_protocol", "network_authorization", "frontend_tls", "frontend_http", "connect")
"""The same of `frontend`: what cannot be honoured refuses connections, handshakes, requests, tunnels. By default each
of these would be laxer than what somebody asked for."""
