"""JSON-RPC messages as MCP has them: what is one, what is wrong with what is none, what of a large one is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dataplane.mcp import messages
from dataplane.mcp.messages import Malformed

DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", -32700, "the message is not JSON"),
        (b'{"jsonrpc":"2.0","method":"\xff"}', -32700, "the message is not UTF-8, or its id or method is no text"),
        (
            b'{"jsonrpc":"2.0","method":"x","params":"\xff"}',
            -32700,
            "the message is not UTF-8, or its id or method is no text",
        ),
        (b'{"jsonrpc":"2.0","method":"\\ud800"}', -32700, "the message is not UTF-8, or its id or method is no text"),
        (b'{"jsonrpc":"2.0","method":"\\ud8"}', -32700, "the message is not JSON"),
        (b"\xff", -32700, "the message is not JSON"),
        (b'{"id":{},', -32700, "the message is not JSON"),
        pytest.param(b'{"params":' + DEEP, -32700, "the message has too many levels", id="deep"),
        pytest.param(b'{"id":{},"params":' + DEEP, -32700, "the message has too many levels", id="deep, and wrong"),
        (b" \t\r\n[]", -32600, "batches of messages are not supported"),
        (b"[{}]", -32600, "batches of messages are not supported"),
        (b'"x"', -32600, "not a JSON-RPC message: Expected `object`, got `str`"),
        (b'{"id":1,"method":"x"}', -32600, 'jsonrpc must be "2.0"'),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600, 'jsonrpc must be "2.0"'),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, "id must be a string or an integer"),
        (b'{"jsonrpc":"2.0","id":null,"result":{}}', -32600, "id must be a string or an integer"),
        (b'{"jsonrpc":"2.0","id":null,"method":"x","error":{}}', -32600, "id must be a string or an integer"),
        (b'{"jsonrpc":"2.0","id":1}', -32600, "a message has a method, or an id with a result or an error"),
        (b'{"jsonrpc":"2.0","result":{}}', -32600, "a message has a method, or an id with a result or an error"),
        (b'{"jsonrpc":"2.0","error":{}}', -32600, "a message has a method, or an id with a result or an error"),
        (
            b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
            -32600,
            "a message has a method, or an id with a result or an error",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', -32600, "a request has no result and no error"),
        (b'{"jsonrpc":"2.0","method":"x","error":{}}', -32600, "a request has no result and no error"),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', -32600, "method is empty"),
    ],
)
def test_what_is_no_message_is_refused_with_what_is_wrong(body: bytes, code: int, text: str) -> None:
    with pytest.raises(Malformed) as refused:
        messages.read(body)
    assert (refused.value.code, str(refused.value)) == (code, text)


# --- what of a message is read


def of_keys(count: int, size: int = 0, **more: Any) -> Raw:
    """An object of so many keys; filled up with a text to so many bytes."""
    made = {**{f"k{number}": 1 for number in range(count)}, **more}
    text = json.dumps(made, separators=(",", ":")).encode()
    if size:
        made["k0"] = "x" * (size - len(text) - 1)
        text = json.dumps(made, separators=(",", ":")).encode()
        assert len(text) == size
    return Raw(text)


@pytest.mark.parametrize(
    ("raw", "is_read"),
    [
        (of_keys(10_000, 70_000 + 60_000), True),
        (of_keys(10_001, 70_000 + 60_000), False),
        (of_keys(4000, 65_536), True),
        (Raw(b'{"arguments":' + bytes(of_keys(10_001)) + b"}"), True),
        (Raw(b'{"task":' + bytes(of_keys(10_001)) + b',"tools":' + bytes(of_keys(10_001)) + b"}"), True),
        (Raw(b'{"other":' + bytes(of_keys(10_001)) + b"}"), False),
        (Raw(b"[1]"), False),
        (Raw(b"null"), False),
    ],
)
def test_an_object_of_too_many_keys_is_not_read(raw: Raw, is_read: bool) -> None:
    if is_read:
        assert messages.object_of(raw)
        return
    with pytest.raises(Malformed) as refused:
        messages.object_of(raw)
    assert refused.value.code == -32602


def small_keys(count: int) -> bytes:
    return b"{" + b",".join(b'"":1' for _ in range(count)) + b"}"


def test_what_is_left_beside_long_parts_is_what_counts() -> None:
    """Of a large object the parts that MCP has are not counted, up to the bound for the rest."""
    few = messages.MANY_BYTES
    long = b'{"messages":' + small_keys(10_001) + b',"x":"%b"}'
    rest = len(long % b"") - len(small_keys(10_001))
    assert messages.object_of(Raw(long % (b"a" * (few - rest))))
    with pytest.raises(Malformed, match="too many keys"):
        messages.object_of(Raw(long % (b"a" * (few - rest + 1))))
    assert messages.object_of(UNSET) == {}


def test_a_list_has_a_bounded_number_of_items() -> None:
    def listed(item: bytes, count: int) -> Raw:
        return Raw(b"[" + b",".join([item] * count) + b"]")

    assert len(messages.items_of(listed(b"{}", 50_000))) == 50_000
    assert messages.items_of(None) == []
    assert len(messages.items_of(listed(b"1", 100))) == 100, "short ones are not counted"
    assert len(messages.items_of(Raw(b"[10" + b",1" * 32_766 + b"]"))) == 32_767, "65,536 bytes are short"
    assert len(messages.items_of(listed(b'{"a":[%b]}' % b",".join([b"{}"] * 99), 2000))) == 2000
    for raw, text in (
        (listed(b"{}", 50_001), "too many items"),
        (listed(b'{"a":[%b]}' % b",".join([b"{}"] * 99) + b",{}", 2000), "too many items"),
        (listed(b"1", 40_000), "not readable"),
        (Raw(b"{}"), "not readable"),
        (Raw(b"[1"), "not readable"),
    ):
        with pytest.raises(Malformed, match=text) as refused:
            messages.items_of(raw)
        assert refused.value.code == -32603


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        *((None, None), (b"1", 1), (b"0", 0), (b'"a"', "a"), (b'""', ""), (b"true", None), (b"1.5", None)),
        *((b"[1]", None), (b"null", None), (b'"%b"' % (b"a" * 1022), "a" * 1022), (b'"%b"' % (b"a" * 1023), None)),
    ],
)
def test_an_id_is_a_string_or_an_integer_of_bounded_length(raw: bytes | None, found: Any) -> None:
    assert messages.id_of(None if raw is None else Raw(raw)) == found


@pytest.mark.parametrize(
    ("keys", "is_refused"),
    [
        *((("name",), False), (("name", "Other"), False), (("Name",), True), (("name", "NAME"), True)),
        *((("other",), False), (("uri",), False), (("URI", "name"), True)),
    ],
)
def test_names_in_other_letters_are_refused(keys: tuple[str, ...], is_refused: bool) -> None:
    value = dict.fromkeys(keys, Raw(b"1"))
    if not is_refused:
        messages.exact(value, "name", "uri")
        return
    with pytest.raises(Malformed) as refused:
        messages.exact(value, "name", "uri")
    assert refused.value.code == -32602
