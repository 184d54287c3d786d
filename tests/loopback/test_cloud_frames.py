"""Streams of Amazon Bedrock as moto writes them by AWS' model of the service, one event at a time, through a proxy:
whole, with exceptions in the middle, damaged and cut. (boto3 reads streams of ours and of the stand-in in
`test_cloud_sdks`.)"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from dataplane.llm.chat import Answer, Text, ToolCall
from dataplane.llm.deltas import Failed, Sum
from dataplane.llm.formats.registry import PROVIDERS
from dataplane.llm.routes import Format
from tests.carriers import CARRIERS, Response
from tests.conftest import need_tool
from tests.fakes.llm_toys import CHAT, of_backend, post
from tests.harness.patience import PATIENCE

FRAMES = Path(__file__).parents[1] / "fakes" / "cloud_moto_frames.py"
pytestmark = pytest.mark.needs("cloud-python")

AUTH = "policies: {auth: {aws: {secretRef: {accessKey: {value: AKID}, secretKey: {value: secret}}}}}"
PROVIDER = f"groups: [{{providers: [{{name: b, bedrock: {{}}, host: 127.0.0.1, port: 9001, {AUTH}}}]}}]"
KIND = (("content-type", "application/vnd.amazon.eventstream"),)
TEXT = "Grüße 世界 🌍!"
WAYS = {
    "converse": (Format.COMPLETIONS, "/v1/chat/completions", "amazon.nova-pro-v1:0"),
    "invoke": (Format.MESSAGES, "/v1/messages", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
}
ENDS = (b"[DONE]", b"message_stop")


@pytest.fixture(scope="module")
def frames() -> dict[str, list[bytes]]:
    command = [need_tool("cloud-python"), str(FRAMES)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=4 * PATIENCE)
    found = json.loads(done.stdout)
    return {name: [base64.b64decode(each) for each in given] for name, given in found.items()}


def streamed(way: str, parts: list[bytes]) -> bytes:
    """What a client gets of a stream that comes in these parts."""
    _, path, model = WAYS[way]
    run = CARRIERS["http1"].shared(of_backend(PROVIDER))
    more = {"stream_options": {"include_usage": True}} if way == "converse" else {}
    body = {**CHAT, "model": model, "max_tokens": 9, "stream": True, **more}
    carried = run.carry(post(path, body), Response(headers=KIND, body=parts))
    assert carried.answer.status == 200
    return carried.answer.body


def read(way: str, data: bytes) -> Sum:
    reader, found = PROVIDERS[WAYS[way][0]].reader(), Sum()
    found.add([*reader.feed(data), *reader.end()])
    return found


def said(answer: Answer) -> list[object]:
    return [(each.name, each.arguments) if isinstance(each, ToolCall) else each.text for each in answer.parts
            if isinstance(each, (Text, ToolCall))]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [0, 1, 13])
def test_a_stream_comes_whole_however_it_is_split(way: str, size: int, frames: dict[str, list[bytes]]) -> None:
    """0: an event at a time."""
    whole = b"".join(frames[way])
    parts = [whole[at : at + size] for at in range(0, len(whole), size)] if size else frames[way]
    found = read(way, streamed(way, parts))
    assert found.failed is None
    wanted: list[object] = [TEXT, ("look", '{"city":"Bern"}')] if way == "converse" else [TEXT]
    assert said(found.answer()) == wanted
    assert (found.answer().usage.input_tokens, found.answer().usage.output_tokens) == (9, 4)


@pytest.mark.parametrize("way", WAYS)
def test_headers_of_every_type_may_stand_in_a_message(way: str, frames: dict[str, list[bytes]]) -> None:
    first = frames["headers"] if way == "converse" else frames[way][:1]
    assert read(way, streamed(way, [*first, *frames[way][1:]])).failed is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("fault", "message"), [("exception", "too many tokens"), ("error", "broken")])
def test_what_bedrock_says_in_the_middle_ends_the_stream(
    way: str, fault: str, message: str, frames: dict[str, list[bytes]]
) -> None:
    for at in range(1, len(frames[way]) - 1):
        data = streamed(way, [*frames[way][:at], *frames[fault], *frames[way][at:]])
        found = read(way, data).failed
        assert found is not None and message in found.message, at
        assert not any(end in data for end in ENDS)


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_is_damaged_or_cut_ends_with_an_error(way: str, frames: dict[str, list[bytes]]) -> None:
    whole = b"".join(frames[way])
    first = len(frames[way][0])
    for at in range(first, len(whole) - len(frames[way][-1]), 7):
        damaged = whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :]
        for data in (damaged, whole[:at]):
            given = streamed(way, [data])
            reader = PROVIDERS[WAYS[way][0]].reader()
            assert isinstance([*reader.feed(given), *reader.end()][-1], Failed), at
            assert not any(end in given for end in ENDS), at
