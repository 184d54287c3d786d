"""Metrics that come with kinds of backends: a module of each, collected in `registry`. The agent reads them as well."""
