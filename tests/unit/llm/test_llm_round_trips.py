"""What is written in a format and read again means the same, as far as the format can carry it; and any bytes are read
or refused, never anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.llm import chat, losses
from dataplane.llm.body import Malformed
from dataplane.llm.chat import Choosing, Media, Origin, Role
from dataplane.llm.features import Feature
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.providers import PROVIDERS as ROWS
from dataplane.llm.providers import Path, Provider
from dataplane.llm.routes import Format

WORDS = st.text(min_size=1, max_size=20).map(lambda text: f"w{text}w")
"""Neither blank nor with blanks at their ends, which Anthropic's API refuses."""
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
TEXTS = st.builds(chat.Text, WORDS)
IMAGES = st.builds(chat.File, st.just(Media.IMAGE), st.just("image/png"), st.sampled_from(("iVBORw0KGgo=", "AAAA")))
OBJECTS = st.dictionaries(NAMES, st.one_of(st.integers(-5, 5), WORDS, st.none()), max_size=3)


@st.composite
def rounds(draw: st.DrawFn) -> list[chat.Turn]:
    """A user's turn and an answer, with calls of tools and their results."""
    number = draw(st.integers(0, 2))
    base = draw(st.integers(0, 10**6))
    calls = tuple(
        chat.ToolCall(f"call_{base}_{index}", "weather", json.dumps(draw(OBJECTS), separators=(",", ":")))
        for index in range(number)
    )
    found = [
        chat.Turn(Role.USER, (draw(TEXTS), *draw(st.lists(IMAGES, max_size=1)))),
        chat.Turn(Role.ASSISTANT, (draw(TEXTS), *calls)),
    ]
    if calls:
        results = tuple(chat.ToolResult(call.id, (draw(TEXTS),)) for call in calls)
        found.append(chat.Turn(Role.USER, results))
    return found


@st.composite
def talks(draw: st.DrawFn) -> chat.Conversation:
    turns = [turn for each in draw(st.lists(rounds(), min_size=1, max_size=4)) for turn in each]
    system = [chat.Turn(Role.SYSTEM, (draw(TEXTS),))] if draw(st.booleans()) else []
    tools = (chat.Tool("weather", draw(WORDS), {"type": "object", "properties": {}}),)
    mode = draw(st.sampled_from((None, Choosing.AUTO, Choosing.NONE, Choosing.REQUIRED, Choosing.NAMED)))
    return chat.Conversation(
        draw(NAMES),
        (*system, *chat.merged(turns)),
        tools,
        None if mode is None else chat.Choice(mode, "weather" if mode is Choosing.NAMED else ""),
        sampling=chat.Sampling(
            max_tokens=draw(st.integers(16, 10_000)), temperature=draw(st.sampled_from((None, 0.0, 0.5, 1.0)))
        ),
        output=draw(st.one_of(st.none(), st.builds(chat.Output, st.just({"type": "object"}), st.just("output")))),
        stream=draw(st.booleans()),
    )


def provider(form: Format) -> Provider:
    return Provider(ROWS["openai"], "", {form: Path(b"/")})


def meaning(talk: chat.Conversation) -> chat.Conversation:
    """Without what is noted of how it was said."""
    output = talk.output and replace(talk.output, name="")
    turns = [replace(turn, parts=tuple(map(_plain, turn.parts))) for turn in chat.merged(talk.turns)]
    return replace(talk, turns=tuple(turns), said={}, wants_usage=True, output=output)


def _plain(part: chat.Part) -> chat.Part:
    """JSON of arguments by its value."""
    if not isinstance(part, chat.ToolCall):
        return part
    return replace(part, arguments=json.dumps(json.loads(part.arguments)))


@pytest.mark.parametrize("form", CLIENTS)
@given(talk=talks())
def test_what_is_written_and_read_again_means_the_same(form: Format, talk: chat.Conversation) -> None:
    found = CLIENTS[form].read(PROVIDERS[form].write(talk, provider(form)).body)
    tools = tuple(replace(tool, strict=None) for tool in found.tools)
    assert meaning(replace(found, tools=tools)) == meaning(talk)
    assert losses.judge(found, form).refused is None


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                (
                    *("type", "role", "content", "text", "messages", "input", "choices", "delta", "message"),
                    *("tool_calls", "function", "id", "name", "arguments", "output", "usage", "error", "image_url"),
                    *("source", "data", "model", "index", "candidates", "parts", "stop", "tools", "system", "item"),
                )
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("form", CLIENTS)
@given(value=VALUES)
def test_any_request_is_read_or_refused(form: Format, value: Any) -> None:
    try:
        talk = CLIENTS[form].read(json.dumps(value).encode())
    except Malformed:
        return
    for target, format_of in PROVIDERS.items():
        if losses.judge(talk, target, drops=True).refused is None:
            json.loads(format_of.write(talk, provider(target)).body)


@pytest.mark.parametrize("form", PROVIDERS)
@given(values=st.lists(VALUES, max_size=4))
def test_any_answer_and_any_stream_are_read_or_refused(form: Format, values: list[Any]) -> None:
    for value in values:
        body = json.dumps(value).encode()
        PROVIDERS[form].read_error(500, body)
        try:
            found = PROVIDERS[form].read_answer(body)
        except Unreadable:
            continue
        for client in CLIENTS.values():
            json.loads(client.write_answer(found, chat.Asked(TALK, "id", 1)))
    data = b"".join(b"data: %b\n\n" % json.dumps(value).encode() for value in values)
    reader = PROVIDERS[form].reader()
    deltas = [*reader.feed(data), *reader.end()]
    for client in CLIENTS.values():
        client.writer(chat.Asked(TALK, "id", 1)).give(deltas)


TALK = chat.Conversation("m", ())

# --- as coding agents send them


def thought(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": f"ls {number}"}}


def result(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok", **more}


MARK = {"cache_control": {"type": "ephemeral"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
AGENT = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32_000,
    "stream": True,
    "system": [{"type": "text", "text": "You are an agent."}, {"type": "text", "text": "Rules.", **MARK}],
    "metadata": {"user_id": "user_1_account_2_session_3"},
    "thinking": {"type": "enabled", "budget_tokens": 31_999},
    "tools": [
        {"name": "Bash", "description": "Runs.", "input_schema": {"type": "object", "properties": {"command": {}}}},
        {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}, **MARK},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                {"type": "text", "text": "go", **MARK},
            ],
        },
        {"role": "assistant", "content": [thought("Both."), use(1), use(2)]},
        {
            "role": "user",
            "content": [result(2), result(1, is_error=True, content=[{"type": "text", "text": "no"}, IMAGE])],
        },
        {
            "role": "assistant",
            "content": [
                thought("Again."),
                {"type": "redacted_thinking", "data": "aGlk"},
                {"type": "text", "text": "One more."},
                use(3),
            ],
        },
        {"role": "user", "content": [result(3, **MARK), {"type": "text", "text": "and be quick"}]},
    ],
}
CODEX = {
    "model": "gpt-5-codex",
    "instructions": "You are an agent.",
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "reasoning": {"effort": "medium", "summary": "auto"},
    "tool_choice": "auto",
    "tools": [
        {"type": "function", "name": "shell", "strict": False, "parameters": {"type": "object", "properties": {}}}
    ],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "sandbox"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "ZW5j",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "First."}]},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"cmd":"ls"}'},
        {"type": "function_call", "call_id": "c2", "name": "shell", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "failed"}]},
    ],
}
AGENTS = {Format.MESSAGES: AGENT, Format.RESPONSES: CODEX}


@pytest.mark.parametrize("target", PROVIDERS)
@pytest.mark.parametrize("client", AGENTS)
def test_conversations_of_coding_agents_are_carried_by_every_format(client: Format, target: Format) -> None:
    talk = CLIENTS[client].read(json.dumps(AGENTS[client]).encode())
    assert Feature.UNKNOWN not in talk.said
    assert losses.judge(talk, target).refused is None
    body = PROVIDERS[target].write(talk, provider(target)).body.decode()
    for kept in {
        Format.MESSAGES: ("ls 1", "ls 2", "ls 3", "be quick", "iVBORw0KGgo="),
        Format.RESPONSES: ("a.py", "broken"),
    }[client]:
        assert kept in body


def test_a_thought_goes_back_to_its_own_provider_alone() -> None:
    signed = "gatewright.google.Z29v"
    turn = {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": signed}, use(1)]}
    body = {**AGENT, "messages": [{"role": "user", "content": "go"}, turn, {"role": "user", "content": [result(1)]}]}
    talk = CLIENTS[Format.MESSAGES].read(json.dumps(body).encode())
    written = {form: PROVIDERS[form].write(talk, provider(form)).body for form in PROVIDERS}
    assert b'"thoughtSignature":"Z29v"' in written[Format.GENERATE_CONTENT]
    assert all(b"Z29v" not in found for form, found in written.items() if form is not Format.GENERATE_CONTENT)
    assert b'"thinking":{' not in written[Format.MESSAGES], "its API refuses thinking behind calls made without its own"


ORIGINS = {Format.MESSAGES: Origin.ANTHROPIC, Format.RESPONSES: Origin.OPENAI}


@pytest.mark.parametrize("client", ORIGINS)
@pytest.mark.parametrize("origin", [Origin.ANTHROPIC, Origin.OPENAI, Origin.GOOGLE])
@pytest.mark.parametrize("is_redacted", [False, True])
def test_a_signature_survives_a_client_of_any_api(client: Format, origin: Origin, is_redacted: bool) -> None:
    signature = "rs_1:ZW5j" if origin is Origin.OPENAI else "c2ln"
    thought_of = chat.Thinking("" if is_redacted else "Hm.", signature, origin, is_redacted)
    answer = json.loads(CLIENTS[client].write_answer(chat.Answer("a", "m", (thought_of,)), chat.Asked(TALK, "id", 1)))
    if client is Format.MESSAGES:
        body = {"model": "m", "messages": [{"role": "assistant", "content": answer["content"]}]}
    else:
        body = {"model": "m", "input": answer["output"]}
    (turn,) = CLIENTS[client].read(json.dumps(body).encode()).turns
    (found,) = turn.parts
    assert isinstance(found, chat.Thinking)
    assert (found.text, found.signature, found.origin) == (thought_of.text, signature, origin)
