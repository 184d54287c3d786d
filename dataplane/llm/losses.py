"""What becomes of what a format cannot say: refused by name, or dropped where that is harmless, with the reason. Pure.

`CARRIED` has what each provider's format has a place for; `ROWS` what happens to the rest. docs/llm/translation.md is
made of both. A user may have all of it dropped (`backend.ai.unsupportedFields: Drop`); what is dropped is in the log
(`llm.dropped`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.llm.body import Malformed
from dataplane.llm.chat import Origin, Thinking
from dataplane.llm.features import Feature as F
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.llm.chat import Conversation


class Row(NamedTuple):
    """`is_safe`: the answer is as good without it, so that it is dropped."""

    is_safe: bool
    why: str


def _drop(why: str) -> Row:
    return Row(True, why)


def _refuse(why: str) -> Row:
    return Row(False, why)


_OWN: Final = "the other API has nothing like it"

_FILE: Final = "a file is known to the provider that has it alone: send its content"
ROWS: Final[Mapping[F, Row]] = {
    F.UNKNOWN: _refuse("this gateway does not know what it asks for"),
    F.TEMPERATURE: _refuse(_OWN),
    F.TOP_P: _refuse(_OWN),
    F.TOP_K: _drop("it narrows sampling, which the other parameters still do"),
    F.SEED: _drop("a seed is best effort wherever there is one"),
    F.FREQUENCY: _refuse(_OWN),
    F.PRESENCE: _refuse(_OWN),
    F.STOP: _refuse("the answer would go on where the client wants it to end"),
    F.CHOICES: _refuse("one answer comes"),
    F.LOGPROBS: _refuse("the client waits for them"),
    F.LOGIT_BIAS: _refuse(_OWN),
    F.PREDICTION: _drop("it makes answers quicker, not different"),
    F.LATER_SYSTEM: _drop("they stand with the others at the beginning: only their place is lost"),
    F.NAME: _drop("who speaks is left to the text"),
    F.IMAGE_URL: _refuse("the provider does not fetch images: send it as a data URL"),
    F.DETAIL: _drop("the provider chooses the resolution itself"),
    F.FILE_ID: _refuse(_FILE),
    F.ANTHROPIC_FILE: _refuse(_FILE),
    F.DOCUMENT: _refuse("the provider takes no documents"),
    F.DOCUMENT_URL: _refuse("the provider does not fetch documents: send the content"),
    F.DOCUMENT_NOTE: _refuse("the model would not read it"),
    F.AUDIO: _refuse("the provider takes no audio"),
    F.AUDIO_REPLAYED: _refuse("it is known to the provider that made it alone"),
    F.THINKING: _drop("thinking is the model's own: another one thinks anew"),
    F.REDACTED: _drop("it can be read by the provider that made it alone"),
    F.SIGNATURE: _drop("it proves something to the provider that made it alone"),
    F.SEARCH_RESULT: _refuse("the model would not read them"),
    F.CITED: _drop("the text is there; where it is from is not"),
    F.CITATIONS: _drop("the answer comes without them"),
    F.TOOL_ERROR: _drop("the text of the result says what failed"),
    F.CACHE: _drop("it makes requests cheaper, not different"),
    F.STATUS: _drop("it says how an earlier answer ended, not what it says"),
    F.PHASE: _drop("it sorts earlier messages, whose text is there"),
    F.SERVER_ITEM: _refuse("it belongs to tools that the provider runs"),
    F.STRICT: _drop("arguments follow the schema as well as the model can"),
    F.CUSTOM_TOOL: _refuse("tools have a schema of JSON there"),
    F.SERVER_TOOL: _refuse("the provider does not run it"),
    F.TOOL_EXTRA: _drop("tools are called as usual"),
    F.ALLOWED_TOOLS: _refuse("the model could call another one"),
    F.PARALLEL: _refuse("the provider decides how many tools are called at once"),
    F.MAX_TOOL_CALLS: _drop("there are no such tools"),
    F.REASONING: _refuse("the provider's API has no setting of reasoning"),
    F.SUMMARY: _drop("thinking comes as the provider shows it"),
    F.VERBOSITY: _drop("a hint about length"),
    F.JSON_OBJECT: _refuse("output follows a schema there: send one"),
    F.SCHEMA: _refuse("the client reads the answer by it"),
    F.SCHEMA_EXTRA: _drop("the schema itself is there"),
    F.MODALITIES: _refuse("answers are text"),
    F.USER: _drop("it is for the statistics of the provider"),
    F.METADATA: _drop("it is for the statistics of the provider"),
    F.TIER: _drop("the provider's usual one serves it"),
    F.STORE: _drop("nothing is stored; a request that refers to it later is refused"),
    F.STATE: _refuse("it is stored at another provider"),
    F.PROMPT: _refuse("it is stored at another provider"),
    F.BACKGROUND: _refuse("answers come at once"),
    F.CACHE_SETTINGS: _drop("they make requests cheaper, not different"),
    F.MODERATION: _refuse("it would not be moderated: use backend.ai.promptGuard"),
    F.INCLUDE: _drop("what it asks for is not there"),
    F.CONTEXT: _refuse("the conversation would not be shortened"),
    F.OBFUSCATION: _drop("it pads events"),
    F.DIAGNOSTICS: _drop("it is for the operator of the provider"),
    F.PLACE: _refuse("it says where a request may be worked on"),
}

_MOST: Final = frozenset(
    (F.CORE, F.TEMPERATURE, F.TOP_P, F.REASONING, F.SCHEMA, F.PARALLEL, F.DOCUMENT, F.USER, F.STRICT)
)
CARRIED: Final[Mapping[Format, frozenset[F]]] = {
    Format.COMPLETIONS: _MOST
    | {
        F.STOP,
        F.SEED,
        F.FREQUENCY,
        F.PRESENCE,
        F.LATER_SYSTEM,
        F.NAME,
        F.IMAGE_URL,
        F.FILE_ID,
        F.DETAIL,
        F.AUDIO,
        F.VERBOSITY,
        F.JSON_OBJECT,
        F.SCHEMA_EXTRA,
        F.METADATA,
        F.TIER,
    },
    Format.RESPONSES: _MOST
    | {
        F.LATER_SYSTEM,
        F.IMAGE_URL,
        F.FILE_ID,
        F.DETAIL,
        F.DOCUMENT_URL,
        F.THINKING,
        F.SIGNATURE,
        F.SUMMARY,
        F.VERBOSITY,
        F.JSON_OBJECT,
        F.SCHEMA_EXTRA,
        F.METADATA,
        F.TIER,
    },
    Format.MESSAGES: _MOST
    | {
        F.STOP,
        F.TOP_K,
        F.IMAGE_URL,
        F.ANTHROPIC_FILE,
        F.DOCUMENT_URL,
        F.TOOL_ERROR,
        F.CACHE,
        F.THINKING,
        F.REDACTED,
        F.SIGNATURE,
        F.TIER,
    },
    Format.GENERATE_CONTENT: frozenset(
        (
            F.CORE,
            F.TEMPERATURE,
            F.TOP_P,
            F.TOP_K,
            F.SEED,
            F.FREQUENCY,
            F.PRESENCE,
            F.STOP,
            F.REASONING,
            F.SUMMARY,
            F.SCHEMA,
            F.JSON_OBJECT,
            F.DOCUMENT,
            F.AUDIO,
            F.TOOL_ERROR,
            F.SIGNATURE,
        )
    ),
    Format.CONVERSE: frozenset(
        (
            F.CORE,
            F.TEMPERATURE,
            F.TOP_P,
            F.TOP_K,
            F.STOP,
            F.REASONING,
            F.SCHEMA,
            F.SCHEMA_EXTRA,
            F.DOCUMENT,
            F.AUDIO,
            F.TOOL_ERROR,
            F.STRICT,
            F.CACHE,
            F.THINKING,
            F.REDACTED,
            F.SIGNATURE,
            F.TIER,
        )
    ),
}


_SAMPLED: Final = "beside thinking, and for models since Claude 4.7, which take none"
_THINKS: Final = (
    "beside a tool that must be called, behind calls of tools that were made without its own thinking, and where fewer"
    " than 1025 tokens may be answered"
)
BESIDE: Final[Mapping[tuple[Format, F], str]] = {
    **{(form, F.TEMPERATURE): _SAMPLED for form in (Format.MESSAGES, Format.CONVERSE)},
    **{(form, F.TOP_K): _SAMPLED for form in (Format.MESSAGES, Format.CONVERSE)},
    **{(form, F.TOP_P): f"beside temperature, {_SAMPLED}" for form in (Format.MESSAGES, Format.CONVERSE)},
    (Format.MESSAGES, F.REASONING): _THINKS,
    (Format.CONVERSE, F.REASONING): f"{_THINKS}; for models that take no effort",
}
"""What a format carries, and drops beside something else that the request says."""


class Inexpressible(Malformed):
    """A provider's format cannot say what a request says. `field`: of the request."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, f"cannot be carried over to the API of the provider: {why}")


class Verdict(NamedTuple):
    """`dropped`: fields that are left out of what is sent. `refused`: a field that may not be, and why; None: none is
    such."""

    dropped: tuple[str, ...]
    refused: tuple[str, str] | None


THOUGHTS: Final = frozenset((F.THINKING, F.REDACTED, F.SIGNATURE))
OWN_THOUGHTS: Final[Mapping[Format, Origin]] = {
    Format.MESSAGES: Origin.ANTHROPIC,
    Format.CONVERSE: Origin.ANTHROPIC,
    Format.RESPONSES: Origin.OPENAI,
    Format.GENERATE_CONTENT: Origin.GOOGLE,
}
"""Whose thoughts a provider's format carries; it gets no others."""


def _has_thoughts_of(talk: Conversation, origin: Origin | None) -> bool:
    return any(isinstance(part, Thinking) and part.origin is origin for turn in talk.turns for part in turn.parts)


def judge(talk: Conversation, target: Format, drops: bool = False) -> Verdict:
    """`drops`: none is refused."""
    carried = CARRIED[target]
    if not THOUGHTS.isdisjoint(talk.said) and not _has_thoughts_of(talk, OWN_THOUGHTS.get(target)):
        carried -= THOUGHTS
    dropped = []
    for feature, field in talk.said.items():
        if feature in carried:
            continue
        row = ROWS[feature]
        if not (row.is_safe or drops):
            return Verdict((), (field, row.why))
        dropped.append(field)
    return Verdict(tuple(dropped), None)
