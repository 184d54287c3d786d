"""From command line, environment and file to `dataplane.settings`. Called by the agent's entry."""
