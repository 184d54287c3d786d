"""Sessions of MCP servers that took the place of those which a client's session has in its id: a server that forgot a
session gets one new one, in which what it asks of the client finds its answer, whichever worker that comes to.

What is too long for a place, and what later ones took the place of, its own worker alone knows; another one opens a
session of its own then.
"""

from __future__ import annotations

from typing import Final

from dataplane.link.places import Places

GROUPS: Final = 512
"""Groups of a worker: 2,048 sessions with a server."""
PLACE: Final = 256


class Renewed(Places):
    __slots__ = ()
    SECTION, GROUPS, PLACE = "renewed", GROUPS, PLACE
