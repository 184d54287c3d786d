"""Routes of the file that lead back to their own listener are named with their field."""

from __future__ import annotations

import pytest

from gatewright.api.standalone import standalone

BACKENDS = "backends: [{{name: back, host: '{back}'}}]\nbinds:\n"
FIRST = (
    "- port: 9001\n"
    "  listeners: [{{protocol: {protocol}, {routes}: [{{backends: [{{host: '{first}', weight: 1}}]}}]}}]\n"
)
SECOND = (
    "- port: 9002\n  addresses: [127.0.0.1]\n"
    "  listeners: [{{protocol: {protocol}, {routes}: [{{backends: [{{host: '10.0.0.1:80'}}, {{backend: back}}]}}]}}]\n"
)
ROUTES = {"TCP": "tcpRoutes", "UDP": "udpRoutes"}


def wrong(protocol: str, first: str, back: str, weight: int = 1) -> list[str]:
    """Fields of the two binds that are refused for leading back."""
    text = (BACKENDS + FIRST + SECOND).format(protocol=protocol, routes=ROUTES[protocol], first=first, back=back)
    loaded = standalone.load(text.replace("weight: 1", f"weight: {weight}"), "gw.yaml")
    for problem in loaded.problems:
        assert "leads back to port 900" in problem.message and problem.severity == "error", problem
    return [str(problem).split(": ")[1] for problem in loaded.problems]


def field(protocol: str, bind: int, backend: int) -> str:
    return f"binds[{bind}].listeners[0].{ROUTES[protocol]}[0].backends[{backend}]"


@pytest.mark.parametrize("protocol", ROUTES)
@pytest.mark.parametrize("here", ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "LocalHost"])
def test_a_circle_of_two_binds_is_named_at_both(protocol: str, here: str) -> None:
    assert wrong(protocol, f"{here}:9002", "127.0.0.1:9001") == [field(protocol, 0, 0), field(protocol, 1, 1)]


PASSTHROUGH = """
binds:
- port: 9001
  listeners:
  - protocol: {first}
    {tls}
    tcpRoutes: [{{backends: [{{host: '127.0.0.1:9002'}}]}}]
- port: 9002
  listeners:
  - {{protocol: TLS, hostname: "*.example", tls: {{mode: Passthrough}}, tcpRoutes: [
      {{hostnames: [a.example], backends: [{{host: '127.0.0.1:9001'}}]}},
      {{hostnames: [b.example], backends: [{{host: '10.0.0.1:443'}}]}}]}}
"""
TLS = "hostname: {}\n    tls: {{mode: Passthrough}}"


@pytest.mark.parametrize(
    ("first", "tls", "fields"),
    [
        # every listener of TLS reads the name anew: it has to be one and the same all the way round
        ("TLS", TLS.format("a.example"), [(0, 0), (1, 0)]),
        ("TLS", TLS.format("b.example"), []),
        ("TCP", "", [(0, 0), (1, 0)]),  # takes whatever comes
    ],
)
def test_a_way_through_listeners_of_tls_is_followed_by_name(
    first: str, tls: str, fields: list[tuple[int, int]]
) -> None:
    loaded = standalone.load(PASSTHROUGH.format(first=first, tls=tls), "gw.yaml")
    assert [str(problem).split(": ")[1] for problem in loaded.problems] == [
        f"binds[{bind}].listeners[0].tcpRoutes[{route}].backends[0]" for bind, route in fields
    ]


def test_what_ends_tls_passes_on_other_bytes() -> None:
    """They are no TLS, so that a listener of TLS takes them for a mistake: nothing goes round."""
    listener = "tls: {certificateRefs: [{tls.crt: {file: a.crt}, tls.key: {file: a.key}}]}"
    loaded = standalone.load(PASSTHROUGH.format(first="TLS", tls=listener), "gw.yaml")
    assert [each for each in loaded.problems if "leads back" in str(each)] == []


@pytest.mark.parametrize("protocol", ROUTES)
def test_a_bind_that_leads_to_itself_is_named(protocol: str) -> None:
    assert wrong(protocol, "[::1]:9001", "10.0.0.1:80") == [field(protocol, 0, 0)]


@pytest.mark.parametrize(
    ("first", "back", "weight"),
    [
        ("127.0.0.1:9002", "10.0.0.2:9001", 1),  # on by the second
        ("127.0.0.2:9002", "127.0.0.1:9001", 1),  # which does not listen there
        ("127.0.0.1:9001", "127.0.0.1:9001", 0),  # never taken; the second leads to the first, which leads nowhere
        ("other.example:9001", "unix:/run/a", 1),
    ],
)
def test_what_leads_elsewhere_passes(first: str, back: str, weight: int) -> None:
    assert wrong("TCP", first, back, weight) == []
