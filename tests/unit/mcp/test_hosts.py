"""Hosts as those read them who fetch URIs."""

from __future__ import annotations

import pytest

from dataplane.mcp import hosts


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("h.example", {"h.example"}),
        ("H.Example.", {"h.example"}),
        ("h\u3002example", {"h.example"}),
        ("\uff48.ex\u00adample", {"h.example"}),
        ("b\u00fccher.example", {"b\u00fccher.example", "xn--bcher-kva.example"}),
        ("xn--bcher-kva.example", {"b\u00fccher.example", "xn--bcher-kva.example"}),
        ("xn--99999999.example", {"xn--99999999.example"}),
        ("stra\u00dfe", {"stra\u00dfe", "xn--strae-oqa", "strasse"}),
        ("\u00e9" * 64, {"\u00e9" * 64, "xn--" + ("\u00e9" * 64).encode("punycode").decode()}),
        ("127.1", {"127.0.0.1"}),
        ("2130706433", {"127.0.0.1"}),
        ("0x7F.0.1", {"127.0.0.1"}),
        ("0177.0.0.01", {"127.0.0.1"}),
        ("1.2.3.4", {"1.2.3.4"}),
        ("1.2.3.256", {"1.2.3.256"}),
        ("1.2.65536", {"1.2.65536"}),
        ("256.1", {"256.1"}),
        ("4294967296", {"4294967296"}),
        ("0x", {"0.0.0.0"}),
        ("09", {"09"}),
        ("1.2.3.4.5", {"1.2.3.4.5"}),
        ("[0:0::1]", {"[::1]"}),
        ("[nothing]", {"[nothing]"}),
        ("", {""}),
        ("A" * 2000, {"a" * 2000}),
    ],
)
def test_the_names_of_a_host(host: str, names: set[str]) -> None:
    assert set(hosts.names(host)) == names
