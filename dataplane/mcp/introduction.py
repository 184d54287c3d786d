"""The `initialize` parameters for clients of which only the revision is known."""

from __future__ import annotations

from functools import cache

from dataplane.mcp import messages, versions


def anonymous(version: str) -> bytes:
    """For a client without a session that names this revision; one that is not known is none."""
    return _introduction(version if version in versions.KNOWN else versions.UNSPOKEN)


@cache
def _introduction(version: str) -> bytes:
    """Of a client of which only the revision is known. Its capabilities are not, so servers may ask for what clients
    answer by themselves, with an error where they cannot. Roots are asked for beside requests, where such a client
    receives nothing. One for each revision that is known."""
    able: dict[str, object] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
    return messages.encode(
        {
            "protocolVersion": version,
            "capabilities": able,
            "clientInfo": {"name": "gatewright", "version": "1"},
        }
    )
