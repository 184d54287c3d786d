"""All rows of hostile peers, in the order of the page."""

from __future__ import annotations

from typing import Final

from tests.hostile import agents, models, streams

ROWS: Final = (*streams.ROWS, *agents.ROWS, *models.ROWS)
