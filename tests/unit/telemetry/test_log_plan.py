"""Lines of the access log that a policy changes: built from its message, made of an exchange, in both formats."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.exchange import Exchange
from dataplane.filters.frontend import access_log as policy
from dataplane.http.heads import Head
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.log_fields import FIELDS, writers
from dataplane.telemetry.log_plan import LogPlan
from dataplane.telemetry.plan import TelemetryPlan
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import frontend_pb2

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)


def plan(filter: str = "", remove: tuple[str, ...] = (), add: dict[str, str] | None = None) -> LogPlan:
    attributes = frontend_pb2.Attributes(
        remove=remove, add=[frontend_pb2.Attribute(name=name, expression=text) for name, text in (add or {}).items()]
    )
    return policy.build(frontend_pb2.AccessLog(filter=filter, attributes=attributes), ENV)


def exchange(made: LogPlan | None) -> Exchange:
    x = Exchange(None, b"POST", b"/a?b=c", Head(b"\r\nx-user: ann lee\r\n"), started=1.0)
    x.context = SimpleNamespace(clock=lambda: 1.0)
    x.asked_host, x.path, x.peer, x.status = b"a.test", b"/a", "192.0.2.1", 503
    x.listener = SimpleNamespace(
        name="l",
        gateway="default/g",
        log=" gateway=default/g listener=l",
        log_json=',"gateway":"default/g","listener":"l"',
        telemetry=TelemetryPlan(made),
    )
    x.plan = SimpleNamespace(
        key="route/httproute/default/r/0",
        rule="",
        rule_index=0,
        kind="HTTPRoute",
        log=" route=default/r route_rule=0",
        log_json=',"route":"default/r","route_rule":"0"',
    )
    x.endpoint = SimpleNamespace(label="127.0.0.1:9")
    x.attempt, x.reason, x.detail = 2, "UpstreamFailed", "it closed"
    return x


def line(made: LogPlan | None, as_json: bool = False, fields: dict[str, Any] | None = None, **left: Any) -> str:
    """The line of an exchange with these fields, on which policies left these values; "" if it has none."""
    x = exchange(made)
    for name, value in (fields or {}).items():
        setattr(x, name, value)
    for path, value in left.items():
        x.leave(path, value)
    written: list[bytes] = []
    log = AccessLog(written.append, lambda _seconds, _call: SimpleNamespace(cancel=lambda: None), as_json)
    log.record(x, 0.25)
    log.close()
    return b"".join(written).decode()


def added(expression: str, **left: Any) -> tuple[str | None, Any]:
    """How the value of an expression stands in a text line, and in a JSON line."""
    made = plan(add={"my.attribute": expression})
    text = re.search(r" my\.attribute=(.*)\n$", line(made, **left))
    return text and text[1], json.loads(line(made, as_json=True, **left)).get("my.attribute")


@pytest.mark.parametrize(
    ("expression", "text", "value"),
    [
        ("request.method", "POST", "POST"),
        ('request.headers["x-user"]', '"ann lee"', "ann lee"),
        ("response.code", "503", 503),
        ("double(response.code) * 1.5", "754.5", 754.5),
        ("1u", "1", 1),
        ("1.0 / 0.0", "inf", "inf"),
        ("response.code >= 500", "true", True),
        ("[1, 2]", "[1,2]", [1, 2]),
        ('{"a": "b c"}', r'"{\"a\":\"b c\"}"', {"a": "b c"}),
        ('duration("90s")', "90s", "90s"),
        ("b'ab'", "YWI=", "YWI="),
        ("extauthz.vpnNode", "laptop", "laptop"),
        ('request.endTime - request.startTime > duration("0.2s")', "true", True),
        ("jwt.rawToken", "<redacted>", "<redacted>"),
        ("[jwt.rawToken]", '"[\\"<redacted>\\"]"', ["<redacted>"]),
        ("extauthz.missing", None, None),
        ('request.headers["x-missing"]', None, None),
        ("null", None, None),
    ],
)
def test_values(expression: str, text: str | None, value: Any) -> None:
    x = {"extauthz": {"vpnNode": "laptop"}, "jwt": {"rawToken": Redacted("s3cret")}}
    found_text, found = added(expression, **x)
    assert (found_text, found) == (text, value)


@pytest.mark.parametrize("value", ['a" b="c', "a\nGET", "a b=c", "\u2028", "\ud800", "", "\\", "\x00"])
def test_a_hostile_value_stays_within_its_field(value: str) -> None:
    made = plan(add={"mine": "extauthz.v", "last": "1"})
    text = line(made, extauthz={"v": value})
    assert text.endswith(f" mine={json.dumps(value)} last=1\n")
    assert text.count("\n") == 1 and text.isascii()
    assert json.loads(line(made, as_json=True, extauthz={"v": value}))["mine"] == value


@pytest.mark.parametrize("value", ["\u2028", "\x85", "\x9b2J", "\U0001f600", "é"])
def test_a_value_within_another_ends_no_line_either(value: str) -> None:
    made = plan(add={"mine": "extauthz"})
    for as_json in (False, True):
        text = line(made, as_json, extauthz={value: [value]})
        assert text.isascii() and len(text.splitlines()) == 1
    assert json.loads(text)["mine"] == {value: [value]}


@pytest.mark.parametrize(
    ("condition", "is_logged"),
    [("response.code >= 500", True), ("response.code < 500", False), ("extauthz.missing == 1", False)],
)
def test_a_filter_keeps_lines_back_unless_it_is_true(condition: str, is_logged: bool) -> None:
    assert bool(line(plan(filter=condition))) is is_logged


BARE: dict[str, Any] = {"plan": None, "endpoint": None, "attempt": 0, "reason": "", "detail": ""}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        BARE,
        {**BARE, "status": 0},
        {**BARE, "detail": "of an answer of the upstream's"},
        {"asked_target": b'/"a\\?b=\xff', "asked_host": b"", "detail": 'it said "no"\nand more'},
        {"retries": SimpleNamespace(given_up="body")},
    ],
)
def test_a_line_of_single_fields_is_the_usual_line(fields: dict[str, Any], as_json: bool) -> None:
    """Two ways lead to a default line: the one that is written out, and the one of the table."""
    assert line(LogPlan(fields=writers(frozenset())), as_json, fields) == line(None, as_json, fields)


def test_what_stays_of_the_default_fields_looks_as_ever() -> None:
    whole = line(None)
    assert line(plan(remove=("http.method",))) == whole.replace(" http.method=POST", "")
    assert line(plan(remove=("no.such.field",))) == whole
    usual = json.loads(line(None, as_json=True))
    for name in (field.name for field in FIELDS):
        left = json.loads(line(plan(remove=(name,)), as_json=True))
        assert left == {key: value for key, value in usual.items() if key != name}
        assert f" {name}=" not in line(plan(remove=(name,))).replace("\t", " ")


def test_all_fields_can_go() -> None:
    names = tuple(field.name for field in FIELDS)
    assert line(plan(remove=names, add={"only": "response.code"})).split("\t", 1)[1] == "info\trequest\tonly=503\n"
    assert set(json.loads(line(plan(remove=names), as_json=True))) == {"level", "time", "scope"}


def test_an_added_attribute_takes_the_place_of_a_default_field() -> None:
    made = plan(add={"http.path": "request.path"})
    assert line(made).count("http.path=") == 1
    assert line(made).endswith(" http.path=/a\n")
    assert json.loads(line(made, as_json=True))["http.path"] == "/a"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "must have no space") for name in ("a b", "a=b", 'a"', "a\\", "a\n", "", "\u2028", "\x7f")),
        ("time", "is what each JSON line has already"),
    ],
)
def test_a_name_that_could_forge_a_field_is_refused(name: str, why: str) -> None:
    with pytest.raises(Refused, match=f"attributes.add\\[0\\].name: .*{why}"):
        plan(add={name: "1"})


def test_a_name_that_is_there_twice_is_refused() -> None:
    two = [frontend_pb2.Attribute(name="a", expression="1")] * 2
    with pytest.raises(Refused, match=r'attributes.add\[1\].name: "a" is there twice'):
        policy.build(frontend_pb2.AccessLog(attributes=frontend_pb2.Attributes(add=two)), ENV)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (frontend_pb2.AccessLog(filter="nope"), "filter: "),
        (
            frontend_pb2.AccessLog(
                attributes=frontend_pb2.Attributes(add=[frontend_pb2.Attribute(name="a", expression="1 +")])
            ),
            r"attributes.add\[0\].expression: ",
        ),
    ],
)
def test_an_expression_that_cannot_be_is_refused(message: frontend_pb2.AccessLog, field: str) -> None:
    with pytest.raises(Refused, match=field):
        policy.build(message, ENV)


@pytest.mark.parametrize(
    ("expression", "reads"),
    [("string(request.body)", True), ("string(response.body)", True), ("request.path", False), ("jwt.sub", False)],
)
def test_a_line_that_reads_either_body_has_it_kept(expression: str, reads: bool) -> None:
    assert plan(add={"a": expression}).reads_bodies is reads
    assert plan(add={"a": "request.method", "b": expression}).reads_bodies is reads
    assert plan().reads_bodies is LogPlan().reads_bodies is False
