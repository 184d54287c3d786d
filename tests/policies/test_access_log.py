"""The access log of a Gateway: from YAML to the line of a request."""

from __future__ import annotations

import json

import pytest

from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.variables import Variables
from gatewright.api.standalone import standalone
from tests.carriers import Carrier, Request, Response
from tests.fakes.table_state import TableRun

FILE = """
frontendPolicies:
  accessLog: {log}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: a.test
    routes:
    - name: all
      backends: [{{host: "127.0.0.1:9000"}}]
"""

KEPT = Response(200, [("x-kept", "yes")], b"ok")
PLAIN = Request("GET", "/a", [("x-user", "ann")], authority="a.test")
OTHER = Request("GET", "/b", authority="a.test")


def lines(carrier: Carrier, log: str, *requests: Request) -> list[str]:
    """Lines of these requests, without their beginning."""
    run = carrier.proxy(FILE.format(log=log))
    for request in requests:
        run.ask(request, KEPT, run.client())
    return [line.partition("\trequest\t")[2] for line in run.log_lines()]


def test_attributes_are_added_at_the_end(carrier: Carrier) -> None:
    add = "{user: 'request.headers[\"x-user\"]', kept: 'response.headers[\"x-kept\"]', port: source.port}"
    (line,) = lines(carrier, f"{{add: {add}}}", PLAIN)
    assert line.startswith("gateway=default/standalone listener=http route=default/all ")
    assert line.endswith("ms user=ann kept=yes port=40000")


def test_one_that_fails_is_absent_and_the_others_are_there(carrier: Carrier) -> None:
    (line,) = lines(carrier, '{add: {no: \'request.headers["x-none"]\', no.claim: jwt.sub, yes: "1"}}', PLAIN)
    assert line.endswith("ms yes=1")


@pytest.mark.parametrize(("status", "ending"), [("14", " code=14"), ("9" * 5000, "ms"), ("9" * 20, "ms")])
def test_an_endpoint_cannot_take_lines_away(status: str, ending: str, carrier: Carrier) -> None:
    run = carrier.proxy(FILE.format(log="{add: {code: response.grpcStatus}}"))
    for code in ("0", status, "0"):
        run.ask(PLAIN, Response(200, [("grpc-status", code)]))
    first, second, third = run.log_lines()
    assert first.endswith(" code=0") and second.endswith(ending) and third.endswith(" code=0")


def test_a_bug_in_an_attribute_costs_one_request_its_attributes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, carrier: Carrier
) -> None:
    def bug(x: Variables) -> str:
        if x.path == b"/b":
            raise RuntimeError("bug")
        return "http"

    monkeypatch.setattr(Variables, "request_scheme", property(bug))
    first, second = lines(carrier, "{add: {scheme: request.scheme}}", PLAIN, OTHER)
    assert first.endswith("ms scheme=http") and " http.path=/b " in second and second.endswith("ms")
    assert "attributes of the access log failed" in caplog.text


def test_default_fields_are_removed(carrier: Carrier) -> None:
    (line,) = lines(carrier, "{remove: [gateway, http.method, http.version, no.such]}", PLAIN)
    assert line.startswith("listener=http route=default/all route_rule=0 endpoint=127.0.0.1:9000 src.addr=192.0.2.7 ")
    assert "http.method" not in line and "http.version" not in line
    assert " http.host=a.test http.path=/a http.status=200 " in line


@pytest.mark.parametrize(
    ("condition", "paths"),
    [
        ('request.path == "/b"', ["/b"]),
        ("response.code == 200", ["/a", "/b"]),
        ('request.headers["x-user"] == "ann"', ["/a"]),
        ('jwt.sub == "ann" || request.path == "/b"', ["/b"]),
        ('jwt.sub == "ann"', []),
    ],
)
def test_only_what_the_filter_wants_has_a_line(condition: str, paths: list[str], carrier: Carrier) -> None:
    found = lines(carrier, f"{{filter: {json.dumps(condition)}}}", PLAIN, OTHER)
    assert [line.partition("http.path=")[2].split()[0] for line in found] == paths


def test_a_client_cannot_keep_itself_out_of_the_log(carrier: Carrier) -> None:
    """By making the filter look through more than an evaluation may."""
    slow = 'request.pathAndQuery.split("&").exists(p, ["a", "b", "c", "d", "e"].exists(q, p == q))'
    long = PLAIN.to("/?" + "&" * 30_000 + "a")
    found = lines(carrier, f"{{filter: '{slow}'}}", OTHER.to("/?x&a"), PLAIN, long)
    assert [line.partition("http.path=")[2][:3] for line in found] == ["/?x", "/?&"]


def test_a_request_without_listener_has_the_default_line(carrier: Carrier) -> None:
    other = Request("GET", "/a", authority="other.test")
    (line,) = lines(carrier, '{remove: [http.path], add: {x: "1"}}', other)
    assert "http.path=/a" in line and " x=1" not in line


def test_a_client_that_left_has_the_status_of_the_line(carrier: Carrier) -> None:
    run = carrier.proxy(FILE.format(log="{filter: response.code >= 400, add: {code: response.code}}"))
    run.send(PLAIN).cancel()
    (line,) = run.log_lines()
    assert " http.status=499 " in line and line.endswith("ms code=499")


def test_a_header_cannot_forge_a_field(carrier: Carrier) -> None:
    add = "{user: 'request.headers[\"x-user\"]'}"
    forger = Request("GET", "/a", [("x-user", 'ann" http.status=500 x="')], authority="a.test")
    (line,) = lines(carrier, f"{{add: {add}}}", forger)
    assert line.endswith(r'ms user="ann\" http.status=500 x=\""')


def test_a_name_that_could_forge_a_field_is_refused_and_the_log_before_stays() -> None:
    run = TableRun()
    for log in ('{add: {a: "1"}}', '{add: {"a b": "1"}}'):
        loaded = standalone.load(FILE.format(log=log), "config.yaml")
        run.apply(*(Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in loaded.resources))
    ((key, reason),) = run.refused.items()
    assert key == "policy/default/gateway:standalone/access_log"
    assert "attributes.add[0].name: 'a b' must have no space" in reason
    (plan,) = [listener.telemetry for listener in run.listeners().values()]
    assert plan is not None and plan.log is not None
    assert [item.text for item in plan.log.added] == [" a="]


def test_an_edit_counts_from_the_next_request_on(carrier: Carrier) -> None:
    run = carrier.proxy(FILE.format(log='{add: {x: "1"}}'))
    first = run.send(PLAIN)
    run.load(FILE.format(log='{add: {x: "2"}}'))
    run.serve()
    assert first.answer.ended
    run.ask(PLAIN)
    run.load(FILE.format(log="{}"))
    run.ask(PLAIN)
    ends = [line.rpartition("ms")[2] for line in run.log_lines()]
    assert ends == [" x=1", " x=2", ""]


def test_bodies_that_policies_read_are_kept_only_for_a_log_that_reads_them(carrier: Carrier) -> None:
    holds = "policies: {buffer: {request: {}, response: {}}}\n      backends:"
    for log, end in (('{add: {q: "size(request.body)", a: "size(response.body)"}}', "ms q=4 a=2"), ("{}", "ms")):
        run = carrier.proxy(FILE.format(log=log).replace("backends:", holds))
        run.ask(Request("POST", "/a", body=b"body", authority="a.test"))
        ((x, _),) = run.memory.context.access_log.records
        assert (x.body, x.response_body) == ((b"body", b"ok") if log != "{}" else (None, None))
        assert run.log_lines()[0].endswith(end)


@pytest.mark.parametrize("removed", ["[none]", "[protocol]"])
def test_a_long_value_is_cut_and_says_so(removed: str, carrier: Carrier) -> None:
    add = "{user: 'request.headers[\"x-user\"]', list: '[request.headers[\"x-user\"]]'}"
    long = Request("GET", "/" + "a" * 9000, [("x-user", "b" * 8193)], authority="a.test")
    (line,) = lines(carrier, f"{{add: {add}, remove: {removed}}}", long)
    assert f" http.path=/{'a' * 8191}...+809 " in line
    assert f" user={'b' * 8192}...+1 " in line
    assert line.endswith(f' list="[\\"{"b" * 8190}...+5"')
    (line,) = lines(carrier, f"{{add: {add}}}", Request("GET", "/", [("x-user", "b" * 8192)], authority="a.test"))
    assert f" user={'b' * 8192} " in line
