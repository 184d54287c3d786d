"""Hosts of Google Cloud that a provider of LLMs is reached at. For those who write them down, and for the proxy, which
knows by them what a provider has."""

from __future__ import annotations

import re
from typing import Final

GLOBAL: Final = "global"
"""The region of Vertex AI that is all of them."""
_WORLDS: Final = ("us", "eu")
"""Parts of the world that have several regions."""

is_ranker: Final = re.compile(r"semantic-ranker-").match
"""Whether a model ranks. Those are not Vertex AI's own: they have a host for themselves (its ranking API)."""


def host_of(region: str, model: str) -> str:
    """Of a region, of a part of the world that has several, or of all. `model`: "" where requests name theirs."""
    if is_ranker(model):
        return f"{region}-discoveryengine.googleapis.com" if region in _WORLDS else "discoveryengine.googleapis.com"
    if region == GLOBAL:
        return "aiplatform.googleapis.com"
    return f"aiplatform.{region}.rep.googleapis.com" if region in _WORLDS else f"{region}-aiplatform.googleapis.com"
