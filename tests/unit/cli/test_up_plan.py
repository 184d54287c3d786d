"""What `up` makes of a folder's objects: demo servers, proxies with their ports, the lines to try, the announcement."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane import settings
from controlplane.cli import announcement, demo, exits, fleet, running, summary, up
from gatewright.api import documents
from gatewright.api.gateway import Gateway
from gatewright.api.http_route import HTTPRoute
from gatewright.api.metadata import KubeObject

PLAN = fleet.Plan(2, 0, None, Path("/run/xds.sock"))


def decoded(text: str) -> list[KubeObject]:
    found = documents.decode(text, "test.yaml")
    assert not [problem for each in found for problem in each.problems]
    return [each.item for each in found if each.item is not None]


def gateway(name: str = "web", *, listeners: str = "[{name: http, protocol: HTTP, port: 8080}]") -> Gateway:
    (item,) = decoded(
        f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}}}
spec: {{gatewayClassName: ours, listeners: {listeners}}}
"""
    )
    assert isinstance(item, Gateway)
    return item


def route(name: str, rules: str, hostnames: str = "[]", parent: str = "{name: web}") -> HTTPRoute:
    (item,) = decoded(
        f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}}}
spec: {{parentRefs: [{parent}], hostnames: {hostnames}, rules: {rules}}}
"""
    )
    assert isinstance(item, HTTPRoute)
    return item


def endpoints(kind: str, address: str = "127.0.0.1", address_type: str = "IPv4") -> list[KubeObject]:
    return decoded(
        f"""\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: shop-1
  labels: {{kubernetes.io/service-name: shop}}
  annotations: {{gatewright.dev/demo: {kind}}}
addressType: {address_type}
ports: [{{name: http, port: 9001}}, {{name: other, port: 9002}}]
endpoints: [{{addresses: ["{address}"]}}]
"""
    )


def test_demo_servers_are_those_that_slices_ask_for() -> None:
    servers, complaints = summary.demos(endpoints("echo"))
    assert servers == {demo.Server("echo", "shop", "127.0.0.1", port) for port in (9001, 9002)}
    assert complaints == []


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        (endpoints("ehco"), "there is no demo server 'ehco'; annotation gatewright.dev/demo: echo, sse"),
        (endpoints("echo", "10.0.0.1"), "10.0.0.1 is not loopback"),
    ],
)
def test_what_cannot_be_a_demo_server_is_said(objects: list[KubeObject], text: str) -> None:
    servers, complaints = summary.demos(objects)
    assert servers == frozenset()
    assert len(set(complaints)) == 1
    assert text in complaints[0]


def test_a_demo_server_on_ipv6_prints_as_an_address() -> None:
    servers, _ = summary.demos(endpoints("sse", "::1", "IPv6"))
    assert {str(server) for server in servers} == {"shop (sse) on [::1]:9001", "shop (sse) on [::1]:9002"}


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (route("a", "[{matches: [{path: {value: /x}}]}]"), "curl -i http://127.0.0.1:8080/x"),
        (route("a", "[{}]"), "curl -i http://127.0.0.1:8080/"),
        (route("a", "[{}]", "[shop.example]"), "curl -i -H 'host: shop.example' http://127.0.0.1:8080/"),
        (route("a", "[{}]", "['*.example']"), "curl -i -H 'host: www.example' http://127.0.0.1:8080/"),
        (
            route("a", "[{matches: [{method: POST, headers: [{name: x-a, value: b c}]}]}]"),
            "curl -i -X POST -H 'x-a: b c' http://127.0.0.1:8080/",
        ),
        (
            route("a", "[{matches: [{queryParams: [{name: q, value: 1 2}]}]}]"),
            "curl -i 'http://127.0.0.1:8080/?q=1+2'",
        ),
    ],
)
def test_a_line_asks_for_what_the_route_matches(found: HTTPRoute, line: str) -> None:
    assert summary.curls([gateway()], [found], 0) == [line]


def test_routes_come_before_further_rules_and_three_are_enough() -> None:
    routes = [
        route("a", "[{matches: [{path: {value: /a1}}]}, {matches: [{path: {value: /a2}}]}]"),
        route("b", "[{matches: [{path: {value: /b1}}]}, {matches: [{path: {value: /b2}}]}]"),
    ]
    assert [line.rpartition("8080")[2] for line in summary.curls([gateway()], routes, 0)] == ["/a1", "/b1", "/a2"]


def test_routes_that_cannot_be_asked_for_are_left_out() -> None:
    routes = [
        route("a", "[{matches: [{path: {type: RegularExpression, value: /a.*}}]}]"),
        route("b", "[{}]", parent="{name: other}"),
        route("c", "[{}]", parent="{name: web, sectionName: other}"),
    ]
    assert summary.curls([gateway()], routes, 0) == []


def test_the_line_uses_the_listener_that_the_route_names_and_the_offset() -> None:
    listeners = "[{name: one, protocol: HTTP, port: 80, hostname: x.example}, {name: two, protocol: HTTP, port: 81}]"
    found = [
        route("a", "[{}]", parent="{name: web, sectionName: two}"),
        route("b", "[{}]", parent="{name: web, sectionName: one}"),
    ]
    lines = summary.curls([gateway(listeners=listeners)], found, 7000)
    assert lines == ["curl -i http://127.0.0.1:7081/", "curl -i -H 'host: x.example' http://127.0.0.1:7080/"]


def test_each_gateway_has_its_proxies_and_no_two_share_a_page() -> None:
    places: dict[str, int] = {}
    proxies = fleet.wanted([gateway("api"), gateway("web")], PLAN, places)
    assert [(each.gateway, each.label, each.offset) for each in proxies] == [
        ("default/api", "proxy-1", 0),
        ("default/api", "proxy-2", 1000),
        ("default/web", "web/proxy-1", 0),
        ("default/web", "web/proxy-2", 1000),
    ]
    assert [each.pages["readiness"] for each in proxies] == [15021, 16021, 15121, 16121]
    assert len({port for each in proxies for port in each.pages.values()}) == 12
    # One goes: the other one keeps its ports.
    assert fleet.wanted([gateway("web")], PLAN, places) == proxies[2:]


def test_the_command_line_of_a_proxy() -> None:
    plan = fleet.Plan(1, 7000, 3, Path("/run/xds.sock"))
    (proxy,) = fleet.wanted([gateway()], plan, {})
    command = fleet.command(proxy, plan, {"A": "b"}, 9)
    assert " ".join(command.arguments[1:]) == (
        "-m dataplane --xds unix:/run/xds.sock --gateway default/web --instance proxy-1 --port-offset 7000"
        " --parent-fd 9 --admin 127.0.0.1:22000 --stats 127.0.0.1:22020 --readiness 127.0.0.1:22021 --workers 3"
    )
    assert (command.pass_fds, command.environment) == ((9,), {"A": "b"})


def test_the_announcement_names_every_address() -> None:
    proxies = fleet.wanted([gateway()], PLAN, {})
    text = announcement.text(
        announcement.Running(
            version="1.0",
            directory=Path("gw"),
            admin="127.0.0.1:18001",
            xds="127.0.0.1:18000",
            socket=Path("/run/xds.sock"),
            gateways=[gateway()],
            proxies=proxies,
            demos=[demo.Server("echo", "shop", "127.0.0.1", 9001)],
            curls=["curl -i http://127.0.0.1:8080/"],
            notes=["something"],
            seconds=0.8,
        )
    )
    for part in (":18001/api", ":18000", "/run/xds.sock", ":8080", ":9080", ":15000/", ":16020/", ":16021/", ":9001"):
        assert part in text
    assert "note: something" in text
    assert "Try:\n  curl -i http://127.0.0.1:8080/\n" in text
    assert max(map(len, text.splitlines())) <= 160


def test_the_children_share_a_session_key_and_stop_at_once() -> None:
    made, warnings = up.environment({"PATH": "/bin"})
    assert len(bytes.fromhex(made["SESSION_KEY"])) == 32
    assert made["CONNECTION_MIN_TERMINATION_DEADLINE"] == "0"
    assert len(warnings) == 1
    given = {"SESSION_KEY": "ab" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "9"}
    made, warnings = up.environment(given)
    assert given.items() <= made.items()
    assert warnings == []


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = running.directory("examples/quickstart")
    assert (shipped / "gateway.yaml").is_file()
    assert not shipped.is_relative_to(tmp_path)
    (tmp_path / "examples" / "quickstart").mkdir(parents=True)
    assert running.directory("examples/quickstart") == Path("examples/quickstart")
    (tmp_path / "file.yaml").touch()
    for text, message in (("file.yaml", "is a file"), ("examples/no", "there is no folder"), ("no", "no folder no")):
        with pytest.raises(exits.Failure, match=message) as failure:
            running.directory(text)
        assert failure.value.code == exits.DEPENDENCY


def test_the_default_socket_is_in_a_folder_of_this_user_alone(tmp_path: Path) -> None:
    path = settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert path == tmp_path / "gatewright" / "xds.sock"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.chmod(0o777)
    with pytest.raises(settings.UnsafeFolder, match="--socket"):
        settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})
