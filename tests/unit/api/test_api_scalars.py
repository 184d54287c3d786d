"""Durations, sizes and log levels: what is read, what is refused, and in which words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gatewright.api.schema import targets
from gatewright.api.schema.byte_size import MAXIMUM, byte_size
from gatewright.api.schema.duration import milliseconds, seconds
from gatewright.api.schema.log_level import LogLevels, parse_log_level
from gatewright.api.schema.model import BROKEN_RULES
from gatewright.api.schema.near_names import did_you_mean, near_name
from gatewright.api.schema.targets import target

MODULES = ("dataplane", "dataplane.http", "dataplane.agent", "xds")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", 0),
        ("1ms", 1),
        ("500ms", 500),
        ("3s", 3_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1h2m3s4ms", 3_723_004),
        ("99999h", 359_996_400_000),
    ],
)
def test_duration(text: str, expected: int) -> None:
    assert milliseconds(text) == expected
    assert seconds(text) == expected / 1000


NO_DURATIONS = ["", "5", "s", "1.5s", "-1s", "3d", "100000s", "1s1s1s1s1s", "1s\n", " 1s", "1us", "1S"]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration such as"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (16384, 16384),
        ("16384", 16384),
        ("1Ki", 1024),
        ("16Ki", 16384),
        ("2Mi", 2**21),
        ("3Gi", 3 * 2**30),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("1G", 10**9),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12e-1", 2),  # 1.2, rounded up
        ("1.5Ki", 1536),
        ("0.1", 1),
        (".5k", 500),
        ("1500m", 2),
        ("999000m", 999),
        ("999000000u", 999),
        ("999000000000n", 999),
        ("5b", 5),
        ("5B", 5),
        ("1gb", 2**30),
        ("0.001tb", 1_099_511_628),
        ("0.001Ti", 1_099_511_628),
        ("0.000001Pi", 1_125_899_907),
        ("0.000000001Ei", 1_152_921_505),
        ("0.001T", 10**9),
        ("0.000001P", 10**9),
        ("0.000000001E", 10**9),
        ("0" * 31 + "7", 7),
        ("1u", 1),
        ("1n", 1),
        ("2mb", 2_097_152),
        ("16kb", 16_384),
        ("8KB", 8_192),
        ("+5", 5),
        (MAXIMUM, MAXIMUM),
        (str(MAXIMUM), MAXIMUM),
    ],
)
def test_byte_size(value: str | int, expected: int) -> None:
    assert byte_size(value) == expected


@pytest.mark.parametrize("value", ["", "Ki", "1 Ki", "1kI", "1Zi", "abc", "1.2.3", "-1", "1" * 33, "1e", "٣"])
def test_no_byte_size(value: str) -> None:
    with pytest.raises(ValueError, match="must be a size such as"):
        byte_size(value)


@pytest.mark.parametrize("value", [MAXIMUM + 1, str(MAXIMUM + 1), "4Gi", "1Ti", "1Pi", "1Ei", "1T", "1E", "1e9999", -1])
def test_byte_size_beyond_the_data_plane(value: str | int) -> None:
    with pytest.raises(ValueError, match=f"must be between 0 and {MAXIMUM} bytes"):
        byte_size(value)


@pytest.mark.parametrize(
    ("text", "default", "modules"),
    [
        ("info", "info", {}),
        ("warning", "warn", {}),
        ("DEBUG", "debug", {}),
        ("info,dataplane.http=debug,xds=off", "info", {"dataplane.http": "debug", "xds": "off"}),
        ("xds=debug", "info", {"xds": "debug"}),
        (" warn , xds = error ", "warn", {"xds": "error"}),
        ("xds=debug,xds=off", "info", {"xds": "off"}),
    ],
)
def test_log_level(text: str, default: str, modules: dict[str, str]) -> None:
    assert parse_log_level(text, MODULES) == LogLevels(default, modules)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inof", 'unknown level "inof"; did you mean "info"?'),
        ("", 'unknown level ""; levels: debug, error, info, off, warn'),
        ("info,", 'unknown level ""'),
        ("xds=", 'unknown level ""'),
        ("dataplane.htpt=debug", 'unknown module "dataplane.htpt"; did you mean "dataplane.http"?'),
        ("zzz=debug", 'unknown module "zzz"; known: dataplane, dataplane.agent, dataplane.http, xds'),
    ],
)
def test_no_log_level(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_log_level(text, MODULES)
    assert message in str(raised.value)


def test_modules_may_be_unknown_to_the_reader() -> None:
    assert parse_log_level("anything=debug", None).modules == {"anything": "debug"}


def test_these_modules_are_light() -> None:
    light = (
        "schema.byte_size",
        "schema.duration",
        "schema.log_level",
        "schema.names",
        "schema.near_names",
        "text.problem",
    )
    code = f"import sys, {', '.join(f'gatewright.api.{name}' for name in light)}; print('pydantic' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("jwtAuth", "jwtAuthentication"),
        ("jwt", "jwtAuthentication"),
        ("apiKeyAuth", "apiKeyAuthentication"),
        ("extAuth", "extAuth"),
        ("basicAuthn", "basicAuthentication"),
        ("extAut", "extAuth"),
        ("zebra", None),
    ],
)
def test_a_word_may_be_short_for_a_name(word: str, meant: str | None) -> None:
    known = ["apiKeyAuthentication", "authorization", "basicAuthentication", "extAuth", "extProc", "jwtAuthentication"]
    assert near_name(word, known) == meant


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("unix:/run/a.sock", ("", 0, "/run/a.sock"), "unix:/run/a.sock"),
        ("Example.COM:1", ("example.com", 1, ""), "example.com:1"),
        ("a_b.c-d:65535", ("a_b.c-d", 65535, ""), "a_b.c-d:65535"),
        ("[2001:DB8::1]:80", ("2001:db8::1", 80, ""), "[2001:db8::1]:80"),
        (f"{'h' * 256}:80", ("h" * 256, 80, ""), f"{'h' * 256}:80"),
    ],
)
def test_a_target(text: str, expected: tuple[str, int, str], shown: str) -> None:
    assert target(text) == expected
    assert str(target(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a:",
        "a:0",
        "a:65536",
        "a:1:2",
        "-a:1",
        "a-:1",
        "[::1]",
        "[1.2.3.4.5::]:1",
        "unix:run",
        "a:000001",
        f"{'h' * 257}:80",
    ],
)
def test_no_target(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be HOST:PORT|Expected|Only|At most|At least|Unexpected|No more"):
        target(text)


@pytest.mark.parametrize(
    ("word", "known", "ending"),
    [
        ("prot", ["port", "name"], '; did you mean "port"?'),
        ("PORT", ["port", "name"], '; did you mean "port"?'),
        ("port", ["Port", "ports"], '; did you mean "Port"?'),
        ("xyz", ["b", "a"], "; known: a, b"),
        ("xyz", [], ""),
        ("xyz", [f"n{number}" for number in range(10, 22)], f"; known: {', '.join(f'n{n}' for n in range(10, 22))}"),
        ("xyz", [f"n{number}" for number in range(10, 23)], f"; known: {', '.join(f'n{n}' for n in range(10, 22))}, …"),
    ],
)
def test_what_was_probably_meant(word: str, known: list[str], ending: str) -> None:
    assert did_you_mean(word, known) == ending


def test_what_was_meant_with_other_words_and_other_likeness() -> None:
    assert did_you_mean("xyz", "abc", label="modules", limit=3) == "; modules: a, b, c"
    assert did_you_mean("xyz", "abc", label="modules", limit=2) == "; modules: a, b, …"
    assert did_you_mean("pott", ["port"], likeness=0.75) == '; did you mean "port"?'
    assert did_you_mean("pott", ["port"], likeness=0.76) == "; known: port"


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        (targets.AddressText, ["127.0.0.1", "::1", "fd00::"], ["", "localhost", "1.2.3", "127.0.0.1:1", "10.0.0.0/8"],
         "must be an IP address"),
        (targets.NetworkText, ["10.0.0.0/8", "fd00::/8", "1.2.3.4", "0.0.0.0/0"], ["", "10.0.0.1/8", "a/8", "::/129"],
         "must be a network such as 10.0.0.0/8 or fd00::/8"),
        (targets.HostText, ["a:1", "unix:/a", "[::1]:65535"], ["", "a", "unix:a", "a:0", "a:65536", "off"],
         "must be HOST:PORT or unix:/PATH"),
        (targets.PageText, ["off", "127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/a"], ["", "a.b:1", "on", "host"],
         "must be IP:PORT, localhost:PORT, unix:/PATH or off"),
        (targets.PageText, [], ["127.0.0.1:0", "localhost:65536"], "must be HOST:PORT or unix:/PATH"),
    ],
)  # fmt: skip
def test_places_on_the_network(kind: Any, good: list[str], bad: list[str], message: str) -> None:
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    for text in good:
        assert adapter.validate_python(text) == text
    for text in bad:
        with pytest.raises(ValidationError) as refused:
            adapter.validate_python(text)
        (broken,) = refused.value.errors()[0]["ctx"][BROKEN_RULES]
        assert broken.message.startswith(message), text


def test_off_is_a_word_also_where_yaml_reads_no() -> None:
    assert TypeAdapter(targets.PageText).validate_python(False) == "off"
    with pytest.raises(ValidationError):
        TypeAdapter(targets.PageText).validate_python(True)
