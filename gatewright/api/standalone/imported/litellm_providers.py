"""Deployments of LiteLLM as providers of Gatewright: which provider a name means, where it is, and what a token of it
costs.

Pure; called by `litellm`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from gatewright.api.schema.fields import PRICE_PATTERN

Json = dict[str, Any]  # Any: of a user's YAML

_MILLION: Final = 1_000_000
_MODEL: Final = 256
_PRICE_EXPONENT: Final = 13
"""No price has more digits on either side of its point."""

HOSTS: Final = {
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "together_ai": "https://api.together.xyz/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "xai": "https://api.x.ai/v1",
    "fireworks_ai": "https://api.fireworks.ai/inference/v1",
}
"""Providers with OpenAI's API, by LiteLLM's name."""
_WITH_BASE: Final = ("hosted_vllm", "openai_like", "lm_studio", "llamafile", "ollama", "ollama_chat", "litellm_proxy")
"""Servers with OpenAI's API, which need `api_base`."""
_KINDS: Final = {"openai": "openai", "text-completion-openai": "openai", "anthropic": "anthropic", "gemini": "gemini"}
COSTS: Final = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cacheRead",
    "cache_creation_input_token_cost": "cacheWrite",
}
variable_of = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)").fullmatch
"""A text that names a variable of the environment, as a match."""


class Left(Exception):
    """It cannot be carried; the text is the reason."""


def provider_of(params: Json) -> Json:
    """An item of `providers`. Raises `Left`."""
    kind, slash, model = str(params["model"]).partition("/")
    if not slash:
        kind, model = ("anthropic" if kind.startswith("claude") else "openai"), kind
    if not 0 < len(model) <= _MODEL:
        raise Left(f"model: must have 1 to {_MODEL} characters")
    base = params.get("api_base", params.get("base_url"))
    if isinstance(base, str) and variable_of(base):
        raise Left("api_base is a variable: write the address out")
    base = base if isinstance(base, str) else ""
    if kind == "azure":
        return _azure(model, base, params)
    if kind in HOSTS or kind in _WITH_BASE:
        return _compatible(kind, model, base or HOSTS.get(kind, ""))
    if kind not in _KINDS:
        raise Left(f"{kind}: this provider is not carried")
    made: Json = {_KINDS[kind]: {"model": model}}
    return {**made, **_place(base, _KINDS[kind])} if base else made


def _azure(model: str, base: str, params: Json) -> Json:
    host = _parsed(base).hostname
    if not host:
        raise Left("azure: api_base must be set")
    version = params.get("api_version")
    made: Json = {"endpoint": host, "deploymentName": model}
    return {"azureopenai": {**made, "apiVersion": version} if isinstance(version, str) else made}


def _compatible(kind: str, model: str, base: str) -> Json:
    if not base:
        raise Left(f"{kind}: api_base must be set")
    if kind.startswith("ollama") and not _parsed(base).path.strip("/"):
        base = base.rstrip("/") + "/v1"  # where it has OpenAI's API
    return {"openai": {"model": model}, **_place(base, "openai")}


def _parsed(base: str) -> SplitResult:
    """Raises `Left`."""
    try:
        parts = urlsplit(base)
        parts.port  # noqa: B018  # it is looked at when it is asked for
    except ValueError:
        raise Left("api_base is no URL") from None
    return parts


def _place(base: str, kind: str) -> Json:
    parts = _parsed(base if "://" in base else f"https://{base}")
    host, port = parts.hostname, parts.port
    if not host:
        raise Left("api_base is no URL")
    found: Json = {"host": host, "port": port or (80 if parts.scheme == "http" else 443)}
    path = parts.path.rstrip("/")
    if path and kind in ("openai", "anthropic") and path != "/v1":
        found["pathPrefix"] = path
    if parts.scheme == "https" and found["port"] != 443:
        raise Left("api_base: TLS on another port than 443: write the provider with policies.tls")
    return found


def model_of(made: Json) -> str:
    config = next(value for value in made.values() if isinstance(value, dict))
    return str(config.get("model") or config.get("deploymentName"))


def per_million(cost: Any) -> str | None:  # Any: of a user's YAML
    """The price of a million tokens of which one costs this; None: it is none that `config.prices` can have."""
    try:
        found = Decimal(str(cost)) * _MILLION
    except ArithmeticError:
        return None
    if found and not -_PRICE_EXPONENT <= found.adjusted() < _PRICE_EXPONENT:  # before it is written out
        return None
    text = format(found.normalize(), "f")
    return text if re.fullmatch(PRICE_PATTERN, text) else None
