"""What `cors` says of the site that a request comes from, for backends that look at `Origin` themselves."""

from __future__ import annotations

from typing import Final

NAMED: Final = "cors.named"
"""Attribute of an exchange whose origin a policy allows by a name or a pattern, and not as any."""
