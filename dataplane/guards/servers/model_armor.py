"""A template of Google Model Armor (sanitizeUserPrompt, sanitizeModelResponse): what any of its filters finds is
rejected. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from dataplane.guards.servers.contract import Question
from dataplane.guards.servers.reading import field_of, object_of
from dataplane.guards.values import Phase
from dataplane.guards.verdicts import PASSED, REJECTED, Unreadable, Verdict

if TYPE_CHECKING:
    from dataplane.guards.values import Text

_METHODS: Final = {
    Phase.REQUEST: ("sanitizeUserPrompt", "userPromptData"),
    Phase.RESPONSE: ("sanitizeModelResponse", "modelResponseData"),
}
_FOUND, _NOT_FOUND = "MATCH_FOUND", "NO_MATCH_FOUND"
_DONE: Final = "SUCCESS"


@dataclass(frozen=True, slots=True)
class ModelArmor:
    backend: str
    fails_open: bool
    project: str
    location: str
    template: str

    def question(self, phase: Phase, texts: Sequence[Text]) -> Question:
        method, data = _METHODS[phase]
        place = "/".join(
            f"{name}/{quote(value, safe='')}"
            for name, value in (("projects", self.project), ("locations", self.location), ("templates", self.template))
        )
        body = {data: {"text": "\n".join(each.text for each in texts)}}
        return Question(f"/v1/{place}:{method}".encode(), msgspec.json.encode(body))

    def verdict(self, phase: Phase, texts: Sequence[Text], body: bytes) -> Verdict:
        result = field_of(object_of(body), "sanitizationResult", dict)
        state = result.get("filterMatchState")
        if state == _FOUND or _finds(result.get("filterResults")):
            return REJECTED
        if state != _NOT_FOUND:
            raise Unreadable("filterMatchState of its answer is neither of the two that there are")
        if result.get("invocationResult", _DONE) != _DONE:
            raise Unreadable("not all of its filters have judged")
        return PASSED

    def forwards(self, name: bytes, value: bytes) -> bool:
        return False


def _finds(results: object) -> bool:
    """Whether any filter has found something: results are a map, or a list, of filters with parts of their own."""
    waiting = [results]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if value.get("matchState") == _FOUND:
                return True
            waiting += value.values()
        elif type(value) is list:
            waiting += value
    return False
