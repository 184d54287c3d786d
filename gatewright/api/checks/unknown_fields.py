"""Where a field belongs that is unknown where it stands: a slip, a level too high or too low, the other kind.

Called by the words for errors. It reads models and knows, beside their names, what people look for in the wrong kind.
"""

from __future__ import annotations

from typing import Final, get_origin

from pydantic import BaseModel

from gatewright.api.checks.field_paths import Path, bare, field_of, model_at, names_of
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.near_names import did_you_mean, near_name
from gatewright.attach.policies import RULE, TRAFFIC, of

SLIP: Final = 0.9
NEAR: Final = 0.68
"""How like a field an unknown one is, to be taken for it at once, or for want of better: `namespace` is no `name`."""

_KEYS: Final = dict.fromkeys(
    ("apiKey", "api_key", "key", "token"), "a provider's key is auth in policies, beside ai or beside the provider"
)
_PROVIDERS: Final = dict.fromkeys(
    ("openai", "anthropic", "gemini", "azure", "azureopenai", "bedrock", "vertexai"), "it belongs in ai.provider"
)
_URL: Final = {"url": "it is static, with host, port and path"}
_ADDRESS: Final = {"url": "host, port and path say it"}
OF_A_POLICY: Final = "it is a setting of a GatewayPolicy, under spec.traffic"
_FILTERS: Final = [to_camel(row.name) for row in of(RULE)]
ELSEWHERE: Final[dict[str, dict[str, str]]] = {
    "Traffic": dict.fromkeys(_FILTERS, "it is a filter of an HTTPRoute's rule"),
    "HTTPRouteRule": {
        **{to_camel(row.attribute): OF_A_POLICY for row in of(TRAFFIC) if row.inline != "field"},
        **dict.fromkeys(("cors", *_FILTERS), "it is an item of filters"),
    },
    **dict.fromkeys(("FileRouteBackend", "FileBackend", "GatewayBackendSpec"), _PROVIDERS),
    **dict.fromkeys(("ModelConfig", "LLMProvider", "FileLLMProvider"), _KEYS),
    **dict.fromkeys(("McpTarget", "FileMcpTarget"), _ADDRESS),
    "McpTargetSelector": _URL,
    "FileMcpTargetSelector": _URL | {"command": "it is stdio, with cmd and args"},
    "Stdio": {"command": "it is cmd"},
}
"""What people look for in another place than where it is, as other products have it: model and field to where it is."""


def meant(model: type[BaseModel], path: Path) -> str:
    """The ending of "unknown field" for a path of `model`: what was probably meant, or the fields that are there."""
    parent, name = model_at(model, path[:-1]), str(path[-1])
    if parent is None:
        return ""
    names = names_of(parent)
    elsewhere = ELSEWHERE.get(parent.__name__, {}).get(name)
    if elsewhere is not None:
        return f"; {elsewhere}"
    if near_name(name, names, likeness=SLIP) is None:
        misplaced = _below(parent, name) or _above(model, path)
        if misplaced:
            return misplaced
    return did_you_mean(name, names, label="fields here", likeness=NEAR)


def _below(parent: type[BaseModel], name: str) -> str:
    """Of a field that others of its level have within them: `traffic.timeouts`, `local[].unit`."""
    found = []
    for field in names_of(parent):
        child = model_at(parent, (field,))
        if child is not None and name in names_of(child):
            found.append(f'"{field}{"[]" if _is_list(parent, field) else ""}.{name}"')
    return f"; did you mean {' or '.join(sorted(found))}?" if 0 < len(found) <= MOST else ""


MOST: Final = 3
"""Places named; with more of them none is what was meant."""


def _is_list(parent: type[BaseModel], name: str) -> bool:
    field = field_of(parent, name)
    return field is not None and get_origin(bare(field.annotation)[0]) in (tuple, list)


def _above(model: type[BaseModel], path: Path) -> str:
    """Of a field that stands a level too deep, as after a wrong indentation."""
    around = [index for index, part in enumerate(path[:-1]) if isinstance(part, str)]
    above = model_at(model, path[: around[-1]]) if around else None
    if above is None or path[-1] not in names_of(above):
        return ""
    return f'; it belongs one level higher, beside "{path[around[-1]]}"'
