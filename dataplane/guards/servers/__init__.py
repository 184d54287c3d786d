"""Servers that judge texts: what each is asked, and what its answer means."""

from dataplane.guards.servers.contract import Question, Server

__all__ = ["Question", "Server"]
