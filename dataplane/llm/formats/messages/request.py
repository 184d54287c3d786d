"""Requests of Messages, read from a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dataplane.llm import chat
from dataplane.llm.body import Malformed
from dataplane.llm.chat import Choosing, Media, Origin, Role
from dataplane.llm.features import Feature
from dataplane.llm.formats import signatures
from dataplane.llm.formats.messages.fields import QUIET, SHAPES
from dataplane.llm.formats.messages.written import write
from dataplane.llm.formats.reading import Raw, Reading, cache_mark, written

__all__ = ["read", "write"]
ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_MODES: Final = {"auto": Choosing.AUTO, "any": Choosing.REQUIRED, "none": Choosing.NONE, "tool": Choosing.NAMED}
_OWN_TOOLS: Final = (None, "custom")
"""Types of tools that the client runs by a schema of its own."""


def read(body: bytes | Raw) -> chat.Conversation:
    return _Request(Reading(body, SHAPES, QUIET)).talk()


class _Request:
    def __init__(self, reading: Reading) -> None:
        self._in = reading

    def talk(self) -> chat.Conversation:
        read, raw = self._in, self._in.raw
        metadata = read.object(raw.get("metadata") or {}, "metadata")
        read.look(metadata, "metadata", "metadata")
        choice, parallel = self._choice()
        config = read.object(raw.get("output_config") or {}, "output_config")
        read.look(config, "output_config", "output_config")
        return chat.Conversation(
            model=read.text(raw, "model"),
            turns=(*self._system(), *self._turns()),
            tools=tuple(self._tools()),
            choice=choice,
            parallel=parallel,
            sampling=self._sampling(),
            reasoning=self._reasoning(config),
            output=self._output(config),
            user=read.text(metadata, "user_id", "metadata"),
            tier=read.text(raw, "service_tier"),
            stream=bool(read.flag(raw, "stream")),
            said=read.said,
        )

    def _sampling(self) -> chat.Sampling:
        read, raw = self._in, self._in.raw
        stops = read.array(raw.get("stop_sequences") or [], "stop_sequences")
        if not all(isinstance(each, str) for each in stops):
            raise Malformed("stop_sequences", "must be strings")
        return chat.Sampling(
            max_tokens=read.whole(raw, "max_tokens"),
            temperature=read.number("temperature"),
            top_p=read.number("top_p"),
            top_k=read.whole(raw, "top_k"),
            stop=tuple(stops),
        )

    def _reasoning(self, config: Raw) -> chat.Reasoning | None:
        read = self._in
        found, effort = read.raw.get("thinking"), read.text(config, "effort", "output_config")
        if found is None:
            return chat.Reasoning(effort) if effort else None
        found = read.object(found, "thinking")
        kind = read.required(found, "type", "thinking")
        shape = f"thinking[{kind}]"
        if not read.is_known(shape, "thinking"):
            return None
        read.look(found, shape, "thinking")
        if kind == "disabled":
            return None
        shows = found.get("display") != "omitted"
        return chat.Reasoning(effort, read.whole(found, "budget_tokens", "thinking"), shows)

    def _output(self, config: Raw) -> chat.Output | None:
        read = self._in
        found = config.get("format")
        if found is None:
            return None
        where = "output_config.format"
        shape = f"format[{read.required(read.object(found, where), 'type', where)}]"
        if not read.is_known(shape, where):
            return None
        read.look(found, shape, where)
        return chat.Output(read.object(found.get("schema"), f"{where}.schema"))

    # --- tools

    def _tools(self) -> Iterator[chat.Tool]:
        read = self._in
        for tool, path in read.objects(read.raw.get("tools"), "tools"):
            if tool.get("type") not in _OWN_TOOLS:
                read.note(Feature.SERVER_TOOL, path)
                continue
            read.look(tool, "tools", path)
            yield chat.Tool(
                read.required(tool, "name", path),
                read.text(tool, "description", path),
                read.object(tool.get("input_schema") or {}, f"{path}.input_schema"),
                read.flag(tool, "strict", path),
                _mark(tool),
            )

    def _choice(self) -> tuple[chat.Choice | None, bool | None]:
        """And whether several tools may be called at once."""
        read = self._in
        found = read.raw.get("tool_choice")
        if found is None:
            return None, None
        found = read.object(found, "tool_choice")
        kind = read.required(found, "type", "tool_choice")
        if kind not in _MODES:
            raise Malformed("tool_choice.type", f"{kind[:40]} is not known")
        read.look(found, f"tool_choice[{kind}]", "tool_choice")
        one = read.flag(found, "disable_parallel_tool_use", "tool_choice")
        name = read.required(found, "name", "tool_choice") if kind == "tool" else ""
        return chat.Choice(_MODES[kind], name), None if one is None else not one

    # --- messages

    def _system(self) -> Iterator[chat.Turn]:
        read = self._in
        found = read.raw.get("system")
        parts = self._content(found, "system")
        if parts:
            yield chat.Turn(Role.SYSTEM, tuple(parts))

    def _turns(self) -> Iterator[chat.Turn]:
        read = self._in
        for message, path in read.objects(read.raw.get("messages"), "messages"):
            role = read.required(message, "role", path)
            if role not in ROLES:
                raise Malformed(f"{path}.role", f"{role[:40]} is not known")
            read.look(message, f"messages[{role}]", path)
            if role == "system":
                read.note(Feature.LATER_SYSTEM, path)
            yield chat.Turn(ROLES[role], tuple(self._content(message.get("content"), f"{path}.content")))

    def _content(self, content: object, path: str) -> list[chat.Part]:
        if content is None or isinstance(content, str):
            return [chat.Text(content)] if content else []
        return list(self._parts(content, path))

    def _parts(self, content: object, path: str) -> Iterator[chat.Part]:
        for kind, part, where in self._in.parts(content, path):
            yield from _KINDS[kind](self, part, where)

    def _text(self, part: Raw, path: str) -> Iterator[chat.Part]:
        yield chat.Text(self._in.text(part, "text", path), _mark(part))

    def _thinking(self, part: Raw, path: str) -> Iterator[chat.Part]:
        read = self._in
        signature, origin, is_redacted = signatures.read(read.text(part, "signature", path), Origin.ANTHROPIC)
        yield chat.Thinking(read.text(part, "thinking", path), signature, origin, is_redacted)

    def _redacted_thinking(self, part: Raw, path: str) -> Iterator[chat.Part]:
        data, origin, _ = signatures.read(self._in.text(part, "data", path), Origin.ANTHROPIC)
        yield chat.Thinking("", data, origin, True)

    def _tool_use(self, part: Raw, path: str) -> Iterator[chat.Part]:
        read = self._in
        given = read.object(part.get("input") or {}, f"{path}.input")
        yield chat.ToolCall(
            read.required(part, "id", path), read.required(part, "name", path), written(given), _mark(part)
        )

    def _tool_result(self, part: Raw, path: str) -> Iterator[chat.Part]:
        read = self._in
        found = self._content(part.get("content"), f"{path}.content")
        parts = tuple(each for each in found if isinstance(each, (chat.Text, chat.File)))
        is_error = bool(read.flag(part, "is_error", path))
        yield chat.ToolResult(read.required(part, "tool_use_id", path), parts, is_error, _mark(part))

    def _image(self, part: Raw, path: str) -> Iterator[chat.Part]:
        yield from self._file(part, path, Media.IMAGE)

    def _document(self, part: Raw, path: str) -> Iterator[chat.Part]:
        yield from self._file(part, path, Media.DOCUMENT)

    def _file(self, part: Raw, path: str, media: Media) -> Iterator[chat.Part]:
        read, where = self._in, f"{path}.source"
        source = read.object(part.get("source"), where)
        kind = read.required(source, "type", where)
        shape = f"source[{kind}]"
        if not read.is_known(shape, where):
            return
        read.look(source, shape, where)
        title, mark = read.text(part, "title", path), _mark(part)
        if kind == "content":
            yield from self._content(source.get("content"), f"{where}.content")
        elif kind == "text":
            text = read.text(source, "data", where)
            yield chat.Text(f"{title}\n\n{text}" if title else text, mark)
        elif kind == "url":
            read.note(Feature.IMAGE_URL if media is Media.IMAGE else Feature.DOCUMENT_URL, f"{where}.url")
            yield chat.File(media, url=read.required(source, "url", where), name=title, mark=mark)
        elif kind == "file":
            yield chat.File(media, file_id=read.required(source, "file_id", where), name=title, mark=mark)
        else:
            kind = read.text(source, "media_type", where)
            yield chat.File(media, kind, read.required(source, "data", where), name=title, mark=mark)


_KINDS: Final[Mapping[str, Callable[[_Request, Raw, str], Iterator[chat.Part]]]] = {
    "text": _Request._text,
    "image": _Request._image,
    "document": _Request._document,
    "thinking": _Request._thinking,
    "redacted_thinking": _Request._redacted_thinking,
    "tool_use": _Request._tool_use,
    "tool_result": _Request._tool_result,
}
"""Readers of the parts of a content: those that have a shape (`fields`)."""


def _mark(part: Raw) -> str:
    return cache_mark(part, "cache_control")
