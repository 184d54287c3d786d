"""What clients have arranged in their sessions with MCP servers (`dataplane.mcp.arranged`): it is repeated where a
server has forgotten its session, whichever worker notices.
"""

from __future__ import annotations

from typing import Final

from dataplane.link.places import Places

GROUPS: Final = 512
"""Groups of a worker: 2,048 sessions with a server."""
PLACE: Final = 1024


class Arranged(Places):
    __slots__ = ()
    SECTION, GROUPS, PLACE = "arranged", GROUPS, PLACE
