"""htpasswd files: hashes as `openssl passwd`, `htpasswd` and crypt(3) make them."""

from __future__ import annotations

import base64
import ctypes
import types
from collections.abc import Iterator
from typing import Any

import pytest

from dataplane.credentials import htpasswd

HASHES = {  # of "secret"
    "bcrypt 2y": "$2y$05$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
    "bcrypt 2b": "$2b$05$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
    "bcrypt 2a": "$2a$05$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
    "apr1": "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
    "md5": "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
    "sha256": "$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.",
    "sha256, rounds": "$5$rounds=1000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4",
    "sha512": "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.",
    "sha512, rounds": "$6$rounds=1000$abcdefgh$nhYjN017qxiYztzyUpZtPnUQcnLy62KsunSLHNeLahp2EHPlAKmFFlrjEwSXGo2kgY5hR2."
    "peKEg2VGUqIJJu1",
    "des": "abNANd1rDfiNc",
    "sha1": "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
}


@pytest.fixture(params=["the system's libcrypt", "Python"])
def crypt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who checks crypt hashes."""
    if request.param == "Python":
        monkeypatch.setattr(htpasswd, "libcrypt", lambda: None)


@pytest.mark.parametrize("text", HASHES.values(), ids=HASHES)
def test_hashes(text: str, crypt: None) -> None:
    hashed = htpasswd.hash_of(text.encode())
    for password, right in ((b"secret", True), (b"Secret", False), (b"", False), (b"secret\xff", False)):
        assert hashed.matches(password) is right
    assert hashed.quick is text.startswith("{SHA}") and text not in repr(hashed)


UNKNOWN = [
    "",
    "secret",
    "{PLAIN}secret",
    "{SHA}short=",
    "$apr1$abcdefgh$",
    "$2x$05$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
    "$2y$5$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
    "abNANd1rDfiN",
    "abNANd1rDfi:c",
    "$6$rounds=1000000000$a$" + "a" * 86,
    "$5$rounds=1000001$a$" + "a" * 43,
    "$2y$17$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_hashes_that_are_not_taken(text: str) -> None:
    with pytest.raises(htpasswd.Unusable):
        htpasswd.hash_of(text.encode())


def test_hashes_as_dear_as_may_be_are_taken() -> None:
    for text in (
        "$2y$16$x4FEiPgJLXCU71P2s53f1.fkovTPchdpYhIzRXsM6NFyjZInRnvni",
        "$5$rounds=1000000$a$" + "a" * 43,
        "$6$rounds=1000000$$" + "a" * 86,
    ):
        assert htpasswd.hash_of(text.encode()).text == text.encode()


def test_a_hash_that_only_looks_like_one_matches_nothing() -> None:
    hashed = htpasswd.hash_of(b"$2y$05$" + b"z" * 53)
    assert hashed.matches(b"secret") is False and hashed.matches(b"") is False


def test_72_bytes_count_for_bcrypt() -> None:
    hashed = htpasswd.hash_of(b"$2b$04$MvYFPxKZapRyoDWRkdcPmuhI1p1DukTZcl/GEgGJAhilPhTgNoT5i")
    assert hashed.matches(b"s" * 72) and hashed.matches(b"s" * 80) and not hashed.matches(b"s" * 71)


def test_a_file(caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        "# staff",
        f"#eve:{HASHES['sha1']}",
        "",
        f"ann:{HASHES['sha1']}",
        "  bob:abNANd1rDfiNc\r",
        "ann:abNANd1rDfiNc",
        "carl:plain-text",
        "nobody",
        ":abNANd1rDfiNc",
        f"dan:{HASHES['sha1']}:Dan from accounting",
    ]
    users = htpasswd.read("\n".join(lines).encode(), "secret/default/users")
    assert {name: each.text.decode() for name, each in users.items()} == {
        b"ann": HASHES["sha1"],
        b"bob": "abNANd1rDfiNc",
        b"dan": HASHES["sha1"],
    }
    assert "secret/default/users: line 7: a hash of a kind" in caplog.text and "plain-text" not in caplog.text


@pytest.mark.parametrize("text", [b"", b"# nobody\n\n", b"ann:plain\n", b"\xff\xfe"])
def test_a_file_without_users(text: bytes) -> None:
    with pytest.raises(htpasswd.Unusable, match="no user"):
        htpasswd.read(text, "secret/default/users")


@pytest.mark.parametrize(
    ("credentials", "pair"),
    [
        (b"YTpi", (b"a", b"b")),
        (b"YTpiOmM=", (b"a", b"b:c")),
        (b"Ojo=", (b"", b":")),
        (b"w6Q6w7Y=", ("\u00e4".encode(), "\u00f6".encode())),
        (b"", None),
        (b"YQ==", None),
        (b"YTpi=", None),
        (b"YTpiOmM", None),
        (b"YT pi", None),
        (b"YT!pi!!!", None),  # as long as base64 is
        (b"YTpi\xff", None),
        (b"YToK", None),  # a line feed
        (b"YTp/", None),  # DEL
    ],
)
def test_user_and_password(credentials: bytes, pair: tuple[bytes, bytes] | None) -> None:
    assert htpasswd.user_and_password(credentials) == pair


@pytest.mark.parametrize(("length", "is_taken"), [(512, True), (513, False)])
def test_the_longest_password(length: int, is_taken: bool) -> None:
    pair = htpasswd.user_and_password(base64.b64encode(b"ann:" + b"p" * length))
    assert pair == ((b"ann", b"p" * length) if is_taken else None)


class _Libraries:
    """The system's libraries, of which only `there` exist. `asked` are the names, `made` what crypt_r answers."""

    def __init__(self, there: str, made: bytes | None) -> None:
        self.there, self.made = there, made
        self.asked: list[str] = []
        self.arguments: list[tuple[bytes, bytes, int]] = []

    def __call__(self, name: str) -> object:
        self.asked.append(name)
        if name != self.there:
            raise OSError(f"{name}: cannot open shared object file")

        def crypt_r(password: bytes, text: bytes, data: Any) -> bytes | None:
            self.arguments.append((password, text, len(data)))
            return self.made

        return types.SimpleNamespace(crypt_r=crypt_r)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    htpasswd.libcrypt.cache_clear()
    yield
    htpasswd.libcrypt.cache_clear()


@pytest.mark.parametrize("there", ["libcrypt.so.1", "libcrypt.so.2"])
def test_the_systems_function_is_asked_whatever_its_name(
    monkeypatch: pytest.MonkeyPatch, asked_anew: None, there: str
) -> None:
    """It runs outside the interpreter's lock: the loop goes on meanwhile."""
    text = HASHES["sha512"].encode()
    libraries = _Libraries(there, text)
    monkeypatch.setattr(ctypes, "CDLL", libraries)
    assert htpasswd.hash_of(text).matches(b"whatever it says")
    assert libraries.arguments == [(b"whatever it says", text, 262144)]
    libraries.made = text[:-1] + b"x"
    assert not htpasswd.hash_of(text).matches(b"secret")
    assert libraries.asked == ["libcrypt.so.1", "libcrypt.so.2"][: 1 + (there != "libcrypt.so.1")]  # once


@pytest.mark.parametrize(("there", "made"), [("none", None), ("libcrypt.so.1", None), ("libcrypt.so.1", b"*0")])
def test_what_the_system_does_not_know_is_checked_in_python(
    monkeypatch: pytest.MonkeyPatch, asked_anew: None, there: str, made: bytes | None
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", _Libraries(there, made))
    hashed = htpasswd.hash_of(HASHES["des"].encode())
    assert hashed.matches(b"secret") and not hashed.matches(b"Secret")
