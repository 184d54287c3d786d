"""What does the same as a format, in another shape: by name (`paths.Dialect.shape`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dataplane.llm.shapes import counts, embeddings, rankings
from dataplane.llm.shapes.contract import Shape

SHAPES: Final[Mapping[str, Shape]] = {
    "titan": embeddings.titan,
    "nova": embeddings.nova,
    "cohere": embeddings.cohere,
    "vertex": embeddings.vertex,
    "rerank-bedrock": rankings.bedrock,
    "rerank-vertex": rankings.vertex,
    "count-bedrock": counts.bedrock,
    "count-vertex": counts.vertex,
    "count-gemini": counts.gemini,
}
