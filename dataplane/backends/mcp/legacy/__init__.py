"""The older transport of two endpoints (MCP 2024-11-05, HTTP with SSE), to servers and for clients: what is sent is
posted, and all that is said comes on one stream. One worker holds a stream; the others reach it over a Unix socket."""
