"""OpenAI's moderation: any text that is flagged is rejected (https://platform.openai.com/docs/api-reference/moderations).
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataplane.guards.servers.contract import Question
from dataplane.guards.servers.reading import field_of, object_of
from dataplane.guards.verdicts import PASSED, REJECTED, Unreadable, Verdict

if TYPE_CHECKING:
    from dataplane.guards.values import Phase, Text

TARGET: Final = b"/v1/moderations"


@dataclass(frozen=True, slots=True)
class Moderation:
    backend: str
    fails_open: bool
    model: str

    def question(self, phase: Phase, texts: Sequence[Text]) -> Question:
        body: dict[str, Any] = {"input": [each.text for each in texts]}
        if self.model:
            body["model"] = self.model
        return Question(TARGET, msgspec.json.encode(body))

    def verdict(self, phase: Phase, texts: Sequence[Text], body: bytes) -> Verdict:
        results = field_of(object_of(body), "results", list)
        if len(results) != len(texts):
            raise Unreadable(f"its answer has {len(results)} results for {len(texts)} texts")
        flags = [each.get("flagged") if type(each) is dict else None for each in results]
        if any(type(flag) is not bool for flag in flags):
            raise Unreadable("a result of its answer does not say whether it is flagged")
        return REJECTED if any(flags) else PASSED

    def forwards(self, name: bytes, value: bytes) -> bool:
        return False
