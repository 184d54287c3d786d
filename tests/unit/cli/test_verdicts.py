"""`verdicts`, `tables` and `wait.lacking` over literal rows of `/api/status`."""

from typing import Any

import pytest

from controlplane.cli.asking import tables, verdicts, wait

Row = dict[str, Any]


def condition(kind: str, status: str = "True", generation: int = 3, reason: str = "Why", message: str = "") -> Row:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def row(kind: str, status: Row | None, name: str = "web", namespace: str = "default", ignored: str = "") -> Row:
    place = {"kind": kind, "namespace": namespace, "name": name, "generation": 3, "file": "a.yaml"}
    return {**place, "status": status, "ignored": ignored, "foreign": kind == "GatewayClass"}


def parents(*conditions: Row, name: str = "web") -> Row:
    return {"parentRef": {"name": name, "namespace": "default"}, "conditions": list(conditions)}


GOOD_GATEWAY = row(
    "Gateway",
    {
        "conditions": [condition("Accepted"), condition("Programmed")],
        "listeners": [{"name": "http", "conditions": [condition("Conflicted", "False"), condition("Programmed")]}],
    },
)
HALF_GATEWAY = row(
    "Gateway",
    {
        "conditions": [condition("Accepted"), condition("Programmed")],
        "listeners": [{"name": "tls", "conditions": [condition("Programmed", "False", 3, "Invalid", "no TLS")]}],
    },
)
WAITING_GATEWAY = row("Gateway", {"conditions": [condition("Accepted"), condition("Programmed", generation=2)]})
GOOD_ROUTE = row("HTTPRoute", {"parents": [parents(condition("Accepted"), condition("ResolvedRefs"))]}, "shop")
BAD_ROUTE = row(
    "HTTPRoute",
    {
        "parents": [
            parents(condition("Accepted"), condition("ResolvedRefs")),
            parents(condition("Accepted"), condition("ResolvedRefs", "False", 3, "BackendNotFound", "no x"), name="b"),
        ]
    },
    "cart",
)
LONELY_ROUTE = row("HTTPRoute", {"parents": []}, "lonely")
SERVICE = row("Service", None, "shop")


@pytest.mark.parametrize(
    ("subject", "wanted", "text"),
    [
        (GOOD_GATEWAY, None, None),
        (HALF_GATEWAY, None, None),
        (WAITING_GATEWAY, None, "Programmed not yet known"),
        (GOOD_ROUTE, None, None),
        (BAD_ROUTE, None, "parent default/b: ResolvedRefs=False BackendNotFound: no x"),
        (BAD_ROUTE, "Accepted", None),
        (LONELY_ROUTE, None, "has no condition Accepted"),
        (GOOD_ROUTE, "Programmed", "has no condition Programmed"),
        (SERVICE, None, None),
    ],
)
def test_what_an_object_lacks(subject: Row, wanted: str | None, text: str | None) -> None:
    assert verdicts.missing(subject, wanted) == text


def test_a_negative_condition_is_well_when_false() -> None:
    states = {each.type: each.is_well for each in verdicts.conditions(GOOD_GATEWAY)}
    assert states == {"Accepted": True, "Programmed": True, "Conflicted": True}


@pytest.mark.parametrize(
    ("rows", "names", "wanted", "lines"),
    [
        ([GOOD_GATEWAY, GOOD_ROUTE, SERVICE], [], None, []),
        ([GOOD_GATEWAY, GOOD_ROUTE, SERVICE], [], "Programmed", []),
        ([], [], None, ["there are no objects"]),
        ([GOOD_ROUTE], ["httproute/shop"], "Programmed", ["HTTPRoute default/shop: has no condition Programmed"]),
        ([GOOD_ROUTE], ["httproute/shop", "gateway"], None, ["gateway: there is no such object"]),
        ([GOOD_ROUTE], ["HTTPRoute/default/shop"], None, []),
        ([LONELY_ROUTE], [], None, ["HTTPRoute default/lonely: has no condition Accepted"]),
        ([WAITING_GATEWAY, GOOD_ROUTE], [], "Programmed", ["Gateway default/web: Programmed not yet known"]),
        ([GOOD_ROUTE, WAITING_GATEWAY], [], "Programmed", ["Gateway default/web: Programmed not yet known"]),
        ([SERVICE, WAITING_GATEWAY], [], None, ["Gateway default/web: Programmed not yet known"]),
        ([row("GatewayClass", {}, "ours", "")], [], None, ["GatewayClass ours: has no condition Accepted"]),
        ([WAITING_GATEWAY], ["gateway/default/web"], None, ["Gateway default/web: Programmed not yet known"]),
        ([GOOD_GATEWAY], ["gateway/other/web"], None, ["gateway/other/web: there is no such object"]),
    ],
)
def test_what_wait_waits_for(rows: list[Row], names: list[str], wanted: str | None, lines: list[str]) -> None:
    assert wait.lacking(rows, names, wanted) == lines


def test_wait_is_not_content_with_what_a_bad_file_said_before() -> None:
    place = {"file": "r.yaml", "line": 7, "path": "spec.x", "message": "unknown field"}
    bad = {"object": "HTTPRoute default/shop", "severity": "error"} | place
    problems = [bad, bad | {"object": "", "path": ""}, bad | {"severity": "warning"}]
    line = "error r.yaml:7: HTTPRoute default/shop: spec.x: unknown field"
    assert wait.unread(problems, []) == [line, "error r.yaml:7: unknown field"]
    assert wait.unread(problems, ["httproute/shop"]) == [line]
    assert wait.unread(problems, ["HTTPRoute"]) == [line]
    assert wait.unread(problems, ["gateway/shop"]) == []


def test_an_object_whose_file_has_an_error_is_not_shown_as_well() -> None:
    assert tables.objects([GOOD_ROUTE], {"HTTPRoute default/shop": tables.OLD}).splitlines()[1:] == [
        "HTTPRoute  default/shop  Problem",
        "    its file has an error, listed below: what acts is its last good version",
    ]
    bad = tables.objects([BAD_ROUTE])
    assert tables.objects([BAD_ROUTE], {"HTTPRoute default/cart": tables.OLD}) == f"{bad}\n    {tables.OLD}"


def test_a_route_of_which_some_rules_have_an_error_acts_in_part() -> None:
    dropped = condition("PartiallyInvalid", "True", reason="UnsupportedValue", message="Dropped Rule 1: x")
    parents = [{"parentRef": {"name": "web"}, "conditions": [condition("Accepted"), dropped]}]
    shown = tables.objects([row("HTTPRoute", {"parents": parents}, "r")], {"HTTPRoute default/r": tables.OLD})
    assert shown.endswith(f"Dropped Rule 1: x\n    {tables.PARTLY}") and tables.OLD not in shown


def test_an_object_that_was_never_accepted_has_no_older_version() -> None:
    refused = row("GatewayPolicy", {"conditions": [condition("Accepted", "False", reason="Invalid")]}, "p")
    assert tables.objects([refused], {"GatewayPolicy default/p": tables.OLD}) == tables.objects([refused])


def test_the_status_table() -> None:
    proxy = {"gateway": "default/web", "wanted": "aa", "lag_seconds": 1.25}
    body = {
        "controller": {"version": "1.0", "pid": 7, "source": "/etc/gw"},
        "notes": ["a note"],
        "proxies": [
            {**proxy, "instance": "proxy-1", "acknowledged": "aabbccddeeff0011", "state": "Synced", "refusals": []},
            {
                **proxy,
                "instance": "proxy-2",
                "acknowledged": "",
                "state": "Refused",
                "refusals": [{"resource": "route/httproute/default/cart/0", "message": "unknown field"}],
            },
        ],
        "objects": [GOOD_GATEWAY, BAD_ROUTE, SERVICE],
        "problems": [
            {
                "severity": "error",
                "file": "a.yaml",
                "line": 7,
                "object": "HTTPRoute x/y",
                "path": "spec",
                "message": "m",
            }
        ],
    }
    assert (
        tables.status(body)
        == """\
controller 1.0, process 7, reading /etc/gw

note: a note

PROXY    GATEWAY      STATE    LAG   VERSION
proxy-1  default/web  Synced   -     aabbccddeeff
proxy-2  default/web  Refused  1.2s  -
    route/httproute/default/cart/0: unknown field

KIND       OBJECT        STATE
HTTPRoute  default/cart  Problem
    parent default/b: ResolvedRefs=False BackendNotFound: no x
Gateway    default/web   Accepted, Programmed
1 more object has no conditions (Services and the like)

error a.yaml:7: HTTPRoute x/y: spec: m"""
    )


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "no objects"),
        ([SERVICE], "1 more object has no conditions (Services and the like)"),
        ([SERVICE, SERVICE], "2 more objects have no conditions (Services and the like)"),
        ([GOOD_ROUTE], "KIND       OBJECT        STATE\nHTTPRoute  default/shop  Accepted, ResolvedRefs"),
        (
            [row("GatewayClass", {"conditions": [condition("Accepted")]}, "ours", "")],
            "KIND          OBJECT  STATE\nGatewayClass  ours    Accepted",
        ),
    ],
)
def test_objects_without_conditions_are_counted(rows: list[Row], text: str) -> None:
    assert tables.objects(rows) == text


LOST = row("HTTPRoute", {"parents": []}, "lost", ignored="its parent Gateway default/wab does not exist")
FOREIGN = row("GatewayClass", None, "other", "", ignored="is of controller example.com/c, not of ours")


def test_what_nobody_acts_on_says_so_and_what_is_wrong_comes_first() -> None:
    assert (
        tables.objects([FOREIGN, GOOD_ROUTE, SERVICE, WAITING_GATEWAY, LOST, BAD_ROUTE])
        == """\
KIND          OBJECT        STATE
HTTPRoute     default/cart  Problem
    parent default/b: ResolvedRefs=False BackendNotFound: no x
HTTPRoute     default/lost  Ignored
    its parent Gateway default/wab does not exist
Gateway       default/web   Pending
    Programmed not yet known
GatewayClass  other         Foreign
    is of controller example.com/c, not of ours
HTTPRoute     default/shop  Accepted, ResolvedRefs
1 more object has no conditions (Services and the like)"""
    )


def test_wide_names_the_file_and_the_generation() -> None:
    header, line = tables.objects([GOOD_ROUTE], wide=True).splitlines()
    assert header.split() == ["KIND", "OBJECT", "STATE", "GENERATION", "FILE"]
    assert line.split() == ["HTTPRoute", "default/shop", "Accepted,", "ResolvedRefs", "3", "a.yaml"]


@pytest.mark.parametrize(
    ("rows", "is_well"),
    [
        ([GOOD_ROUTE, SERVICE, FOREIGN], True),
        ([WAITING_GATEWAY], True),
        ([GOOD_ROUTE, LOST], False),
        ([BAD_ROUTE], False),
    ],
)
def test_whether_all_is_well(rows: list[Row], is_well: bool) -> None:
    body = {"objects": rows, "problems": [], "proxies": []}
    assert tables.is_well(body) is is_well
    assert not tables.is_well({**body, "problems": [{"severity": "error"}]})
    assert tables.is_well({**body, "problems": [{"severity": "error", "unsupported": True}]}) is is_well
    assert not tables.is_well({**body, "proxies": [{"refusals": ["one"]}]})


def test_without_proxies_it_says_so_and_a_problem_of_a_file_has_no_line() -> None:
    assert tables.proxies([]) == "no proxies connected"
    whole = {"severity": "warning", "file": "/gw", "line": 0, "object": "", "path": "", "message": "is gone"}
    assert tables.problems([whole, whole | {"line": 3}]) == "warning /gw: is gone\nwarning /gw:3: is gone"


def test_what_a_policys_gateway_says_is_told_once() -> None:
    lost = condition("Conflicted", "True", reason="Conflicted", message="cors")
    missed = condition("Attached", "False", reason="TargetNotFound", message="no x")
    entry = {"ancestorRef": {"name": "web", "namespace": "default"}, "conditions": [condition("Attached"), lost]}
    policy = row("GatewayPolicy", {"conditions": [missed, lost], "ancestors": [entry]}, "p")
    assert tables.objects([policy]).splitlines()[2:] == [
        "    Attached=False TargetNotFound: no x",
        "    ancestor default/web: Conflicted=True Conflicted: cors",
    ]


@pytest.mark.parametrize(
    ("others", "state"),
    [
        ((condition("Accepted"),), "Overridden"),
        ((condition("Accepted"), condition("Overridden", "True", generation=2)), "Pending"),
        ((condition("Accepted"), condition("Conflicted", "True")), "Problem"),
        ((condition("Accepted", "False"),), "Problem"),
        ((condition("Accepted"), condition("Attached", "False", reason="Pending")), "Pending"),
    ],
)
def test_what_an_override_locks_is_no_problem_by_itself(others: tuple[Row, ...], state: str) -> None:
    locked = condition("Overridden", "True", reason="Overridden", message="cors")
    policy = row("GatewayPolicy", {"conditions": [*others, locked]}, "p")
    lines = tables.objects([policy]).splitlines()
    assert lines[1].split() == ["GatewayPolicy", "default/p", state]
    assert lines[-1] == "    Overridden=True Overridden: cors"


def test_a_policy_that_proxies_are_sure_to_refuse_is_a_problem_and_no_older_version() -> None:
    problem = {"severity": "error", "file": "a.yaml", "line": 7, "path": "spec", "message": "m", "refused": True}
    policy = row("GatewayPolicy", {"conditions": [condition("Accepted"), condition("Attached")]}, "p")
    body = {
        "controller": {"version": "1.0", "pid": 7, "source": "/etc/gw"},
        "notes": [],
        "proxies": [],
        "objects": [policy],
        "problems": [problem | {"object": "GatewayPolicy default/p"}],
    }
    assert "\nGatewayPolicy  default/p  Problem\n    proxies refuse what it says, listed below\n" in tables.status(body)


def endpoint(**more: object) -> Row:
    return {
        "endpoint": "10.0.0.1:80",
        "backend": "backend/service/shop/cart/80",
        "unhealthy_percent": 0,
        "evicted_until": 0.0,
        "failures": 0,
        "reason": "",
        "server_name": "",
        "last_failure": 0.0,
        **more,
    }


def test_endpoints_that_are_not_well_are_a_table() -> None:
    failing = {"failures": 2, "reason": "refused", "last_failure": 86_400.0}
    rows: list[Row] = [
        {
            "gateway": "shop/web",
            "instance": "proxy-1",
            "endpoints": [endpoint(evicted_until=3600.0), endpoint(**failing)],
        },
        {"gateway": "shop/web", "instance": "old"},
        {
            "gateway": "shop/api",
            "instance": "proxy-2",
            "endpoints": [
                endpoint(backend="", unhealthy_percent=40, **{**failing, "failures": 1}, server_name="cart.test"),
            ],
        },
    ]
    assert tables.endpoints(rows).splitlines() == [
        "ENDPOINT     BACKEND               STATE                               GATEWAY   PROXY",
        "10.0.0.1:80  service/shop/cart/80  Evicted until 1970-01-01T01:00:00Z  shop/web  proxy-1",
        "10.0.0.1:80  service/shop/cart/80  Unreachable                         shop/web  proxy-1",
        "    connecting failed 2 times, last at 1970-01-02T00:00:00Z: refused",
        "10.0.0.1:80  -                     40% unhealthy                       shop/api  proxy-2",
        "    TLS with cart.test failed once, last at 1970-01-02T00:00:00Z: refused",
    ]
    assert tables.endpoints(rows[1:2]) == ""


def test_an_error_of_what_is_not_supported_speaks_of_no_older_version() -> None:
    body = {
        "controller": {"version": "1", "pid": 7, "source": "/gw"},
        "notes": [],
        "proxies": [],
        "objects": [GOOD_ROUTE],
        "problems": [problem_of("HTTPRoute default/shop", unsupported=True)],
    }
    assert tables.OLD not in tables.status(body)
    for severity, is_told in (("warning", False), ("error", True)):
        body["problems"] = [problem_of("HTTPRoute default/shop", severity=severity)]
        assert (tables.OLD in tables.status(body)) == is_told


def problem_of(name: str, severity: str = "error", **more: object) -> Row:
    return {"severity": severity, "file": "a", "line": 1, "object": name, "path": "", "message": "m", **more}


def test_words_that_a_status_leaves_out_are_empty() -> None:
    bare = {"type": "Accepted", "status": "False", "reason": "No"}
    status = {"conditions": [bare], "listeners": [{"conditions": [bare]}]}
    assert list(verdicts.conditions(row("Gateway", status))) == [
        verdicts.Condition(place, "Accepted", "False", "No", "", True, 3, "") for place in ("", "listener ")
    ]


def test_wait_asks_objects_of_kinds_that_have_conditions_unless_they_are_named() -> None:
    assert wait.lacking([SERVICE, GOOD_ROUTE], [], "Accepted") == []
    assert wait.lacking([SERVICE], ["Service/shop"], "Accepted") == ["Service default/shop: has no condition Accepted"]


def test_wait_reports_errors_of_the_named_objects() -> None:
    both = [problem_of("HTTPRoute default/shop"), problem_of("Gateway default/web")]
    assert len(wait.unread(both, [])) == 2
    assert wait.unread(both, ["Gateway", "HTTPRoute/cart"]) == ["error a:1: Gateway default/web: m"]
    assert wait.unread(both, ["HTTPRoute/default/shop"]) == ["error a:1: HTTPRoute default/shop: m"]
    assert wait.unread([problem_of("Gateway default/web", "warning")], []) == []
