"""The realtime client of `openai`, unchanged but for base URL and key, in the environment of the SDKs (`llm-python`).
`loopback/test_llm_realtime_sdk` starts it with the addresses as JSON, and writes one name of a function on each line;
each is answered with one line of JSON: null, or what was wrong. Names are as in `llm_sdk_clients`."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
import urllib.request
from typing import Any

import openai
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

GIVEN = json.loads(sys.argv[1])
"""`realtime`: the address; `guarded`: where answers are masked; `provider`: without the gateway; `key`."""
TEXT = "Grüße 世界 🌍!"
EVENTS: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
HELLO: Any = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}


def address(name: str) -> dict[str, str]:
    return {"base_url": GIVEN[name] + "/v1", "api_key": GIVEN["key"]}


def checked(event: Any) -> Any:
    """By the published types, and none of them by chance: what the client has read is what the type reads."""
    found = EVENTS.validate_python(event.to_dict())
    assert type(found) is type(event), (type(found), type(event))
    return event


def talk(connection: Any, model: str) -> tuple[str, Any]:
    """One turn. Text, and the last event."""
    assert checked(connection.recv()).session.model == model
    connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
    assert checked(connection.recv()).type == "session.updated"
    connection.conversation.item.create(item=HELLO)
    connection.response.create()
    said = ""
    for event in connection:
        checked(event)
        assert event.type != "error", event
        if event.type == "response.output_text.delta":
            said += event.delta
        elif event.type == "response.output_text.done":
            assert event.text == said
        elif event.type == "response.done":
            return said, event
    raise AssertionError("the session ended before its response")


def sdk_realtime() -> None:
    with openai.OpenAI(**address("realtime")).realtime.connect(model="gpt-realtime") as connection:
        said, last = talk(connection, "gpt-realtime")
    assert said == TEXT
    assert last.response.usage.total_tokens == 15
    assert last.response.output[0].content[0].text == TEXT


def sdk_realtime_of_the_async_client() -> None:
    async def ask() -> None:
        async with openai.AsyncOpenAI(**address("realtime")).realtime.connect(model="gpt-realtime") as connection:
            assert checked(await connection.recv()).type == "session.created"
            for _ in range(3):
                await connection.response.create()
                kinds = []
                while not kinds or kinds[-1] != "response.done":
                    kinds.append(checked(await connection.recv()).type)
                assert kinds.count("response.output_text.delta") == 4

    asyncio.run(ask())


def sdk_realtime_sound() -> None:
    with openai.OpenAI(**address("realtime")).realtime.connect(model="gpt-realtime") as connection:
        connection.recv()
        for _ in range(20):
            connection.input_audio_buffer.append(audio="AAAA" * 20_000)
        connection.response.create()
        assert checked(connection.recv()).type == "response.created"


def gateway_alias() -> None:
    with openai.OpenAI(**address("realtime")).realtime.connect(model="fast") as connection:
        talk(connection, "gpt-realtime-mini")


def gateway_masks() -> None:
    with openai.OpenAI(**address("guarded")).realtime.connect(model="gpt-realtime") as connection:
        said, last = talk(connection, "gpt-realtime")
    assert said == last.response.output[0].content[0].text == "Grüße <masked> 🌍!", said


def gateway_refuses() -> None:
    try:
        with openai.OpenAI(**address("realtime")).realtime.connect(model="denied"):
            raise AssertionError("it is not allowed")
    except Exception as error:
        answer = getattr(error, "response", None)
        assert answer is not None, error
        assert answer.status_code == 403, answer
        assert json.loads(answer.body)["error"]["code"] == "LlmModelDenied"


def gateway_answers_events_that_it_refuses() -> None:
    with openai.OpenAI(**address("realtime")).realtime.connect(model="gpt-realtime") as connection:
        connection.recv()
        connection.session.update(session={"type": "realtime", "model": "gpt-realtime-2"}, event_id="mine")
        error = checked(connection.recv())
        assert (error.type, error.error.code, error.error.event_id) == ("error", "LlmModelDenied", "mine"), error


def seen() -> Any:
    with urllib.request.urlopen(GIVEN["provider"] + "/seen") as answer:
        return json.loads(answer.read())


def main() -> None:
    for line in sys.stdin:
        try:
            globals()[line.strip()]()
            wrong = [each for each in seen() if each["problems"]]
            print(json.dumps(f"the provider: {wrong}" if wrong else None), flush=True)
        except Exception:
            print(json.dumps(f"{traceback.format_exc()}\nthe provider: {seen()}"), flush=True)


if __name__ == "__main__":
    main()
