"""docs/llm/translation.md, made of the tables that translations go by."""

from __future__ import annotations

from collections.abc import Iterator

from dataplane.llm import losses
from dataplane.llm.features import Feature
from dataplane.llm.formats import completions, messages, responses
from dataplane.llm.formats.contract import Shapes
from dataplane.llm.routes import Format

CLIENTS = {
    Format.COMPLETIONS: completions.SHAPES,
    Format.MESSAGES: messages.SHAPES,
    Format.RESPONSES: responses.SHAPES,
}
HEAD = """\
# Translation

Clients of one API of conversations reach providers of another: a request is read into one neutral form and written in
the provider's API, and its answer comes back the same way, whole or as a stream. The same API is never rewritten: its
bytes pass.

A request goes out in the same API where the provider has it, else in the first of the provider's APIs that can carry
it. APIs of clients are `Completions`, `Messages` and `Responses`. Providers have these, and `GenerateContent`
(Gemini's native API, of the provider `gemini`) and `Converse` (Amazon Bedrock's). Which of them a model of a
[cloud](clouds.md) has depends on who made it.

- **What an API cannot say** is left out where the answer is as good without it, and the field of the request is in
  the log (`llm.dropped`). All else is refused with 400, and the message names the field.
  [`backend.ai.unsupportedFields: Drop`](../policies/backend_ai.md) leaves all of it out. The tables below are
  complete: they are what the gateway goes by. A field that none of them has is refused.
- **Streams**: an error that a provider reports in a stream, and a stream that ends before its end, come as an error
  event of the client's API. No `[DONE]`, `message_stop` or `response.completed` follows.
- **Errors** keep their status and headers, among them `Retry-After`; their body has the shape that the client reads.
- **Thinking** keeps its signature on the way through clients of `Messages` and `Responses`, marked with whose it is:
  another provider never gets it. Clients of `Completions` see its text as `reasoning_content` and cannot send it
  back.
- **Bounds of output**: Anthropic's API demands `max_tokens`. A request without one has 4096; [`defaults`](shaping.md)
  set another.
- **Reasoning**: an effort is a number of tokens where a model wants one. Anthropic's before Claude 4.6: low 1024,
  medium 2048, high 4096. Gemini before 3: low 1024, medium 8192, high 24576.
- **Results of tools with images** go to `Completions` and `GenerateContent` as the text of the result, with the
  images behind it.
- **Names of tools** that are longer than a provider takes (64 characters, Anthropic 128) are shortened with a digest.
  Answers have the client's names.
- **Counting tokens** (`TokenCount`): Gemini counts what a request is in its API. For a provider whose API does not
  count, and for a request that Gemini's cannot carry: an estimate, answered here, and marked in the log
  (`llm.usage_estimated`). It is within a third for prose and code; an image or document counts as 1600 tokens.
- **Embeddings and rankings** of providers with an API of another shape ([clouds](clouds.md)): a field that it does not
  have is refused, or left out where all are. The end user's id is always left out.
- **Size**: a request has at most 5000 messages, parts, calls and tools together; an answer at most 5000 of a kind in a
  list, and 4 MiB.
- **Ids and state**: nothing is stored. `previous_response_id` is refused; the conversation must be in the request.
- Arguments of a tool that are no JSON object stand under the name `arguments` where an API has them as an object.

This page is generated.
"""


def page() -> str:
    return "\n".join([HEAD, *_features(), "", *_beside(), "", *_fields(), ""])


def _features() -> Iterator[str]:
    yield "## What each API can say\n"
    yield f"| What | {' | '.join(losses.CARRIED)} | Why |"
    yield "| --- |" + " --- |" * (len(losses.CARRIED) + 1)
    for feature, row in losses.ROWS.items():
        fates = [_fate(feature, target) for target in losses.CARRIED]
        yield f"| {feature} | {' | '.join(fates)} | {row.why} |"


def _fate(feature: Feature, target: Format) -> str:
    if feature in losses.CARRIED[target]:
        return "carried"
    return "left out" if losses.ROWS[feature].is_safe else "refused"


def _beside() -> Iterator[str]:
    yield "What an API can say is left out for the sake of something else:\n"
    yield "| What | API | Where |"
    yield "| --- | --- | --- |"
    for (target, feature), why in losses.BESIDE.items():
        yield f"| {feature} | {target} | {why} |"


def _fields() -> Iterator[str]:
    yield "## What fields say\n"
    yield "Fields that no row has are of all APIs, or the gateway does not know them."
    for api, tables in CLIENTS.items():
        yield f"\n### {api}\n"
        yield "| What | Fields |"
        yield "| --- | --- |"
        found: dict[Feature, list[str]] = {}
        for feature, field in _said(tables):
            found.setdefault(feature, []).append(f"`{field}`")
        yield from (f"| {feature} | {', '.join(found[feature])} |" for feature in losses.ROWS if feature in found)


def _said(tables: Shapes) -> Iterator[tuple[Feature, str]]:
    for shape, fields in tables.fields.items():
        for field, feature in fields.items():
            if feature is not Feature.CORE:
                yield feature, f"{shape}.{field}" if shape else field
    for shape, feature in tables.whole.items():
        if feature is not Feature.CORE:
            yield feature, shape
