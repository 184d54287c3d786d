"""Requests of Converse, written for a provider. What its API refuses is made right here: names and ids with other
characters, calls of tools without their tools, documents without a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from dataplane.llm import chat
from dataplane.llm.chat import Choosing, Media, Origin
from dataplane.llm.clouds.bedrock import CACHES, CACHES_TOOLS
from dataplane.llm.features import Feature
from dataplane.llm.formats import claude
from dataplane.llm.formats.contract import Written
from dataplane.llm.formats.reading import Raw, encode, put, written

if TYPE_CHECKING:
    from dataplane.llm.providers import Provider

IMAGES: Final = {
    "image/jpg": "jpeg",
    "image/jpeg": "jpeg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
AUDIO: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
CLAUDE: Final = re.compile(r"claude")
MAX_ID: Final = 64
_TTLS: Final = ("5m", "1h")
_TIERS: Final = {name: name for name in ("priority", "default", "flex")}


def write(talk: chat.Conversation, provider: Provider) -> Written:
    """The model and whether it is a stream stand in the path."""
    system, turns = chat.apart(talk.turns)
    writer = _Writer(talk.model)
    body: Raw = {"messages": [each for turn in turns if (each := writer.message(turn))["content"]]}
    if system:
        body["system"] = [block for each in system if each.text.strip() for block in writer.text(each)]
    config, extra, dropped = _config(talk, turns)
    put(
        body,
        inferenceConfig=config,
        additionalModelRequestFields=extra,
        outputConfig=_output(talk, bool(extra.get("thinking"))),
        serviceTier=put({}, type=_TIERS.get(talk.tier)),
    )
    tools = talk.tools or chat.tools_called(turns)
    if tools and not (talk.choice is not None and talk.choice.mode is Choosing.NONE and not chat.tools_called(turns)):
        specs = [block for tool in tools for block in writer.tool(tool)]
        body["toolConfig"] = put({"tools": specs}, toolChoice=_choice(talk.choice) if talk.tools else None)
    return Written(encode(body), dropped)


def _config(talk: chat.Conversation, turns: list[chat.Turn]) -> tuple[Raw, Raw, tuple[Feature, ...]]:
    """`inferenceConfig`, what is the model's own, and what is left out."""
    sampling = talk.sampling
    config = put({}, maxTokens=sampling.max_tokens, stopSequences=list(sampling.stop))
    if not CLAUDE.search(talk.model):
        put(config, temperature=sampling.temperature, topP=sampling.top_p)
        effort = talk.reasoning.effort if talk.reasoning else ""
        extra = put({}, reasoning_effort=effort if "gpt-oss" in talk.model else "", top_k=sampling.top_k)
        is_left_out = talk.reasoning is not None and "reasoning_effort" not in extra
        return config, extra, (Feature.REASONING,) if is_left_out else ()
    most = claude.MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
    thinking = claude.thinking(talk, turns, most)
    sampled, unsampled = claude.sampled(talk, bool(thinking))
    put(config, maxTokens=most, temperature=sampled.get("temperature"), topP=sampled.get("top_p"))
    return (
        config,
        put({}, thinking=thinking, top_k=sampled.get("top_k")),
        (*unsampled, *claude.unthought(talk, thinking)),
    )


def _output(talk: chat.Conversation, thinks: bool) -> Raw:
    found: Raw = put({}, effort=claude.effort(talk) if thinks else "")
    if talk.output is not None and talk.output.schema is not None:
        named = put({"schema": written(talk.output.schema)}, name=talk.output.name, description=talk.output.description)
        found["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": named}}
    return found


def _choice(choice: chat.Choice | None) -> Raw | None:
    """None: it is left to the model."""
    if choice is None or choice.mode in (Choosing.AUTO, Choosing.NONE):
        return None
    return {"tool": {"name": choice.name}} if choice.mode is Choosing.NAMED else {"any": {}}


class _Writer:
    """Blocks of one request. Documents have names that differ."""

    def __init__(self, model: str) -> None:
        self._caches = bool(CACHES.search(model))
        self._caches_tools = bool(CACHES_TOOLS.search(model))
        self._is_claude = bool(CLAUDE.search(model))
        self._documents = 0

    def message(self, turn: chat.Turn) -> Raw:
        parts = sorted(turn.parts, key=lambda part: not isinstance(part, chat.ToolResult))
        content = [block for part in parts for block in self._blocks(part)]
        if any("document" in block for block in content) and not any("text" in block for block in content):
            content.append({"text": "(a document)"})
        return {"role": turn.role.value, "content": content}

    def text(self, part: chat.Text) -> Iterator[Raw]:
        yield {"text": part.text}
        yield from self._point(part.mark)

    def tool(self, tool: chat.Tool) -> Iterator[Raw]:
        schema = {"json": {"type": "object", **tool.parameters}}
        spec = put({"name": tool.name}, description=tool.description, strict=tool.strict or None)
        yield {"toolSpec": {**spec, "inputSchema": schema}}
        if self._caches_tools:
            yield from self._point(tool.mark)

    def _point(self, mark: str) -> Iterator[Raw]:
        if mark and self._caches:
            yield {"cachePoint": put({"type": "default"}, ttl=mark if mark in _TTLS else "")}

    def _blocks(self, part: chat.Part) -> Iterable[Raw]:
        match part:
            case chat.Text():
                return self.text(part) if part.text.strip() else ()
            case chat.Refused():
                return [{"text": part.text}] if part.text.strip() else ()
            case chat.ToolCall():
                call = {"toolUseId": call_id(part.id), "name": part.name, "input": chat.arguments(part.arguments)}
                return [{"toolUse": call}, *self._point(part.mark)]
            case chat.ToolResult():
                return [{"toolResult": self._result(part)}, *self._point(part.mark)]
            case chat.Thinking():
                return _thought(part) if self._is_claude else ()
            case chat.File():
                return [self._file(part), *self._point(part.mark)]

    def _result(self, part: chat.ToolResult) -> Raw:
        content = [self._file(each) if isinstance(each, chat.File) else {"text": each.text} for each in part.parts]
        found: Raw = {"toolUseId": call_id(part.call_id), "content": content or [{"text": ""}]}
        return put(found, status="error" if part.is_error else "")

    def _file(self, part: chat.File) -> Raw:
        source = {"bytes": part.data}
        if part.media is Media.IMAGE:
            return {"image": {"format": IMAGES.get(part.media_type, "png"), "source": source}}
        if part.media is Media.AUDIO:
            kind = AUDIO.get(part.media_type, part.media_type.removeprefix("audio/"))
            return {"audio": {"format": kind, "source": source}}
        self._documents += 1
        kind = DOCUMENTS.get(part.media_type, "txt" if part.media_type.startswith("text/") else "pdf")
        return {"document": {"format": kind, "name": _name(part.name, self._documents), "source": source}}


def _thought(part: chat.Thinking) -> Iterable[Raw]:
    if part.origin is not Origin.ANTHROPIC:
        return ()
    if part.is_redacted:
        return [{"reasoningContent": {"redactedContent": part.signature}}]
    return [{"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}]


_NOT_OF_IDS: Final = re.compile(r"[^a-zA-Z0-9_.:-]")
_NOT_OF_NAMES: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")
_MAX_NAME: Final = 180


def call_id(found: str) -> str:
    """Of a call of a tool, in the characters and the length that the API takes."""
    clean = _NOT_OF_IDS.sub("_", found) or "call"
    if len(clean) <= MAX_ID:
        return clean
    return f"{clean[:31]}_{sha256(found.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _name(found: str, number: int) -> str:
    """Of a document: in the characters that the API takes, and no other document's."""
    clean = _NOT_OF_NAMES.sub(" ", found).strip()[:_MAX_NAME] or "document"
    return clean if number == 1 else f"{clean} [{number}]"
