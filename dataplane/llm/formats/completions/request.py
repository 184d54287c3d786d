"""Requests of Chat Completions: read from a client, written for a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from dataplane.llm import chat
from dataplane.llm.body import Malformed
from dataplane.llm.chat import Choosing, Media, Role
from dataplane.llm.features import Feature
from dataplane.llm.formats.completions.fields import QUIET, SHAPES
from dataplane.llm.formats.contract import Written
from dataplane.llm.formats.reading import Raw, Reading, cache_mark, encode, put

if TYPE_CHECKING:
    from dataplane.llm.providers import Provider

AUTO: Final = "auto"
"""A resolution that says nothing."""
ROLES: Final = {"system": Role.SYSTEM, "developer": Role.DEVELOPER, "user": Role.USER, "assistant": Role.ASSISTANT}
AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {kind: name for name, kind in AUDIO.items()}
_MODES: Final = {"auto": Choosing.AUTO, "none": Choosing.NONE, "required": Choosing.REQUIRED}

# --- read


def read(body: bytes | Raw) -> chat.Conversation:
    return _Request(Reading(body, SHAPES, QUIET)).talk()


class _Request:
    def __init__(self, reading: Reading) -> None:
        self._in = reading
        self._calls = 0
        """Of the old kind, which have no id."""

    def talk(self) -> chat.Conversation:
        read, raw = self._in, self._in.raw
        options = read.object(raw.get("stream_options") or {}, "stream_options")
        read.look(options, "stream_options", "stream_options")
        effort = read.text(raw, "reasoning_effort")
        return chat.Conversation(
            model=read.text(raw, "model"),
            turns=tuple(self._turns()),
            tools=tuple(self._tools()),
            choice=self._choice(),
            parallel=read.flag(raw, "parallel_tool_calls"),
            sampling=self._sampling(),
            reasoning=chat.Reasoning(effort) if effort else None,
            output=self._output(),
            verbosity=read.text(raw, "verbosity"),
            user=read.text(raw, "safety_identifier") or read.text(raw, "user"),
            metadata=read.object(raw.get("metadata") or {}, "metadata"),
            tier=read.text(raw, "service_tier"),
            stream=bool(read.flag(raw, "stream")),
            wants_usage=options.get("include_usage") is True,
            said=read.said,
        )

    def _sampling(self) -> chat.Sampling:
        read, raw = self._in, self._in.raw
        stop = raw.get("stop")
        stops = [stop] if isinstance(stop, str) else read.array(stop or [], "stop")
        if not all(isinstance(each, str) for each in stops):
            raise Malformed("stop", "must be strings")
        most = read.whole(raw, "max_completion_tokens")
        return chat.Sampling(
            max_tokens=read.whole(raw, "max_tokens") if most is None else most,
            temperature=read.number("temperature"),
            top_p=read.number("top_p"),
            seed=read.whole(raw, "seed"),
            frequency_penalty=read.number("frequency_penalty"),
            presence_penalty=read.number("presence_penalty"),
            stop=tuple(stops),
        )

    def _output(self) -> chat.Output | None:
        read = self._in
        found = read.raw.get("response_format")
        if found is None:
            return None
        found = read.object(found, "response_format")
        kind = read.required(found, "type", "response_format")
        shape = f"response_format[{kind}]"
        if not read.is_known(shape, "response_format.type") or kind == "text":
            return None
        read.look(found, shape, "response_format")
        if kind == "json_object":
            return chat.Output()
        where = "response_format.json_schema"
        schema = read.object(found.get("json_schema"), where)
        read.look(schema, "json_schema", where)
        return chat.Output(
            read.object(schema.get("schema") or {}, f"{where}.schema"),
            read.text(schema, "name", where),
            read.text(schema, "description", where),
            read.flag(schema, "strict", where),
        )

    # --- tools

    def _tools(self) -> Iterator[chat.Tool]:
        read = self._in
        for tool, path in read.objects(read.raw.get("tools"), "tools"):
            shape = f"tools[{read.required(tool, 'type', path)}]"
            if read.is_known(shape, path):
                read.look(tool, shape, path)
                function = read.object(tool.get("function"), f"{path}.function")
                read.look(function, "function", f"{path}.function")
                yield self._tool(function, f"{path}.function")
        for function, path in read.objects(read.raw.get("functions"), "functions"):
            read.look(function, "functions", path)
            yield self._tool(function, path)

    def _tool(self, function: Raw, path: str) -> chat.Tool:
        read = self._in
        return chat.Tool(
            read.required(function, "name", path),
            read.text(function, "description", path),
            read.object(function.get("parameters") or {}, f"{path}.parameters"),
            read.flag(function, "strict", path),
        )

    def _choice(self) -> chat.Choice | None:
        read = self._in
        name = "tool_choice" if read.raw.get("tool_choice") is not None else "function_call"
        found = read.raw.get(name)
        if found is None:
            return None
        if isinstance(found, str):
            if found not in _MODES:
                raise Malformed(name, f"{found[:40]} is not known")
            return chat.Choice(_MODES[found])
        found = read.object(found, name)
        if name == "function_call":
            return chat.Choice(Choosing.NAMED, read.required(found, "name", name))
        shape = f"tool_choice[{read.required(found, 'type', name)}]"
        if not read.is_known(shape, name):
            return None
        read.look(found, shape, name)
        where = "tool_choice.function"
        return chat.Choice(Choosing.NAMED, read.required(read.object(found.get("function"), where), "name", where))

    # --- messages

    def _turns(self) -> Iterator[chat.Turn]:
        read = self._in
        has_begun = False
        for message, path in read.objects(read.raw.get("messages"), "messages"):
            role = read.required(message, "role", path)
            shape = f"messages[{role}]"
            if shape not in SHAPES.fields:
                raise Malformed(f"{path}.role", f"{role[:40]} is not known")
            read.look(message, shape, path)
            turn = self._turn(message, role, path)
            if turn.role not in chat.INSTRUCTIONS:
                has_begun = True
            elif has_begun:
                read.note(Feature.LATER_SYSTEM, path)
            yield turn

    def _turn(self, message: Raw, role: str, path: str) -> chat.Turn:
        read = self._in
        if role == "tool":
            call = read.required(message, "tool_call_id", path)
            said = tuple(each for each in self._content(message, path) if isinstance(each, (chat.Text, chat.File)))
            return chat.Turn(Role.USER, (chat.ToolResult(call, said),))
        if role == "function":
            texts = (chat.Text(read.text(message, "content", path)),)
            return chat.Turn(Role.USER, (chat.ToolResult(f"call_{self._calls}", texts),))
        parts = self._content(message, path)
        if role == "assistant":
            parts = [*self._thoughts(message, path), *parts, *self._calls_of(message, path)]
        return chat.Turn(ROLES[role], tuple(parts), read.text(message, "name", path))

    def _thoughts(self, message: Raw, path: str) -> Iterator[chat.Part]:
        thought = self._in.text(message, "reasoning_content", path)
        if thought:
            yield chat.Thinking(thought)

    def _calls_of(self, message: Raw, path: str) -> Iterator[chat.Part]:
        read = self._in
        refusal = read.text(message, "refusal", path)
        if refusal:
            yield chat.Refused(refusal)
        for call, where in read.objects(message.get("tool_calls"), f"{path}.tool_calls"):
            shape = f"tool_calls[{call.get('type') or 'function'}]"
            if read.is_known(shape, where):
                read.look(call, shape, where)
                function = read.object(call.get("function"), f"{where}.function")
                yield self._call(read.required(call, "id", where), function, f"{where}.function")
        old = message.get("function_call")
        if old is not None:
            self._calls += 1
            yield self._call(f"call_{self._calls}", read.object(old, f"{path}.function_call"), f"{path}.function_call")

    def _call(self, call_id: str, function: Raw, path: str) -> chat.ToolCall:
        read = self._in
        return chat.ToolCall(call_id, read.required(function, "name", path), read.text(function, "arguments", path))

    def _content(self, message: Raw, path: str) -> list[chat.Part]:
        content = message.get("content")
        where = f"{path}.content"
        if content is None or isinstance(content, str):
            return [chat.Text(content)] if content else []
        return list(self._parts(content, where))

    def _parts(self, content: object, path: str) -> Iterator[chat.Part]:
        for kind, part, where in self._in.parts(content, path):
            yield _KINDS[kind](self, part, where)

    def _text(self, part: Raw, path: str) -> chat.Part:
        return chat.Text(self._in.text(part, "text", path), _mark(part))

    def _refusal(self, part: Raw, path: str) -> chat.Part:
        return chat.Refused(self._in.text(part, "refusal", path))

    def _image_url(self, part: Raw, path: str) -> chat.Part:
        read, where = self._in, f"{path}.image_url"
        image = read.object(part.get("image_url"), where)
        read.look(image, "image_url", where)
        url, mark = read.required(image, "url", where), _mark(part)
        detail = read.text(image, "detail", where).replace(AUTO, "")
        inline = chat.of_data_url(url)
        if inline is not None:
            return chat.File(Media.IMAGE, inline[0], inline[1], detail=detail, mark=mark)
        read.note(Feature.IMAGE_URL, f"{where}.url")
        return chat.File(Media.IMAGE, url=url, detail=detail, mark=mark)

    def _input_audio(self, part: Raw, path: str) -> chat.Part:
        read, where = self._in, f"{path}.input_audio"
        audio = read.object(part.get("input_audio"), where)
        kind = read.required(audio, "format", where)
        return chat.File(
            Media.AUDIO, AUDIO.get(kind, f"audio/{kind}"), read.required(audio, "data", where), mark=_mark(part)
        )

    def _file(self, part: Raw, path: str) -> chat.Part:
        read, where = self._in, f"{path}.file"
        file = read.object(part.get("file"), where)
        read.look(file, "file", where)
        name, mark = read.text(file, "filename", where), _mark(part)
        if file.get("file_id") is not None:
            return chat.File(Media.DOCUMENT, file_id=read.text(file, "file_id", where), name=name, mark=mark)
        data = read.required(file, "file_data", where)
        kind, content = chat.of_data_url(data) or ("application/pdf", data)
        return chat.File(Media.DOCUMENT, kind, content, name=name, mark=mark)


_KINDS: Final[Mapping[str, Callable[[_Request, Raw, str], chat.Part]]] = {
    "text": _Request._text,
    "refusal": _Request._refusal,
    "image_url": _Request._image_url,
    "input_audio": _Request._input_audio,
    "file": _Request._file,
}
"""Readers of the parts of a content: those that have a shape (`fields`)."""


def _mark(part: Raw) -> str:
    return cache_mark(part, "prompt_cache_breakpoint")


# --- written

_NEW_NAMES: Final = frozenset(("openai", "azure-openai", "azure-foundry"))
"""Providers where the bound of output has its new name; others have been known by the old one for longer."""


def write(talk: chat.Conversation, provider: Provider) -> Written:
    sampling = talk.sampling
    most = "max_completion_tokens" if provider.row.name in _NEW_NAMES else "max_tokens"
    body: Raw = {"model": talk.model, "messages": list(_messages(talk))}
    put(
        body,
        **{most: sampling.max_tokens},
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=sampling.seed,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        stop=list(sampling.stop),
        reasoning_effort=_effort(talk.reasoning),
        verbosity=talk.verbosity,
        user=chat.user_of(talk.user),
        metadata=dict(talk.metadata),
        service_tier=_TIERS.get(talk.tier, talk.tier),
        response_format=_written_output(talk.output),
    )
    if talk.tools:
        body["tools"] = [_written_tool(tool) for tool in talk.tools]
        put(body, tool_choice=_written_choice(talk.choice), parallel_tool_calls=talk.parallel)
    if talk.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return Written(encode(body))


_TIERS: Final = {"standard_only": "default"}
BUDGETS: Final = ((1024, "low"), (4096, "medium"))
"""Tokens of thinking up to which it is that effort; above, it is high."""


def _effort(reasoning: chat.Reasoning | None) -> str:
    if reasoning is None:
        return ""
    if reasoning.effort or reasoning.budget is None:
        return reasoning.effort
    return next((effort for most, effort in BUDGETS if reasoning.budget <= most), "high")


def _written_output(output: chat.Output | None) -> Raw | None:
    if output is None:
        return None
    if output.schema is None:
        return {"type": "json_object"}
    schema = put({"name": output.name or "output", "schema": output.schema}, description=output.description)
    return {"type": "json_schema", "json_schema": put(schema, strict=output.strict)}


def _written_tool(tool: chat.Tool) -> Raw:
    schema = chat.schema_of(tool.parameters)
    function = put({"name": tool.name}, description=tool.description, parameters=schema, strict=tool.strict)
    return {"type": "function", "function": function}


def _written_choice(choice: chat.Choice | None) -> object:
    if choice is None:
        return None
    if choice.mode is Choosing.NAMED:
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode.value


def _messages(talk: chat.Conversation) -> Iterator[Raw]:
    for turn in talk.turns:
        if turn.role is Role.ASSISTANT:
            yield _assistant(turn)
        elif turn.role is Role.USER:
            yield from _user(turn)
        else:
            yield put({"role": turn.role.value, "content": chat.texts(turn.parts)}, name=turn.name)


def _assistant(turn: chat.Turn) -> Raw:
    texts = [part for part in turn.parts if isinstance(part, chat.Text)]
    refusals = [part for part in turn.parts if isinstance(part, chat.Refused)]
    calls = [part for part in turn.parts if isinstance(part, chat.ToolCall)]
    content = chat.texts(texts, "")
    message: Raw = {"role": "assistant", "content": content if content or not (calls or refusals) else None}
    return put(
        message,
        name=turn.name,
        refusal=chat.texts(refusals, ""),
        tool_calls=[
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in calls
        ],
    )


def _user(turn: chat.Turn) -> Iterator[Raw]:
    """Results of tools are messages of their own, right behind the calls; files among them follow as the user's."""
    results = [part for part in turn.parts if isinstance(part, chat.ToolResult)]
    others: list[chat.Part] = []
    for result in results:
        yield {"role": "tool", "tool_call_id": result.call_id, "content": chat.texts(result.parts)}
        files = [part for part in result.parts if isinstance(part, chat.File)]
        if files:
            others += [chat.Text(f"Of the result of the tool call {result.call_id}:"), *files]
    others += [part for part in turn.parts if not isinstance(part, chat.ToolResult)]
    if others:
        content = [_written_part(part) for part in others if isinstance(part, (chat.Text, chat.File))]
        if len(content) == 1 and content[0]["type"] == "text":
            yield put({"role": "user", "content": content[0]["text"]}, name=turn.name)
        else:
            yield put({"role": "user", "content": content}, name=turn.name)


def _written_part(part: chat.Text | chat.File) -> Raw:
    if isinstance(part, chat.Text):
        return {"type": "text", "text": part.text}
    if part.media is Media.IMAGE:
        url = part.url or f"data:{part.media_type};base64,{part.data}"
        return {"type": "image_url", "image_url": put({"url": url}, detail=part.detail)}
    if part.media is Media.AUDIO:
        kind = _FORMATS.get(part.media_type) or part.media_type.removeprefix("audio/")
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": kind}}
    if part.file_id:
        return {"type": "file", "file": {"file_id": part.file_id}}
    data = f"data:{part.media_type};base64,{part.data}"
    return {"type": "file", "file": {"filename": part.name or "document", "file_data": data}}
