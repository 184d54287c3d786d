"""The process that runs MCP servers which speak over standard input and output, and serves them to workers as if they
spoke HTTP: one Unix socket, one process of a server for each session. Started by the agent (`agent/stdio_servers`).
"""
