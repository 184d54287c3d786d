"""Policies that become steps of a chain: each acts on a request, its response, or both (`registry`)."""
