"""Where requests go: one line for each provider, format and configuration."""

from __future__ import annotations

import pytest

from dataplane.llm.providers import (
    ANTHROPIC,
    AZURE,
    FAMILIES,
    GOOGLE,
    OPENAI,
    PROVIDERS,
    Family,
    Settings,
    is_foreign,
    provider,
)
from dataplane.llm.routes import Format

AZURE_NAME = "res-resource"
OPENAI_SIZED = Settings(host="https://own.openai.azure.com/", deployment="dep")
GOLDEN = {
    ("openai", Settings()): """
        Completions  api.openai.com /v1/chat/completions
        Responses    api.openai.com /v1/responses
        Embeddings   api.openai.com /v1/embeddings""",
    ("openai", Settings(path_prefix="/api/paas/v4/")): """
        Completions  api.openai.com /api/paas/v4/chat/completions
        Responses    api.openai.com /api/paas/v4/responses
        Embeddings   api.openai.com /api/paas/v4/embeddings""",
    ("openai", Settings(path="/all?key=1")): """
        Completions  api.openai.com /all?key=1
        Responses    api.openai.com /all?key=1
        Embeddings   api.openai.com /all?key=1""",
    ("anthropic", Settings()): """
        Messages     api.anthropic.com /v1/messages
        TokenCount   api.anthropic.com /v1/messages/count_tokens""",
    ("anthropic", Settings(path_prefix="/claude/v1")): """
        Messages     api.anthropic.com /claude/v1/messages
        TokenCount   api.anthropic.com /claude/v1/messages/count_tokens""",
    ("gemini", Settings()): """
        Completions  generativelanguage.googleapis.com /v1beta/openai/chat/completions
        Embeddings   generativelanguage.googleapis.com /v1beta/openai/embeddings""",
    ("azureopenai", OPENAI_SIZED): """
        Completions  own.openai.azure.com /openai/v1/chat/completions
        Responses    own.openai.azure.com /openai/v1/responses
        Embeddings   own.openai.azure.com /openai/v1/embeddings""",
    ("azureopenai", Settings(host="own.openai.azure.com", api_version="preview", deployment="dep")): """
        Completions  own.openai.azure.com /openai/v1/chat/completions?api-version=preview
        Responses    own.openai.azure.com /openai/v1/responses?api-version=preview
        Embeddings   own.openai.azure.com /openai/v1/embeddings?api-version=preview""",
    ("azureopenai", Settings(host="own.openai.azure.com", api_version="2024-10-21", deployment="my dep/1")): """
        Completions  own.openai.azure.com /openai/deployments/my%20dep%2F1/chat/completions?api-version=2024-10-21
        Embeddings   own.openai.azure.com /openai/deployments/my%20dep%2F1/embeddings?api-version=2024-10-21
        Responses    own.openai.azure.com /openai/responses?api-version=2024-10-21""",
    ("azure", Settings(resource=AZURE_NAME)): """
        Completions  res-resource.openai.azure.com /openai/v1/chat/completions
        Responses    res-resource.openai.azure.com /openai/v1/responses
        Embeddings   res-resource.openai.azure.com /openai/v1/embeddings""",
    ("azure", Settings(resource="res", api_version="2024-10-21", model="gpt-4o")): """
        Completions  res.openai.azure.com /openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21
        Embeddings   res.openai.azure.com /openai/deployments/gpt-4o/embeddings?api-version=2024-10-21
        Responses    res.openai.azure.com /openai/responses?api-version=2024-10-21""",
    ("azure", Settings(resource=AZURE_NAME, is_foundry=True, project="my proj")): """
        Completions  res-resource.services.ai.azure.com /api/projects/my%20proj/openai/v1/chat/completions
        Responses    res-resource.services.ai.azure.com /api/projects/my%20proj/openai/v1/responses
        Embeddings   res-resource.services.ai.azure.com /api/projects/my%20proj/openai/v1/embeddings
        Messages     res-resource.services.ai.azure.com /anthropic/v1/messages
        TokenCount   res-resource.services.ai.azure.com /anthropic/v1/messages/count_tokens""",
    ("azure", Settings(resource="r", is_foundry=True, project="p", api_version="2025-05-01")): """
        Completions  r.services.ai.azure.com /api/projects/p/openai/v1/chat/completions?api-version=2025-05-01
        Responses    r.services.ai.azure.com /api/projects/p/openai/v1/responses?api-version=2025-05-01
        Embeddings   r.services.ai.azure.com /api/projects/p/openai/v1/embeddings?api-version=2025-05-01
        Messages     r.services.ai.azure.com /anthropic/v1/messages
        TokenCount   r.services.ai.azure.com /anthropic/v1/messages/count_tokens""",
    ("custom", Settings(host="llm.local", formats=tuple((form, "") for form in Format))): """
        Completions  llm.local /v1/chat/completions
        Messages     llm.local /v1/messages
        Responses    llm.local /v1/responses
        Embeddings   llm.local /v1/embeddings
        Rerank       llm.local /v2/rerank
        TokenCount   llm.local /v1/messages/count_tokens
        Realtime     llm.local /v1/realtime""",
    ("custom", Settings(host="llm.local", formats=((Format.RERANK, "/rank"),))): """
        Rerank       llm.local /rank""",
}


@pytest.mark.parametrize(("name", "settings"), GOLDEN, ids=[f"{name}-{n}" for n, (name, _) in enumerate(GOLDEN)])
def test_where_each_format_goes(name: str, settings: Settings) -> None:
    found = provider(name, settings)
    host = PROVIDERS[name].host(settings)
    lines = [f"{form:<12} {host} {path.of(found.model, b'').decode()}" for form, path in found.paths.items()]
    assert lines == [line.strip() for line in GOLDEN[name, settings].strip().splitlines()]


def test_every_provider_has_a_line() -> None:
    assert {name for name, _ in GOLDEN} == set(PROVIDERS)


def test_parameters_of_the_client_stay_but_for_ours() -> None:
    path = provider("azureopenai", Settings(host="h", api_version="preview")).paths[Format.COMPLETIONS]
    assert path.of("m", b"api-version=2020&a=1&b") == b"/openai/v1/chat/completions?api-version=preview&a=1&b"
    assert provider("openai", Settings()).paths[Format.COMPLETIONS].of("m", b"a=1") == b"/v1/chat/completions?a=1"


def test_a_deployment_is_the_model() -> None:
    assert provider("azureopenai", OPENAI_SIZED).model == "dep"


def test_messages_have_headers_of_anthropic_wherever_they_go() -> None:
    found = provider("custom", Settings(host="h", formats=((Format.MESSAGES, ""),)))
    assert found.family(Format.MESSAGES) is ANTHROPIC
    assert found.family(Format.COMPLETIONS) is OPENAI
    assert found.family(None) is OPENAI


@pytest.mark.parametrize(
    ("family", "kept"),
    [
        (OPENAI, {"authorization", "openai-organization"}),
        (ANTHROPIC, {"x-api-key", "anthropic-beta"}),
        (AZURE, {"authorization", "api-key", "openai-beta", "x-ms-client-request-id"}),
        (GOOGLE, {"authorization", "x-goog-api-key", "x-goog-api-client"}),
    ],
)
def test_headers_of_one_api_do_not_go_to_another(family: Family, kept: set[str]) -> None:
    names = "authorization x-api-key api-key x-goog-api-key openai-organization openai-beta anthropic-beta"
    names += " x-goog-api-client x-ms-client-request-id"
    passed = {name for name in names.split() if not is_foreign(family, name.encode(), b"Bearer sk-1")}
    assert passed >= kept
    assert {name for name in passed if name in ("authorization", "x-api-key", "api-key", "x-goog-api-key")} == {
        name.decode() for name in family.credentials
    }
    assert not is_foreign(family, b"user-agent", b"x")


def test_a_token_of_anthropic_goes_there_as_a_bearer() -> None:
    assert not is_foreign(ANTHROPIC, b"authorization", b"Bearer sk-ant-oat01-x")
    assert len(FAMILIES) == 4
