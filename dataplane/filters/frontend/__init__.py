"""Policies of listeners and Gateways: connections, heads, access log, limits (`registry`)."""
