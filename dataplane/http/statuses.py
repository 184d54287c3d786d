"""Statuses that mean something for how a message is read or written."""

from __future__ import annotations

SWITCHING = 101
"""RFC 9110 7.8: ends HTTP on its connection."""

BODILESS = (204, 304)
"""RFC 9110 6.4.1: final answers without content, whatever their head says."""

RESET_CONTENT = 205
"""RFC 9110 15.3.6: without content too, and its head says so."""

EMPTY = (*BODILESS, RESET_CONTENT)
"""All that are without content."""
