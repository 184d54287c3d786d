"""Google Vertex AI: Gemini and Claude by their own APIs, models of others by its endpoint for clients of OpenAI's API.

Source: Vertex AI reference, and Anthropic's "Claude on Vertex AI".
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from dataplane.llm.paths import CLAUDE, Dialect, Path, Paths, Settings, Variant
from dataplane.llm.routes import Format
from gatewright.google_hosts import is_ranker

VERSION: Final = ("anthropic_version", b'"vertex-2023-10-16"')
_DATED: Final = re.compile(r"-(\d{8})$")
_OF_GOOGLE: Final = re.compile(r"^(?:publishers/google/models/|google/)?(?=gemini|text)")

_EMBEDDINGS: Final = re.compile(r"(?:^|/)(?:gemini-embedding|text-embedding|text-multilingual-embedding|textembedding)")


def of_claude(model: str) -> str:
    """A version is written behind @ there."""
    return _DATED.sub(r"@\1", model)


def _claude(model: str) -> str:
    return quote(of_claude(model), safe="@")


def _gemini(model: str) -> str:
    return quote(_OF_GOOGLE.sub("", model), safe="@")


def _above(settings: Settings) -> bytes:
    project, region = quote(settings.project, safe=""), quote(settings.region, safe="")
    return f"/v1/projects/{project}/locations/{region}/".encode()


def paths(settings: Settings) -> Paths:
    """Of models that neither Google nor Anthropic has made: `<maker>/<model>`."""
    return {Format.COMPLETIONS: Path(_above(settings) + b"endpoints/openapi/chat/completions")}


def variants(settings: Settings) -> tuple[Variant, ...]:
    above = _above(settings)
    if is_ranker(settings.model):
        return (_ranker(above),)
    embedding = Dialect(Format.GENERATE_CONTENT, shape="vertex")
    embedded = Path(above + b"publishers/google/models/", b":predict", dialect=embedding, named=_gemini)
    return (
        Variant(_EMBEDDINGS, {Format.EMBEDDINGS: embedded}),
        Variant(CLAUDE, _of_claude(above + b"publishers/anthropic/models/")),
        Variant(_OF_GOOGLE, _of_gemini(above + b"publishers/google/models/")),
    )


def _ranker(above: bytes) -> Variant:
    """Where the provider's own model ranks: its host has nothing else."""
    ranking = Dialect(Format.GENERATE_CONTENT, shape="rerank-vertex")
    return Variant(
        re.compile(""), {Format.RERANK: Path(above + b"rankingConfigs/default_ranking_config:rank", dialect=ranking)}
    )


def _of_claude(above: bytes) -> Paths:
    messages = Dialect(Format.GENERATE_CONTENT, fields=(VERSION,), without=("model",))
    counting = Dialect(Format.GENERATE_CONTENT, fields=(VERSION,), renamed=of_claude)
    return {
        Format.MESSAGES: Path(
            above, b":rawPredict", streamed=(b":streamRawPredict", b""), dialect=messages, named=_claude
        ),
        Format.TOKEN_COUNT: Path(above + b"count-tokens:rawPredict", dialect=counting),
    }


def _of_gemini(above: bytes) -> Paths:
    streamed = (b":streamGenerateContent", b"alt=sse")
    counting = Dialect(Format.GENERATE_CONTENT, shape="count-vertex")
    return {
        Format.GENERATE_CONTENT: Path(above, b":generateContent", streamed=streamed, named=_gemini),
        Format.TOKEN_COUNT: Path(above, b":countTokens", dialect=counting, named=_gemini),
    }
