"""The configuration of LiteLLM's proxy as a file of a proxy alone: a route for each name of a model, equal deployments
in one group, fallbacks in the groups behind it.

Pure: text in, values out. What could not be carried is listed by its path in LiteLLM's file, with the reason, and so is
every key that is not known: nothing is left out silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from gatewright.api.schema.fields import HEADER_VALUE_PATTERN
from gatewright.api.standalone.imported.litellm_keys import BODY, CARRIED, READ, REASONS, UNKNOWN
from gatewright.api.standalone.imported.litellm_providers import (
    COSTS,
    Json,
    Left,
    model_of,
    per_million,
    provider_of,
    variable_of,
)
from gatewright.api.text import yaml_text

PORT: Final = 4000
HEADER: Final = "x-gatewright-model"
"""Where the model of a body chooses a route; the provider does not get it."""
MOST_GROUPS: Final = 8
MOST_PROVIDERS: Final = 16
_COOLDOWN: Final = 5
"""Seconds, as LiteLLM has it."""
_LONGEST: Final = 99_999
"""Seconds: five digits are the most that a duration has of one unit (GEP-2257)."""
_MOST: Final = 2**31 - 1
_TRIES: Final = 64
_NAME: Final = 4096
_LISTS: Final = ("/v1/models", "/models")
ROUTES: Final = {
    "/chat/completions": "Completions",
    "/responses": "Responses",
    "/messages": "Messages",
    "/embeddings": "Embeddings",
    "/rerank": "Rerank",
}


class NotLitellms(ValueError):
    """The text is no such configuration; the message says what it should be."""


@dataclass(slots=True)
class Imported:
    """`document`: the file; empty when nothing could be carried. `left_out`: by path, with the reason."""

    document: Json = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    """Variables that the proxy's environment has to have."""
    models: list[str] = field(default_factory=list)
    """Names that clients may call."""


class Deployment(NamedTuple):
    path: str
    name: str
    """Of the model, as clients call it."""
    provider: Json
    """An item of `providers`, without its name."""


def imported(text: str, port: int = PORT) -> Imported:
    """Raises `NotLitellms`."""
    try:
        value = yaml_text.load(text)
    except yaml_text.TextError as error:
        raise NotLitellms(f"line {error.line}: {error.message}") from None
    if not isinstance(value, dict) or not isinstance(value.get("model_list"), list):
        raise NotLitellms("must be a configuration of LiteLLM's proxy, with model_list")
    return _Import(value, port).made()


class _Import:
    def __init__(self, config: Json, port: int) -> None:
        self._config, self._port = config, port
        self._found = Imported()
        self._prices: Json = {}

    def made(self) -> Imported:
        found, config = self._found, self._config
        settings = {
            name: _section(config, name) for name in ("litellm_settings", "router_settings", "general_settings")
        }
        for name in config:
            if name not in (*settings, "model_list"):
                self._left(name, "not carried: set it for the proxy's environment" if "env" in name else UNKNOWN)
        deployments = list(self._deployments())
        by_name: dict[str, list[Deployment]] = {}
        for each in deployments:
            by_name.setdefault(each.name, []).append(each)
        fallbacks = self._fallbacks(settings)
        aliases = self._aliases(settings["router_settings"], by_name)
        self._rest(settings)
        if not by_name:
            return found
        found.models = [*by_name, *aliases]
        routes, shared = [self._models_route(found.models)], self._shared()
        for name in by_name:
            names = [name, *(alias for alias, meant in aliases.items() if meant == name)]
            routes.append(_route(names, self._groups(name, by_name, fallbacks), *shared))
        listener = {"name": "llm", "policies": self._entry(settings["general_settings"]), "routes": routes}
        found.document = {"binds": [{"port": self._port, "listeners": [listener]}]}
        if self._prices:
            found.document = {"config": {"prices": {"models": self._prices}}, **found.document}
        return found

    def _left(self, path: str, why: str) -> None:
        self._found.left_out[path] = why

    # --- deployments

    def _deployments(self) -> Iterator[Deployment]:
        for index, item in enumerate(self._config["model_list"]):
            path = f"model_list[{index}]"
            try:
                yield self._deployment(path, item)
            except Left as error:
                self._left(path, str(error))

    def _deployment(self, path: str, item: Any) -> Deployment:
        params = item.get("litellm_params") if isinstance(item, dict) else None
        name = item.get("model_name") if isinstance(item, dict) else None
        if not isinstance(params, dict) or not isinstance(name, str) or not isinstance(params.get("model"), str):
            raise Left("model_name and litellm_params.model must be set")
        if "*" in name:
            raise Left(f"{name}: models by a pattern have no route; write each out")
        if not _is_name(name):
            raise Left(f"{name!r}: such a name has no route")
        provider = provider_of(params)
        for key in item.keys() - {"model_name", "litellm_params", "model_info"}:
            self._left(f"{path}.{key}", UNKNOWN)
        info = item.get("model_info")
        for key in info if isinstance(info, dict) else ():
            if key not in COSTS:
                self._left(f"{path}.model_info.{key}", "information for LiteLLM alone")
        for key in params:
            if key not in READ and key not in BODY:
                self._left(f"{path}.litellm_params.{key}", REASONS.get(key, UNKNOWN))
        self._price(path, params, info if isinstance(info, dict) else {}, provider)
        policies = self._policies(path, params)
        return Deployment(path, name, {**provider, "policies": policies} if policies else provider)

    def _policies(self, path: str, params: Json) -> Json:
        found: Json = {}
        key = params.get("api_key")
        if isinstance(key, str) and key:
            number = path.partition("[")[2].partition("]")[0]
            found["auth"] = {
                "secretRef": self._content(f"{path}.litellm_params.api_key", key, f"MODEL_{number}_API_KEY")
            }
        seconds = "timeout" if "timeout" in params else "request_timeout"
        time = self._time(f"{path}.litellm_params.{seconds}", params.get(seconds))
        if time:
            found["http"] = {"requestTimeout": time}
        defaults = [{"field": name, "value": value} for name, value in params.items() if name in BODY]
        if defaults:
            found["ai"] = {"routes": ROUTES, "defaults": defaults}
        return found

    def _content(self, path: str, text: str, name: str) -> Json:
        """A secret, by the variable that has it: one that is written out is not copied."""
        variable = variable_of(text)
        if variable is None:
            self._left(path, f"a secret is not copied: the proxy reads it from the variable {name}")
        else:
            name = variable[1]
        if name not in self._found.variables:
            self._found.variables.append(name)
        return {"env": name}

    def _price(self, path: str, params: Json, info: Json, provider: Json) -> None:
        found = {}
        for key, name in COSTS.items():
            value = params.get(key, info.get(key))
            if value is not None:
                price = per_million(value)
                if price is None:
                    self._left(f"{path}.litellm_params.{key}", "is no price that can be carried")
                else:
                    found[name] = price
        if "input" in found:
            if self._prices.setdefault(model_of(provider), found) != found:
                self._left(f"{path}.litellm_params", "another deployment of the model has another price, which counts")
        elif found:
            self._left(f"{path}.litellm_params", "a price needs input_cost_per_token")

    # --- routes

    def _groups(
        self, name: str, by_name: Mapping[str, list[Deployment]], fallbacks: Mapping[str, list[str]]
    ) -> list[Json]:
        groups: list[Json] = []
        for each in dict.fromkeys((name, *fallbacks.get(name, ()))):
            members = by_name.get(each, [])
            for extra in members[MOST_PROVIDERS:]:
                self._left(extra.path, f"a group has at most {MOST_PROVIDERS} providers")
            number = len(groups) + 1
            providers = [
                {"name": f"g{number}-{at}", **member.provider} for at, member in enumerate(members[:MOST_PROVIDERS], 1)
            ]
            if providers:
                groups.append({"providers": providers})
        return groups[:MOST_GROUPS]

    def _shared(self) -> tuple[Json, Json]:
        """The policies of every route, and of every backend."""
        policies: Json = {"headerModifiers": {"request": {"remove": [HEADER]}}}
        retries = self._number(*self._setting("num_retries"))
        if retries is not None:
            policies["retry"] = {"attempts": min(retries, _TRIES), "codes": [429, 500, 502, 503, 504]}
        time = self._time(*self._setting("request_timeout", "timeout"))
        if time:
            policies["timeouts"] = {"request": time}
        of_backend: Json = {"ai": {"routes": ROUTES}}
        fails = self._number(*self._setting("allowed_fails"))
        cooldown = self._time(*self._setting("cooldown_time"), least=0)
        if fails is not None or cooldown:
            eviction: Json = {"duration": cooldown or f"{_COOLDOWN}s"}
            if fails is not None:
                eviction["consecutiveFailures"] = fails + 1
            of_backend["health"] = {"eviction": eviction}
        return policies, of_backend

    def _setting(self, *keys: str) -> tuple[str, Any]:  # Any: of a user's YAML
        """Where the first of them stands, for the router before all, and what it is."""
        for key in keys:
            for section in ("router_settings", "litellm_settings"):
                found = _section(self._config, section)
                if key in found:
                    return f"{section}.{key}", found[key]
        return "", None

    def _number(self, path: str, value: Any) -> int | None:  # Any: as above
        if value is None or (type(value) is int and 0 <= value < _MOST):
            return value
        self._left(path, f"must be an integer from 0 to {_MOST - 1}")
        return None

    def _time(self, path: str, value: Any, least: float = 0.001) -> str | None:  # Any: as above
        """Of seconds; None: it is not set, or was left out."""
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= _LONGEST:
            self._left(path, f"must be seconds, from {least} to {_LONGEST}")
            return None
        milliseconds = max(1, round(value * 1000))
        return f"{milliseconds}ms" if milliseconds <= _LONGEST else f"{round(value)}s"

    def _models_route(self, names: list[str]) -> Json:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "openai"} for name in names]
        body = json.dumps({"object": "list", "data": listed})
        return {
            "matches": [{"path": {"type": "Exact", "value": path}, "method": "GET"} for path in _LISTS],
            "policies": {
                "directResponse": {
                    "status": 200,
                    "body": body,
                    "headers": [{"name": "content-type", "value": "'application/json'"}],
                }
            },
        }

    def _entry(self, general: Json) -> Json:
        policies: Json = {"phase": "PreRouting"}
        key = general.get("master_key")
        if isinstance(key, str) and key:
            policies["apiKeyAuthentication"] = {
                "secretRef": {"master": self._content("general_settings.master_key", key, "MASTER_KEY")}
            }
        model = {"name": HEADER, "value": "json(request.body).model"}
        policies["transformation"] = {"request": {"set": [model]}}
        return policies

    # --- settings

    def _fallbacks(self, settings: Mapping[str, Json]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for section in ("litellm_settings", "router_settings"):
            for each in _list(settings[section].get("fallbacks")):
                for name, names in each.items() if isinstance(each, dict) else ():
                    found.setdefault(name, []).extend(map(str, _list(names)))
            default = settings[section].get("default_fallbacks")
            if default is not None:
                self._left(f"{section}.default_fallbacks", "write fallbacks for each model")
        return found

    def _aliases(self, router: Json, by_name: Mapping[str, object]) -> dict[str, str]:
        found = {}
        aliases = router.get("model_group_alias")
        for alias, meant in aliases.items() if isinstance(aliases, dict) else ():
            name = meant.get("model") if isinstance(meant, dict) else meant
            if isinstance(name, str) and name in by_name and alias not in by_name and _is_name(alias):
                found[alias] = name
            else:
                self._left(
                    f"router_settings.model_group_alias.{alias}",
                    "names no model that was carried, or one itself, or has no route",
                )
        return found

    def _rest(self, settings: Mapping[str, Json]) -> None:
        for section, values in settings.items():
            for key, value in values.items():
                if key in CARRIED[section]:
                    continue
                if key == "routing_strategy" and value == "simple-shuffle":
                    continue
                self._left(f"{section}.{key}", REASONS.get(key, UNKNOWN))


def _section(config: Json, name: str) -> Json:
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _route(names: list[str], groups: list[Json], policies: Json, of_backend: Json) -> Json:
    retry = policies.get("retry")
    if retry is not None:  # LiteLLM counts fallbacks apart; `attempts` bounds all tries
        behind = sum(len(group["providers"]) for group in groups[1:])
        policies = {**policies, "retry": {**retry, "attempts": min(retry["attempts"] + behind, _TRIES)}}
    matches = [{"headers": [{"name": HEADER, "value": name}]} for name in names]
    backend = {"ai": {"groups": groups}, "policies": of_backend}
    return {"matches": matches, "policies": policies, "backends": [backend]}


def _is_name(text: str) -> bool:
    """Whether a header can have it."""
    return 0 < len(text) <= _NAME and re.fullmatch(HEADER_VALUE_PATTERN, text) is not None
