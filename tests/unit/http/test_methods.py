"""Methods against a registry that others keep, and what llhttp takes."""

from __future__ import annotations

from http import HTTPMethod

import httptools
import pytest

from dataplane.http.methods import IDEMPOTENT, METHODS, NEITHER, REGISTERED, SAFE, UNKNOWN_TO_LLHTTP
from tests.fakes.memory_proxy import Http1Endpoints

FILE = """
binds:
- port: 8080
  listeners:
  - routes: [{backends: [{host: "127.0.0.1:9000"}]}]
"""
ROUTED = sorted(METHODS - {b"CONNECT", b"TRACE"})
"""CONNECT opens a tunnel; a TRACE has no content (RFC 9110 9.3.8)."""


@pytest.mark.parametrize("method", ROUTED, ids=[method.decode() for method in ROUTED])
def test_a_method_of_the_registry_reaches_the_endpoint_with_its_content(method: bytes) -> None:
    proxy = Http1Endpoints(FILE)
    client = proxy.connect()
    client.send(method + b" /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok")
    sent = proxy.upstream.take()
    assert sent.startswith(method + b" /a HTTP/1.1\r\n") and sent.endswith(b"\r\n\r\nok")


def test_llhttp_knows_the_others() -> None:
    refused = set()
    for method in METHODS:
        try:
            httptools.HttpRequestParser(object()).feed_data(method + b" /a HTTP/1.1\r\nHost: a\r\n\r\n")
        except httptools.HttpParserUpgrade:
            continue
        except httptools.HttpParserError:
            refused.add(method)
    assert refused - {b"CONNECT", b"SOURCE"} == UNKNOWN_TO_LLHTTP


def test_python_knows_no_method_that_we_do_not() -> None:
    assert {method.value.encode() for method in HTTPMethod} <= METHODS


def test_the_registry_is_in_its_order_and_names_nothing_twice() -> None:
    names = [name for name, _ in REGISTERED]
    assert names == sorted(set(names)) and len(names) == 39


SAFE_METHODS = {b"GET", b"HEAD", b"OPTIONS", b"PROPFIND", b"QUERY", b"REPORT", b"SEARCH", b"TRACE"}
NOT_IDEMPOTENT = {b"CONNECT", b"LOCK", b"PATCH", b"POST"}


def test_the_columns_of_the_registry() -> None:
    """RFC 7237 3 for those before it, RFC 9110 9.3 for its own, RFC 5789 2 for PATCH."""
    assert {name for name, kind in REGISTERED if kind == SAFE} == SAFE_METHODS
    assert {name for name, kind in REGISTERED if kind == NEITHER} == NOT_IDEMPOTENT


@pytest.mark.parametrize("method", [b"POST", b"PATCH", b"CONNECT", b"LOCK", b"PURGE"])
def test_what_may_have_been_done_is_not_sent_again(method: bytes) -> None:
    assert method not in IDEMPOTENT
