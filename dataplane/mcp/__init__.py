"""The Model Context Protocol without I/O: messages, versions, names, merging, sealed sessions. The kind of backend that
acts on it is `dataplane/backends/mcp`."""
