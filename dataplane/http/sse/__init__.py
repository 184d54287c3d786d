"""Server-sent events as a pure codec: bytes to events and back (WHATWG HTML, "Server-sent events")."""

from dataplane.http.sse.events import Aside, Event, EventTooLarge
from dataplane.http.sse.reader import BOM, EventReader
from dataplane.http.sse.writer import comment, retry, write, write_aside

__all__ = ["BOM", "Aside", "Event", "EventReader", "EventTooLarge", "comment", "retry", "write", "write_aside"]
