"""What is known of one call of an LLM, for expressions and the log (`llm.*`).

What few ask for is made when somebody does: the messages of a request, what an answer says. It has a value as long as
the body that it is read from is kept (docs/llm/telemetry.md).
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.stages import is_large
from dataplane.llm import content, samples
from dataplane.llm.body import Malformed
from dataplane.llm.samples import Sample
from dataplane.llm.usage import Usage
from gatewright.cel.values import Duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.llm.body import Body
    from dataplane.llm.heard import Heard
    from dataplane.llm.pieces import Steps
    from dataplane.llm.routes import Format

VARIABLE: Final = "llm"
PARAMS: Final = "llm.params"
COST: Final = "llm.cost"
RATES: Final = "llm.costRates"
REQUEST: Final = "llmRequest"
PROMPT: Final = "llm.prompt"
KEPT: Final = 16_384
"""Bytes of a request's body that is kept for `llm.prompt` and `llm.params` while an answer comes; of a larger one they
have a value until the head of the answer is there."""
_NANOSECONDS: Final = 1_000_000_000

TYPES: Final[dict[str, tuple[type, ...]]] = {
    "temperature": (float, int),
    "top_p": (float, int),
    "frequency_penalty": (float, int),
    "presence_penalty": (float, int),
    "seed": (int,),
    "max_tokens": (int,),
    "encoding_format": (str,),
    "dimensions": (int,),
}
"""`llm.params`, with the types that the table of variables gives them."""
_DOUBLES: Final = (float, int)
_INTEGERS: Final = (-(2**63), 2**63 - 1)
"""The least and the largest of expressions; a client may write any."""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


_COUNTS: Final = tuple((each.name, _camel(each.name)) for each in fields(Usage))
"""Fields of `Usage`, and what expressions call them."""


def _no_sample() -> Sample:
    return [], 0


class Facts(dict[str, Any]):  # Any: values of expressions
    """`llm`, or a part of it; with what is made when it is asked for."""

    __slots__ = ("_later", "_sample")

    def __init__(
        self, known: dict[str, Any], later: dict[str, Callable[[], Any]], sample: Callable[[], Sample] = _no_sample
    ) -> None:
        super().__init__(known)
        self._later = later
        self._sample = sample

    def sample(self) -> Sample:
        """Of the messages of the request, while they are kept."""
        return self._sample()

    def get(self, name: str, default: Any = None) -> Any:
        made = self._later.pop(name, None) if self._later else None
        if made is not None:
            found = made()
            if found is not None:
                self[name] = found
        return super().get(name, default)

    def later(self, name: str, made: Callable[[], Any]) -> None:
        self._later[name] = made

    def take(self, other: Facts) -> None:
        """What another one has, with what it would make."""
        self.update(other)
        self._later |= other._later

    def forget(self) -> None:
        """What was not asked for has no value any more."""
        self._later.clear()
        self._sample = _no_sample
        params = super().get("params")
        if isinstance(params, Params):
            params.forget()


class Params(dict[str, Any]):  # Any: as above
    """`llm.params`, each read of the body when it is asked for."""

    __slots__ = ("_body",)

    def __init__(self, body: Body) -> None:
        super().__init__()
        self._body: Body | None = body

    def get(self, name: str, default: Any = None) -> Any:
        if self._body is not None and name in TYPES and name not in self:
            found = _param(self._body, name)
            if found is not None:
                self[name] = found
        return super().get(name, default)

    def forget(self) -> None:
        """As `Facts.forget`."""
        self._body = None


def of_request(form: Format, body: Body, provider: str) -> tuple[Facts, Params]:
    """`llm` of a request, and `llm.params`. `form`: how its body is read."""
    params = Params(body)
    known: dict[str, Any] = {"streaming": body.is_true("stream"), "provider": provider, "params": params}
    model = body.text("model")
    if model is not None:
        known["requestModel"] = model
    found = Facts(known, {}, partial(samples.of_prompt, form, body))
    if not is_large(body.size):
        found.later("prompt", lambda: content.prompt(form, _whole(body)))
    return found, params


def prepared_prompt(known: Facts, form: Format, body: Body) -> Steps[None]:
    """Make that of a large body, for expressions that are about to read it; to others it has no value."""
    yield from body.prepare(samples.PROMPT)
    known["prompt"] = content.prompt(form, _whole(body))
    yield


def read_anew(known: Facts, form: Format, body: Body) -> None:
    """The prompt has changed: what was read of it before is not what is sent."""
    known.pop("prompt", None)
    if not is_large(body.size):
        known.later("prompt", lambda: content.prompt(form, _whole(body)))


def _param(body: Body, name: str) -> Any:
    if (body.raw(name) or b"")[:1] in (b"{", b"["):
        return None
    try:
        found = body.value(name)
    except Malformed:
        return None
    if type(found) not in TYPES[name]:
        return None
    if type(found) is int:  # a rule that bounds it from above goes on to hold
        found = sorted((found, *_INTEGERS))[1]
    return float(found) if TYPES[name] == _DOUBLES else found


def _whole(body: Body) -> dict[str, Any]:
    wanted = [name for name in samples.PROMPT if name in body.names]
    try:
        return {name: body.value(name) for name in wanted}
    except Malformed:
        return {}


def add_usage(facts: Facts, found: Usage) -> None:
    for field, name in _COUNTS:
        value = getattr(found, field)
        if value is not None:
            facts[name] = value
    if found.total_tokens is not None:
        facts["totalTokens"] = found.total_tokens


def sum_usage(facts: Facts, found: Usage) -> None:
    """Add what one of several answers cost."""
    for field, name in _COUNTS:
        value = getattr(found, field)
        if value is not None:
            facts[name] = (facts.get(name) or 0) + value
    if found.total_tokens is not None:
        facts["totalTokens"] = (facts.get("totalTokens") or 0) + found.total_tokens


def add_estimate(facts: Facts, inputs: Callable[[], int], outputs: int) -> None:
    """Of a call that ended before the provider had reported its usage: what was reported counts, the rest is estimated.
    What a provider reports of the output before its end is what it begins with."""
    found = facts.get("inputTokens")
    facts["inputTokens"] = inputs() if found is None else found
    facts["outputTokens"] = max(outputs, facts.get("outputTokens") or 0)
    facts["totalTokens"] = facts["inputTokens"] + facts["outputTokens"]
    facts["usageEstimated"] = True


def add_stream(facts: Facts, heard: Heard) -> None:
    """The same as `add_answer` of a stream."""
    said = cache(heard.said)
    facts.later("completion", lambda: said().texts)
    facts.later("toolCalls", lambda: said().tools)


def add_answer(facts: Facts, form: Format, answer: Any) -> None:
    """What a whole answer says, for who asks. Any: JSON of a provider."""
    said = cache(lambda: content.of_answer(form, answer))
    facts.later("completion", lambda: said()[0])
    facts.later("toolCalls", lambda: said()[1])


def seconds(value: float) -> Duration:
    return Duration(int(value * _NANOSECONDS))
