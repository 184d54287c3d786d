"""The text of `gatewright trace-change`, of traces as literals."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits
from controlplane.cli.asking import client, trace_change

Json = dict[str, Any]
MANY = trace_change.MOST_LINES + 1


def item(**more: object) -> Json:
    return {
        "kind": "HTTPRoute",
        "namespace": "shop",
        "name": "cart",
        "generation": 3,
        "file": "a.yaml",
        "read": "noon",
        "ignored": "",
        "status": {},
        **more,
    }


def resource(name: str = "route/0", version: str = "v1") -> Json:
    return {"name": name, "gateway": "shop/web", "version": version, "published": "one"}


def proxy(**more: object) -> Json:
    return {
        "instance": "p1",
        "gateway": "shop/web",
        "serves": 1,
        "version": "",
        "answered": "",
        "refuses": [],
        "lacks": [],
        **more,
    }


def trace(**more: object) -> Json:
    states = [{"gateway": "shop/web", "version": "0123456789abcdef", "published": "two", "resources": 2}]
    return {"object": item(), "resources": [resource()], "states": states, "proxies": [], **more}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "HTTPRoute shop/cart, generation 3, read noon from a.yaml"),
        ({"namespace": "", "file": "", "read": ""}, "HTTPRoute cart, generation 3"),
    ],
)
def test_the_object(more: Json, line: str) -> None:
    assert trace_change.text(trace(object=item(**more))).splitlines()[0] == line


def test_its_resources_and_the_states_that_have_them() -> None:
    shown = trace_change.text(trace(resources=[resource(), resource("longer/1", "")]))
    assert shown.split("\n\n")[1].splitlines() == [
        "RESOURCE  GATEWAY   VERSION  PUBLISHED",
        "route/0   shop/web  v1       one",
        "longer/1  shop/web  -        one",
        "newest state of shop/web: 0123456789ab, published two",
    ]
    assert trace_change.text(trace(resources=[])).split("\n\n")[1:] == [
        "no resource of its own in the state of any Gateway",
        "no conditions",
    ]


@pytest.mark.parametrize(("count", "more"), [(20, []), (21, ["and 1 more; -o json has all"])])
def test_of_many_the_first_twenty_are_listed(count: int, more: list[str]) -> None:
    many = [resource(f"r{number}") for number in range(count)]
    lines = trace_change.text(trace(resources=many)).split("\n\n")[1].splitlines()
    assert (len(lines), lines[21:-1]) == (1 + 20 + len(more) + 1, more)
    names = [f"n{number}" for number in range(count)]
    refuses = [{"resource": name, "message": "m"} for name in names]
    for lacking, word in (({"lacks": names}, "not yet: n"), ({"refuses": refuses}, "refuses n")):
        lines = trace_change.text(trace(proxies=[proxy(**lacking)])).split("\n\n")[2].splitlines()
        assert (sum(word in line for line in lines), lines[22:]) == (20, [f"    {each}" for each in more])


def test_its_proxies() -> None:
    refuses = [{"resource": "", "message": "all"}, {"resource": "route/0", "message": "bad"}]
    far = proxy(instance="p2", serves=2, version="0123456789abcdef", answered="noon")
    shown = trace_change.text(trace(proxies=[proxy(refuses=refuses, lacks=["route/0"]), far]))
    assert shown.split("\n\n")[2].splitlines() == [
        "PROXY  GATEWAY   SERVES  STATE         ANSWERED",
        "p1     shop/web  1 of 2  -             -",
        "    refuses the state: all",
        "    refuses route/0: bad",
        "    not yet: route/0",
        "p2     shop/web  2 of 2  0123456789ab  noon",
    ]
    assert trace_change.text(trace()).split("\n\n")[2] == "no proxies connected"


def condition(kind: str, status: str, **more: object) -> Json:
    return {"type": kind, "status": status, "reason": "Why", **more}


def test_its_conditions() -> None:
    status = {
        "conditions": [condition("Accepted", "True", message="fine", lastTransitionTime="noon")],
        "parents": [
            {
                "parentRef": {"name": "web"},
                "conditions": [
                    condition("ResolvedRefs", "False", message="no x", observedGeneration=2),
                    condition("Programmed", "False"),
                ],
            }
        ],
    }
    shown = trace_change.text(trace(object=item(status=status)))
    assert shown.split("\n\n")[-1].splitlines() == [
        "CONDITION           OF          GENERATION  SINCE",
        "Accepted=True       the object  3           noon",
        "ResolvedRefs=False  parent web  2           -",
        "    Why: no x",
        "Programmed=False    parent web  3           -",
        "    Why",
    ]
    assert trace_change.text(trace(object=item(ignored="not ours"))).endswith("\n\nno conditions: not ours")


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [trace(), trace(object=item(name="other"))]
    monkeypatch.setattr(client, "trace", lambda _admin, _objects: {"traces": traces})
    assert cli.main(["trace-change", "HTTPRoute/cart"]) == exits.OK
    shown = capsys.readouterr().out
    assert shown == "\n\n".join(map(trace_change.text, traces)) + "\n"
    assert cli.main(["trace-change", "HTTPRoute/cart", "-o", "json"]) == exits.OK
    assert capsys.readouterr().out.startswith('{\n  "traces": [\n    {\n      "object"')
    assert cli.main(["trace-change", "HTTPRoute/cart", "Gateway/web"]) == exits.DEPENDENCY
    assert capsys.readouterr().err == "gatewright: Gateway/web: there is no such object\n"
    body = {"notes": ["another one leads"], "traces": traces[:1]}
    monkeypatch.setattr(client, "trace", lambda _admin, _objects: body)
    assert cli.main(["trace-change", "HTTPRoute/cart"]) == exits.OK
    assert capsys.readouterr().out == f"note: another one leads\n\n{trace_change.text(traces[0])}\n"
    body["traces"] = []
    assert cli.main(["trace-change", "Gateway/web"]) == exits.DEPENDENCY
    assert capsys.readouterr().out == ""
