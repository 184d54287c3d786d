"""Observers of ended exchanges that come with kinds of backends: a module of each, collected in `registry`."""
