"""Spellings of a guarded path: each is refused, or arrives at the origin byte for byte as the guard saw it.

What real origins make of what arrives is modelled by `ORIGINS`: none of them may come to the guarded path by a request
that the guard did not take for one to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import pytest

from tests.carriers import Carrier, Request

_SPELLINGS = """
/admin /admin/ /admin/x //admin ///admin /admin//x /./admin /x/../admin /x/./../admin /admin/. /admin/x/.. /x//../admin
/%61dmin /adm%69n /%2e/admin /x/%2e%2e/admin /x/.%2E/admin /x/%2e./admin
/%2Fadmin /%2fadmin /admin%2F /admin%2fx /x%2F..%2Fadmin /x/..%2fadmin /x/%2e%2e%2fadmin
/x\\..\\admin /\\admin /%5Cadmin /admin%5c /admin%5Cx /x%5C..%5Cadmin /x/..%5cadmin
/admin; /admin;a=1 /admin;a=1/x /;a/admin /x/..;/admin /x/..;a=1/admin /x/%2e%2e;/admin
/x;/../admin /x/..;%2Fadmin /x%2F..;a%5Cadmin /x;a//..;/;b/admin
/%00/admin /admin%00 /admin% /admin%zz /%u0061dmin /%252Fadmin /x/%252e%252e/admin /ADMIN /Admin/x /admin#x /admin?x
/admin. /admin./x /admin%2E /admin%20 /admin%09 /%25%36%31dmin /x/%252e%252e%252fadmin
http://a.test/admin http://a.test//admin http://a.test/x/..;/admin
"""
SPELLINGS = _SPELLINGS.split()
assert len(SPELLINGS) >= 41

_GUARD = 'request.path == "/admin" || request.path.startsWith("/admin/")'
GUARDS = {
    "route": """
    - name: guarded
      matches: [{path: {type: PathPrefix, value: /admin}}]
      policies: {directResponse: {status: 403}}
    - name: open
      backends: [{host: "127.0.0.1:9000"}]
""",
    "deny": f"""
    - policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ['{_GUARD}']}}}}}}
      backends: [{{host: "127.0.0.1:9000"}}]
""",
    "condition": f"""
    - policies: {{directResponse: {{conditional: [{{condition: '{_GUARD}', policy: {{status: 403}}}}]}}}}
      backends: [{{host: "127.0.0.1:9000"}}]
""",
}
FILE = """
frontendPolicies: {{http: {http}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:{routes}"""

Origin = Callable[[bytes], bytes]


def _merged(path: bytes) -> bytes:
    return re.sub(rb"//+", b"/", path)


def _bare(path: bytes) -> bytes:
    return re.sub(rb";[^/]*", b"", path)


def _resolved(path: bytes) -> bytes:
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    return b"/" + b"/".join(kept)


ORIGINS: dict[str, Origin] = {
    "as it came": bytes,
    "WSGI": unquote_to_bytes,
    "nginx": lambda path: _resolved(_merged(unquote_to_bytes(path))),
    "Tomcat, with encoded slashes allowed": lambda path: _resolved(_merged(unquote_to_bytes(_bare(path)))),
    "IIS, but for letter case": lambda path: _resolved(_merged(unquote_to_bytes(path).replace(b"\\", b"/"))),
    "Jetty": lambda path: _resolved(_bare(path)),
    "a servlet filter that decodes last": lambda path: unquote_to_bytes(_resolved(_merged(_bare(path)))),
}


def is_guarded(path: bytes) -> bool:
    return path == b"/admin" or path.startswith(b"/admin/")


def arrived(carrier: Carrier, guard: str, spelling: str, http: str) -> tuple[int, bytes]:
    """The status, and the path that the origin got, or b""."""
    run = carrier.shared(FILE.format(http=http, routes=GUARDS[guard]))
    before = len(run.arrivals)
    answer = run.ask(Request(target=spelling, authority="a.test"), client=run.client())
    run.new_lines()
    target = run.arrivals[before].received.target if len(run.arrivals) > before else ""
    return (400 if answer.reset else answer.status), target.partition("?")[0].encode()


CHANGING = "{path: {repeatedSlashes: Merge, escapedSlashes: Decode, escapedBackslashes: Decode, parameters: Remove}}"
REJECTING = "{path: {repeatedSlashes: Reject, escapedSlashes: Reject, escapedBackslashes: Reject, parameters: Reject}}"


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("http", ["{}", CHANGING, REJECTING], ids=["default", "changing", "rejecting"])
def test_no_origin_comes_to_a_guarded_path_that_the_guard_did_not_see(carrier: Carrier, guard: str, http: str) -> None:
    for spelling in SPELLINGS:
        status, path = arrived(carrier, guard, spelling, http)
        assert (status == 200) == bool(path) and status in (200, 400, 403), spelling
        if path:
            assert not is_guarded(path), spelling
            reached = [name for name, origin in ORIGINS.items() if is_guarded(origin(path))]
            assert not reached, (spelling, path)


@pytest.mark.parametrize(
    ("http", "sent", "path"),
    [
        ("{}", "/a//b;c/%2F%5c", "/a//b;c/%2F%5C"),  # nothing depends on how it is read
        ("{}", "/maps/1,2;3,4", "/maps/1,2;3,4"),
        ("{path: {repeatedSlashes: Merge}}", "/a///b//", "/a/b/"),
        ("{path: {repeatedSlashes: Keep}}", "//admin", "//admin"),
        ("{path: {repeatedSlashes: Reject}}", "/a//b", ""),
        ("{path: {escapedSlashes: Decode}}", "/a%2fb?c=%2F;//", "/a/b"),
        ("{path: {escapedSlashes: Decode, repeatedSlashes: Reject}}", "/a%2f%2Fb", ""),
        ("{path: {escapedSlashes: Decode}}", "/a%2F..%2Fb", "/b"),
        ("{path: {escapedSlashes: Keep}}", "/admin%2Fx", "/admin%2Fx"),
        ("{path: {escapedSlashes: Reject}}", "/a%2fb", ""),
        ("{path: {escapedBackslashes: Decode}}", "/a%5cb", "/a/b"),
        ("{path: {escapedBackslashes: Keep}}", "/admin%5cb", "/admin%5Cb"),
        ("{path: {escapedBackslashes: Reject}}", "/a%5cb", ""),
        ("{path: {parameters: Remove}}", "/a;b=1/c;d/..;/e", "/a/e"),
        ("{path: {parameters: Keep}}", "/admin;a", "/admin;a"),
        ("{path: {parameters: Reject}}", "/a;b", ""),
        ("{path: {case: Lower}}", "/Some/Path%c3%89", "/some/path%C3%89"),
        ("{path: {case: Lower}}", "/ADMIN", ""),
        ("{path: {case: Keep}}", "/Some/Path", "/Some/Path"),
    ],
)
def test_what_is_set(http: str, sent: str, path: str, carrier: Carrier) -> None:
    status, got = arrived(carrier, "route", sent, http)
    assert (got.decode(), status == 200) == (path, bool(path))


def test_a_listener_of_the_file_says_what_is_otherwise_there(carrier: Carrier) -> None:
    text = FILE.format(http="{path: {parameters: Reject}}", routes=GUARDS["route"])
    own = text.replace("  - name: http\n", "  - name: http\n    http: {path: {parameters: Keep}}\n")
    assert carrier.proxy(text).carry(Request(target="/a;b")).answer.status == 400
    assert carrier.proxy(own).carry(Request(target="/a;b")).answer.status == 200
