"""What `up` makes of a folder's objects: demo servers, proxies with their ports, the lines to try, the announcement."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane import settings
from controlplane.cli import exits, shipped
from controlplane.cli.local import announcement, demo, fleet, summary, up
from controlplane.cli.serving import running
from gatewright.api.decode import documents
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.gateway import Gateway
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.schema.metadata import KubeObject

PLAN = fleet.Plan(2, 0, None, Path("/run/xds.sock"))


GATEWAY_OF = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: %s}
spec: {gatewayClassName: ours, listeners: [{name: http, protocol: HTTP, port: 8080}]}
"""


def decoded(text: str) -> list[KubeObject]:
    found = documents.decode(text, "test.yaml")
    assert not [problem for each in found for problem in each.problems if not problem.unsupported]
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
        (endpoints("ehco"), "no demo server 'ehco'; annotation gatewright.dev/demo: echo, llm, ratelimit, sse"),
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
    routes[1] = route("b", "[{matches: [{path: {value: /b1}}]}]")
    assert [line.rpartition("8080")[2] for line in summary.curls([gateway()], routes, 0)] == ["/a1", "/b1", "/a2"]
    assert [line.rpartition("8080")[2] for line in summary.curls([gateway()], routes[::-1], 0)] == ["/b1", "/a1", "/a2"]


def test_no_more_than_three_lines_and_none_twice() -> None:
    routes = [route(name, "[{matches: [{path: {value: /x}}]}]") for name in "ab"]
    routes += [route(name, f"[{{matches: [{{path: {{value: /{name}}}}}]}}]") for name in "cde"]
    assert [line.rpartition("8080")[2] for line in summary.curls([gateway()], routes, 0)] == ["/x", "/c", "/d"]


def test_a_line_is_about_the_first_match_the_first_listener_and_the_route_s_own_host() -> None:
    listeners = "[{name: one, protocol: HTTP, port: 80, hostname: '*.example'}, {name: two, protocol: HTTP, port: 81}]"
    matches = "[{matches: [{method: GET, path: {value: /1}}, {path: {value: /2}}]}]"
    found = [route("a", matches, "[a.example, b.example]"), route("b", "[{}]", parent="{name: web, port: 81}")]
    assert summary.curls([gateway(listeners=listeners)], found, 7000) == [
        "curl -i -H 'host: a.example' http://127.0.0.1:7080/1",
        "curl -i http://127.0.0.1:7081/",
    ]


def test_a_request_to_a_model_has_the_body_that_its_api_takes() -> None:
    match = "{path: {type: PathPrefix, value: /v1/messages}, method: %s}"
    lines = [summary.curls([gateway()], [route("a", f"[{{matches: [{match % way}]}}]")], 0) for way in ("POST", "PUT")]
    body = '{"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}'
    assert lines == [
        [f"curl -i -H 'content-type: application/json' -d '{body}' http://127.0.0.1:8080/v1/messages"],
        ["curl -i -X PUT http://127.0.0.1:8080/v1/messages"],
    ]


@pytest.mark.parametrize(
    "match",
    [
        "path: {type: RegularExpression, value: /a.*}",
        "headers: [{name: a, value: b}, {name: x, type: RegularExpression, value: y}]",
        "queryParams: [{name: x, type: RegularExpression, value: y}]",
    ],
)
def test_a_regular_expression_does_not_say_what_to_ask_for(match: str) -> None:
    assert summary.curls([gateway()], [route("a", f"[{{matches: [{{{match}}}]}}]")], 0) == []


def test_a_route_of_another_namespace_or_listener_protocol_gets_no_line() -> None:
    raw = "[{name: a, protocol: TCP, port: 443}]"
    assert summary.curls([gateway(listeners=raw)], [route("a", "[{}]")], 0) == ["nc 127.0.0.1 443"]
    assert summary.curls([gateway()], [route("a", "[{}]", parent="{name: web, namespace: other}")], 0) == []
    named = route("a", "[{}]", parent="{name: web, namespace: default}")
    assert summary.curls([gateway()], [named], 0) == ["curl -i http://127.0.0.1:8080/"]


def test_a_line_for_a_listener_with_a_certificate_names_its_host_in_the_handshake_too() -> None:
    tls = "tls: {certificateRefs: [{name: c}]}"
    listeners = f"[{{name: one, protocol: HTTPS, port: 443, hostname: '*.example', {tls}}}]"
    found = [route("a", "[{}]"), route("b", "[{matches: [{path: {value: /b}}]}]", "[b.example]")]
    assert summary.curls([gateway(listeners=listeners)], found, 8000) == [
        "curl -i -k --resolve www.example:8443:127.0.0.1 https://www.example:8443/",
        "curl -i -k --resolve b.example:8443:127.0.0.1 https://b.example:8443/b",
    ]


def test_a_listener_of_https_has_a_line_where_the_first_three_are_of_http() -> None:
    listeners = "[{name: one, protocol: HTTP, port: 80}, {name: two, protocol: HTTPS, port: 443, hostname: a.example}]"
    routes = [route(name, f"[{{matches: [{{path: {{value: /{name}}}}}]}}]") for name in "abcd"]
    assert summary.curls([gateway(listeners=listeners)], routes, 8000) == [
        *(f"curl -i http://127.0.0.1:8080/{name}" for name in "abc"),
        "curl -i -k --resolve a.example:8443:127.0.0.1 https://a.example:8443/a",
    ]


def test_no_line_is_about_a_listener_that_does_not_take_the_host_of_its_route() -> None:
    listeners = "[{name: one, protocol: HTTP, port: 80}, {name: two, protocol: HTTPS, port: 443, hostname: a.example}]"
    lines = [
        summary.curls([gateway(listeners=listeners)], [route("a", "[{}]", f"[{host}]")], 8000)
        for host in ("b.example", "'*.example'", "b.example, a.example")
    ]
    assert [len(each) for each in lines] == [1, 2, 2]
    assert lines[1][1] == lines[2][1] == "curl -i -k --resolve a.example:8443:127.0.0.1 https://a.example:8443/"


def test_each_protocol_without_requests_has_a_line_of_its_own() -> None:
    kinds = ("TCP", "TLS", "UDP", "TCP")
    tls = {"TLS": ", tls: {mode: Passthrough}"}
    listeners = ", ".join(
        f"{{name: n{i}, protocol: {kind}, port: {9000 + i}{tls.get(kind, '')}}}" for i, kind in enumerate(kinds)
    )
    named = "{name: t, protocol: TLS, port: 9009, hostname: '*.example', tls: {mode: Passthrough}}"
    assert summary.curls([gateway(listeners=f"[{listeners}]")], [], 0) == [
        "nc 127.0.0.1 9000",
        "openssl s_client -connect 127.0.0.1:9001",
        "nc -u 127.0.0.1 9002",
    ]
    assert summary.curls([gateway(listeners=f"[{named}]")], [], 0) == [
        "openssl s_client -connect 127.0.0.1:9009 -servername www.example"
    ]


def test_the_addresses_of_a_proxy_are_those_of_all_its_listeners_in_order() -> None:
    plain = "{name: b, protocol: HTTP, port: 8082, hostname: b.example}, {name: a, protocol: HTTP, port: 8081}"
    raw = "{name: d, protocol: TCP, port: 443}, {name: e, protocol: UDP, port: 443}, {name: f, protocol: SCTP, port: 1}"
    one = gateway(listeners=f"[{plain}, {{name: c, protocol: HTTP, port: 8082}}, {raw}]")
    found = [[listener.address for listener in proxy.listeners(one)] for proxy in fleet.wanted([one], PLAN, {})]
    schemes = ("tcp", "udp", "http", "http")
    assert found == [
        [f"{scheme}://127.0.0.1:{port}" for scheme, port in zip(schemes, ports, strict=True)]
        for ports in ((443, 443, 8081, 8082), (1443, 1443, 9081, 9082))
    ]


def test_gateways_of_one_name_have_proxies_of_different_names() -> None:
    gateways = [gateway(), *(decoded(text)[0] for text in (GATEWAY_OF % "a", GATEWAY_OF % "b")), gateway("other")]
    found = fleet.wanted([each for each in gateways if isinstance(each, Gateway)], PLAN, {})
    labels = ["proxy-1", "proxy-2"]
    labels += [f"{name}/proxy-{number}" for name in ("a/web", "b/web", "other") for number in (1, 2)]
    assert [proxy.label for proxy in found] == labels


def test_without_a_number_of_workers_the_proxy_chooses() -> None:
    (proxy, _) = fleet.wanted([gateway()], PLAN, {})
    assert "--workers" not in fleet.command(proxy, PLAN, {}, 9).arguments


def test_what_asks_for_no_demo_server() -> None:
    """Objects without the annotation or of other kinds, names instead of addresses, slices without ports."""
    (slice_,) = endpoints("echo")
    assert isinstance(slice_, EndpointSlice)
    others = [
        gateway().model_copy(update={"metadata": slice_.metadata}),
        slice_.model_copy(update={"metadata": gateway().metadata}),
        *endpoints("echo", "a.example", "FQDN"),
        slice_.model_copy(update={"ports": ()}),
        slice_.model_copy(update={"endpoints": ()}),
    ]
    for item in others:
        assert summary.demos([item]) == (frozenset(), []), item
    # What is wrong with one takes nothing from the next.
    servers, complaints = summary.demos([*others, *endpoints("ehco"), slice_])
    assert (len(servers), len(complaints)) == (2, 1)


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


def test_ports_that_two_proxies_of_one_machine_want_are_named_with_the_cure() -> None:
    one, two = gateway("api"), gateway("web")
    cure = "only one of them has it: choose other ports, not 1000 apart, or --proxies 1"
    assert fleet.clashes(fleet.wanted([one, two], PLAN, {}), [one, two]) == [
        f"port 8080 is wanted by proxy-1 (Gateway default/api) and web/proxy-1 (Gateway default/web); {cure}",
        f"port 9080 is wanted by proxy-2 (Gateway default/api) and web/proxy-2 (Gateway default/web); {cure}",
    ]
    apart = gateway(listeners="[{name: a, protocol: HTTP, port: 8080}, {name: b, protocol: TCP, port: 9080}]")
    assert fleet.clashes(fleet.wanted([apart], PLAN, {}), [apart]) == [
        f"port 9080 is wanted by proxy-1 (Gateway default/web) and proxy-2 (Gateway default/web); {cure}"
    ]
    both = gateway(listeners="[{name: a, protocol: UDP, port: 8080}, {name: b, protocol: TCP, port: 9080}]")
    assert fleet.clashes(fleet.wanted([both], PLAN, {}), [both]) == []


def test_the_command_line_of_a_proxy() -> None:
    plan = fleet.Plan(1, 7000, 3, Path("/run/xds.sock"))
    (proxy,) = fleet.wanted([gateway()], plan, {})
    command = fleet.command(proxy, plan, {"A": "b"}, 9)
    assert " ".join(command.arguments[1:]) == (
        "-P -m dataplane --xds unix:/run/xds.sock --gateway default/web --instance proxy-1 --port-offset 7000"
        " --parent-fd 9 --admin 127.0.0.1:22000 --stats 127.0.0.1:22020 --readiness 127.0.0.1:22021 --workers 3"
    )
    assert (command.pass_fds, command.environment) == ((9,), {"A": "b"})


ANNOUNCEMENT = """
gatewright 1.0 serves gw, ready after 0.8 s

  controller  admin API  http://127.0.0.1:18001/api/status
              xDS        127.0.0.1:18000 (reflection, health, client status)
                         /run/xds.sock (resources)
  proxy-1     http://127.0.0.1:8080   (Gateway default/web)
              admin http://127.0.0.1:15000/config_dump  stats http://127.0.0.1:15020/metrics  \
readiness http://127.0.0.1:15021/healthz/ready
  proxy-2     http://127.0.0.1:9080   (Gateway default/web)
              admin http://127.0.0.1:16000/config_dump  stats http://127.0.0.1:16020/metrics  \
readiness http://127.0.0.1:16021/healthz/ready
  demo        shop (echo) on 127.0.0.1:9001
  note: something

Problems:
  gw/a.yaml:3: HTTPRoute default/shop: a warning

Try:
  curl -i http://127.0.0.1:8080/

Save a file in gw and the change applies at once.
`gatewright status` shows what became of it. Ctrl-C stops everything.
"""


def test_the_announcement_names_every_address() -> None:
    proxies = fleet.wanted([gateway()], PLAN, {})
    text = announcement.text(
        announcement.Running(
            version="1.0",
            source=Path("gw"),
            admin="127.0.0.1:18001",
            xds="127.0.0.1:18000",
            socket=Path("/run/xds.sock"),
            gateways=[gateway()],
            proxies=proxies,
            demos=[demo.Server("echo", "shop", "127.0.0.1", 9001)],
            curls=["curl -i http://127.0.0.1:8080/"],
            notes=["something"],
            problems=["gw/a.yaml:3: HTTPRoute default/shop: a warning"],
            seconds=0.8,
        )
    )
    assert text == ANNOUNCEMENT


def test_an_announcement_of_little() -> None:
    """A Gateway without listeners that are served, no demo servers, nothing to try."""
    https = gateway(listeners="[{name: a, protocol: SCTP, port: 443}]")
    demos = [demo.Server("echo", "b", "127.0.0.1", 9002), demo.Server("sse", "a", "127.0.0.1", 9001)]
    little = announcement.Running(
        "1.0",
        Path("gw"),
        "a",
        "x",
        Path("s"),
        [gateway("api"), https],
        fleet.wanted([https], PLAN, {}),
        demos,
        [],
        [],
        [],
        1,
    )
    text = announcement.text(little)
    assert "\n  proxy-2     no listener   (Gateway default/web)\n" in text
    assert "\n  demo        a (sse) on 127.0.0.1:9001\n              b (echo) on 127.0.0.1:9002\n" in text
    assert "Try:" not in text and "note:" not in text and "Problems:" not in text
    many = announcement.text(replace(little, problems=[f"gw/a.yaml:{line}: bad" for line in range(1, 24)]))
    assert "\n  gw/a.yaml:20: bad\n  and 3 more: gatewright lint gw\n" in many


def test_the_children_share_a_session_key_and_stop_at_once() -> None:
    made, warnings = up.environment({"PATH": "/bin"})
    assert len(bytes.fromhex(made["SESSION_KEY"])) == 32
    assert made["CONNECTION_MIN_TERMINATION_DEADLINE"] == "0"
    assert made["TERMINATION_GRACE_PERIOD_SECONDS"] == "3"
    assert made["PATH"] == "/bin"
    assert len(warnings) == 1
    assert up.environment({"SESSION_KEY": ""})[0]["SESSION_KEY"] != made["SESSION_KEY"], (
        "random, also where it is empty"
    )
    given = {
        "SESSION_KEY": "ab" * 32,
        "CONNECTION_MIN_TERMINATION_DEADLINE": "9",
        "TERMINATION_GRACE_PERIOD_SECONDS": "8",
    }
    made, warnings = up.environment({**given, "NOTIFY_SOCKET": "/run/systemd/notify"})
    assert made == given, "and readiness is not theirs to report"
    assert warnings == []


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours = running.directory("examples/quickstart")
    assert (ours / "gateway.yaml").is_file()
    assert not ours.is_relative_to(tmp_path)
    assert shipped.place("examples/standalone/quickstart.yaml").is_file()
    assert not shipped.place("examples/../README.md").exists()
    (tmp_path / "examples" / "quickstart").mkdir(parents=True)
    assert running.directory("examples/quickstart") == Path("examples/quickstart")
    (tmp_path / "file.yaml").touch()
    for text, message in (
        ("file.yaml", "is a file"),
        ("examples/no", "there is no folder"),
        ("no.yaml", "no file no"),
        ("no", "no folder no"),
    ):
        with pytest.raises(exits.Failure, match=message) as failure:
            running.directory(text)
        assert failure.value.code == exits.DEPENDENCY


@pytest.mark.parametrize(
    ("text", "where"),
    [("127.0.0.1:18000", ("127.0.0.1", 18000)), ("[::1]:0", ("::1", 0)), ("localhost:65535", ("localhost", 65535))],
)
def test_an_address_and_its_text(text: str, where: tuple[str, int]) -> None:
    assert settings.address(text) == where
    assert settings.shown(where) == text


def test_a_controller_listens_on_loopback_unless_told() -> None:
    wanted = settings.Settings(Path("d"), Path("s"))
    assert (wanted.xds, wanted.admin) == (("127.0.0.1", 18000), ("127.0.0.1", 18001))


def test_the_folder_of_the_socket_is_made_with_what_is_above_it(tmp_path: Path) -> None:
    runtime = tmp_path / "run" / "user"
    assert settings.default_socket({"XDG_RUNTIME_DIR": str(runtime)}) == runtime / "gatewright" / "xds.sock"
    assert (runtime / "gatewright").stat().st_mode & 0o777 == 0o700


def test_without_a_folder_of_the_session_the_socket_is_in_one_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    path = settings.default_socket({})
    assert path == tmp_path / f"gatewright-{os.getuid()}" / "xds.sock" == settings.default_socket({})
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(settings.UnsafeFolder):
        settings.default_socket({})
    path.parent.unlink()
    for mode, safe in ((0o755, True), (0o720, False), (0o702, False), (0o500, True)):
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(mode)
        if safe:
            assert settings.default_socket({}) == path
        else:
            with pytest.raises(settings.UnsafeFolder, match=f"{path.parent} is not a folder of this user alone"):
                settings.default_socket({})


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})
    uid = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: uid + 1)
    with pytest.raises(settings.UnsafeFolder):
        settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_the_default_socket_is_in_a_folder_of_this_user_alone(tmp_path: Path) -> None:
    path = settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert path == tmp_path / "gatewright" / "xds.sock"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.chmod(0o777)
    with pytest.raises(settings.UnsafeFolder, match="--socket"):
        settings.default_socket({"XDG_RUNTIME_DIR": str(tmp_path)})
