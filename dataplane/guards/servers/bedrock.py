"""A guardrail of Amazon Bedrock (ApplyGuardrail): it blocks or masks. Pure.

What it intervenes in is masked where it has only masked, and gives as many texts as it got; all else is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from dataplane.guards.servers.contract import Question
from dataplane.guards.servers.reading import field_of, object_of
from dataplane.guards.values import Phase
from dataplane.guards.verdicts import PASSED, REJECTED, Unreadable, Verdict

if TYPE_CHECKING:
    from dataplane.guards.values import Text

_SOURCES: Final = {Phase.REQUEST: "INPUT", Phase.RESPONSE: "OUTPUT"}
_NONE, _INTERVENED = "NONE", "GUARDRAIL_INTERVENED"
_MASKS: Final = frozenset(("ANONYMIZED", "NONE"))


@dataclass(frozen=True, slots=True)
class Bedrock:
    backend: str
    fails_open: bool
    identifier: str
    version: str

    def question(self, phase: Phase, texts: Sequence[Text]) -> Question:
        target = f"/guardrail/{quote(self.identifier, safe='')}/version/{quote(self.version, safe='')}/apply"
        body = {"source": _SOURCES[phase], "content": [{"text": {"text": each.text}} for each in texts]}
        return Question(target.encode(), msgspec.json.encode(body))

    def verdict(self, phase: Phase, texts: Sequence[Text], body: bytes) -> Verdict:
        answer = object_of(body)
        action = field_of(answer, "action", str)
        if action == _NONE:
            return PASSED
        if action != _INTERVENED:
            raise Unreadable("action of its answer is neither of the two that there are")
        outputs = [each.get("text") if type(each) is dict else None for each in field_of(answer, "outputs", list)]
        actions = [*_actions(answer.get("assessments"))]
        is_masked = bool(actions) and all(each in _MASKS for each in actions)
        if not is_masked or len(outputs) != len(texts) or any(type(each) is not str for each in outputs):
            return REJECTED
        return Verdict(texts=tuple(map(str, outputs)))

    def forwards(self, name: bytes, value: bytes) -> bool:
        return False


def _actions(assessments: Any) -> Iterator[Any]:
    """What each policy of the guardrail did, wherever it stands. Any: JSON."""
    waiting = [assessments]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if "action" in value:
                yield value["action"]
            waiting += value.values()
        elif type(value) is list:
            waiting += value
