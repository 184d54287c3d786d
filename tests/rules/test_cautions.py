"""Each warning and hint of the specification stands on the page of its field, where a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

CAUTIONS = (
    ("forward-proxy.md", "authorization"),
    ("routing.md", "has to share a volume with the gateway's Pod"),
    ("mcp/targets.md", "For servers in the cluster this is the recommended way"),
    ("deploying.md", "To remove a generated variable takes an overlay with `$patch: delete`"),
    ("deploying.md", "discouraged; `$$(NAME)` is the text itself"),
    ("deploying.md", "not where `env` has a `SESSION_KEY`"),
    ("deploying.md", "a client-side apply drops it"),
    ("deploying.md", "the generated container; another name adds one"),
    ("attachment.md", "A target is an object of the policy's own namespace"),
    ("attachment.md", "Prefer `targetRefs` where a change has to act soon"),
    ("standalone.md", "A client has to come from its address in the private network"),
    ("policies/timeouts.md", "GRPCRoute"),
    ("policies/host_rewrite.md", "A step that sets the host itself wins over both"),
    ("policies/retry.md", "unless it is true there is one try, and no body is kept"),
    ("policies/ext_proc.md", "of 8,192 bytes at most"),
    ("policies/ext_auth.md", "under a `key` that must cover everything"),
    ("policies/rate_limit.md", "`tokens` are known when the model has answered"),
    ("policies/connect.md", "405"),
    ("policies/metrics.md", "labels with many values cost much"),
    ("policies/metrics.md", "is `unknown`"),
    ("policies/frontend_http.md", "policies that change headers may lose the original case"),
    ("policies/backend_tls.md", "`All`: nothing"),
    ("policies/backend_tls.md", "verifies the backend where `caCertificateRefs` does not"),
    ("policies/backend_auth.md", "so it is the least secure choice"),
    ("policies/backend_auth.md", "Where none of them has, the request stays as it is"),
    ("policies/health.md", "`eviction` no endpoint is evicted"),
    ("policies/health.md", "When all endpoints of the backend are evicted, all are used"),
    ("policies/backend_ai.md", "of chats alone"),
    ("llm/shaping.md", "For a provider whose API has no messages of the system write"),
    ("llm/README.md", "`pathPrefix` takes the place of `/v1`, here and at `anthropic` alone"),
    ("llm/clouds.md", "a scheme in front of it is left out"),
    ("llm/clouds.md", "required with a dated `apiVersion`"),
    ("llm/clouds.md", "required with `resourceType: Foundry`"),
    ("mesh.md", "`trustDomain` is in any case"),
    ("llm/guards.md", "Answers are always masked"),
    ("policies/backend_mcp.md", "deprecated"),
    ("mcp/guardrails.md", "headers that are never sent to it"),
    ("policies/basic_authentication.md", "Hashes"),
    ("policies/api_key_authentication.md", "that of the Secret that comes first by name counts"),
    ("policies/authorization.md", "Prefer `Allow` and `Require`"),
)
"""Page below docs/, and words of it. Of generated references: `unit/api/test_generate_crds.py`."""


@pytest.mark.parametrize(("page", "words"), CAUTIONS)
def test_the_page_says_it(page: str, words: str, root: Path) -> None:
    assert words in " ".join((root / "docs" / page).read_text().split())
