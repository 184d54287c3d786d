"""The list of settings that wait: found from the models, refused by name, counted, and only ever shorter."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.checks.honoured import DECIDED, HONOURED, LISTENER_PROTOCOLS, STANDALONE, VALUES, decided
from gatewright.api.checks.unsupported import Step, tree, unsupported_fields
from gatewright.api.decode.documents import decode_object
from gatewright.api.generate.waiting import by_decision, is_list, model_of, page, refused, unserved, waiting
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import Model, model_in
from gatewright.api.standalone.standalone import load

# How many settings wait, by kind. Whoever makes one work lowers a number; nothing raises one but a new setting of the
# spec.
WAITING = {
    "Gateway": 0,
    "ListenerSet": 0,
    "HTTPRoute": 0,
    "GRPCRoute": 0,
    **dict.fromkeys(("TLSRoute", "TCPRoute", "UDPRoute"), 0),
    "GatewayPolicy": 0,
    "BackendTLSPolicy": 0,
    "GatewayBackend": 0,
    "GatewayParameters": 0,
    STANDALONE: 0,
}
UNSERVED: dict[str, int] = {}

ROWS = [(kind, row.removeprefix("-")) for kind, rows in HONOURED.items() for row in rows]
FIELDS = [(kind, path) for kind, fields in refused().items() for path in fields]


def test_the_list_only_shrinks() -> None:
    assert {kind: sum(map(len, fields.values())) for kind, fields in waiting().items()} == WAITING
    assert {kind: len(settings) for kind, settings in unserved().items()} == UNSERVED
    assert LISTENER_PROTOCOLS == ()


OF_REQUESTS = (
    *("ai", "mcp", "a2a", "aws"),
    *(f"policies.{name}" for name in ("http", "auth", "ai", "mcp", "hash", "transformation", "extAuthz")),
)
OF_CONNECTIONS = ("dynamicForwardProxy", *(f"policies.{name}" for name in ("tcp", "tls", "tunnel", "limits")))


def test_what_is_refused_by_decision_waits_for_nothing() -> None:
    """And each row names settings of the kinds that the page gives."""
    assert by_decision() == {
        "filters[].extensionRef": ["HTTPRoute", "GRPCRoute"],
        "spec.useDefaultGateways": ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"],
        "spec.defaultScope": ["Gateway"],
        "spec.listeners[].filters": ["Gateway", "ListenerSet"],
        "listeners[].tls.options": ["Gateway", "ListenerSet", STANDALONE],
        "spec.options": ["BackendTLSPolicy"],
        **{f"tcpRoutes[].backends[].{name}": [STANDALONE] for name in OF_REQUESTS},
        **{f"udpRoutes[].backends[].{name}": [STANDALONE] for name in (*OF_REQUESTS, *OF_CONNECTIONS)},
    }
    told = page().partition("## Refused by decision")
    assert [row for row in DECIDED if f"| `{row}` |" not in told[2]] == []
    assert [word for word in ("extensionRef", "useDefaultGateways", "defaultScope", "options") if word in told[0]] == []


def test_the_page_is_current(root: Any) -> None:
    assert (root / "docs/unsupported.md").read_text() == page(), "run scripts/gen-api"


def test_no_row_is_there_twice() -> None:
    assert len(ROWS) == len(set(ROWS))


@pytest.mark.parametrize(("kind", "path"), ROWS)
def test_a_row_names_a_field(kind: str, path: str) -> None:
    annotation: Any = model_of(kind)
    for name in path.split("."):
        model = model_in(annotation)
        assert model is not None, path
        fields = {field.alias or attribute: field for attribute, field in model.model_fields.items()}
        assert name.removesuffix("[]") in fields, path
        annotation = fields[name.removesuffix("[]")].annotation
        assert is_list(annotation) or not name.endswith("[]"), path


def steps(kind: str, path: str) -> list[Step]:
    """The way to a refused field."""
    below, way = tree(kind, model_of(kind)), []
    for name in path.partition(": ")[0].replace("[]", "").split("."):
        step = next(each for each in below if each.name == name)
        way.append(step)
        below = step.below
    return way


@pytest.mark.parametrize(("kind", "path"), FIELDS)
def test_a_field_is_refused_by_name(kind: str, path: str) -> None:
    """An object in which exactly this field is set, whatever its value."""
    field, _, only = path.partition(": ")
    value: Any = only or "anything"
    for step in reversed(steps(kind, path)):
        value = (value,) if is_list(step.annotation) else value
        value = holder(step.attribute, value)
    (found,) = unsupported_fields(kind, model_of(kind), value)
    names = [part for part in found.path if isinstance(part, str)]
    assert ".".join(names) == field.replace("[]", "")
    if only:
        assert found.message == f"not supported yet: {only}"
        return
    row = decided(path)
    why = "not supported yet: " if row is None else f"not supported: {DECIDED[row]}; "
    assert found.message == f"{why}remove {names[-1]} to have the rest accepted"


class Holder(Model):
    """A stand-in for a part of an object: what is not set is None."""

    def __getattr__(self, name: str) -> Any:
        return None


def holder(attribute: str, value: Any) -> Holder:
    made = Holder.model_construct(_fields_set={attribute})
    made.__dict__[attribute] = value
    return made


@pytest.mark.parametrize(("mode", "found"), [("None", [("spec.traffic.hostRewrite.mode", "None")]), ("Auto", [])])
def test_a_value_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, mode: str, found: list[tuple[str, str]]) -> None:
    """Where the field itself works: wherever its model stands, also for kinds that a reference may have."""
    monkeypatch.setitem(VALUES, ("HostnameRewrite", "mode"), ("None",))
    monkeypatch.setitem(HONOURED, f"With {mode}", HONOURED["GatewayPolicy"])
    model = model_of("GatewayPolicy")
    policy = model.model_validate(
        {**META, "kind": "GatewayPolicy", "spec": {"targetRefs": [TARGET], "traffic": {"hostRewrite": {"mode": mode}}}}
    )
    refused = unsupported_fields(f"With {mode}", model, policy)
    assert [(".".join(map(str, each.path)), each.message) for each in refused] == [
        (path, f"not supported yet: {value}") for path, value in found
    ]


def test_a_default_is_not_a_setting() -> None:
    """An API server writes it into an object where its user wrote nothing."""
    written = {}
    for kind in HONOURED:
        for place, field, default in defaults(tree(kind, model_of(kind)), model_of(kind)):
            if default is not None and default != ():
                written[f"{kind} {place}"] = {**written.get(f"{kind} {place}", {}), field: default}
    written.pop("BackendTLSPolicy BackendTLSPolicySpec")  # `options`, which no API server fills in
    assert written == {}, "what nobody set would be refused"


def test_a_default_of_what_waits_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No field with a default waits any more; should one come back, this is what happens."""
    monkeypatch.setitem(HONOURED, "Old", ("spec.targetRefs", "spec.frontend.http.trustedHops"))
    http = {"maxBufferSize": "2mb", "http1MaxHeaders": 100, "http1IdleTimeout": "10m", "http2FrameSize": "16kb"}
    model = model_of("GatewayPolicy")
    for others, count in (({}, 0), ({"maxBufferSize": "3mb"}, 1), ({"http1MaxHeaders": 99}, 1)):
        spec = {"targetRefs": [GATEWAY], "frontend": {"http": {**http, **others}}}
        found = model.model_validate({**META, "kind": "GatewayPolicy", "spec": spec})
        assert len(unsupported_fields("Old", model, found)) == count


def defaults(found: tuple[Step, ...], model: type[Model]) -> list[tuple[str, str, Any]]:
    rows: list[tuple[str, str, Any]] = []
    for step in found:
        field = model.model_fields[step.attribute]
        if step.refused:
            rows += (
                []
                if field.is_required()
                else [(model.__name__, step.name, field.get_default(call_default_factory=True))]
            )
        else:
            inside: Any = model_in(field.annotation)
            rows += defaults(step.below, inside)
    return rows


META = {"apiVersion": "gatewright.dev/v1alpha1", "metadata": {"name": "a"}}
TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}


GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}


@pytest.mark.usefixtures("a_setting_waits")
@pytest.mark.parametrize(
    ("kind", "spec", "verdict", "paths"),
    [
        ("GatewayBackend", {"static": {"host": "a", "port": 1}}, "valid", []),
        ("GatewayBackend", {"a2a": {"host": "a", "port": 1}}, "valid", []),
        ("GatewayBackend", {"dynamicForwardProxy": {}}, "valid", []),
        ("GatewayPolicy", {"targetRefs": [TARGET]}, "valid", []),
        ("GatewayPolicy", {"targetRefs": [TARGET], "traffic": {"buffer": {}}}, "valid", []),
        (
            "GatewayPolicy",
            {
                "targetRefs": [TARGET],
                "traffic": {"csrf": {}},
                "backend": {"ai": {"promptCaching": {}}},
            },
            "unsupported",
            ["spec.backend.ai.promptCaching"],
        ),
        ("GatewayParameters", {"shutdown": {"min": 1, "max": 2}}, "valid", []),
        ("GatewayParameters", {}, "valid", []),
    ],
)
def test_verdicts(kind: str, spec: dict[str, Any], verdict: str, paths: list[str]) -> None:
    decoded = decode_object({**META, "kind": kind, "spec": spec}, "api")
    assert (decoded.verdict, [problem.path for problem in decoded.problems]) == (verdict, paths)
    assert all(problem.unsupported for problem in decoded.problems)


@pytest.mark.usefixtures("a_setting_waits")
@pytest.mark.parametrize(
    ("policies", "path"),
    [
        ("{ai: {promptCaching: {}}}", "ai.promptCaching"),
    ],
)
def test_the_file_refuses_what_waits(policies: str, path: str) -> None:
    """Also where a server that a policy calls has policies of its own."""
    text = f"""
binds:
  - port: 8080
    listeners:
      - routes:
          - backends: [{{host: "127.0.0.1:9000"}}]
            policies: {policies}
"""
    (problem,) = load(text, "f.yaml").errors
    assert problem.path == f"binds[0].listeners[0].routes[0].policies.{path}"
    assert problem.unsupported
    assert problem.line == 7


def test_every_kind_is_served_or_listed() -> None:
    assert set(unserved()) == {kind for kind, info in KINDS.items() if not info.served}
    # Read all the same, for their conditions; what is refused by decision is refused there too.
    assert set(unserved()) & set(HONOURED) == set()


def test_the_page_has_no_section_without_settings() -> None:
    assert "```\n```" not in page() and "| --- | --- |\n\n" not in page()
