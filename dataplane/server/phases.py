"""What a phase of a connection answers (`entry.Phase`)."""

from __future__ import annotations

MORE, NEXT, OVER = range(3)
"""MORE: it waits, for bytes or for something that will call `Entry.go_on`; NEXT: it is done, or has nothing to do;
OVER: the connection was closed, or is somebody else's now."""
