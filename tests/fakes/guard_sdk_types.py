"""Messages of guard servers by the types that their makers publish, in their own environment (`cloud-python`). What we
ask is checked strictly: no unknown name, no value outside of an enum or a bound. Answers are made of all that the types
have. JSON on standard input and output."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, get_args

import botocore.session
from botocore.validate import ParamValidator
from google.cloud import modelarmor_v1
from google.protobuf import json_format
from openai.types import ModerationCreateParams, ModerationCreateResponse
from pydantic import TypeAdapter

APPLY = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("ApplyGuardrail")
ARMOR = {
    "sanitizeUserPrompt": modelarmor_v1.SanitizeUserPromptRequest,
    "sanitizeModelResponse": modelarmor_v1.SanitizeModelResponseRequest,
}


def bedrock(target: str, body: dict[str, Any]) -> list[str]:
    """Problems."""
    found = re.fullmatch(r"/guardrail/([^/]+)/version/([^/]+)/apply", target)
    if found is None:
        return [f"{target} is no target of ApplyGuardrail"]
    asked = {"guardrailIdentifier": found[1].replace("%2F", "/"), "guardrailVersion": found[2], **body}
    report = ParamValidator().validate(asked, APPLY.input_shape)
    return [*filter(None, [report.generate_report()]), *_beyond(asked, APPLY.input_shape, "")]


def _beyond(value: Any, shape: Any, path: str) -> list[str]:
    """What the validator does not look at: enums and patterns."""
    if shape.type_name == "structure":
        return [each for name, below in value.items() for each in _beyond(below, shape.members[name], f"{path}.{name}")]
    if shape.type_name == "list":
        return [each for below in value for each in _beyond(below, shape.member, f"{path}[]")]
    enum, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if enum and value not in enum:
        return [f"{path}: {value} is none of {enum}"]
    return [] if not pattern or re.fullmatch(pattern, value) else [f"{path}: {value} is not like {pattern}"]


def actions(
    shape: Any, found: dict[str, list[str]], path: str = "", seen: tuple[str, ...] = ()
) -> dict[str, list[str]]:
    """Where an answer says what a policy did, and what it may say."""
    if shape.name in seen:
        return found
    for name, below in getattr(shape, "members", {}).items():
        if name == "action":
            found[f"{path}.{name}"] = below.metadata.get("enum", [])
        actions(below, found, f"{path}.{name}", (*seen, shape.name))
    if shape.type_name == "list":
        actions(shape.member, found, f"{path}[]", (*seen, shape.name))
    return found


def moderation(body: dict[str, Any]) -> list[str]:
    TypeAdapter(ModerationCreateParams).validate_python(body, strict=False)
    return [f"{name} is unknown" for name in body if name not in ModerationCreateParams.__annotations__]


def armor(target: str, body: dict[str, Any]) -> list[str]:
    found = re.fullmatch(r"/v1/(projects/[^/]+/locations/[^/]+/templates/[^/]+):(\w+)", target)
    if found is None:
        return [f"{target} is no target of Model Armor"]
    json_format.ParseDict({"name": found[1], **body}, ARMOR[found[2]].pb(ARMOR[found[2]]()))
    return []


def flagged(*flags: bool) -> dict[str, Any]:
    """An answer with every category."""
    fields = ModerationCreateResponse.model_fields["results"].annotation
    (result,) = get_args(fields)
    categories = result.model_fields["categories"].annotation
    scores = result.model_fields["category_scores"].annotation
    types = result.model_fields["category_applied_input_types"].annotation
    made = [
        {
            "flagged": flag,
            "categories": {_alias(each, name): flag for name, each in categories.model_fields.items()},
            "category_scores": {_alias(each, name): 0.5 for name, each in scores.model_fields.items()},
            "category_applied_input_types": {_alias(each, name): ["text"] for name, each in types.model_fields.items()},
        }
        for flag in flags
    ]
    answer = {"id": "m", "model": "omni-moderation-latest", "results": made}
    return ModerationCreateResponse.model_validate(answer, strict=True).model_dump(by_alias=True)


def _alias(field: Any, name: str) -> str:
    return field.alias or name


def sanitized(matches: str) -> dict[str, Any]:
    """An answer in which each sort of filter says `matches`, as the sum does."""
    answer = modelarmor_v1.SanitizeUserPromptResponse.pb(modelarmor_v1.SanitizeUserPromptResponse())
    given = {
        "sanitizationResult": {
            "filterMatchState": matches,
            "invocationResult": "SUCCESS",
            "filterResults": {
                "rai": {"raiFilterResult": {"executionState": "EXECUTION_SUCCESS", "matchState": matches}},
                "csam": {"csamFilterFilterResult": {"executionState": "EXECUTION_SUCCESS", "matchState": matches}},
                "pi_and_jailbreak": {
                    "piAndJailbreakFilterResult": {"executionState": "EXECUTION_SUCCESS", "matchState": matches}
                },
                "malicious_uris": {"maliciousUriFilterResult": {"matchState": matches}},
                "sdp": {"sdpFilterResult": {"inspectResult": {"matchState": matches}}},
            },
        }
    }
    return json_format.MessageToDict(json_format.ParseDict(given, answer))


def main() -> None:
    asked = json.load(sys.stdin)
    problems = {
        "bedrock": [each for one in asked["bedrock"] for each in bedrock(*one)],
        "moderation": [each for _, body in asked["moderation"] for each in moderation(body)],
        "armor": [each for one in asked["armor"] for each in armor(*one)],
    }
    states = list(modelarmor_v1.FilterMatchState.__members__)
    print(json.dumps({
        "problems": problems,
        "actions": actions(APPLY.output_shape, {}),
        "moderation": {"pass": flagged(False, False), "reject": flagged(False, True)},
        "armor": {state: sanitized(state) for state in states},
        "invocation": list(modelarmor_v1.InvocationResult.__members__),
    }))  # fmt: skip


main()
