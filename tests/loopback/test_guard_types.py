"""Servers of guards by the types that their makers publish: what they are asked is as these types have it, and answers
made of all that the types have are understood."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dataplane.guards.servers import Server
from dataplane.guards.servers.bedrock import Bedrock
from dataplane.guards.servers.model_armor import ModelArmor
from dataplane.guards.servers.moderation import Moderation
from dataplane.guards.values import Phase, Text
from dataplane.guards.verdicts import PASSED, REJECTED, Unreadable, Verdict
from tests.conftest import need_tool
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.needs("cloud-python")

TYPES = Path(__file__).parent.parent / "fakes" / "guard_sdk_types.py"
TEXTS = (Text("one"), Text('two \u00e9\n"', role="system"))
SERVERS: dict[str, Server] = {
    "bedrock": Bedrock("backend", False, "abc123", "DRAFT"),
    "moderation": Moderation("backend", False, "omni-moderation-latest"),
    "armor": ModelArmor("backend", False, "p", "us-central1", "t"),
}


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    asked: dict[str, list[Any]] = {}
    for name, server in SERVERS.items():
        phases = (Phase.REQUEST,) if name == "moderation" else (Phase.REQUEST, Phase.RESPONSE)
        questions = [server.question(phase, TEXTS) for phase in phases]
        asked[name] = [(each.target.decode(), json.loads(each.body)) for each in questions]
    command = [need_tool("cloud-python"), str(TYPES)]
    done = subprocess.run(
        command, input=json.dumps(asked).encode(), check=True, capture_output=True, timeout=4 * PATIENCE
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def verdict(name: str, answer: Any, phase: Phase = Phase.REQUEST) -> Verdict:
    return SERVERS[name].verdict(phase, TEXTS, json.dumps(answer).encode())


def test_servers_are_asked_as_their_types_have_it(published: dict[str, Any]) -> None:
    assert published["problems"] == {"bedrock": [], "moderation": [], "armor": []}


def test_answers_of_moderation(published: dict[str, Any]) -> None:
    assert verdict("moderation", published["moderation"]["pass"]) == PASSED
    assert verdict("moderation", published["moderation"]["reject"]) == REJECTED


def test_answers_of_model_armor(published: dict[str, Any]) -> None:
    said = published["armor"]
    assert verdict("armor", said.pop("MATCH_FOUND")) == REJECTED
    assert verdict("armor", said.pop("NO_MATCH_FOUND")) == PASSED
    assert said.keys() == {"FILTER_MATCH_STATE_UNSPECIFIED"}
    with pytest.raises(Unreadable):
        verdict("armor", said["FILTER_MATCH_STATE_UNSPECIFIED"])


def test_whatever_a_policy_of_bedrock_did_is_understood(published: dict[str, Any]) -> None:
    """Each place of an answer at which a policy says what it did, with each value that it may have there."""
    masked = ["one", "{NAME}"]
    places = {place: values for place, values in published["actions"].items() if place != ".action"}
    assert published["actions"][".action"] == ["NONE", "GUARDRAIL_INTERVENED"] and len(places) >= 7
    for place, values in places.items():
        _, policy, kind, _ = place.replace("[]", "").strip(".").split(".")
        for value in values:
            answer = {
                "action": "GUARDRAIL_INTERVENED",
                "outputs": [{"text": each} for each in masked],
                "assessments": [{policy: {kind: [{"action": value, "type": "X", "match": "x"}]}}],
            }
            wanted = REJECTED if value == "BLOCKED" else Verdict(texts=tuple(masked))
            assert verdict("bedrock", answer) == wanted, (place, value)
