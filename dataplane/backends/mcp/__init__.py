"""MCP servers behind one endpoint: the kind of backend that acts on `dataplane/mcp`."""
