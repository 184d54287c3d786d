"""Where requests go: one line for each provider, format and configuration."""

from __future__ import annotations

import pytest

from dataplane.llm.paths import Settings
from dataplane.llm.providers import (
    AMAZON,
    ANTHROPIC,
    AZURE,
    FAMILIES,
    GOOGLE,
    OPENAI,
    PROVIDERS,
    Family,
    is_foreign,
    provider,
)
from dataplane.llm.routes import OF_PROVIDERS, Format

GOLDEN = {
    ("openai", Settings()): """
        Completions  /v1/chat/completions
        Responses    /v1/responses
        Embeddings   /v1/embeddings
        Realtime     /v1/realtime""",
    ("openai", Settings(path_prefix="/api/paas/v4/")): """
        Completions  /api/paas/v4/chat/completions
        Responses    /api/paas/v4/responses
        Embeddings   /api/paas/v4/embeddings
        Realtime     /api/paas/v4/realtime""",
    ("openai", Settings(path="/all?key=1")): """
        Completions  /all?key=1
        Responses    /all?key=1
        Embeddings   /all?key=1
        Realtime     /all?key=1""",
    ("anthropic", Settings()): """
        Messages     /v1/messages
        TokenCount   /v1/messages/count_tokens""",
    ("anthropic", Settings(path_prefix="/claude/v1")): """
        Messages     /claude/v1/messages
        TokenCount   /claude/v1/messages/count_tokens""",
    ("gemini", Settings()): """
        GenerateContent /v1beta/models/:generateContent
        Completions  /v1beta/openai/chat/completions
        Embeddings   /v1beta/openai/embeddings
        TokenCount   /v1beta/models/:countTokens""",
    ("gemini", Settings(model="models/gemini-3")): """
        GenerateContent /v1beta/models/gemini-3:generateContent
        Completions  /v1beta/openai/chat/completions
        Embeddings   /v1beta/openai/embeddings
        TokenCount   /v1beta/models/gemini-3:countTokens""",
    ("gemini", Settings(path="/all")): """
        Completions  /all
        Embeddings   /all""",
    ("azure-openai", Settings(model="dep")): """
        Completions  /openai/v1/chat/completions
        Responses    /openai/v1/responses
        Embeddings   /openai/v1/embeddings""",
    ("azure-openai", Settings(api_version="preview", model="dep")): """
        Completions  /openai/v1/chat/completions?api-version=preview
        Responses    /openai/v1/responses?api-version=preview
        Embeddings   /openai/v1/embeddings?api-version=preview""",
    ("azure-openai", Settings(api_version="2024-10-21", model="my dep/1")): """
        Completions  /openai/deployments/my%20dep%2F1/chat/completions?api-version=2024-10-21
        Embeddings   /openai/deployments/my%20dep%2F1/embeddings?api-version=2024-10-21
        Responses    /openai/responses?api-version=2024-10-21""",
    ("azure-foundry", Settings(project="my proj")): """
        Completions  /api/projects/my%20proj/openai/v1/chat/completions
        Responses    /api/projects/my%20proj/openai/v1/responses
        Embeddings   /api/projects/my%20proj/openai/v1/embeddings
        Messages     /anthropic/v1/messages
        TokenCount   /anthropic/v1/messages/count_tokens""",
    ("azure-foundry", Settings(project="p", api_version="2025-05-01")): """
        Completions  /api/projects/p/openai/v1/chat/completions?api-version=2025-05-01
        Responses    /api/projects/p/openai/v1/responses?api-version=2025-05-01
        Embeddings   /api/projects/p/openai/v1/embeddings?api-version=2025-05-01
        Messages     /anthropic/v1/messages
        TokenCount   /anthropic/v1/messages/count_tokens""",
    ("custom", Settings(formats=tuple((form, "") for form in Format if form not in OF_PROVIDERS))): """
        Completions  /v1/chat/completions
        Messages     /v1/messages
        Responses    /v1/responses
        Embeddings   /v1/embeddings
        Rerank       /v2/rerank
        TokenCount   /v1/messages/count_tokens
        Realtime     /v1/realtime""",
    ("custom", Settings(formats=((Format.RERANK, "/rank"),))): """
        Rerank       /rank""",
    ("bedrock", Settings(model="us.anthropic.claude-opus-4-1-20250805-v1:0")): """
        Messages     /model/us.anthropic.claude-opus-4-1-20250805-v1%3A0/invoke
        Converse     /model/us.anthropic.claude-opus-4-1-20250805-v1%3A0/converse
        TokenCount   /model/anthropic.claude-opus-4-1-20250805-v1%3A0/count-tokens""",
    ("bedrock", Settings(model="amazon.titan-embed-text-v2:0")): """
        Embeddings   /model/amazon.titan-embed-text-v2%3A0/invoke""",
    ("bedrock", Settings(model="cohere.rerank-v3-5:0")): """
        Rerank       /model/cohere.rerank-v3-5%3A0/invoke""",
    ("bedrock", Settings(model="arn:aws:bedrock:eu-west-1:1:inference-profile/eu.amazon.nova-pro-v1:0")): """
        Converse     /model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.amazon.nova-pro-v1%3A0/converse
        """,
    ("vertexai", Settings(model="claude-opus-4-1-20250805", project="a b", region="eu")): """
        Messages     /v1/projects/a%20b/locations/eu/publishers/anthropic/models/claude-opus-4-1@20250805:rawPredict
        TokenCount   /v1/projects/a%20b/locations/eu/publishers/anthropic/models/count-tokens:rawPredict""",
    ("vertexai", Settings(model="gemini-3-pro", project="p", region="us-east5")): """
        GenerateContent /v1/projects/p/locations/us-east5/publishers/google/models/gemini-3-pro:generateContent
        TokenCount   /v1/projects/p/locations/us-east5/publishers/google/models/gemini-3-pro:countTokens""",
    ("vertexai", Settings(model="semantic-ranker-default-004", project="p", region="global")): """
        Rerank       /v1/projects/p/locations/global/rankingConfigs/default_ranking_config:rank""",
    ("vertexai", Settings(model="gemini-embedding-001", project="p", region="global")): """
        Embeddings   /v1/projects/p/locations/global/publishers/google/models/gemini-embedding-001:predict""",
    ("vertexai", Settings(model="meta/llama-4", project="p", region="us-east5")): """
        Completions  /v1/projects/p/locations/us-east5/endpoints/openapi/chat/completions""",
}


@pytest.mark.parametrize(("name", "settings"), GOLDEN, ids=[f"{name}-{n}" for n, (name, _) in enumerate(GOLDEN)])
def test_where_each_format_goes(name: str, settings: Settings) -> None:
    found = provider(name, settings).of(settings.model)
    lines = [f"{form:<12} {path.of(found.model, b'').decode()}" for form, path in found.paths.items()]
    assert lines == [line.strip() for line in GOLDEN[name, settings].strip().splitlines()]


def test_every_provider_has_a_line() -> None:
    assert {name for name, _ in GOLDEN} == set(PROVIDERS)


def test_parameters_of_the_client_stay_but_for_ours() -> None:
    path = provider("azure-openai", Settings(api_version="preview")).paths[Format.COMPLETIONS]
    assert path.of("m", b"api-version=2020&a=1&b") == b"/openai/v1/chat/completions?api-version=preview&a=1&b"
    assert provider("openai", Settings()).paths[Format.COMPLETIONS].of("m", b"a=1") == b"/v1/chat/completions?a=1"


def test_messages_have_headers_of_anthropic_wherever_they_go() -> None:
    assert provider("anthropic", Settings()).family(Format.MESSAGES) is ANTHROPIC
    found = provider("custom", Settings(formats=((Format.MESSAGES, ""),)))
    of_messages = found.family(Format.MESSAGES)
    assert not is_foreign(of_messages, b"anthropic-beta: x") and is_foreign(of_messages, b"openai-beta: x")
    for line in (b"x-api-key: k", b"authorization: bearer k"):
        assert not is_foreign(of_messages, line), "SDKs of Anthropic send a key in either"
    assert found.family(Format.COMPLETIONS) is OPENAI
    assert found.family(None) is OPENAI


@pytest.mark.parametrize(
    ("family", "kept"),
    [
        (OPENAI, {"authorization", "openai-organization"}),
        (ANTHROPIC, {"x-api-key", "anthropic-beta"}),
        (AZURE, {"authorization", "api-key", "openai-beta", "x-ms-client-request-id"}),
        (AMAZON, {"authorization", "x-amz-date", "x-amzn-bedrock-trace"}),
        (GOOGLE, {"authorization", "x-goog-api-key", "x-goog-api-client"}),
    ],
)
def test_headers_of_one_api_do_not_go_to_another(family: Family, kept: set[str]) -> None:
    names = "authorization x-api-key api-key x-goog-api-key openai-organization openai-beta anthropic-beta"
    names += " x-goog-api-client x-ms-client-request-id x-amz-date x-amzn-bedrock-trace"
    passed = {name for name in names.split() if not is_foreign(family, b"%b: bearer sk-1" % name.encode())}
    assert passed >= kept
    assert {name for name in passed if name in ("authorization", "x-api-key", "api-key", "x-goog-api-key")} == {
        name.decode() for name in family.credentials
    }
    assert not is_foreign(family, b"user-agent: x")


def test_a_token_of_anthropic_goes_there_as_a_bearer() -> None:
    assert not is_foreign(ANTHROPIC, b"authorization: bearer sk-ant-oat01-x")
    assert is_foreign(ANTHROPIC, b"authorization: bearer sk-proj-x"), "a key of another provider"
    assert len(FAMILIES) == 5


def test_a_stream_of_generate_content_has_a_path_of_its_own() -> None:
    path = provider("gemini", Settings()).paths[Format.GENERATE_CONTENT]
    assert path.of("gemini-3", b"", True) == b"/v1beta/models/gemini-3:streamGenerateContent?alt=sse"
    assert Format.GENERATE_CONTENT not in provider("gemini", Settings(path="/all")).paths


def test_a_stream_of_a_cloud_has_a_path_of_its_own() -> None:
    claude = provider("bedrock", Settings()).of("anthropic.claude-3")
    assert claude.paths[Format.MESSAGES].of("m", b"", True) == b"/model/m/invoke-with-response-stream"
    assert claude.paths[Format.CONVERSE].of("m", b"", True) == b"/model/m/converse-stream"
    vertex = provider("vertexai", Settings(project="p", region="global")).of("claude-x-20250101")
    path = vertex.paths[Format.MESSAGES].of("claude-x-20250101", b"", True)
    assert path.endswith(b"/models/claude-x@20250101:streamRawPredict")
