"""What a phase of a connection answers (`entry.Phase`)."""

from __future__ import annotations

from typing import Final

MORE: Final = 0
"""It waits: for bytes, or for something that will call `Entry.go_on`."""
NEXT: Final = 1
"""It is done, or has nothing to do."""
OVER: Final = 2
"""The connection was closed, or is somebody else's now."""
