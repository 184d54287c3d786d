"""AWS Signature Version 4: the published vectors, botocore's signatures, and what neither asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataplane.upstream.auth import sigv4
from dataplane.upstream.auth.sigv4 import Keys, Paths, Request, Scope

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / ".tools/specifications/aws-sigv4"
CASES = sorted(SUITE.glob("*/context.json"))
KEYS = Keys(b"AKIDEXAMPLE", b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SCOPE = Scope(b"us-east-1", b"service")
MOMENT = b"20150830T123600Z"
NOTHING = sigv4.digest_of(b"")


def _read(text: bytes) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
    """Method, target, headers and content of a request as the suite writes it."""
    head, _, content = text.replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, rest = first.split(b" ", 1)
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        if line[:1] in b" \t" and line:  # a value of several lines, as HTTP had them once
            name, value = headers.pop()
            headers.append((name, value + b" " + line.strip()))
        elif line:
            name, _, value = line.partition(b":")
            headers.append((name, value))
    return method, rest.rpartition(b" HTTP/")[0], headers, content


@pytest.mark.skipif(not CASES, reason="scripts/tools fetches the vectors")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_a_published_vector_is_signed_as_published(case: Path) -> None:
    context = json.loads(case.read_text())
    known = context["credentials"]
    keys = Keys(known["access_key_id"].encode(), known["secret_access_key"].encode())
    scope = Scope(context["region"].encode(), context["service"].encode())
    moment = context["timestamp"].replace("-", "").replace(":", "").encode()
    method, target, headers, content = _read((case.parent / "request.txt").read_bytes())
    headers = [(name, value) for name, value in headers if name.lower() != b"x-amz-date"]
    headers.append((b"X-Amz-Date", moment))
    if known.get("token") and not context.get("omit_session_token"):
        headers.append((b"X-Amz-Security-Token", known["token"].encode()))
    digest = sigv4.digest_of(content)
    if context["sign_body"]:
        headers.append((b"x-amz-content-sha256", digest))
    request = Request(method, target, tuple(headers), digest)
    paths = Paths(context["normalize"], escapes=False)  # the suite's service is one of these

    def published(name: str) -> bytes:
        return (case.parent / f"header-{name}.txt").read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n")

    assert sigv4.canonical_request(request, paths) == published("canonical-request")
    text = sigv4.string_to_sign(request, scope, moment, paths)
    assert text == published("string-to-sign")
    assert sigv4.signed(text, sigv4.signing_key(keys.secret, moment[:8], scope)) == published("signature")


@pytest.mark.skipif(not CASES, reason="scripts/tools fetches the vectors")
@pytest.mark.parametrize("name", ["double-encode-path", "double-url-encode"])
def test_a_published_path_is_escaped_once_more(name: str) -> None:
    method, target, headers, content = _read((SUITE / name / "request.txt").read_bytes())
    published = (SUITE / name / "header-canonical-request.txt").read_bytes()
    request = Request(method, target, tuple(headers), sigv4.digest_of(content))
    assert sigv4.canonical_request(request, Paths()).split(b"\n")[1] == published.split(b"\n")[1]


def test_vanilla_is_signed_as_published() -> None:
    """One vector that is here without the suite: `get-vanilla`."""
    headers = ((b"host", b"example.amazonaws.com"), (b"x-amz-date", MOMENT))
    assert sigv4.authorization(Request(b"GET", b"/", headers, NOTHING), KEYS, SCOPE, MOMENT) == (
        b"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        b"SignedHeaders=host;x-amz-date, "
        b"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/a/b", b"/a/b"),
        (b"/a//b/", b"/a/b/"),
        (b"/a/./b/../c", b"/a/c"),
        (b"/../a", b"/a"),
        (b"/a/..", b"/"),
        (b"/", b"/"),
        (b"/%7Ea%2Fb", b"/%257Ea%252Fb"),
        (b"/model/a:1/converse", b"/model/a%3A1/converse"),
    ],
)
def test_a_path_is_normalized_and_escaped_once_more(target: bytes, path: bytes) -> None:
    canonical = sigv4.canonical_request(Request(b"GET", target, ((b"host", b"h"),), NOTHING), Paths())
    assert canonical.split(b"\n")[1] == path


@pytest.mark.parametrize(
    ("target", "path"),
    [(b"/a//b/../c", b"/a//b/../c"), (b"/%7Ea%2Fb", b"/~a%2Fb"), (b"/a(b)", b"/a%28b%29"), (b"", b"/")],
)
def test_a_path_of_s3_is_a_key(target: bytes, path: bytes) -> None:
    scope = Scope(b"eu-west-1", b"s3")
    canonical = sigv4.canonical_request(Request(b"GET", target, ((b"host", b"h"),), sigv4.UNSIGNED), scope.paths)
    assert canonical.split(b"\n")[1] == path


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        (b"b=2&a=1", b"a=1&b=2"),
        (b"a=2&a=1", b"a=1&a=2"),
        (b"a", b"a="),
        (b"a=%7e%2f", b"a=~%2F"),
        (b"a=b=c", b"a=b%3Dc"),
        (b"a+b=1", b"a%2Bb=1"),
        (b"a=1&&b=2&", b"a=1&b=2"),
        (b"", b""),
    ],
)
def test_a_query_is_sorted_behind_its_escapes(query: bytes, canonical: bytes) -> None:
    request = Request(b"GET", b"/?" + query, ((b"host", b"h"),), NOTHING)
    assert sigv4.canonical_request(request, Paths()).split(b"\n")[2] == canonical


def test_keys_are_in_no_repr() -> None:
    assert "MDENG" not in repr(KEYS) and "AKID" not in repr(KEYS)


BOTOCORE = json.loads((Path(__file__).parent / "signed_by_botocore.json").read_text())
"""200 random requests, as botocore 1.44 has signed them: target, headers, content, region, service, authorization. None
of a path that ends with a dot segment: there botocore goes without the slash that RFC 3986 5.2.4 and AWS's SDK for Rust
leave."""


@pytest.mark.parametrize("number", range(len(BOTOCORE)))
def test_a_request_is_signed_as_botocore_signs_it(number: int) -> None:
    target, headers, content, region, service, theirs = BOTOCORE[number]
    sent = tuple((name.encode(), value.encode()) for name, value in headers)
    request = Request(b"POST", target.encode(), sent, sigv4.digest_of(bytes.fromhex(content)))
    scope, moment = Scope(region.encode(), service.encode()), dict(sent)[b"x-amz-date"]
    ours = sigv4.authorization(request, Keys(b"AKID", b"secret"), scope, moment)
    assert ours.decode() == theirs


def test_there_are_enough_of_them() -> None:
    assert len(BOTOCORE) == 200
