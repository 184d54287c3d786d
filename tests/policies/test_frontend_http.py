"""`frontend.http`: whom a Gateway believes about a client, and which headers no client may write."""

from __future__ import annotations

import json

import pytest

from gatewright.api.standalone import standalone
from tests.carriers import Carrier, Headers, Request, Run

FILE = """
frontendPolicies:
  http: {http}
  accessLog: {{add: {{source: source.address, connected: source.rawAddress}}}}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: a.test
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
  - name: own
    hostname: own.test
    http: {own}
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""

PEER = "192.0.2.7"
CLAIMS = {
    "forwarded": "for=6.6.6.6",
    "x-real-ip": "6.6.6.6",
    "true-client-ip": "6.6.6.6",
    "x-original-url": "/admin",
    "x-rewrite-url": "/admin",
    "x-forwarded-port": "443",
    "x-forwarded-client-cert": "By=me",
    "x-forwarded-user": "root",
}


def proxy(carrier: Carrier, http: str = "{}", own: str = "{}") -> Run:
    return carrier.proxy(FILE.format(http=http, own=own))


def asked(run: Run, *headers: tuple[str, str], host: str = "a.test") -> tuple[Headers, str]:
    """What the endpoint got of a client with these headers, and the end of the log line."""
    carried = run.carry(Request(headers=headers, authority=host))
    return carried.received.headers, carried.line.rpartition(" source=")[2]


@pytest.mark.parametrize(
    ("hops", "sent", "client"),
    [
        ("{count: 1}", ["198.51.100.1"], "198.51.100.1"),
        ("{count: 1}", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("{count: 2}", ["6.6.6.6, 198.51.100.1, 10.0.0.1"], "198.51.100.1"),
        ("{count: 2}", ["6.6.6.6", "198.51.100.1", "10.0.0.1"], "198.51.100.1"),
        ("{count: 2}", ["198.51.100.1"], PEER),  # it came around the outer proxy
        ("{count: 1}", [], PEER),
        ("{count: 1}", ["unknown"], PEER),
        ("{count: 1}", ["6.6.6.6,"], PEER),
        ("{count: 1}", ["198.51.100.1:4711"], "198.51.100.1"),
        ("{count: 1}", ["[2001:DB8::0:1]:443"], "2001:db8::1"),
        ("{count: 1}", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("{count: 1}", ["fe80::1%eth0"], PEER),
        ("{count: 16}", [", ".join(f"10.0.0.{n}" for n in range(40))], "10.0.0.24"),
        ("{cidrs: [192.0.2.0/24]}", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("{cidrs: [192.0.2.7]}", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("{cidrs: [192.0.2.0/24, 10.0.0.0/8]}", ["6.6.6.6, 198.51.100.1, 10.1.2.3"], "198.51.100.1"),
        ("{cidrs: [192.0.2.0/24, 10.0.0.0/8]}", ["10.0.0.9, 10.1.2.3"], "10.0.0.9"),
        ("{cidrs: [192.0.2.0/24, 10.0.0.0/8]}", ["198.51.100.1, x, 10.1.2.3"], "10.1.2.3"),
        ("{cidrs: [10.0.0.0/8]}", ["198.51.100.1"], PEER),  # who connects is not one of them
        ("{cidrs: [192.0.2.0/24]}", [], PEER),
        ("{cidrs: [192.0.2.0/24]}", [", ".join(["192.0.2.1"] * 100)], "192.0.2.1"),
    ],
)
def test_the_client_is_who_trusted_hops_say(hops: str, sent: list[str], client: str, carrier: Carrier) -> None:
    run = proxy(carrier, f"{{trustedHops: {hops}}}")
    headers, source = asked(run, *(("x-forwarded-for", each) for each in sent))
    assert source == f"{client} connected={PEER}"
    assert headers["x-forwarded-for"] == ", ".join([*(each for each in sent if each), PEER])


def test_nobody_is_believed_without_hops(carrier: Carrier) -> None:
    headers, source = asked(proxy(carrier), ("x-forwarded-for", "6.6.6.6"), ("x_forwarded_for", "6.6.6.6"))
    assert source == f"{PEER} connected={PEER}"
    assert headers["x-forwarded-for"] == f"6.6.6.6, {PEER}" and "x_forwarded_for" not in headers


@pytest.mark.parametrize("underscores", [0, 1, 9])
def test_no_client_writes_what_origins_believe(underscores: int, carrier: Carrier) -> None:
    claims = [(name.replace("-", "_", underscores), value) for name, value in CLAIMS.items()]
    headers, _ = asked(proxy(carrier), *claims, ("x-forwarded-proto", "https"), ("x-mine", "1"))
    assert not {name for name, _ in claims} & {*headers}
    assert headers["x-forwarded-proto"] == "http" and headers["x-forwarded-host"] == "a.test"
    assert headers["x-mine"] == "1"


def test_another_list_of_owned_headers(carrier: Carrier) -> None:
    run = proxy(carrier, "{ownedHeaders: [X-Team-*, x-user]}")
    sent = ("x-team-a", "x_team_b", "x-user", "x_user", "x-users", "x-real-ip")
    more = [("x-forwarded-proto", "https"), ("x-forwarded-host", "shop.test")]
    headers, _ = asked(run, *((name, "1") for name in sent), *more)
    assert {*sent} & {*headers} == {"x-users", "x-real-ip"}
    assert headers["x-forwarded-proto"] == "https" and headers["x-forwarded-host"] == "shop.test"


@pytest.mark.parametrize(("network", "proto"), [("192.0.2.0/24", "https"), ("10.0.0.0/8", "http")])
def test_a_shorter_list_is_for_trusted_networks(network: str, proto: str, carrier: Carrier) -> None:
    run = proxy(carrier, f"{{trustedHops: {{cidrs: [{network}]}}, ownedHeaders: []}}")
    headers, _ = asked(run, ("x-forwarded-proto", "https"), ("x-real-ip", "1.1.1.1"))
    assert headers["x-forwarded-proto"] == proto
    assert ("x-real-ip" in headers) == (proto == "https")


@pytest.mark.parametrize(
    ("settings", "stays"),
    [
        ("{}", True),
        ("{requestId: Keep}", True),
        ("{requestId: Replace}", False),
        ("{requestId: KeepFromTrusted, trustedHops: {cidrs: [192.0.2.0/24]}}", True),
        ("{requestId: KeepFromTrusted, trustedHops: {cidrs: [10.0.0.0/8]}}", False),
        ("{requestId: KeepFromTrusted, trustedHops: {count: 1}}", True),
    ],
)
def test_request_ids(settings: str, stays: bool, carrier: Carrier) -> None:
    run = proxy(carrier, settings)
    headers, _ = asked(run, ("x-request-id", "mine"))
    assert (headers["x-request-id"] == "mine") == stays and len(headers.all("x-request-id")) == 1
    headers, _ = asked(run)
    assert len(headers["x-request-id"]) == 36


def test_a_listener_of_the_file_has_its_own(carrier: Carrier) -> None:
    run = proxy(carrier, "{trustedHops: {count: 1}, requestId: Replace}", "{requestId: Keep}")
    sent = [("x-forwarded-for", "198.51.100.1"), ("x-request-id", "mine")]
    headers, source = asked(run, *sent)
    assert headers["x-request-id"] != "mine" and source.startswith("198.51.100.1 ")
    headers, source = asked(run, *sent, host="own.test")
    assert headers["x-request-id"] == "mine" and source.startswith("198.51.100.1 ")


def test_an_edit_counts_for_connections_that_stand(carrier: Carrier) -> None:
    run = proxy(carrier)
    request = Request(headers=[("x-request-id", "mine"), ("x-forwarded-for", "198.51.100.1")], authority="a.test")
    seen = []
    for http in ("{}", "{requestId: Replace, trustedHops: {count: 1}}", "{}"):
        run.load(FILE.format(http=http, own="{}"))
        for _ in range(3):  # the connection remembers heads
            run.ask(request)
            seen.append(run.arrivals[-1].received.headers["x-request-id"] == "mine")
    assert seen == [True] * 3 + [False] * 3 + [True] * 3
    sources = [line.rpartition(" source=")[2].split(" ")[0] for line in run.log_lines()]
    assert sources == [PEER] * 3 + ["198.51.100.1"] * 3 + [PEER] * 3


def test_heads_with_other_values_keep_the_rules(carrier: Carrier) -> None:
    """A connection compares heads that differ in values alone with the last one."""
    run = proxy(carrier, "{ownedHeaders: [x-team], trustedHops: {count: 1}}")
    for number in range(5):
        headers = [("x-team", f"t{number}"), ("x-forwarded-for", f"198.51.100.{number}"), ("x-own", str(number))]
        run.ask(Request(headers=headers, authority="a.test"))
        received = run.arrivals[-1].received.headers
        assert "x-team" not in received and received["x-own"] == str(number)
    sources = [line.rpartition(" source=")[2].split(" ")[0] for line in run.log_lines()]
    assert sources == [f"198.51.100.{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("http", "path", "why"),
    [
        ("{requestId: KeepFromTrusted}", "http.requestId", "needs trustedHops"),
        ("{trustedHops: {}}", "http.trustedHops", "exactly one of count, cidrs"),
        ("{trustedHops: {count: 1, cidrs: ['::1']}}", "http.trustedHops.cidrs", "exactly one of count, cidrs"),
        ("{trustedHops: {count: 0}}", "http.trustedHops.count", "between 1 and 16"),
        ("{trustedHops: {cidrs: [10.0.0.1/8]}}", "http.trustedHops.cidrs[0]", "must be a network"),
        ("{ownedHeaders: [Host]}", "http.ownedHeaders[0]", "must not be one of host, "),
        ("{ownedHeaders: [x-request-id]}", "http.ownedHeaders[0]", "must not be one of"),
    ],
)
def test_what_is_refused(http: str, path: str, why: str) -> None:
    problems = standalone.load(FILE.format(http=http, own="{}"), "gw.yaml").problems
    assert any(f"frontendPolicies.{path}: " in str(each) and why in str(each) for each in problems), problems
    assert json.dumps([str(each) for each in problems]).count("gw.yaml:3") == len(problems)
