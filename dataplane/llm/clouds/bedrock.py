"""Amazon Bedrock: Converse for conversations, and InvokeModel with the own API of a model where that loses less.

Models are called by ids, by inference profiles or by resource names (ARNs); what is behind the ARN of an application's
profile is not known, so it has Converse alone. Source: Amazon Bedrock API reference and user guide.
"""

from __future__ import annotations

import json
import re
from typing import Final

from dataplane.llm.paths import CLAUDE, Dialect, Path, Paths, Settings, Variant, escaped
from dataplane.llm.routes import Format

BETAS: Final = frozenset(
    (
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "token-efficient-tools-2025-02-19",
        "interleaved-thinking-2025-05-14",
        "output-128k-2025-02-19",
        "dev-full-thinking-2025-05-14",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "tool-search-tool-2025-10-19",
        "tool-examples-2025-10-29",
    )
)
"""Features of Claude that are in preview there; a request with another one is refused as a whole."""
VERSION: Final = ("anthropic_version", b'"bedrock-2023-05-31"')
_MODEL: Final = b"/model/"
_CONVERSE: Final = (b"/converse", b"")
_STREAM: Final = (b"/converse-stream", b"")
_INVOKE: Final = b"/invoke"
_INVOKE_STREAM: Final = (b"/invoke-with-response-stream", b"")


def paths(settings: Settings) -> Paths:
    """Of all models that take conversations."""
    return {Format.CONVERSE: Path(_MODEL, *_CONVERSE, streamed=_STREAM, dialect=_converse(settings))}


def _converse(settings: Settings) -> Dialect | None:
    if settings.guardrail is None:
        return None
    identifier, version = settings.guardrail
    value = {"guardrailIdentifier": identifier, "guardrailVersion": version}
    return Dialect(Format.CONVERSE, fields=(("guardrailConfig", json.dumps(value).encode()),))


def _messages(settings: Settings) -> Dialect:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if settings.guardrail is not None:
        identifier, version = settings.guardrail
        headers = (
            (b"x-amzn-bedrock-guardrailidentifier", identifier.encode()),
            (b"x-amzn-bedrock-guardrailversion", version.encode()),
        )
    return Dialect(
        Format.CONVERSE,
        fields=(VERSION,),
        without=("model", "stream"),
        headers=headers,
        betas=BETAS,
        is_framed=True,
    )


def _foundation(model: str) -> str:
    """Tokens are counted by the model itself, whatever profile it is called by."""
    return escaped(_PROFILE.sub("", model))


_PROFILE: Final = re.compile(r"^(?:[a-z]{2,6}|us-gov)\.(?=anthropic\.)")
_COUNT: Final = Path(
    _MODEL, b"/count-tokens", dialect=Dialect(Format.CONVERSE, betas=BETAS, shape="count-bedrock"), named=_foundation
)


def _invoked(pattern: str, form: Format, shape: str) -> Variant:
    return Variant(re.compile(pattern), {form: Path(_MODEL, _INVOKE, dialect=Dialect(Format.CONVERSE, shape=shape))})


_OTHERS: Final = (
    _invoked(r"amazon\.titan-embed", Format.EMBEDDINGS, "titan"),
    _invoked(r"amazon\.nova-.*embed", Format.EMBEDDINGS, "nova"),
    _invoked(r"cohere\.embed", Format.EMBEDDINGS, "cohere"),
    _invoked(r"(?:amazon|cohere)\.rerank", Format.RERANK, "rerank-bedrock"),
)
"""Models for one purpose."""


def variants(settings: Settings) -> tuple[Variant, ...]:
    """Clients of Messages reach Claude by its own API, so that nothing is lost; others by Converse."""
    messages = Path(_MODEL, _INVOKE, streamed=_INVOKE_STREAM, dialect=_messages(settings))
    claude = {Format.MESSAGES: messages, **paths(settings), Format.TOKEN_COUNT: _COUNT}
    return (Variant(CLAUDE, claude), *_OTHERS)


CACHES: Final = re.compile(r"claude-(?!instant|v[12]\b)|amazon\.nova|:application-inference-profile/")
"""Models that cache prompts up to points: Claude since 3, Nova, and what is behind a profile of the user's own."""
CACHES_TOOLS: Final = re.compile(r"claude|:application-inference-profile/")
"""Of those the ones that cache tools: Nova does not."""
