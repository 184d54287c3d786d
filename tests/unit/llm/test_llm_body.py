"""Bodies keep their bytes but for the fields that are edited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.llm.body import MAX_FIELDS, MAX_READ, Body, Malformed

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=12),
    st.integers(-(10**40), 10**40),
    st.sampled_from(["\\", '"', "]}", "{,"]),
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
_SPACE = st.sampled_from(["", " ", "\n\t ", "\r\n"])
_KEYS = st.one_of(st.sampled_from(["model", "stream", "messages"]), st.text(max_size=5))


@st.composite
def _bodies(draw: Any) -> list[tuple[str, str, str]]:
    """Fields as they are written: what stands before the value, the value, what stands behind it; and the names."""
    fields = []
    for name in draw(st.lists(_KEYS, max_size=6)):
        key = json.dumps(name, ensure_ascii=draw(st.booleans()))
        value = json.dumps(draw(_VALUES), ensure_ascii=draw(st.booleans()))
        if draw(st.booleans()):
            value = draw(st.sampled_from([value, "1e400", "123456789012345678901234567890.10", "-0.0", '"\\u0041\\/"']))
        space = [draw(_SPACE) for _ in range(4)]
        fields.append((name, f"{space[0]}{key}{space[1]}:{space[2]}", value + space[3]))
    return fields


def _text(fields: list[tuple[str, str, str]]) -> bytes:
    return ("{" + ",".join(before + value for _, before, value in fields) + "}").encode("utf-8", "surrogatepass")


def _is_utf8(fields: list[tuple[str, str, str]]) -> bool:
    return not any("\ud800" <= character <= "\udfff" for field in fields for part in field for character in part)


@given(_bodies())
def test_a_body_that_nobody_edits_is_the_same(fields: list[tuple[str, str, str]]) -> None:
    if _is_utf8(fields):
        assert Body(_text(fields)).written() == _text(fields)


@given(_bodies(), st.sampled_from(["model", "stream", "new", "é"]))
def test_all_but_an_edited_field_keeps_its_bytes(fields: list[tuple[str, str, str]], name: str) -> None:
    if not _is_utf8(fields):
        return
    body = Body(_text(fields))
    body.set(name, b'"edited"')
    kept, is_there = [], False
    for field, before, value in fields:
        if field != name:
            kept.append(before + value)
        elif not is_there:
            is_there = True
            space = value[len(value.rstrip(" \t\r\n")) :]
            kept.append(before + '"edited"' + space)
    if not is_there:
        kept.append(json.dumps(name, ensure_ascii=False) + ':"edited"')
    assert body.written().decode() == "{" + ",".join(kept) + "}"


@given(_bodies(), st.sampled_from(["model", "stream", "messages"]))
def test_a_removed_field_is_gone_wherever_it_stood(fields: list[tuple[str, str, str]], name: str) -> None:
    if not _is_utf8(fields):
        return
    body = Body(_text(fields))
    body.remove(name)
    if any(field == name for field, _, _ in fields):
        kept = [before + value for field, before, value in fields if field != name]
        assert body.written().decode() == "{" + ",".join(kept) + "}"
    assert name not in body
    assert body.raw(name) is None


@given(_bodies(), st.sampled_from(["model", "stream", ""]))
def test_a_field_that_stands_there_twice_is_found(fields: list[tuple[str, str, str]], name: str) -> None:
    if _is_utf8(fields):
        assert Body(_text(fields)).is_twice(name) == (sum(field == name for field, _, _ in fields) > 1)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'"x"', b"{", b'{"a":}', b'{"a":1} x', b'{"a":1}{"b":2}', b"\xff", b'{"a":' + b"[" * 100_000]
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="must be a JSON object"):
        Body(data)


def test_a_large_body_with_a_field_twice_is_refused_once_it_is_edited() -> None:
    body = Body(b'{"a":1,"a":"' + b"x" * MAX_READ + b'"}')
    body.set("model", b'"m"')
    with pytest.raises(Malformed, match="more than once"):
        body.written()


def test_another_spelling_of_a_field_is_found() -> None:
    assert Body(b'{"Model":"x"}').other_spelling("model") == "Model"
    assert Body(b'{"model":"x"}').other_spelling("model") == ""


def test_values_are_read_as_what_they_are() -> None:
    body = Body(b'{"model":"m\\u00e9","n":12,"stream":true,"s":"true","null":null}')
    assert body.text("model") == "m\xe9"
    assert body.text("n") is None
    assert body.value("n") == 12
    assert body.is_true("stream")
    assert not body.is_true("s")
    assert body.value("null") is None
    assert "null" in body
    assert body.raw("absent") is None


def test_a_body_of_too_many_fields_is_refused_and_one_of_many_messages_is_not() -> None:
    fields = b",".join(b'"k%d":1' % number for number in range(MAX_FIELDS))
    assert len(Body(b"{%b}" % fields).names) == MAX_FIELDS
    many = b",".join(b'"k%d":1' % number for number in range(30_000))
    for content in (b'{%b,"k":1}' % fields, b"{%b}" % many, b'{"metadata":{%b}}' % many):
        with pytest.raises(Malformed, match="more than 1000 fields"):
            Body(content)
    turns = b",".join([b'{"role":"user","content":"hi"}'] * 30_000)
    assert len(Body(b'{"messages":[%b]}' % turns).value("messages")) == 30_000
    twice = Body(b"{%b}" % b",".join([b'"k":1'] * 2_000))
    with pytest.raises(Malformed, match="more than 1000 fields"):
        twice.is_twice("k")


def test_a_large_value_is_decoded_once_and_an_edit_is_seen() -> None:
    body = Body(b'{"messages":["%b"],"model":"m"}' % (b"a" * 20_000))
    assert body.value("messages") is body.value("messages")
    body.set("messages", b"[1]")
    assert body.value("messages") == [1]
    body.remove("messages")
    assert body.value("messages") is None
