"""Requests of Responses, read from a client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dataplane.llm import chat
from dataplane.llm.body import Malformed
from dataplane.llm.chat import Choosing, Media, Origin, Role
from dataplane.llm.features import Feature
from dataplane.llm.formats import signatures
from dataplane.llm.formats.reading import Raw, Reading, cache_mark
from dataplane.llm.formats.responses import thought
from dataplane.llm.formats.responses.fields import QUIET, SHAPES

AUTO: Final = "auto"
"""A resolution that says nothing."""
ROLES: Final = {"system": Role.SYSTEM, "developer": Role.DEVELOPER, "user": Role.USER, "assistant": Role.ASSISTANT}
_MODES: Final = {"auto": Choosing.AUTO, "none": Choosing.NONE, "required": Choosing.REQUIRED}


def read(body: bytes | Raw) -> chat.Conversation:
    return _Request(Reading(body, SHAPES, QUIET)).talk()


class _Request:
    def __init__(self, reading: Reading) -> None:
        self._in = reading
        self._items = {
            "message": self._message,
            "function_call": self._function_call,
            "function_call_output": self._function_call_output,
            "reasoning": self._thought,
        }

    def talk(self) -> chat.Conversation:
        read, raw = self._in, self._in.raw
        text = read.object(raw.get("text") or {}, "text")
        read.look(text, "text", "text")
        read.look(read.object(raw.get("stream_options") or {}, "stream_options"), "stream_options", "stream_options")
        instructions = read.text(raw, "instructions")
        first = [chat.Turn(Role.SYSTEM, (chat.Text(instructions),))] if instructions else []
        return chat.Conversation(
            model=read.text(raw, "model"),
            turns=(*first, *chat.merged(self._turns())),
            tools=tuple(self._tools()),
            choice=self._choice(),
            parallel=read.flag(raw, "parallel_tool_calls"),
            sampling=chat.Sampling(
                max_tokens=read.whole(raw, "max_output_tokens"),
                temperature=read.number("temperature"),
                top_p=read.number("top_p"),
            ),
            reasoning=self._reasoning(),
            output=self._output(text),
            verbosity=read.text(text, "verbosity", "text"),
            user=read.text(raw, "safety_identifier") or read.text(raw, "user"),
            metadata=read.object(raw.get("metadata") or {}, "metadata"),
            tier=read.text(raw, "service_tier"),
            stream=bool(read.flag(raw, "stream")),
            said=read.said,
        )

    def _reasoning(self) -> chat.Reasoning | None:
        read = self._in
        if read.raw.get("reasoning") is None:
            return None
        found = read.object(read.raw["reasoning"], "reasoning")
        read.look(found, "reasoning", "reasoning")
        effort = read.text(found, "effort", "reasoning")
        shows = bool(found.get("summary") or found.get("generate_summary"))
        return chat.Reasoning(effort, shows=shows) if effort or shows else None

    def _output(self, text: Raw) -> chat.Output | None:
        read, where = self._in, "text.format"
        if text.get("format") is None:
            return None
        found = read.object(text["format"], where)
        kind = read.required(found, "type", where)
        shape = f"format[{kind}]"
        if not read.is_known(shape, where) or kind == "text":
            return None
        read.look(found, shape, where)
        if kind == "json_object":
            return chat.Output()
        return chat.Output(
            read.object(found.get("schema") or {}, f"{where}.schema"),
            read.text(found, "name", where),
            read.text(found, "description", where),
            read.flag(found, "strict", where),
        )

    # --- tools

    def _tools(self) -> Iterator[chat.Tool]:
        read = self._in
        for tool, path in read.objects(read.raw.get("tools"), "tools"):
            shape = f"tools[{read.required(tool, 'type', path)}]"
            if read.is_known(shape, path):
                read.look(tool, shape, path)
                yield chat.Tool(
                    read.required(tool, "name", path),
                    read.text(tool, "description", path),
                    read.object(tool.get("parameters") or {}, f"{path}.parameters"),
                    read.flag(tool, "strict", path),
                )

    def _choice(self) -> chat.Choice | None:
        read = self._in
        found = read.raw.get("tool_choice")
        if found is None:
            return None
        if isinstance(found, str):
            if found not in _MODES:
                raise Malformed("tool_choice", f"{found[:40]} is not known")
            return chat.Choice(_MODES[found])
        found = read.object(found, "tool_choice")
        shape = f"tool_choice[{read.required(found, 'type', 'tool_choice')}]"
        if not read.is_known(shape, "tool_choice"):
            return None
        read.look(found, shape, "tool_choice")
        return chat.Choice(Choosing.NAMED, read.required(found, "name", "tool_choice"))

    # --- items

    def _turns(self) -> Iterable[chat.Turn]:
        read = self._in
        given = read.raw.get("input")
        if isinstance(given, str):
            yield chat.Turn(Role.USER, (chat.Text(given),))
            return
        has_begun = False
        for item, path in read.objects(given, "input"):
            kind = item.get("type") or "message"
            shape = f"input[{kind}]"
            if not read.is_known(shape, path):
                continue
            read.look(item, shape, path)
            turn = self._items[kind](item, path)
            if turn.role not in chat.INSTRUCTIONS:
                has_begun = True
            elif has_begun:
                read.note(Feature.LATER_SYSTEM, path)
            yield turn

    def _message(self, item: Raw, path: str) -> chat.Turn:
        read = self._in
        role = read.required(item, "role", path)
        if role not in ROLES:
            raise Malformed(f"{path}.role", f"{role[:40]} is not known")
        return chat.Turn(ROLES[role], tuple(self._content(item.get("content"), f"{path}.content")))

    def _function_call(self, item: Raw, path: str) -> chat.Turn:
        read = self._in
        call = chat.ToolCall(
            read.required(item, "call_id", path), read.required(item, "name", path), read.text(item, "arguments", path)
        )
        return chat.Turn(Role.ASSISTANT, (call,))

    def _function_call_output(self, item: Raw, path: str) -> chat.Turn:
        found = self._content(item.get("output"), f"{path}.output")
        parts = tuple(each for each in found if isinstance(each, (chat.Text, chat.File)))
        return chat.Turn(Role.USER, (chat.ToolResult(self._in.required(item, "call_id", path), parts),))

    def _thought(self, item: Raw, path: str) -> chat.Turn:
        read = self._in
        texts = self._texts(item, "summary", path) or self._texts(item, "content", path)
        own = thought.signed(read.text(item, "id", path), read.text(item, "encrypted_content", path))
        made = chat.Thinking("\n\n".join(texts), *signatures.read(own, Origin.OPENAI))
        return chat.Turn(Role.ASSISTANT, (made,))

    def _texts(self, item: Raw, name: str, path: str) -> list[str]:
        read = self._in
        return [read.text(part, "text", where) for part, where in read.objects(item.get(name), f"{path}.{name}")]

    def _content(self, content: object, path: str) -> list[chat.Part]:
        if content is None or isinstance(content, str):
            return [chat.Text(content)] if content else []
        return list(self._parts(content, path))

    def _parts(self, content: object, path: str) -> Iterator[chat.Part]:
        for kind, part, where in self._in.parts(content, path):
            yield _KINDS[kind](self, part, where)

    def _input_text(self, part: Raw, path: str) -> chat.Part:
        return chat.Text(self._in.text(part, "text", path), _mark(part))

    def _output_text(self, part: Raw, path: str) -> chat.Part:
        return chat.Text(self._in.text(part, "text", path))

    def _refusal(self, part: Raw, path: str) -> chat.Part:
        return chat.Refused(self._in.text(part, "refusal", path))

    def _input_image(self, part: Raw, path: str) -> chat.Part:
        read = self._in
        detail, mark = read.text(part, "detail", path).replace(AUTO, ""), _mark(part)
        if part.get("file_id") is not None:
            return chat.File(Media.IMAGE, file_id=read.text(part, "file_id", path), detail=detail, mark=mark)
        url = read.required(part, "image_url", path)
        inline = chat.of_data_url(url)
        if inline is not None:
            return chat.File(Media.IMAGE, inline[0], inline[1], detail=detail, mark=mark)
        read.note(Feature.IMAGE_URL, f"{path}.image_url")
        return chat.File(Media.IMAGE, url=url, detail=detail, mark=mark)

    def _input_file(self, part: Raw, path: str) -> chat.Part:
        read = self._in
        name, mark = read.text(part, "filename", path), _mark(part)
        if part.get("file_id") is not None:
            return chat.File(Media.DOCUMENT, file_id=read.text(part, "file_id", path), name=name, mark=mark)
        if part.get("file_url") is not None:
            return chat.File(Media.DOCUMENT, url=read.text(part, "file_url", path), name=name, mark=mark)
        data = read.required(part, "file_data", path)
        kind, content = chat.of_data_url(data) or ("application/pdf", data)
        return chat.File(Media.DOCUMENT, kind, content, name=name, mark=mark)


_KINDS: Final[Mapping[str, Callable[[_Request, Raw, str], chat.Part]]] = {
    "input_text": _Request._input_text,
    "output_text": _Request._output_text,
    "refusal": _Request._refusal,
    "input_image": _Request._input_image,
    "input_file": _Request._input_file,
}
"""Readers of the parts of a content: those that have a shape (`fields`)."""


def _mark(part: Raw) -> str:
    return cache_mark(part, "prompt_cache_breakpoint")
