"""What does the same as a format, in another shape: by name (`paths.Dialect.shape`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dataplane.llm.paths import Shape
from dataplane.llm.shapes import beside, embeddings

SHAPES: Final[Mapping[str, Shape]] = {
    "titan": embeddings.titan,
    "nova": embeddings.nova,
    "cohere": embeddings.cohere,
    "vertex": embeddings.vertex,
    "rerank": beside.rerank,
    "count": beside.counted,
}
