"""Byte order marks, NULs and characters without a width in files of keys, users and secrets: ignored where they stand
before the text, named elsewhere. Nobody is locked out without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.xds.trust import tokens
from dataplane.agent import xds_access
from dataplane.agent.file_contents import Contents
from dataplane.credentials import api_keys, htpasswd, jwk, shared_secret
from gatewright import invisible
from gatewright.api.advice.shared_secrets import weakness
from gatewright.api.standalone import standalone
from gatewright.api.standalone.secrets import Content

MARK = invisible.MARK
HASH = b"{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
SECRET = b"0123456789abcdef0123456789abcdef"


def test_a_mark_before_a_text_is_no_part_of_it(tmp_path: Path) -> None:
    assert api_keys.entry(MARK + b"key\n") == (b"key", {})
    assert api_keys.entry(MARK + b'{"key": "key"}') == (b"key", {})
    assert list(htpasswd.read(MARK + b"ann:" + HASH, "users")) == [b"ann"]
    assert list(tokens.parse(tokens.text_of(MARK + b"t" * 32))) == list(tokens.parse("t" * 32))
    shared_secret.read(MARK + SECRET)
    assert weakness(MARK + SECRET) == ""
    (tmp_path / "key").write_bytes(MARK + b"key\r\n")
    assert Contents(tmp_path).read(Content(file="key")) == b"key"
    (tmp_path / "token").write_bytes(MARK + b"t" * 32)
    assert xds_access.token_in(tmp_path / "token") == "t" * 32
    loaded = standalone.load("\ufeffbinds: [{port: 1, listeners: [{name: a}]}]", "config.yaml")
    assert loaded.resources and not loaded.problems


ODD = [
    ("k\u200bey", "U+200B zero width space"),
    ("key\0", "U+0000 control character"),
    ("\ufeffke\ufeffy", "U+FEFF zero width no-break space"),
    ("k\u00a0y", "U+00A0 no-break space"),
    ("k\u202ey", "U+202E right-to-left override"),
]


@pytest.mark.parametrize(("text", "name"), ODD, ids=[name for _, name in ODD])
def test_one_within_a_text_is_named(text: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    data = text.encode()
    with pytest.raises(ValueError, match=rf"^an invisible character, {name}$".replace("+", r"\+")):
        api_keys.entry(data)
    assert list(htpasswd.read(data + b":" + HASH + b"\nann:" + HASH, "users")) == [b"ann"]
    assert f"users: line 1: an invisible character in the user's name, {name}" in caplog.text
    if not data.isascii():
        assert weakness(data + SECRET) == f"has an invisible character, {name}"
        with pytest.raises(jwk.Unusable, match="has an invisible character"):
            shared_secret.read(data + SECRET)


def test_a_text_in_utf_16_is_named() -> None:
    with pytest.raises(ValueError, match="UTF-16: save it as UTF-8"):
        api_keys.entry("key".encode("utf-16"))


@pytest.mark.parametrize("text", ["key", "k\u00e4\u4e2d\U0001f600", "a b\tc\nd", "-._~+/=", ""])
def test_what_is_seen_is_no_mistake(text: str) -> None:
    assert invisible.hidden(text.encode()) == "" == invisible.hidden(b"\xff\x00\x01" * 11)
