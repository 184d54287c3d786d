"""`traffic.timeouts`: how long a request may take."""

from __future__ import annotations

from gatewright.api.schema.fields import PositiveDuration
from gatewright.api.schema.model import Model


class Timeouts(Model):
    """Time limits of a request. They apply to HTTPRoutes only."""

    request: PositiveDuration | None = None
    """From the start of sending to the backend until the full response was received, over all attempts."""
